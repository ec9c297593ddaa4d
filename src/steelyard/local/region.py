"""Regions of a robot's workspace with a model each.

A region is a box of positions of a point in the base frame [m], or a box of joint positions [rad, m].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import LocalError, UnknownNameError, shortened
from steelyard.excitation import Point
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.robot.kinematics.inverse import Pose, Tip
from steelyard.robot.robot import Robot

_LONGEST_NAME = 200  # bytes; a folder and a file have this name


@dataclass(frozen=True, eq=False)
class Region(ABC):
    """A named box.

    Attributes:
        name: Name of the region.
        lower: Lower corner, in the coordinates of the kind of region.
        upper: Upper corner.
    """

    name: str
    lower: Array
    upper: Array
    kind: ClassVar[str]
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, frozen(np.atleast_1d(np.asarray(getattr(self, side), dtype=float))))
        if not self.name.strip() or not all(c.isalnum() or c in "-_." for c in self.name) or self.name[0] == ".":
            raise LocalError(
                f"Region name '{shortened(self.name, 60)}' is not valid; use letters, digits, dots, - and _, without a "
                "leading dot."
            )
        if len(self.name.encode()) > _LONGEST_NAME:
            raise LocalError(f"Region name '{shortened(self.name, 60)}' is too long for a folder name; shorten it.")
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise LocalError(
                f"Region '{self.name}' has {self.lower.size} lower and {self.upper.size} upper bounds; give equal "
                "numbers."
            )
        if not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            raise LocalError(f"Region '{self.name}' has a bound that is not a finite number.")
        for k in np.flatnonzero(~(self.lower < self.upper))[:1]:
            raise LocalError(
                f"Region '{self.name}' is empty: bound {k + 1} runs from {self.lower[k]:g} to {self.upper[k]:g}; "
                "each lower bound must be less than its upper bound."
            )

    # ---------------------------------------------------------------- postures

    @abstractmethod
    def coordinates(self, robot: Robot, q: ArrayLike) -> Array:
        """Compute the coordinates of the box for postures.

        Args:
            robot: The robot.
            q: Joint positions [rad, m], shape (…, joints).

        Returns:
            Coordinates, shape (…, dimensions).
        """

    @abstractmethod
    def check(self, robot: Robot) -> None:
        """Raise an error if the region does not fit the `robot`."""

    def depth(self, robot: Robot, q: ArrayLike) -> Array:
        """Compute the signed distance to the border [m, or rad and m], shape (…,): positive inside, negative outside.

        Args:
            robot: The robot.
            q: Joint positions [rad, m], shape (…, joints).
        """
        x = self.coordinates(robot, q)
        beyond = np.maximum(self.lower - x, x - self.upper)  # per axis; negative inside
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
        depth: Array = np.where(outside > 0.0, -outside, -np.max(beyond, axis=-1))
        return depth

    def contains(self, robot: Robot, q: ArrayLike) -> NDArray[np.bool_]:
        """Check which postures are inside the region, border included.

        Args:
            robot: The robot.
            q: Joint positions [rad, m], shape (…, joints).
        """
        return np.asarray(self.depth(robot, q) >= 0.0)

    def membership(self, robot: Robot, q: ArrayLike, blend: float) -> Array:
        """Compute a weight from 1 inside to 0 outside that is once continuously differentiable.

        It is a product over the axes, so that the weights of two boxes with a common face add up to one there.

        Args:
            robot: The robot.
            q: Joint positions [rad, m], shape (…, joints).
            blend: The weight changes over this distance on both sides of the border [m, rad].

        Returns:
            Weights, shape (…,).
        """
        x = self.coordinates(robot, q)
        if blend <= 0.0:
            return np.asarray(np.all((x >= self.lower) & (x <= self.upper), axis=-1), dtype=float)
        rise = _smooth_step((x - self.lower + blend) / (2.0 * blend))
        fall = _smooth_step((self.upper - x + blend) / (2.0 * blend))
        return np.asarray(np.prod(rise * fall, axis=-1))

    # ---------------------------------------------------------------- box

    @property
    def middle(self) -> Array:
        return (self.lower + self.upper) / 2.0

    @property
    def size(self) -> Array:
        return self.upper - self.lower

    @property
    def volume(self) -> float:
        return float(np.prod(self.size))

    def comparable(self, other: Region) -> bool:
        """Whether this box and `other` have the same coordinates."""
        return type(self) is type(other) and self.lower.shape == other.lower.shape

    def shared_volume(self, other: Region) -> float:
        """Compute the volume of the intersection with `other`, which must have the same coordinates."""
        sides = np.minimum(self.upper, other.upper) - np.maximum(self.lower, other.lower)
        return float(np.prod(np.maximum(sides, 0.0)))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data, which `region_from_dict` reads."""


