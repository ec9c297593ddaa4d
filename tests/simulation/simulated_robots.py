"""Small robots whose motion is known in closed form."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.parameters import Term, terms
from steelyard.robot.robot import Joint, Link, Robot

DOWN = (0.0, 0.0, -9.81)


def _link(k: int, kind: str, parent: int, axis: tuple, translation: tuple, inertia: np.ndarray) -> Link:
    return Link(
        name=f"link{k}",
        joint=f"joint{k}",
        kind=kind,
        parent=parent,
        rotation=np.eye(3),
        translation=np.array(translation),
        axis=np.array(axis),
        coordinate=k - 1,
        inertia=inertia,
    )


def point(mass: float, x: float = 0.0, y: float = 0.0, z: float = 0.0, inertia: float = 0.0) -> np.ndarray:
    """Ten parameters of a small ball (`inertia` about its centre) at a point of the joint frame."""
    h = mass * np.array([x, y, z])
    return np.array(
        [
            mass,
            *h,
            inertia + mass * (y * y + z * z),
            -mass * x * y,
            inertia + mass * (x * x + z * z),
            -mass * x * z,
            -mass * y * z,
            inertia + mass * (x * x + y * y),
        ]
    )


def robot_of(links: list[Link], gravity: tuple = DOWN) -> Robot:
    joints = tuple(Joint(link.joint, link.kind) for link in links)
    return Robot("small", joints, tuple(links), gravity=np.array(gravity))


def model_of(robot: Robot, *friction: str | Term, values: tuple = ()) -> Model:
    bound = terms(robot, *friction)
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, np.asarray(values, dtype=float)]))


def block(mass: float = 2.0, gravity: float = 0.0) -> Robot:
    """A mass on a rail along x; `gravity` pulls along the rail."""
    return robot_of([_link(1, "prismatic", -1, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), point(mass))], (gravity, 0.0, 0.0))


def double_pendulum(gravity: tuple = DOWN) -> Robot:
    """Two rods of 0.5 m that swing in the xz-plane, hanging down at q = 0."""
    return robot_of(
        [
            _link(1, "revolute", -1, (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), point(2.0, z=-0.4, inertia=0.02)),
            _link(2, "revolute", 0, (0.0, 1.0, 0.0), (0.0, 0.0, -0.5), point(1.0, z=-0.3, inertia=0.01)),
        ],
        gravity,
    )


def rails(masses: tuple[float, float] = (2.0, 1.0)) -> Robot:
    """A sled on a sled, both along x: coupled by inertia only."""
    x = (1.0, 0.0, 0.0)
    links = [
        _link(1, "prismatic", -1, x, (0.0, 0.0, 0.0), point(masses[0])),
        _link(2, "prismatic", 0, x, (0.0, 0.0, 0.0), point(masses[1])),
    ]
    return robot_of(links, (0.0, 0.0, 0.0))
