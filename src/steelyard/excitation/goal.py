"""`Goal`: the objective of a design, a criterion of the information of all equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.excitation.criteria import Criterion, View, condition_number
from steelyard.ground.arrays import Array


class Observation(Protocol):
    """Rows W(x) of a motion with coefficients `x`, one group per equation.

    `places[e]` are the columns (positions among all columns of the design) that appear in equation e.
    """

    names: tuple[str, ...]
    places: tuple[NDArray[np.int64], ...]

    def grams(self, x: Array) -> list[Array]:
        """Return W_eᵀW_e of every equation over its `places` for coefficients `x`."""
        ...

    def pull(self, weights: Sequence[Array]) -> Array:
        """Return the gradient of Σ_e ⟨`weights`[e], W_eᵀW_e⟩ at the x of the last `grams`, for symmetric weights."""
        ...


def column_entries(function: Function, columns: Sequence[int]) -> list[dict[int, Any]]:
    """Return the traced entries of a regressor, by equation and by position among the columns.

    Args:
        function: The regressor.
        columns: Indices of its columns.
    """
    position = {int(c): k for k, c in enumerate(columns)}
    parameters = function.shape[-1]
    equations = function.size // parameters
    entries: list[dict[int, Any]] = [{} for _ in range(equations)]
    for place, output in zip(function.places, function.outputs, strict=True):
        equation, column = divmod(int(place), parameters)
        if column in position:
            entries[equation][position[column]] = output
    return entries


@dataclass(frozen=True, eq=False)
class Goal:
    """criterion(view(Σ_e w_e² W_eᵀW_e + prior)), a function of a motion's coefficients `x`.

    Attributes:
        observation: Rows along the motion.
        criterion: The criterion.
        columns: Names of the columns.
        views: Transformations of the information matrix, applied in order.
        weights: w of each equation (1/σ of each joint, or the torque scaling of Pedrocchi et al. 2013).
        prior: Known information in the same units: an earlier log's Gram matrix, or σ² times a prior precision.
        weighting: Description of the weights.
    """

    observation: Observation
    criterion: Criterion
    columns: tuple[str, ...]
    views: tuple[View, ...] = ()
    weights: Array | None = None
    prior: Array | None = None
    weighting: str = "rows unweighted"

    @property
    def label(self) -> str:
        """Description of the criterion: columns, rows and scaling."""
        scaling = "; ".join(v.label for v in self.views) or "columns unscaled"
        prior = ", prior information added" if self.prior is not None else ""
        return f"{self.criterion.of} of {len(self.columns)} columns, {scaling}, {self.weighting}{prior}"

    @property
    def about(self) -> list[str]:
        """Weights and prior, to six digits, since reading logs in threads changes the last digits."""
        prior = [] if self.prior is None else np.diag(self.prior).tolist()
        return [f"{x:.6g}" for x in (*self.squares, *prior)]

    @cached_property
    def _blocks(self) -> list[tuple[Any, ...]]:
        return [np.ix_(p, p) for p in self.observation.places]

    @cached_property
    def squares(self) -> Array:
        """w_e² of every equation."""
        count = len(self.observation.names)
        return np.ones(count) if self.weights is None else np.asarray(self.weights, dtype=float) ** 2

    def join(self, grams: Sequence[Array]) -> Array:
        """Return G over all columns from the `grams` of the equations, without the prior."""
        total = np.zeros((len(self.columns), len(self.columns)))
        for block, gram, square in zip(self._blocks, grams, self.squares, strict=True):
            total[block] += square * gram
        return total

    def gram(self, x: Array) -> Array:
        """Return the information of the motion alone, Σ_e w_e² W_eᵀW_e."""
        return self.join(self.observation.grams(x))

    def criterion_matrix(self, gram: Array) -> Array:
        """Return the matrix that the criterion evaluates, from the motion's `gram`."""
        out = gram if self.prior is None else gram + self.prior
        for view in self.views:
            out = view.forward(out)
        return out

    def progress_values(self, grams: Sequence[Array]) -> dict[str, Any]:
        """Return the criterion and cond₂(W), unscaled and unweighted, from the `grams` of the equations, for plots."""
        total = np.zeros((len(self.columns), len(self.columns)))
        for block, gram in zip(self._blocks, grams, strict=True):
            total[block] += gram
        return {"criterion": self.criterion.of, "larger_is_better": self.criterion.larger_is_better,
                "condition_number": condition_number(total)}  # fmt: skip

    def value(self, x: Array) -> float:
        """Return the criterion itself."""
        return self.criterion(self.criterion_matrix(self.gram(x)))

    def objective(self, x: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """Compute the minimised value and its exact gradient with respect to the coefficients.

        Args:
            x: Coefficients of the motion.
            sharpness: Exponent of the p-norm, as in `Criterion`.
        """
        start = self.gram(x)
        steps = [start if self.prior is None else start + self.prior]
        for view in self.views:
            steps.append(view.forward(steps[-1]))
        value, slope = self.criterion.gradient(steps[-1], sharpness)
        for view, gram in zip(reversed(self.views), reversed(steps[:-1]), strict=True):
            slope = view.backward(gram, slope)
        weights = [square * slope[block] for block, square in zip(self._blocks, self.squares, strict=True)]
        return value, self.observation.pull(weights)
