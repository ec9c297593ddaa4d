"""`Load`: the load of a drive at its joint: an inertia and a sinusoidal gravity torque."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import LogError

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array
    from steelyard.robot import Robot

GRAVITY = 9.81


@dataclass(frozen=True)
class Load:
    """A known load of one joint; its gravity torque is −gravity · sin(q − rest_angle).

    Every body that turns about a fixed axis has this form: a pendulum, a lever, and a joint of a robot whose other
    joints are locked.

    Args:
        inertia: Moment of inertia about the axis [kg m²], without the rotor.
        gravity: Largest gravity torque [N m]; 0 for a vertical axis.
        rest_angle: Position [rad] of the load hanging at rest.
        mass: Mass at the end of the arm [kg], for reports; NaN where unknown.
        length: Length of the arm [m], for reports; NaN where unknown.
        arm_mass: Mass of the arm [kg], for reports.
    """

    inertia: float
    gravity: float
    rest_angle: float = 0.0
    mass: float = math.nan
    length: float = math.nan
    arm_mass: float = 0.0

    def __post_init__(self) -> None:
        for name in ("inertia", "gravity", "rest_angle"):
            if not math.isfinite(getattr(self, name)):
                raise LogError(f"The load's {name} is {getattr(self, name)}; give a finite number.")
        if self.inertia < 0.0 or self.gravity < 0.0:
            raise LogError(
                f"The load has inertia {self.inertia:g} kg m² and gravity torque {self.gravity:g} N m; both must be 0 "
                "or more (for a negative gravity torque, change rest_angle by π)."
            )

    @classmethod
    def pendulum(cls, mass: float, length: float, arm_mass: float = 0.0, rest_angle: float = 0.0) -> Load:
        """Return the load of a point mass at the end of a uniform arm on a horizontal axis.

        Args:
            mass: Mass at the end [kg].
            length: Distance of the mass from the axis [m].
            arm_mass: Mass of the arm [kg], a uniform rod from the axis to the mass.
            rest_angle: Position [rad] of the pendulum hanging at rest.
        """
        for name, value in (("mass", mass), ("length", length), ("arm mass", arm_mass)):
            if not (math.isfinite(value) and value >= 0.0):
                raise LogError(f"The load's {name} is {value}; give a number of 0 or more, in kg or m.")
        return cls(
            inertia=mass * length**2 + arm_mass * length**2 / 3.0,
            gravity=GRAVITY * (mass * length + arm_mass * length / 2.0),
            rest_angle=rest_angle, mass=mass, length=length, arm_mass=arm_mass,
        )  # fmt: skip

    @classmethod
    def of_joint(cls, robot: Robot, joint: str, posture: Array | None = None) -> Load:
        """Return the load of one joint of a robot whose other joints are locked.

        Args:
            robot: Robot with correct masses in its description.
            joint: Name of the joint.
            posture: Positions of all joints [rad or m]; default: zero. The entry of `joint` is not used.
        """
        from steelyard.dynamics import Model

        names, k = robot.joint_names, robot.joint_index(joint)
        poses = np.tile(np.zeros(len(names)) if posture is None else np.asarray(posture, dtype=float), (2, 1))
        poses[0, k], poses[1, k] = 0.0, math.pi / 2.0
        model = Model.nominal(robot)
        at_rest = model.gravity_torque(poses)[:, k]
        inertia = float(model.mass_matrix(poses[:1])[0, k, k])
        # G(q) = s·sin q + c·cos q is the torque that holds the load; the load acts on the joint with −G.
        c, s = float(at_rest[0]), float(at_rest[1])
        return cls(inertia=inertia, gravity=math.hypot(s, c), rest_angle=math.atan2(-c, s))

    def torque(self, position: Array) -> Array:
        """Return the torque [N m] of gravity on the joint at a `position` [rad]."""
        return -self.gravity * np.sin(np.asarray(position) - self.rest_angle)

    def to_json(self) -> dict[str, Any]:
        """Return the load as plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
