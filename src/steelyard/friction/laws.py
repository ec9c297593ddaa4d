"""Friction laws: sums of joint terms, their fit to measured points, and the choice among them.

A law is linear in its coefficients for a fixed shape (a Stribeck speed), so a fit is linear least squares inside a
search over at most one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.friction import Coulomb, Quadratic, Stribeck, StribeckAtan, Viscous
from steelyard.parameters.term import Term

# Slope of the arctangent [s/rad]: so steep that it is a sign, as the published law is at the speeds of plateaus.
_STEEP = 1e300


@short_repr
@dataclass(frozen=True)
class Law:
    """A friction law: a sum of joint terms with at most one shape parameter.

    Args:
        name: Name in files and commands.
        terms: Joint terms.
        shape: Option of a term that is fitted as well; "" for none.
        both_ways: Each direction has separate coefficients.
    """

    name: str
    terms: tuple[Term, ...]
    shape: str = ""
    both_ways: bool = False

    @property
    def shaped(self) -> bool:
        return bool(self.shape)

    @property
    def symbols(self) -> tuple[str, ...]:
        plain = [column.symbol for term in self.terms for column in term.columns]
        return tuple(f"{s}{side}" for side in "pn" for s in plain) if self.both_ways else tuple(plain)

    @property
    def least(self) -> Array:
        """Lower bounds of the coefficients: friction dissipates energy."""
        plain = [column.lower for term in self.terms for column in term.columns]
        return np.array(plain * 2 if self.both_ways else plain)

    @property
    def unknowns(self) -> int:
        return len(self.symbols) + int(self.shaped)

    @property
    def speeds_needed(self) -> int:
        """Number of different speeds that make the unknowns identifiable; both directions may share them."""
        return self.unknowns // 2 if self.both_ways else self.unknowns

    def terms_at(self, speed: float) -> tuple[Term, ...]:
        """Return the terms with the shape parameter `speed` [rad/s or m/s]."""
        return tuple(term.shaped(self.shape, speed) for term in self.terms)

    def columns(self, v: Array, shape: float) -> list[Array]:
        """Compute the columns of the regression: friction is their sum, weighted by the coefficients.

        Args:
            v: Velocities [rad/s or m/s].
            shape: Shape parameter [rad/s or m/s].
        """
        columns = [np.broadcast_to(c, np.shape(v)) for term in self.terms_at(shape) for c in term.force(0.0, v)]
        if not self.both_ways:
            return columns
        return [np.where(v > 0.0, c, 0.0) for c in columns] + [np.where(v < 0.0, c, 0.0) for c in columns]


_PLAIN = (
    Law("coulomb-viscous", (Coulomb(), Viscous())),
    Law("tustin", (Coulomb(), Stribeck(), Viscous()), shape="speed"),
    Law("stribeck-atan", (StribeckAtan(Kv=_STEEP),), shape="delta"),
    Law("quadratic", (Coulomb(), Viscous(), Quadratic())),
)
LAWS: dict[str, Law] = {
    law.name: law for law in (*_PLAIN, *(replace(x, name=f"{x.name}-asymmetric", both_ways=True) for x in _PLAIN))
}


def law_named(name: str) -> Law:
    """Return the law `name`."""
    if name not in LAWS:
        raise UnknownNameError("law of friction", name, LAWS)
    return LAWS[name]


@short_repr
@dataclass(frozen=True, eq=False)
class FittedLaw:
    """A law with its coefficients. Call it with velocities [rad/s or m/s] to get friction [N m or N].

    Attributes:
        law: Law.
        coefficients: Coefficients at the reference temperature.
        covariance: Covariance of coefficients, slopes, load gain and logarithm of the shape, as far as they exist.
        shape: Shape parameter [rad/s or m/s].
        slopes: Change of the coefficients per °C; None: no dependence on temperature.
        reference: Reference temperature [°C].
        range: Range of measured temperatures [°C]; others are refused.
        load_gain: Increase of dry friction per N m (N) of load on the gear.
        fastest: Fastest measured speed [rad/s or m/s].
    """

    law: Law
    coefficients: Array
    covariance: Array
    shape: float = 1.0
    slopes: Array | None = None
    reference: float = 0.0
    range: tuple[float, float] = (-np.inf, np.inf)
    load_gain: float = 0.0
    fastest: float = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", frozen(self.coefficients))
        object.__setattr__(self, "covariance", frozen(self.covariance))

    def __call__(self, velocity: ArrayLike, temperature: float | None = None, load: ArrayLike = 0.0) -> Array:
        """Compute friction [N m or N].

        Args:
            velocity: Velocities [rad/s or m/s].
            temperature: Temperature [°C]; None for the reference.
            load: Load on the gear [N m or N].
        """
        v = np.asarray(velocity, dtype=float)
        out = np.stack(self.law.columns(v, self.shape), axis=-1) @ self._at(temperature)
        return np.asarray(out + self.load_gain * np.sign(v) * np.abs(np.asarray(load, dtype=float)))

    def _at(self, temperature: float | None) -> Array:
        if self.slopes is None or temperature is None:
            return self.coefficients
        low, high = self.range
        if not low <= temperature <= high:
            raise SteelyardError(
                f"The friction was measured from {low:g} to {high:g} °C; {temperature:g} °C is outside this range."
            )
        return np.asarray(self.coefficients + self.slopes * (temperature - self.reference))

    @property
    def impossible(self) -> tuple[str, ...]:
        """Symbols of the coefficients with an impossible sign, which would drive the joint.

        A Stribeck coefficient may be negative as long as the whole curve dissipates energy. If the curve drives the
        joint at any speed up to the fastest, all negative coefficients count as impossible.
        """
        below = self.coefficients < self.law.least
        speeds = np.geomspace(1e-4, 1.0, 40) * (self.fastest if np.isfinite(self.fastest) else 1.0)
        if np.any(self(speeds) < 0.0) or np.any(self(-speeds) > 0.0):
            below |= self.coefficients < 0.0
        return tuple(s for s, wrong in zip(self.law.symbols, below, strict=True) if wrong)

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def band(self, velocity: ArrayLike) -> Array:
        """Compute the standard error of the curve at `velocity` [rad/s or m/s] and the reference temperature."""
        v = np.asarray(velocity, dtype=float)
        X = np.stack(self.law.columns(v, self.shape), axis=-1)
        indices = [*range(X.shape[-1])]
        if self.law.shaped:
            sensitivity = _sensitivity(lambda s: np.stack(self.law.columns(v, s), axis=-1), self.shape)
            X = np.concatenate([X, (sensitivity @ self.coefficients)[..., None]], axis=-1)
            indices.append(len(self.covariance) - 1)
        block = self.covariance[np.ix_(indices, indices)]
        return np.asarray(np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", X, block, X), 0.0)))


def fit_law(
    law: Law,
    velocity: Array,
    torque: Array,
    error: Array,
    temperature: Array | None = None,
    load: Array | None = None,
) -> FittedLaw:
    """Fit a law to points by weighted least squares.

    Args:
        law: Law.
        velocity: Velocities of the points [rad/s or m/s].
        torque: Friction of the points [N m or N].
        error: Standard errors of the friction.
        temperature: Temperatures of the points [°C]; each coefficient then has a slope as well.
        load: Load on the gear [N m or N]; dry friction then increases with its magnitude.
    """
    v, y, weights = velocity, torque, 1.0 / np.maximum(error, 1e-12)
    reference = 0.0 if temperature is None else float(np.mean(temperature))
    if len(v) < law.unknowns * (1 if temperature is None else 2):
        raise SteelyardError(f"{len(v)} points cannot fit the {law.unknowns} unknowns of '{law.name}'.")

    def design(shape: float) -> Array:
        X = np.stack(law.columns(v, shape), axis=-1)
        parts = [X]
        if temperature is not None:
            parts.append(X * (temperature - reference)[:, None])
        if load is not None:
            parts.append((np.sign(v) * np.abs(load))[:, None])
        return np.hstack(parts)

    def cost(log_shape: float) -> float:
        X = design(np.exp(log_shape)) * weights[:, None]
        beta = np.linalg.lstsq(X, y * weights, rcond=None)[0]
        return float(np.sum((X @ beta - y * weights) ** 2))

    shape = _best_shape(cost, np.abs(v)) if law.shaped else 1.0
    X = design(shape) * weights[:, None]
    beta: Array = np.asarray(np.linalg.lstsq(X, y * weights, rcond=None)[0], dtype=np.float64)
    spare = max(len(y) - X.shape[1] - int(law.shaped), 1)
    # An inexact law increases the scatter of the points beyond their errors; the covariance follows the scatter.
    scatter = max(1.0, float(np.sum((X @ beta - y * weights) ** 2)) / spare)
    if law.shaped:
        X = np.column_stack([X, (_sensitivity(design, shape) @ beta) * weights])
    covariance = np.linalg.pinv(X.T @ X) * scatter
    count = len(law.symbols)
    return FittedLaw(
        law,
        beta[:count],
        covariance,
        shape,
        slopes=None if temperature is None else beta[count : 2 * count],
        reference=reference,
        range=(-np.inf, np.inf) if temperature is None else (float(np.min(temperature)), float(np.max(temperature))),
        load_gain=0.0 if load is None else float(beta[-1]),
        fastest=float(np.max(np.abs(v))),
    )


def _sensitivity(columns: Callable[[float], Array], shape: float) -> Array:
    """Return the derivative of the columns with respect to the logarithm of the shape."""
    step = 1e-4
    return np.asarray((columns(shape * np.exp(step)) - columns(shape * np.exp(-step))) / (2.0 * step))


def _best_shape(cost: Callable[[float], float], speeds: Array) -> float:
    """Find the best Stribeck speed between the slowest and the fastest point: grid search, then refinement."""
    low, high = np.log(max(float(speeds.min()), 1e-4) / 3.0), np.log(float(speeds.max()))
    grid = np.linspace(low, high, 25)
    values = [cost(x) for x in grid]
    k = int(np.argmin(values))
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # takes a tenth of a second to import

    minimum = minimize_scalar(cost, bounds=(left, right), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(minimum.x if minimum.fun <= values[k] else grid[k]))


@short_repr
@dataclass(frozen=True, eq=False)
class Choice:
    """Choice of a law.

    Attributes:
        fitted: Chosen law, fitted to all points.
        scores: Mean squared error of each candidate on left-out points, in units of their variance.
    """

    fitted: FittedLaw
    scores: dict[str, float]


def choose_law(
    velocity: Array,
    torque: Array,
    error: Array,
    candidates: Sequence[Law] = (),
    temperature: Array | None = None,
    load: Array | None = None,
) -> Choice:
    """Choose the simplest law whose cross-validation error is within one standard error of the best (Breiman's rule).

    Laws with possible signs have priority. All points of one speed and direction are left out together, since points
    that are neighbours in time are not independent.

    Args:
        velocity: Velocities of the points [rad/s or m/s].
        torque: Friction of the points [N m or N].
        error: Standard errors of the friction.
        candidates: Laws to choose from; default: all.
        temperature: As for `fit_law`.
        load: As for `fit_law`.
    """
    laws = list(candidates) or list(LAWS.values())
    both = np.any(velocity > 0.0) and np.any(velocity < 0.0)
    groups = _groups(velocity)
    levels = distinct_speeds(velocity)
    usable = [law for law in laws if (both or not law.both_ways) and levels >= law.speeds_needed]
    scores: dict[str, float] = {}
    standard_errors: dict[str, float] = {}
    for law in usable:
        errors = _left_out(law, groups, velocity, torque, error, temperature, load)
        if errors is not None:
            scores[law.name] = float(np.mean(errors))
            standard_errors[law.name] = float(np.std(errors, ddof=1) / np.sqrt(len(errors)))
    if not scores:
        raise SteelyardError(
            f"{len(velocity)} points at {levels} different speeds are too few for any friction law; measure at more "
            "speeds."
        )
    best = min(scores, key=lambda name: scores[name])
    limit = scores[best] + standard_errors[best]
    near = [law for law in usable if scores.get(law.name, np.inf) <= limit]
    fitted = [fit_law(law, velocity, torque, error, temperature, load) for law in near]
    possible = [one for one in fitted if not one.impossible] or fitted
    return Choice(min(possible, key=lambda one: (one.law.unknowns, scores[one.law.name])), scores)


def distinct_speeds(velocity: Array) -> int:
    """Count the speeds in `velocity` that differ by more than 10 %."""
    levels = np.sort(np.abs(velocity))
    return int(np.count_nonzero(np.diff(np.log(levels)) > 0.1)) + 1 if len(levels) else 0


def _groups(velocity: Array) -> list[Array]:
    """Group the indices of points of equal direction and speed, within 3 %."""
    order = np.argsort(velocity)
    out: list[list[int]] = []
    for k in order:
        if out and abs(velocity[k] - velocity[out[-1][0]]) <= 0.03 * abs(velocity[k]):
            out[-1].append(int(k))
        else:
            out.append([int(k)])
    return [np.array(g) for g in out]


def _left_out(
    law: Law,
    groups: Sequence[Array],
    v: Array,
    y: Array,
    error: Array,
    temperature: Array | None,
    load: Array | None,
) -> Array | None:
    """Compute squared errors of the points of each group, in standard errors, by a fit to the other groups."""
    out = []
    for group in groups:
        rest = np.setdiff1d(np.arange(len(v)), group)
        others = v[rest]
        fewest = min(np.sum(others > 0), np.sum(others < 0))
        if len(rest) < law.unknowns or (law.both_ways and fewest <= law.speeds_needed):
            return None
        fitted = fit_law(
            law, v[rest], y[rest], error[rest],
            None if temperature is None else temperature[rest], None if load is None else load[rest],
        )  # fmt: skip
        for k in group:
            warm = None if temperature is None else float(np.clip(temperature[k], *fitted.range))
            value = fitted(v[k], warm, 0.0 if load is None else load[k])
            out.append(float(((value - y[k]) / max(error[k], 1e-12)) ** 2))
    return np.array(out) if len(out) >= 3 else None
