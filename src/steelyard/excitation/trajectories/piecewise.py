"""`Piecewise`: what all families of piecewise polynomials share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.excitation.trajectories.family import TrajectoryError
from steelyard.excitation.trajectories.pieces import evaluate, extent
from steelyard.robot.spatial import Array


class Piecewise(ABC):
    """A family made of polynomial pieces.

    A subclass states the pieces as linear functions of all its numbers y (`shape`), and how y follows from the free
    coefficients x: y = Z x + y0 (`free`). Before its start and after its end the motion stands.
    """

    # Fields of the subclasses' dataclasses
    duration: float
    start: float | None
    end: float | None
    closed: bool

    @property
    @abstractmethod
    def breaks(self) -> Array:
        """Where the pieces begin and end, (pieces + 1,), in s."""

    @abstractmethod
    def shape(self) -> Array:
        """(pieces, degree + 1, len(y)): power coefficients of each piece, for each number of y."""

    @abstractmethod
    def free(self) -> tuple[Array, Array]:
        """(Z, y0)."""

    @abstractmethod
    def still(self, position: float) -> Array:
        """The y of standing at a position."""

    @property
    @abstractmethod
    def periodic(self) -> bool:
        """Whether it may be repeated."""

    @cached_property
    def _free(self) -> tuple[Array, Array]:
        return self.free()

    @cached_property
    def _table(self) -> Array:
        """(pieces, degree + 1, size + 1): the pieces for each coefficient, then their constant part."""
        Z, y0 = self._free
        return self.shape() @ np.column_stack([Z, y0])

    @property
    def size(self) -> int:
        return int(self._free[0].shape[1])

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        values = evaluate(self.breaks, self._table, np.asarray(t, dtype=float), derivative)
        return values[:, :-1], values[:, -1]

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        return extent(self.breaks, self._table @ np.append(x, 1.0), derivative)

    def hold(self, position: float) -> Array:
        Z, y0 = self._free
        return np.asarray(np.linalg.lstsq(Z, self.still(position) - y0, rcond=None)[0], dtype=float)

    def settings(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]


def tied_ends(
    rows: int, first: range, last: range, zeros: Collection[int], family: Piecewise, what: str
) -> tuple[Array, Array]:
    """(Z, y0) where y is `family.start` in the rows `first`, `family.end` in `last`, zero in `zeros`, else free.

    A start or end that is not given is a coefficient of its own; a closed motion has one for both.
    """
    if family.closed and family.end is not None and family.start != family.end:
        raise TrajectoryError(f"{what}: a closed motion ends where it starts; give `start` or leave out `closed`.")
    if first.stop > last.start:
        raise TrajectoryError(f"{what}: too few coefficients to rest at both ends; give it more pieces.")
    y0, columns = np.zeros(rows), []

    def place(where: list[int], value: float | None) -> None:
        if value is not None:
            y0[where] = value
        else:
            columns.append(np.isin(np.arange(rows), where).astype(float))

    inner = [row for row in range(rows) if row not in first and row not in last and row not in zeros]
    place([*first, *last] if family.closed else [*first], family.start)
    for row in inner:
        place([row], None)
    if not family.closed:
        place([*last], family.end)
    return np.column_stack(columns) if columns else np.zeros((rows, 0)), y0
