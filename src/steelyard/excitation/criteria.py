"""How good a motion is, as a function of the eigenvalues of its information matrix G = WᵀW.

Every criterion here depends on the eigenvalues λ alone, so its gradient is V diag(∂f/∂λ) Vᵀ. What is minimised is a
smooth `objective`: where the largest or smallest eigenvalue counts, a p-norm stands in for it (`sharpness` p), because
at an optimum several eigenvalues meet there and the criterion itself has a kink. `value` is the criterion itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.ground.arrays import Array

# A direction that a motion does not show at all has an eigenvalue of rounding; it must not become negative.
_FLOOR = 1e-15
Objective = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True)
class Criterion:
    """A function of the eigenvalues (ascending) of G.

    `value` is what is reported; smaller is better unless `larger_is_better`. `objective(λ, sharpness)` is what is
    minimised, with its derivative: an increasing function of the criterion, smooth for finite sharpness and exact
    for an infinite one.
    """

    name: str
    of: str
    value: Callable[[Array], float]
    objective: Objective
    larger_is_better: bool = False

    def __call__(self, gram: Array) -> float:
        return self.value(eigenvalues(gram))

    def gradient(self, gram: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """The objective and its derivative with respect to G."""
        raw, vectors = np.linalg.eigh(gram)
        objective, slope = self.objective(_floored(raw), sharpness)
        return objective, (vectors * slope) @ vectors.T


def eigenvalues(gram: Array) -> Array:
    """Ascending, with rounding below the smallest representable share of the largest lifted to it."""
    return _floored(np.linalg.eigvalsh(gram))


def _floored(raw: Any) -> Array:
    if not np.all(np.isfinite(raw)) or raw[-1] <= 0.0:
        raise ExcitationError("The motion shows nothing at all: its information matrix is zero or not finite.")
    return np.asarray(np.maximum(raw, _FLOOR * raw[-1]))


def _log_largest(x: Array, sharpness: float) -> tuple[float, Array]:
    """log of the largest of x > 0, or of its p-norm, and the derivative."""
    if np.isinf(sharpness):
        k = int(np.argmax(x))
        slope = np.zeros_like(x)
        slope[k] = 1.0 / x[k]
        return float(np.log(x[k])), slope
    relative = (x / x.max()) ** sharpness
    total = float(relative.sum())
    return float(np.log(x.max()) + np.log(total) / sharpness), relative / (total * x)


def _log_cond(power: float) -> Objective:
    def objective(x: Array, sharpness: float) -> tuple[float, Array]:
        high, dhigh = _log_largest(x, sharpness)
        low, dlow = _log_largest(1.0 / x, sharpness)
        return power * (high + low), power * (dhigh - dlow / x**2)

    return objective


def _log_weakest(power: float) -> Objective:
    def objective(x: Array, sharpness: float) -> tuple[float, Array]:
        low, dlow = _log_largest(1.0 / x, sharpness)
        return power * low, -power * dlow / x**2

    return objective


def _log_frobenius(x: Array, sharpness: float) -> tuple[float, Array]:
    return _log_cond(1.0)(x, 2.0)  # ‖G‖_F = (Σ λ²)^½: the 2-norm of the eigenvalues


def _log_trace(x: Array, sharpness: float) -> tuple[float, Array]:
    total = float(np.sum(1.0 / x))
    return float(np.log(total)), -1.0 / (x**2 * total)


def _minus_log_det(x: Array, sharpness: float) -> tuple[float, Array]:
    return -float(np.sum(np.log(x))), -1.0 / x


def condition_number(gram: Array) -> float:
    """cond₂(W) from WᵀW; infinite where a column is not shown."""
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0.0 else float("inf")


CRITERIA: dict[str, Criterion] = {
    c.name: c
    for c in (
        Criterion("cond", "cond₂(W)", lambda x: float(np.sqrt(x[-1] / x[0])), _log_cond(0.5)),
        Criterion("information", "cond₂(WᵀW)", lambda x: float(x[-1] / x[0]), _log_cond(1.0)),
        Criterion(
            "frobenius",
            "‖WᵀW‖_F ‖(WᵀW)⁻¹‖_F",
            lambda x: float(np.sqrt(np.sum(x**2) * np.sum(x**-2.0))),
            _log_frobenius,
        ),
        Criterion("d", "−log det(WᵀW)", lambda x: -float(np.sum(np.log(x))), _minus_log_det),
        Criterion("a", "trace (WᵀW)⁻¹", lambda x: float(np.sum(1.0 / x)), _log_trace),
        Criterion("e", "λ_min(WᵀW)", lambda x: float(x[0]), _log_weakest(1.0), larger_is_better=True),
        Criterion("sigma", "σ_min(W)", lambda x: float(np.sqrt(x[0])), _log_weakest(0.5), larger_is_better=True),
    )
}


def criterion_named(name: str | Criterion) -> Criterion:
    if isinstance(name, Criterion):
        return name
    if name not in CRITERIA:
        raise UnknownNameError("criterion", name, CRITERIA)
    return CRITERIA[name]