@dataclass(frozen=True, eq=False)
class CartesianRegion(Region):
    """A box in the base frame [m] for a point of the robot.

    Attributes:
        frame: Frame or link whose origin is the point; "": the last link.
        offset: Displacement of the point in that frame [m].
        half_width: In motions for the region, the joints may deviate by this much from the middle posture [rad, m]: one
            position of the point allows many postures. It does not affect the border.
    """

    frame: str = ""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    half_width: float = 0.6
    kind: ClassVar[str] = "cartesian"
    unit: ClassVar[str] = "m"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "offset", tuple(float(x) for x in self.offset))
        if self.lower.shape != (3,) or len(self.offset) != 3:
            raise LocalError(f"Region '{self.name}': a box in space needs three lower and three upper bounds and an "
                             "offset x, y, z.")  # fmt: skip
        if not self.half_width > 0.0:
            raise LocalError(
                f"Region '{self.name}': half_width (in files: spread) is {self.half_width:g}; it must be positive."
            )

    def check(self, robot: Robot) -> None:
        if robot.frame(self.frame).host < 0:
            raise LocalError(
                f"Region '{self.name}' refers to frame '{self.frame}', which does not move; use a moving frame."
            )

    def tip(self, robot: Robot) -> Tip:
        """Return the point of `robot` for inverse kinematics."""
        pose = robot.frame(self.frame).at(np.eye(3), self.offset)
        return Tip(robot, robot.link_names[pose.host], Pose(pose.translation, pose.rotation))

    def point(self, robot: Robot) -> Point:
        """Return the point of `robot` for constraints of motions."""
        tip = self.tip(robot)
        x, y, z = tip.tool.position.tolist()
        return Point(robot.link_names[tip.index], (x, y, z))

    def coordinates(self, robot: Robot, q: ArrayLike) -> Array:
        return self.tip(robot).forward(q)[1]

    def comparable(self, other: Region) -> bool:
        return isinstance(other, CartesianRegion) and (self.frame, self.offset) == (other.frame, other.offset)

    def to_dict(self) -> dict[str, Any]:
        box = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {**box, "frame": self.frame, "offset": list(self.offset), "spread": self.half_width}


@dataclass(frozen=True, eq=False)
class JointRegion(Region):
    """A box of positions [rad, m] of all joints, in the robot's order."""

    kind: ClassVar[str] = "joints"
    unit: ClassVar[str] = "rad, m"

    @staticmethod
    def of(robot: Robot, name: str, bounds: Mapping[str, tuple[float, float]] | None = None) -> JointRegion:
        """Create a region from bounds of some joints.

        Args:
            robot: The robot.
            name: Name of the region.
            bounds: Lower and upper bound [rad, m] by joint. Other joints have the robot's limits, or ±π rad (±1 m) if
                the robot has none.
        """
        stated = dict(bounds or {})
        for joint_name in stated:
            robot.joint_index(joint_name)  # raises an error for unknown names
        default = {"revolute": np.pi, "prismatic": 1.0}
        lower, upper = [], []
        for joint in robot.joints:
            low = joint.lower if np.isfinite(joint.lower) else -default[joint.kind]
            high = joint.upper if np.isfinite(joint.upper) else default[joint.kind]
            own = stated.get(joint.name, (low, high))
            lower.append(own[0])
            upper.append(own[1])
        return JointRegion(name, np.array(lower), np.array(upper))

    def check(self, robot: Robot) -> None:
        if self.lower.shape != (robot.dof,):
            raise LocalError(f"Region '{self.name}' bounds {len(self.lower)} joints; the robot has {robot.dof}.")
        for joint, low, high in zip(robot.joints, self.lower, self.upper, strict=True):
            if low > joint.upper or high < joint.lower:
                raise LocalError(
                    f"The arm cannot reach region '{self.name}': joint '{joint.name}' needs positions between {low:g} "
                    f"and {high:g} {joint.unit}, but its limits are {joint.lower:g} and {joint.upper:g}."
                )

    def coordinates(self, robot: Robot, q: ArrayLike) -> Array:
        return np.asarray(q, dtype=float)

    def to_dict(self) -> dict[str, Any]:
        return {"space": "joints", "lower": self.lower.tolist(), "upper": self.upper.tolist()}


def region_from_dict(name: str, data: Mapping[str, Any] | Field) -> Region:
    """Create a region from the data that `to_dict` wrote.

    Args:
        name: Name of the region.
        data: Plain data, or the field of a file.
    """
    entry = data if isinstance(data, Field) else Field(dict(data), f"region '{name}'", error=LocalError)
    values = {"half_width" if key == "spread" else key: item.value for key, item in entry.entries().items()}
    space = values.pop("space", "cartesian")
    kinds: dict[str, type[Region]] = {"cartesian": CartesianRegion, "joints": JointRegion}
    if not isinstance(space, str) or space not in kinds:
        raise UnknownNameError("space", shortened(str(space), 60), kinds)
    return build(kinds[space], replace(entry, value=values), name=name)


def _smooth_step(u: Array) -> Array:
    """A step from 0 to 1 with zero slope at both ends: 3u² − 2u³."""
    x = np.clip(u, 0.0, 1.0)
    step: Array = x * x * (3.0 - 2.0 * x)
    return step
