"""`Acceleration`: free samples of acceleration, joined by straight lines and integrated exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from steelyard.excitation.trajectories.family import TrajectoryError, check_duration, known
from steelyard.excitation.trajectories.pieces import evaluate
from steelyard.excitation.trajectories.piecewise import Piecewise
from steelyard.excitation.trajectories.sinusoids import eliminate
from steelyard.ground.arrays import Array


@known
@dataclass(frozen=True)
class Acceleration(Piecewise):
    """Armstrong's motion (1989): the acceleration at `samples` evenly spaced instants is free, linear between them.

    The motion starts at rest and ends at rest (velocity zero); with `rest` the acceleration is zero at both ends too.
    `start` and `end` (rad or m) are free unless given; `closed` makes the end the start. The conditions are eliminated:
    coefficients are orthonormal coordinates of what they leave of (start, a₁ …).
    """

    kind: ClassVar[str] = "acceleration"

    duration: float
    samples: int = 20
    rest: bool = True
    start: float | None = None
    end: float | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "Acceleration samples")
        if self.samples < 3:
            raise TrajectoryError(f"{self.samples} acceleration samples cannot start and stop a joint; give 3 or more.")
        if self.closed and self.end is not None:
            raise TrajectoryError("Acceleration samples: a closed motion ends where it starts; leave out `end`.")
        self.free()

    @property
    def periodic(self) -> bool:
        ends_meet = self.closed or (self.start is not None and self.start == self.end)
        return ends_meet and self.rest

    @cached_property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.samples)

    def shape(self) -> Array:
        """All y: the start, then the samples of acceleration."""
        h = self.duration / (self.samples - 1)
        count = 1 + self.samples
        out = np.zeros((self.samples - 1, 4, count))
        position, velocity = np.eye(1, count)[0], np.zeros(count)
        for i in range(self.samples - 1):
            a, change = np.eye(count)[1 + i], np.eye(count)[2 + i] - np.eye(count)[1 + i]
            out[i] = position, h * velocity, h * h / 2 * a, h * h / 6 * change
            position = out[i].sum(axis=0)
            velocity = velocity + h * (a + change / 2)
        return out

    def free(self) -> tuple[Array, Array]:
        everything, finish = self.shape(), np.array([self.duration])
        rows, right = [evaluate(self.breaks, everything, finish, 1)[0]], [0.0]
        unit = np.eye(1 + self.samples)
        arrival = evaluate(self.breaks, everything, finish, 0)[0]
        if self.rest:
            rows, right = [*rows, unit[1], unit[-1]], [*right, 0.0, 0.0]
        if self.start is not None:
            rows, right = [*rows, unit[0]], [*right, self.start]
        if self.closed or self.end is not None:
            rows.append(arrival - unit[0] if self.closed else arrival)
            right.append(0.0 if self.end is None else self.end)
        return eliminate(np.array(rows), np.array(right), "Acceleration samples")

    def still(self, position: float) -> Array:
        return np.append(position, np.zeros(self.samples))
