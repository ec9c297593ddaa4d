"""`Idle`: a joint that stands still while others move."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from steelyard.excitation.trajectories.family import check_duration
from steelyard.excitation.trajectories.registry import known
from steelyard.robot.spatial import Array


@known
@dataclass(frozen=True)
class Idle:
    """q(t) = `position` (rad or m); where that is None, the posture is the one coefficient."""

    kind: ClassVar[str] = "idle"

    duration: float
    position: float | None = 0.0

    def __post_init__(self) -> None:
        check_duration(self.duration, "Idle joint")

    @property
    def size(self) -> int:
        return int(self.position is None)

    @property
    def periodic(self) -> bool:
        return True

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        ones = np.full(len(t), float(derivative == 0))
        if self.position is None:
            return ones[:, None], np.zeros(len(t))
        return np.zeros((len(t), 0)), self.position * ones

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        where = float(x[0]) if self.position is None else self.position
        return (where, where) if derivative == 0 else (0.0, 0.0)

    def hold(self, position: float) -> Array:
        return np.full(self.size, position)

    def settings(self) -> dict[str, Any]:
        return asdict(self)
