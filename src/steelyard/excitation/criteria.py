"""How good a motion is, as a function of the eigenvalues of its information matrix G = WᵀW.

Every criterion here depends on the eigenvalues λ alone, so its gradient is V diag(∂f/∂λ) Vᵀ. What is minimised is a
smooth `objective`: where the largest or smallest eigenvalue counts, a p-norm stands in for it (`sharpness` p), because
at an optimum several eigenvalues meet there and the criterion itself has a kink. `value` is the criterion itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.ground.arrays import Array

# Views of an information matrix: in other units, another basis, or with some parameters unknown but unwanted.
#
# A view maps G to the matrix that a criterion looks at, and carries derivatives back. Conditioning means nothing
# without them, so a view can say what it does. Those of columns take stacks of matrices, too, wherever they lie.


class View(Protocol):
    """Another look at an information matrix: `forward` from a `gram`, and `backward` a slope."""

    @property
    def label(self) -> str:
        """What this does to the columns, in words."""
        ...

    def forward(self, gram: Array) -> Array: ...

    def backward(self, gram: Array, slope: Array) -> Array:
        """∂f/∂G from `slope` = ∂f/∂(forward(G))."""
        ...


class Linear:
    """Columns W T, T the `matrix`: another basis of the same parameters, or other units. `label` says so in words;
    `gram` is WᵀW, `slope` that of the criterion behind."""

    def __init__(self, matrix: Array, label: str) -> None:
        self.matrix, self.label = np.asarray(matrix, dtype=float), label

    def forward(self, gram: Array) -> Array:
        matrix = np.asarray(self.matrix, like=gram)
        out: Array = matrix.T @ gram @ matrix
        return out

    def backward(self, gram: Array, slope: Array) -> Array:
        matrix = np.asarray(self.matrix, like=gram)
        out: Array = matrix @ slope @ matrix.T
        return out


class UnitColumns:
    """Every column scaled to unit norm: G_ij / √(G_ii G_jj). `gram` is WᵀW, `slope` that of the criterion behind."""

    label = "columns scaled to unit norm"

    def forward(self, gram: Array) -> Array:
        scale = self._scale(gram)
        out: Array = gram / scale[..., :, None] / scale[..., None, :]
        return out

    def backward(self, gram: Array, slope: Array) -> Array:
        scale = self._scale(gram)
        scaled = slope / scale[..., :, None] / scale[..., None, :]
        # ∂/∂G_ii through both factors 1/√G_ii
        through = np.sum(scaled * gram, axis=-1) / scale**2
        out: Array = scaled - through[..., None] * np.asarray(np.eye(gram.shape[-1]), like=gram)
        return out

    @staticmethod
    def _scale(gram: Array) -> Array:
        diagonal = np.diagonal(gram, axis1=-2, axis2=-1)
        return np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))


class Wanted:
    """Only `wanted` parameters count; the others must be found too: the Schur complement G_ww − G_wo G_oo⁻¹ G_ow.
    `names` are those of all; `gram` is WᵀW, `slope` that of the criterion behind."""

    def __init__(self, wanted: Sequence[int], names: Sequence[str]) -> None:
        self.wanted = np.array(sorted(wanted), dtype=np.int64)
        self.label = f"for {', '.join(names[k] for k in self.wanted)}, with the others unknown"

    def _gain(self, gram: Array) -> tuple[Any, Any]:
        others = np.setdiff1d(np.arange(len(gram)), self.wanted)
        block = gram[np.ix_(others, others)]
        # What is not excited at all must not make the others look infinitely uncertain: a share of rounding.
        block = block + 1e-14 * max(float(np.trace(block)), 1e-300) * np.eye(len(others))
        return others, np.linalg.solve(block, gram[np.ix_(others, self.wanted)])

    def forward(self, gram: Array) -> Array:
        others, gain = self._gain(gram)
        out = gram[np.ix_(self.wanted, self.wanted)] - gram[np.ix_(self.wanted, others)] @ gain
        return np.asarray(0.5 * (out + out.T))

    def backward(self, gram: Array, slope: Array) -> Array:
        others, gain = self._gain(gram)
        lift = np.zeros((len(gram), len(self.wanted)))
        lift[self.wanted] = np.eye(len(self.wanted))
        lift[others] = -gain
        out: Array = lift @ slope @ lift.T
        return out


# A direction that a motion does not show at all has an eigenvalue of rounding; it must not become negative.
_FLOOR = 1e-15
_Objective = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True)
class Criterion:
    """A function of the eigenvalues (ascending) of G.

    `value` is what is reported; smaller is better unless `larger_is_better`. `objective(λ, sharpness)` is what is
    minimised, with its derivative: an increasing function of the criterion, smooth for finite sharpness and exact for
    an infinite one. `gram` is G; `sharpness` is the exponent of the p-norm that stands for a largest eigenvalue.
    """

    name: str
    of: str
    value: Callable[[Array], float]
    objective: _Objective
    larger_is_better: bool = False

    def __call__(self, gram: Array) -> float:
        return self.value(_floored(np.linalg.eigvalsh(gram)))

    def gradient(self, gram: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """The objective and its derivative with respect to G."""
        raw, vectors = np.linalg.eigh(gram)
        objective, slope = self.objective(_floored(raw), sharpness)
        return objective, (vectors * slope) @ vectors.T

    def shown(self, objective: float) -> float:
        """The criterion that people know from an `objective` without smoothing: its logarithm, mostly."""
        if self.name == "d":
            return objective
        with np.errstate(over="ignore"):
            return float(np.exp(-objective if self.larger_is_better else objective))

    def ranked(self, eigenvalues: Array) -> float:
        """The objective of G's `eigenvalues` (ascending) alone; infinite for a motion that shows nothing."""
        try:
            return self.objective(_floored(eigenvalues), np.inf)[0]
        except ExcitationError:
            return float("inf")


