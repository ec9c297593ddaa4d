"""Regions: the parts of a robot's workspace that have a model of their own.

A region is a box: of a point's place in the base frame (m), or of joint positions (rad, m). Both answer the same
questions about postures: are they inside, how deep, how much do they belong to it.
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
from steelyard.ground.renamed import renamed
from steelyard.ground.schema import build
from steelyard.robot.kinematics.inverse import Pose, Tip
from steelyard.robot.robot import Robot

_LONGEST_NAME = 200  # bytes: it is that of a folder and of a file


@dataclass(frozen=True, eq=False)
class Region(ABC):
    """A named box; `lower` and `upper` are its corners in the coordinates that the kind of region looks at.

    Postures `q` (rad, m) of a `robot` are `(…, joints)`; an `other` region is one to compare with.
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
            raise LocalError(f"'{shortened(self.name, 60)}' is no name for a region; use letters, digits, - and _.")
        if len(self.name.encode()) > _LONGEST_NAME:
            raise LocalError(f"'{shortened(self.name, 60)}' is too long for a region, which is a folder; shorten it.")
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise LocalError(
                f"Region '{self.name}' has {self.lower.size} lower and {self.upper.size} upper bounds; give as many."
            )
        if not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            raise LocalError(f"Region '{self.name}' has a bound that is not finite; give numbers.")
        for k in np.flatnonzero(~(self.lower < self.upper))[:1]:
            raise LocalError(
                f"Region '{self.name}' is empty: bound {k + 1} runs from {self.lower[k]:g} to {self.upper[k]:g}; "
                "every lower bound must lie below its upper one."
            )

    # ---------------------------------------------------------------- where postures are

    @abstractmethod
    def coordinates(self, robot: Robot, q: ArrayLike) -> Array:
        """What the box is about, `(…, dimensions)`, of postures `(…, joints)`."""

    @abstractmethod
    def check(self, robot: Robot) -> None:
        """Refuse a robot that the region cannot belong to."""

    def depth(self, robot: Robot, q: ArrayLike) -> Array:
        """Signed distance to the border (m, or rad and m), `(…,)`: positive inside, negative outside."""
        x = self.coordinates(robot, q)
        beyond = np.maximum(self.lower - x, x - self.upper)  # per axis; negative inside
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
        depth: Array = np.where(outside > 0.0, -outside, -np.max(beyond, axis=-1))
        return depth

    def contains(self, robot: Robot, q: ArrayLike) -> NDArray[np.bool_]:
        """Whether postures lie inside, the border included."""
        return np.asarray(self.depth(robot, q) >= 0.0)

    def membership(self, robot: Robot, q: ArrayLike, blend: float) -> Array:
        """From 1 inside to 0 outside over ±`blend` about the border, `(…,)`; once continuously differentiable.

        A product over the axes: what two boxes that share a face lose and gain across it adds up to one.
        """
        x = self.coordinates(robot, q)
        if blend <= 0.0:
            return np.asarray(np.all((x >= self.lower) & (x <= self.upper), axis=-1), dtype=float)
        rise = _smooth_step((x - self.lower + blend) / (2.0 * blend))
        fall = _smooth_step((self.upper - x + blend) / (2.0 * blend))
        return np.asarray(np.prod(rise * fall, axis=-1))

    # ---------------------------------------------------------------- the box itself

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
        """Whether both boxes are about the same coordinates."""
        return type(self) is type(other) and self.lower.shape == other.lower.shape

    def shared_volume(self, other: Region) -> float:
        """Volume of what two comparable boxes have in common."""
        sides = np.minimum(self.upper, other.upper) - np.maximum(self.lower, other.lower)
        return float(np.prod(np.maximum(sides, 0.0)))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As plain data; `region_from_dict` reads it back."""


@renamed(spread="half_width")
@dataclass(frozen=True, eq=False)
class CartesianRegion(Region):
    """A box in the base frame (m) that a point of the robot stays in.

    The point is the origin of `frame` (a frame or link of the robot; none: the last link), moved by `offset` (m) in
    that frame. `half_width` (rad, m) says how far the other joints may wander from the middle posture in motions that
    are designed or drawn for the region: a tool may stand in one place in many postures. It is no part of the border.
    `robot` is the one it belongs to.
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
            raise LocalError(f"Region '{self.name}': a box in space has three bounds a side, and an offset x, y, z.")
        if not self.half_width > 0.0:
            raise LocalError(
                f"Region '{self.name}': half_width (in files: spread) is {self.half_width:g}; give a positive one."
            )

    def check(self, robot: Robot) -> None:
        if robot.frame(self.frame).host < 0:
            raise LocalError(f"Region '{self.name}' is about frame '{self.frame}', which does not move; name another.")

    def tip(self, robot: Robot) -> Tip:
        """The point as inverse kinematics knows it."""
        place = robot.frame(self.frame).at(np.eye(3), self.offset)
        return Tip(robot, robot.link_names[place.host], Pose(place.translation, place.rotation))

    def point(self, robot: Robot) -> Point:
        """The point as constraints of motions know it."""
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
    """A box of joint positions (rad, m), of all joints, in the robot's order."""

    kind: ClassVar[str] = "joints"
    unit: ClassVar[str] = "rad, m"

    @staticmethod
    def of(robot: Robot, name: str, bounds: Mapping[str, tuple[float, float]] | None = None) -> JointRegion:
        """The region `name` of `robot`, from `bounds` (low, high in rad, m) by joint. Other joints have the robot's own
        limits, or a turn (2 m) where there are none."""
        given = dict(bounds or {})
        for wanted in given:
            robot.joint_index(wanted)  # refuses names that are not the robot's
        room = {"revolute": np.pi, "prismatic": 1.0}
        lower, upper = [], []
        for joint in robot.joints:
            low = joint.lower if np.isfinite(joint.lower) else -room[joint.kind]
            high = joint.upper if np.isfinite(joint.upper) else room[joint.kind]
            own = given.get(joint.name, (low, high))
            lower.append(own[0])
            upper.append(own[1])
        return JointRegion(name, np.array(lower), np.array(upper))

    def check(self, robot: Robot) -> None:
        if self.lower.shape != (robot.dof,):
            raise LocalError(f"Region '{self.name}' bounds {len(self.lower)} joints; the robot has {robot.dof}.")
        for joint, low, high in zip(robot.joints, self.lower, self.upper, strict=True):
            if low > joint.upper or high < joint.lower:
                raise LocalError(
                    f"The arm cannot reach region '{self.name}': joint '{joint.name}' would have to be between {low:g} "
                    f"and {high:g} {joint.unit}, its limits are {joint.lower:g} and {joint.upper:g}."
                )

    def coordinates(self, robot: Robot, q: ArrayLike) -> Array:
        return np.asarray(q, dtype=float)

    def to_dict(self) -> dict[str, Any]:
        return {"space": "joints", "lower": self.lower.tolist(), "upper": self.upper.tolist()}


def region_from_dict(name: str, data: Mapping[str, Any] | Field) -> Region:
    """The region `name` from `data` that `to_dict` wrote."""
    entry = data if isinstance(data, Field) else Field(dict(data), f"region '{name}'", error=LocalError)
    values = {"half_width" if key == "spread" else key: item.value for key, item in entry.entries().items()}
    space = values.pop("space", "cartesian")
    kinds: dict[str, type[Region]] = {"cartesian": CartesianRegion, "joints": JointRegion}
    if not isinstance(space, str) or space not in kinds:
        raise UnknownNameError("space", shortened(str(space), 60), kinds)
    return build(kinds[space], replace(entry, value=values), name=name)


def _smooth_step(u: Array) -> Array:
    """0 to 1 with level ends: 3u² − 2u³."""
    x = np.clip(u, 0.0, 1.0)
    step: Array = x * x * (3.0 - 2.0 * x)
    return step
