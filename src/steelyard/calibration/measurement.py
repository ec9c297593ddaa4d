"""`Measurement`: the readings of a sensor that observes the tool at every pose. One class per kind, in `kinds/`, all in
`MEASUREMENTS`.

A measurement compares the tool's pose with its readings. It owns the setup: numbers that do not belong to the robot,
such as the places of the sensor, of the tool and of planes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from steelyard.calibration.chain import Tips, exponential, skews
from steelyard.ground.arrays import Array, IndexArray, RowSelection
from steelyard.ground.registry import Registry


@dataclass(frozen=True, eq=False)
class Setup:
    """Numbers of a measurement that do not belong to the robot.

    Attributes:
        base_rotation: Robot's base in the sensor's frame, per session, shape (sessions, 3, 3).
        base_position: Origin of the robot's base [m], shape (sessions, 3).
        points: Points of the tool in the tool frame [m], shape (points, 3).
        tool_rotation: Rotation of the measured frame in the tool frame.
        surfaces: Numbers of planes, spheres, points or anchors, one row each.
    """

    base_rotation: Array
    base_position: Array
    points: Array
    tool_rotation: Array
    surfaces: Array

    @classmethod
    def plain(cls, points: Array, surfaces: Array | None = None) -> Setup:
        """Return a setup whose base is the sensor's frame.

        Args:
            points: Points of the tool [m].
            surfaces: Numbers of surfaces.
        """
        return cls(
            np.eye(3)[None], np.zeros((1, 3)), points, np.eye(3), np.zeros((0, 0)) if surfaces is None else surfaces
        )

    def moved_base(self, steps: Array) -> Setup:
        """Move the base by small displacements in its own frame, shape (sessions, 6) (`steps`)."""
        shift = np.einsum("sij,sj->si", self.base_rotation, steps[:, :3])
        turned = self.base_rotation @ exponential(steps[:, 3:])
        return replace(self, base_rotation=turned, base_position=self.base_position + shift)

    def to_json(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class LinearReadings:
    """A measurement, linear in small changes.

    Attributes:
        by_twist: Derivative by the twist of the tip, shape (poses, rows, 6).
        by_setup: Derivative by the setup's numbers, shape (poses, rows, numbers).
    """

    by_twist: Array
    by_setup: Array


@dataclass(frozen=True, eq=False)
class Measurement(ABC):
    """Readings of one kind.

    Attributes:
        readings: Readings by column group, each with one row per pose; NaN: not measured.
        sessions: Session of every pose: between sessions the sensor may have moved.
    """

    readings: Mapping[str, Array]
    sessions: IndexArray

    name: ClassVar[str]
    about: ClassVar[str]
    has_length: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.sessions)

    def rows(self, rows: RowSelection) -> Self:
        """Select poses by index or mask (`rows`); the sessions keep their numbers."""
        return replace(self, readings={k: v[rows] for k, v in self.readings.items()}, sessions=self.sessions[rows])

    def with_sessions(self, sessions: IndexArray) -> Self:
        """Assign poses to `sessions`."""
        return replace(self, sessions=sessions)

    def as_predicted(self, setup: Setup, tips: Tips) -> Measurement:
        """Return readings without errors, where derivatives depend on the errors.

        Args:
            setup: Setup.
            tips: Poses of the tool.
        """
        return self

    @property
    def session_count(self) -> int:
        return int(self.sessions.max(initial=0)) + 1

    @property
    @abstractmethod
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        """Rows of residuals that belong together, such as the three coordinates of a point, and their channel."""

    @abstractmethod
    def start(self, tips: Tips) -> list[Setup]:
        """Compute first setups from the nominal poses of the tool (`tips`), the most likely one first."""

    @abstractmethod
    def residuals(self, setup: Setup, tips: Tips) -> Array:
        """Compute predicted minus measured, shape (poses, rows); NaN where nothing was measured.

        Args:
            setup: Setup.
            tips: Poses of the tool.
        """

    @abstractmethod
    def linear(self, setup: Setup, tips: Tips) -> LinearReadings:
        """Compute the derivatives of the residuals.

        Args:
            setup: Setup.
            tips: Poses of the tool.
        """

    @abstractmethod
    def moved(self, setup: Setup, step: Array) -> Setup:
        """Add a small change to a setup.

        Args:
            setup: Setup.
            step: Change of its numbers.
        """

    @abstractmethod
    def setup_names(self, setup: Setup) -> tuple[str, ...]:
        """Name the numbers of a `setup`."""


MEASUREMENTS: Registry[type[Measurement]] = Registry("kind of measurement", ("steelyard.calibration.kinds",))


def base_names(sessions: int) -> tuple[str, ...]:
    """Name the six numbers of the base in each of several `sessions`."""
    parts = ("x", "y", "z", "rx", "ry", "rz")
    return tuple(f"base{k + 1 if sessions > 1 else ''}.{part}" for k in range(sessions) for part in parts)


def by_base(measurement: Measurement, setup: Setup, points: Array) -> Array:
    """Compute the derivative of points in the sensor's frame by the base of each session.

    Args:
        measurement: Measurement with the sessions.
        setup: Setup.
        points: Points in the robot's base, shape (poses, 3).
    """
    n, count = len(points), len(setup.base_rotation)
    own = setup.base_rotation[measurement.sessions]
    columns = np.concatenate([own, -own @ skews(points)], axis=2)
    out = np.zeros((n, 3, count, 6))
    out[np.arange(n), :, measurement.sessions] = columns
    return out.reshape(n, 3, 6 * count)


def by_tip(rotation: Array, arms: Array) -> Array:
    """Compute the derivative of points by the twist of the tip.

    Args:
        rotation: Rotations of the base in the sensor's frame, shape (poses, 3, 3).
        arms: Points from the tip's origin, in the base, shape (poses, 3).
    """
    return np.concatenate([rotation, -rotation @ skews(arms)], axis=2)
