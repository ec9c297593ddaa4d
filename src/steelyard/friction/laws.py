"""Laws of friction over velocity: what they look like, and how they are fitted to measured points.

Every law is linear in its coefficients once its shape (a Stribeck speed) is fixed, so that fitting is a least-squares
problem inside a search over one number at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array, frozen

Columns = Callable[[Array, float], list[Array]]


@dataclass(frozen=True)
class Law:
    """`columns(v, shape)` are the functions of velocity whose sum, times the coefficients, is friction."""

    name: str
    symbols: tuple[str, ...]
    columns: Columns
    shaped: bool = False

    @property
    def unknowns(self) -> int:
        return len(self.symbols) + int(self.shaped)


def _coulomb_viscous(v: Array, shape: float) -> list[Array]:
    return [np.sign(v), v]


def _tustin(v: Array, shape: float) -> list[Array]:
    return [np.sign(v), np.sign(v) * np.exp(-np.abs(v) / shape), v]


def _stribeck_atan(v: Array, shape: float) -> list[Array]:
    # The steep arctangent of the printed law is a sign at the speeds that plateaus have.
    return [np.sign(v), 2.0 / np.pi * np.arctan(v / shape), v]


def _quadratic(v: Array, shape: float) -> list[Array]:
    return [np.sign(v), v, np.abs(v) * v]


def _both_ways(columns: Columns) -> Columns:
    """The same law with coefficients of its own in each direction."""

    def split(v: Array, shape: float) -> list[Array]:
        made = columns(v, shape)
        return [np.where(v > 0.0, c, 0.0) for c in made] + [np.where(v < 0.0, c, 0.0) for c in made]

    return split


_PLAIN = (
    Law("coulomb-viscous", ("Fc", "Fv"), _coulomb_viscous),
    Law("tustin", ("Fc", "Fst", "Fv"), _tustin, shaped=True),
    Law("stribeck-atan", ("Fs", "Fsc", "Fsv"), _stribeck_atan, shaped=True),
    Law("quadratic", ("Fc", "Fv", "F2"), _quadratic),
)
LAWS: dict[str, Law] = {law.name: law for law in _PLAIN} | {
    f"{law.name}-asymmetric": Law(
        f"{law.name}-asymmetric",
        tuple(f"{s}{side}" for side in "pn" for s in law.symbols),
        _both_ways(law.columns),
        law.shaped,
    )
    for law in _PLAIN
}


def law_named(name: str) -> Law:
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
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def band(self, velocity: ArrayLike) -> Array:
        """Standard error of the curve at some velocities, at the reference temperature."""
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

    With `temperature` every coefficient also has a slope over it; with `load` dry friction grows with the load's size.
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
