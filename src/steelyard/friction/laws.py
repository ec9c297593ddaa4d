"""Laws of friction over velocity: joint terms together, how they are fitted to measured points, and chosen.

Every law is linear in its coefficients once its shape (a Stribeck speed) is fixed, so that fitting is a least-squares
problem inside a search over one number at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.parameters.friction import Coulomb, Quadratic, Stribeck, StribeckAtan, Viscous
from steelyard.parameters.term import Term

# s/rad: an arctangent so steep is a sign, which the printed law's is too at the speeds that plateaus have.
_STEEP = 1e300


@dataclass(frozen=True)
class Law:
    """Joint terms whose sum is friction over velocity, with one shape among them at most.

    Args:
        name: what files and commands call it.
        terms: those it is made of.
        shape: the option of one of them that is fitted too, "" for none.
        both_ways: whether each direction has coefficients of its own.
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
        """The least that each coefficient can be: friction brakes."""
        plain = [column.lower for term in self.terms for column in term.columns]
        return np.array(plain * 2 if self.both_ways else plain)

    @property
    def unknowns(self) -> int:
        return len(self.symbols) + int(self.shaped)

    @property
    def speeds_needed(self) -> int:
        """How many different speeds tell its unknowns apart; both directions may share them."""
        return self.unknowns // 2 if self.both_ways else self.unknowns

    def terms_at(self, speed: float) -> tuple[Term, ...]:
        """The terms with the shape at `speed` (rad/s or m/s)."""
        return tuple(term.shaped(self.shape, speed) for term in self.terms)

    def columns(self, v: Array, shape: float) -> list[Array]:
        """Functions of velocity `v` (rad/s, m/s) whose sum, times coefficients, is friction, bent at speed `shape`."""
        made = [np.broadcast_to(c, np.shape(v)) for term in self.terms_at(shape) for c in term.force(0.0, v)]
        if not self.both_ways:
            return made
        return [np.where(v > 0.0, c, 0.0) for c in made] + [np.where(v < 0.0, c, 0.0) for c in made]


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
    """The law called `name`."""
    if name not in LAWS:
        raise UnknownNameError("law of friction", name, LAWS)
    return LAWS[name]


@dataclass(frozen=True, eq=False)
class FittedLaw:
    """A law with its coefficients: call it with velocities (rad/s, m/s) to get torques (N m, N).

    With temperatures in the data the coefficients are `coefficients` + `slopes`·(T − `reference`), and a temperature
    outside `range` is refused. `load_gain` is what dry friction grows by per N m (N) of load on the gear. `covariance`
    is of the coefficients, then the slopes, the load's gain and the logarithm of the shape, where there are any.
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
        """Friction at `velocity` (rad/s, m/s), `temperature` (°C; None: the reference) and `load` (N m, N)."""
        v = np.asarray(velocity, dtype=float)
        out = np.stack(self.law.columns(v, self.shape), axis=-1) @ self._at(temperature)
        return np.asarray(out + self.load_gain * np.sign(v) * np.abs(np.asarray(load, dtype=float)))

    def _at(self, temperature: float | None) -> Array:
        if self.slopes is None or temperature is None:
            return self.coefficients
        low, high = self.range
        if not low <= temperature <= high:
            raise SteelyardError(
                f"The friction was measured from {low:g} to {high:g} °C; {temperature:g} °C lies outside."
            )
        return np.asarray(self.coefficients + self.slopes * (temperature - self.reference))

    @property
    def impossible(self) -> tuple[str, ...]:
        """The coefficients, by symbol, whose sign no friction has: they would drive the joint.

        Some may be negative as long as all together brake: a Stribeck part may take from the dry one, but not more than
        there is. So where the whole curve drives at any speed up to the fastest, its negative ones are impossible.
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
        """Standard error of the curve at `velocity` (rad/s, m/s), at the reference temperature."""
        v = np.asarray(velocity, dtype=float)
        X = np.stack(self.law.columns(v, self.shape), axis=-1)
        places = [*range(X.shape[-1])]
        if self.law.shaped:
            bend = _bend(lambda s: np.stack(self.law.columns(v, s), axis=-1), self.shape) @ self.coefficients
            X = np.concatenate([X, bend[..., None]], axis=-1)
            places.append(len(self.covariance) - 1)
        some = self.covariance[np.ix_(places, places)]
        return np.asarray(np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", X, some, X), 0.0)))


def fit_law(
    law: Law,
    velocity: Array,
    torque: Array,
    error: Array,
    temperature: Array | None = None,
    load: Array | None = None,
) -> FittedLaw:
    """Weighted least squares of a law through points with standard errors.

    Args:
        law: what is fitted.
        velocity: of the points, rad/s (m/s).
        torque: of friction, N m (N).
        error: standard errors of the torque.
        temperature: of the points, °C; every coefficient then also has a slope over it.
        load: on the gear, N m (N); dry friction then grows with its size.
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
    # Points scatter more than their own errors say where the law is not quite true; error bars then follow the scatter.
    scatter = max(1.0, float(np.sum((X @ beta - y * weights) ** 2)) / spare)
    if law.shaped:
        X = np.column_stack([X, (_bend(design, shape) @ beta) * weights])
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


def _bend(columns: Callable[[float], Array], shape: float) -> Array:
    """How the columns change with the logarithm of the shape."""
    step = 1e-4
    return np.asarray((columns(shape * np.exp(step)) - columns(shape * np.exp(-step))) / (2.0 * step))


def _best_shape(cost: Callable[[float], float], speeds: Array) -> float:
    """The Stribeck speed, between the slowest point and the fastest: best of a grid, then refined."""
    low, high = np.log(max(float(speeds.min()), 1e-4) / 3.0), np.log(float(speeds.max()))
    grid = np.linspace(low, high, 25)
    values = [cost(x) for x in grid]
    k = int(np.argmin(values))
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # takes a tenth of a second to import

    found = minimize_scalar(cost, bounds=(left, right), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x if found.fun <= values[k] else grid[k]))


@dataclass(frozen=True, eq=False)
class Choice:
    """The law that was chosen, fitted to all points, and what every candidate's error was on points left out."""

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
    """The simplest law whose error on left-out points is within one standard error of the best (Breiman's rule), of
    those whose coefficients friction can have, where there is one among them.

    `candidates` (none: all laws) are fitted to points of `velocity`, `torque`, `error`, `temperature` and `load` as in
    `fit_law`.
    Points of one speed and direction are left out together: their neighbours in time are no independent witnesses.
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
            f"{len(velocity)} points at {levels} different speeds are too few for any law of friction; measure at more "
            "speeds."
        )
    best = min(scores, key=lambda name: scores[name])
    limit = scores[best] + standard_errors[best]
    near = [law for law in usable if scores.get(law.name, np.inf) <= limit]
    fitted = [fit_law(law, velocity, torque, error, temperature, load) for law in near]
    possible = [one for one in fitted if not one.impossible] or fitted
    return Choice(min(possible, key=lambda one: (one.law.unknowns, scores[one.law.name])), scores)


def distinct_speeds(velocity: Array) -> int:
    """How many different speeds there are in `velocity`, to 10 %."""
    levels = np.sort(np.abs(velocity))
    return int(np.count_nonzero(np.diff(np.log(levels)) > 0.1)) + 1 if len(levels) else 0


def _groups(velocity: Array) -> list[Array]:
    """Indices of points whose speeds are the same within 3 %, by direction."""
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
    """Squared errors of the points of each group, in their own standard errors, by a fit to the others."""
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
