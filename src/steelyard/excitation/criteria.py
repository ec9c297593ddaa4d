"""Quality of a motion as a function of the eigenvalues of its information matrix G = WᵀW.

Every criterion depends on the eigenvalues λ alone, so its gradient is V diag(∂f/∂λ) Vᵀ. The search minimises a smooth
`objective`: a p-norm (`sharpness` p) replaces the largest or smallest eigenvalue, because several eigenvalues coincide
at an optimum and the criterion has a kink there. `value` is the criterion itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.ground.arrays import Array

# A view maps G to the matrix that a criterion evaluates (other units, another basis, or a subset of parameters), and
# carries derivatives back. A condition number depends on the view, so every view has a label. The views that transform
# columns also accept stacks of matrices, on a CPU or a GPU.


class View(Protocol):
    """A transformation of an information matrix with its derivative."""

    @property
    def label(self) -> str:
        """Description of the transformation of the columns."""
        ...

    def forward(self, gram: Array) -> Array:
        """Return the transformed matrix of `gram` = WᵀW."""
        ...

    def backward(self, gram: Array, slope: Array) -> Array:
        """Return ∂f/∂G.

        Args:
            gram: Information matrix G = WᵀW.
            slope: ∂f/∂(forward(G)).
        """
        ...


class Linear:
    """Columns W T: another basis of the same parameters, or other units.

    Args:
        matrix: T.
        label: Description of the transformation.
        gram, slope: Arguments of the methods, as in `View`.
    """

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
    """Every column scaled to unit norm: G_ij / √(G_ii G_jj).

    Args:
        gram, slope: Arguments of the methods, as in `View`.
    """

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


class MarginalInformation:
    """Information on some parameters while the others are unknown: the Schur complement G_ww − G_wo G_oo⁻¹ G_ow.

    Args:
        wanted: Indices of the parameters that count.
        names: Names of all parameters.
        gram, slope: Arguments of the methods, as in `View`.
    """

    def __init__(self, wanted: Sequence[int], names: Sequence[str]) -> None:
        self.wanted = np.array(sorted(wanted), dtype=np.int64)
        self.label = f"for {', '.join(names[k] for k in self.wanted)}, with the others unknown"

    def _gain(self, gram: Array) -> tuple[Any, Any]:
        others = np.setdiff1d(np.arange(len(gram)), self.wanted)
        block = gram[np.ix_(others, others)]
        # A tiny ridge: a direction without excitation must not make the other parameters infinitely uncertain.
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


# The eigenvalue of a direction without excitation is rounding error; it must not become negative.
_FLOOR = 1e-15
_Objective = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True)
class Criterion:
    """A function of the ascending eigenvalues λ of G.

    Attributes:
        name: Name in options and files.
        of: Formula, for reports.
        value: The reported criterion as a function of λ.
        objective: `objective(λ, sharpness)` gives the minimised value and its derivative. It is smooth for finite
            sharpness (exponent of the p-norm) and exact for inf.
        larger_is_better: Whether a larger value is better; the objective then decreases with the criterion.
    """

    name: str
    of: str
    value: Callable[[Array], float]
    objective: _Objective
    larger_is_better: bool = False

    def __call__(self, gram: Array) -> float:
        """Compute the reported value from `gram` = G."""
        return self.value(_floored(np.linalg.eigvalsh(gram)))

    def gradient(self, gram: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """Compute the objective and its derivative with respect to G.

        Args:
            gram: G.
            sharpness: Exponent of the p-norm that replaces an extreme eigenvalue; inf: exact.
        """
        raw, vectors = np.linalg.eigh(gram)
        objective, slope = self.objective(_floored(raw), sharpness)
        return objective, (vectors * slope) @ vectors.T

    def report_value(self, objective: float) -> float:
        """Return the reported criterion for an `objective` without smoothing (mostly its logarithm)."""
        if self.name == "d":
            return objective
        with np.errstate(over="ignore"):
            return float(np.exp(-objective if self.larger_is_better else objective))

    def rank(self, eigenvalues: Array) -> float:
        """Return the objective for G's ascending `eigenvalues`; infinite for a motion without any excitation."""
        try:
            return self.objective(_floored(eigenvalues), np.inf)[0]
        except ExcitationError:
            return float("inf")


def _floored(raw: Any) -> Array:
    """Return ascending eigenvalues, at least the rounding error of the largest."""
    if not np.all(np.isfinite(raw)) or raw[-1] <= 0.0:
        raise ExcitationError("The motion excites no parameter: its information matrix is zero or not finite.")
    return np.asarray(np.maximum(raw, _FLOOR * raw[-1]))


def _log_largest(x: Array, sharpness: float) -> tuple[float, Array]:
    """Return the logarithm of the largest of x > 0 (or of its p-norm) and the derivative."""
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

    For whole exponents it is computed from powers of G and its inverse without eigenvalues, for many motions at once.
    """

    high: float = 0.0
    low: float = 0.0
    exponent: float | None = None
    determinant: float = 0.0

    def __call__(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Compute the value and its derivative.

        Args:
            x: Eigenvalues.
            sharpness: Exponent p, unless `exponent` is set.
        """
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
        """Compute the values and their derivatives for a stack of matrices.

        Args:
            grams: Information matrices, shape (…, k, k).
            sharpness: Exponent p, a whole number, unless `exponent` is set.
        """
        p = sharpness if self.exponent is None else int(self.exponent)
        size = grams.shape[-1]
        trace = np.trace(grams, axis1=-2, axis2=-1)[..., None, None] / size
        # In units of the mean eigenvalue, powers do not overflow or underflow; the floor acts as in `_floored`.
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
    """Compute cond₂(W) from `gram` = WᵀW; infinite if a column is not excited."""
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
    """Return the criterion with this `name`; a `Criterion` is returned unchanged."""
    if isinstance(name, Criterion):
        return name
    if name not in CRITERIA:
        raise UnknownNameError("criterion", name, CRITERIA)
    return CRITERIA[name]