def _floored(raw: Any) -> Array:
    """Ascending eigenvalues, rounding below the smallest representable share of the largest lifted to it."""
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


@dataclass(frozen=True)
class Norms:
    """`high`·log‖λ‖ₚ + `low`·log‖1/λ‖ₚ − `determinant`·Σ log λ, p being the sharpness or a fixed `exponent`.

    For whole exponents it follows from powers of G and its inverse, without eigenvalues: many motions at once.
    """

    high: float = 0.0
    low: float = 0.0
    exponent: float | None = None
    determinant: float = 0.0

    def __call__(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Of eigenvalues `x` at a `sharpness`, and the derivative."""
        value, slope = 0.0, np.zeros_like(x)
        p = sharpness if self.exponent is None else self.exponent
        if self.high:
            high, dhigh = _log_largest(x, p)
            value, slope = value + self.high * high, slope + self.high * dhigh
        if self.low:
            low, dlow = _log_largest(1.0 / x, p)
            value, slope = value + self.low * low, slope - self.low * dlow / x**2
        if self.determinant:
            value -= self.determinant * float(np.sum(np.log(x)))
            slope = slope - self.determinant / x
        return value, slope

    def of_matrices(self, grams: Array, sharpness: int) -> tuple[Array, Array]:
        """Of a stack of matrices `grams`, `(…, k, k)`, and the derivatives; `sharpness` is a whole number."""
        p = sharpness if self.exponent is None else int(self.exponent)
        size = grams.shape[-1]
        trace = np.trace(grams, axis1=-2, axis2=-1)[..., None, None] / size
        # In units of the mean eigenvalue powers neither overflow nor vanish; as in `_floored`, rounding is lifted.
        unit = grams / trace + _FLOOR * size * np.asarray(np.eye(size), like=grams)
        value, slope = 0.0 * trace[..., 0, 0], 0.0 * grams
        if self.high:
            below = np.linalg.matrix_power(unit, p - 1)
            total = np.sum(below * unit, axis=(-2, -1))
            value = value + self.high * np.log(total) / p
            slope = slope + self.high * below / total[..., None, None]
        if self.low or self.determinant:
            inverse = np.linalg.inv(unit)
            inverse = 0.5 * (inverse + np.swapaxes(inverse, -2, -1))
        if self.low:
            power = np.linalg.matrix_power(inverse, p)
            total = np.trace(power, axis1=-2, axis2=-1)
            value = value + self.low * np.log(total) / p
            slope = slope - self.low * (power @ inverse) / total[..., None, None]
        if self.determinant:
            value = value - self.determinant * np.linalg.slogdet(unit)[1]
            slope = slope - self.determinant * inverse
        shift = (self.high - self.low - self.determinant * size) * np.log(trace[..., 0, 0])
        return value + shift, slope / trace


def condition_number(gram: Array) -> float:
    """cond₂(W) from WᵀW, the `gram`; infinite where a column is not shown."""
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0.0 else float("inf")


CRITERIA: dict[str, Criterion] = {
    c.name: c
    for c in (
        Criterion("cond", "cond₂(W)", lambda x: float(np.sqrt(x[-1] / x[0])), Norms(0.5, 0.5)),
        Criterion("information", "cond₂(WᵀW)", lambda x: float(x[-1] / x[0]), Norms(1.0, 1.0)),
        Criterion(
            "frobenius",
            "‖WᵀW‖_F ‖(WᵀW)⁻¹‖_F",
            lambda x: float(np.sqrt(np.sum(x**2) * np.sum(x**-2.0))),
            Norms(1.0, 1.0, exponent=2.0),  # ‖G‖_F = (Σ λ²)^½: the 2-norm of the eigenvalues
        ),
        Criterion("d", "−log det(WᵀW)", lambda x: -float(np.sum(np.log(x))), Norms(determinant=1.0)),
        Criterion("a", "trace (WᵀW)⁻¹", lambda x: float(np.sum(1.0 / x)), Norms(low=1.0, exponent=1.0)),
        Criterion("e", "λ_min(WᵀW)", lambda x: float(x[0]), Norms(low=1.0), larger_is_better=True),
        Criterion("sigma", "σ_min(W)", lambda x: float(np.sqrt(x[0])), Norms(low=0.5), larger_is_better=True),
    )
}


def criterion_named(name: str | Criterion) -> Criterion:
    """By `name`; a criterion of one's own goes through."""
    if isinstance(name, Criterion):
        return name
    if name not in CRITERIA:
        raise UnknownNameError("criterion", name, CRITERIA)
    return CRITERIA[name]
