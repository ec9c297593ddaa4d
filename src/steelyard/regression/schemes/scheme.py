"""`Scheme`: what every way of writing the physics as rows can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import StructureError
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.schemes.known_friction import Curves
from steelyard.signals.prepare import Motion

Motions = Callable[[], Iterable[Motion]]


class Scheme(Protocol):
    """Settings are fields of a frozen dataclass; `data` makes the rows.

    `data` takes the physics, the base parameters whose columns are wanted, and `motions()`, which starts a pass over
    prepared motions. `mask` (rad/s, m/s) leaves out what a joint does while it moves more slowly: dry friction is then
    not the one that sliding shows. `known_friction` is subtracted from the torque before anything else.
    """

    name: ClassVar[str]
    uses_acceleration: ClassVar[bool]

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData: ...


def first_of(motions: Motions) -> Motion:
    """The first motion, which tells the clock."""
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough to be filtered; lower the trim or raise the cut-off.")
    return first


def column_places(columns: NDArray[np.int64], equations: tuple[Equation, ...]) -> list[NDArray[np.int64]]:
    """Where each equation's columns stand among all `columns`."""
    place = {int(c): k for k, c in enumerate(columns)}
    return [np.array([place[int(c)] for c in e.columns], dtype=np.int64) for e in equations]
