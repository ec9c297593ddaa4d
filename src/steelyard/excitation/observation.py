"""`Observation`: what a motion lets a log see: rows of one or more equations, known by their Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.robot.spatial import Array


class Observation(Protocol):
    """Rows W(x) of a motion with coefficients x, one group per equation.

    `places[e]` are the columns (positions among all columns of the design) that appear in equation e.
    """

    names: tuple[str, ...]
    places: tuple[NDArray[np.int64], ...]

    def grams(self, x: Array) -> list[Array]:
        """W_eᵀW_e of every equation, over its `places`."""
        ...

    def pull(self, weights: Sequence[Array]) -> Array:
        """The gradient of Σ_e ⟨weights_e, W_eᵀW_e⟩ at the x of the last `grams`, for symmetric weights."""
        ...


def place_columns(function: Function, columns: Sequence[int]) -> list[dict[int, Any]]:
    """The traced entries of a regressor `(equations, parameters)`, by equation and by position among `columns`."""
    position = {int(c): k for k, c in enumerate(columns)}
    parameters = function.shape[-1]
    equations = function.size // parameters
    entries: list[dict[int, Any]] = [{} for _ in range(equations)]
    for place, output in zip(function.places, function.outputs, strict=True):
        equation, column = divmod(int(place), parameters)
        if column in position:
            entries[equation][position[column]] = output
    return entries
