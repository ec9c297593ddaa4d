"""Free joints: floating, spherical and planar, each one joint with several coordinates.

The coordinates of a free joint follow one another in q, q̇ and q̈:

* q: position of the body's origin in the joint frame [m], then the vector part of the unit quaternion whose scalar part
  is not negative (planar: the angle [rad]). Every orientation has such a quaternion, so no orientation is singular.
* q̇: velocity of the origin and angular velocity, both in the body's own axes [m/s, rad/s].
* q̈: derivative of the numbers of q̇ [m/s², rad/s²].
* τ: force and moment in the body's own axes, about its origin [N, N m].

These are the conventions of a free flyer in Pinocchio, except that q has three numbers for the orientation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, cos, maximum, sin, sqrt
from steelyard.ground.xml import Element
from steelyard.robot.robot import FREE_WIDTHS, Joint, Link, Robot

_SUFFIXES = {"floating": ("x", "y", "z", "rx", "ry", "rz"), "spherical": ("rx", "ry", "rz"), "planar": ("x", "y", "rz")}
# Name of the joint that lets the root of a URDF float, as in Pinocchio.
ROOT_JOINT = "root_joint"


def free_coordinates(name: str, kind: str) -> list[Joint]:
    """Return the coordinates of a free joint.

    Args:
        name: Name of the joint.
        kind: "floating", "spherical" or "planar".
    """
    return [Joint(f"{name}_{end}", "revolute" if "r" in end else "prismatic") for end in _SUFFIXES[kind]]


def planar_axes(axis: Array) -> Array:
    """Return the columns x, y and normal of a planar joint; x and y are those of the joint frame turned to `axis`."""
    z, axis = np.array([0.0, 0.0, 1.0]), np.asarray(axis, dtype=float)
    if axis[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    v = z + axis
    return np.asarray(2.0 * np.outer(v, v) / (v @ v) - np.eye(3)) @ np.diag([-1.0, -1.0, 1.0])


def directions(link: Link) -> tuple[list[Array], list[Array]]:
    """Return the unit velocities and unit rotations of the coordinates of a free joint, in the body's axes.

    Args:
        link: Link with a free joint.
    """
    zero, unit = np.zeros(3), list(np.eye(3))
    if link.kind == "floating":
        return [*unit, zero, zero, zero], [zero, zero, zero, *unit]
    if link.kind == "spherical":
        return [zero, zero, zero], unit
    x, y, normal = planar_axes(link.axis).T
    return [x, y, zero], [zero, zero, normal]


def turned(link: Link, q: Vector) -> list[list[Scalar]]:
    """Compute the rotation of a free joint over scalars.

    Args:
        link: Link with a free joint.
        q: Coordinates of the joint.
    """
    if link.kind == "planar":
        a = [float(x) for x in link.axis]
        s, c = sin(q[2]), cos(q[2])
        skew = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
        return [
            [(1.0 if i == j else 0.0) * c + a[i] * a[j] * (1.0 - c) + skew[i][j] * s for j in range(3)]
            for i in range(3)
        ]
    x, y, z = q[-3], q[-2], q[-1]
    xx, yy, zz = x * x, y * y, z * z
    w = sqrt(maximum(1.0 - (xx + yy + zz), 0.0))
    xy, xz, yz, wx, wy, wz = x * y, x * z, y * z, w * x, w * y, w * z
    return [
        [1.0 - 2.0 * (yy + zz), 2.0 * (xy - wz), 2.0 * (xz + wy)],
        [2.0 * (xy + wz), 1.0 - 2.0 * (xx + zz), 2.0 * (yz - wx)],
        [2.0 * (xz - wy), 2.0 * (yz + wx), 1.0 - 2.0 * (xx + yy)],
    ]


def moved(link: Link, q: Vector) -> list[Scalar]:
    """Compute the position of the body's origin in the joint frame [m] over scalars.

    Args:
        link: Link with a free joint.
        q: Coordinates of the joint.
    """
    if link.kind == "floating":
        return [q[0], q[1], q[2]]
    if link.kind == "spherical":
        return [0.0, 0.0, 0.0]
    x, y, _ = planar_axes(link.axis).T
    return [float(a) * q[0] + float(b) * q[1] for a, b in zip(x, y, strict=True)]


def free_links(robot: Robot) -> list[Link]:
    """Return the links of `robot` with a free joint."""
    return [link for link in robot.links if link.kind in FREE_WIDTHS]


def free_mask(robot: Robot) -> list[bool]:
    """Return which coordinates of `robot` belong to free joints."""
    own = {k for link in free_links(robot) for k in link.coordinates}
    return [k in own for k in range(robot.dof)]


def driven_joints(robot: Robot) -> tuple[str, ...] | None:
    """Return the joints of `robot` that may have a drive: all but the free ones; None if no joint is free."""
    mask = free_mask(robot)
    return tuple(n for n, free in zip(robot.joint_names, mask, strict=True) if not free) if any(mask) else None


def quaternion_parts(robot: Robot) -> list[slice]:
    """Return the places in q of the quaternions of `robot`."""
    return [
        slice(link.coordinate + FREE_WIDTHS[link.kind] - 3, link.coordinate + FREE_WIDTHS[link.kind])
        for link in free_links(robot)
        if link.kind != "planar"
    ]


def refuse_free(robot: Robot, what: str, instead: str) -> Robot:
    """Return `robot` if it has neither free joints nor closed loops; otherwise raise an error.

    Args:
        robot: Robot.
        what: Name of the function that does not support free joints and loops.
        instead: Remedy for the user.

    Raises:
        RobotError: If a joint is free, or a loop is closed.
    """
    if free := free_links(robot):
        raise RobotError(f"{robot.name}: joint '{free[0].joint}' is {free[0].kind}, and {what} yet; {instead}")
    if robot.loops:
        raise RobotError(f"{robot.name}: '{robot.loops[0].name}' closes a loop, and {what} yet; {instead}")
    return robot


def vector_part(quaternion: ArrayLike) -> Array:
    """Convert unit quaternions w, x, y, z to the coordinates of an orientation.

    Args:
        quaternion: Quaternions, `(…, 4)`.
    """
    array = np.asarray(quaternion, dtype=float)
    return np.asarray(np.where(array[..., :1] < 0.0, -1.0, 1.0) * array[..., 1:])


def whole_quaternion(vector: ArrayLike) -> Array:
    """Convert coordinates of an orientation to unit quaternions w, x, y, z; the inverse of `vector_part`.

    Args:
        vector: Coordinates, `(…, 3)`.
    """
    v = np.asarray(vector, dtype=float)
    w = np.sqrt(np.maximum(1.0 - np.sum(v**2, axis=-1, keepdims=True), 0.0))
    return np.concatenate([w, v], axis=-1)


def draw_orientations(robot: Robot, q: Array, rng: np.random.Generator) -> Array:
    """Replace the orientations of free joints in random positions by uniformly distributed ones.

    Args:
        robot: Robot.
        q: Positions `(samples, joints)`.
        rng: Random numbers.
    """
    for part in quaternion_parts(robot):
        four = rng.standard_normal((len(q), 4))
        q[:, part] = vector_part(four / np.linalg.norm(four, axis=1, keepdims=True))
    return q


def floating_urdf(root: Element) -> Element:
    """Return the URDF document `root` with a floating joint above its root link."""
    if root.tag != "robot":
        raise root.error("has no root link that could float; in MJCF, add a <freejoint/> to the body of the base.")
    names = {element.attributes.get("name", "") for element in root.children}
    children = {child.attributes.get("link") for joint in root.all("joint") for child in joint.all("child")}
    roots = [link.attributes["name"] for link in root.all("link") if link.attributes.get("name") not in children]
    if not roots:
        return root  # the reader says why
    world, joint = (next(x for x in _numbered(name) if x not in names) for name in ("world", ROOT_JOINT))
    ends = [
        Element(tag, {"link": link}, root.file, root.line) for tag, link in (("parent", world), ("child", roots[0]))
    ]
    added = [
        Element("link", {"name": world}, root.file, root.line),
        Element("joint", {"name": joint, "type": "floating"}, root.file, root.line, children=ends),
    ]
    return replace(root, children=[*root.children, *added])


def with_floating_base(robot: Robot, body: str = "base_link", inertia: ArrayLike | None = None) -> Robot:
    """Return `robot` on a body that floats: the base frame is that body's own frame.

    Args:
        robot: Robot with a fixed base and without coupled drives.
        body: Name of the body.
        inertia: Ten inertial parameters of the body; None if unknown.
    """
    if robot.transmission is not None:
        raise RobotError(
            f"{robot.source or robot.name}: a robot with a transmission cannot float yet; state no transmission."
        )
    names = {*robot.joint_names, *(link.joint for link in robot.links)}
    root = next(name for name in _numbered(ROOT_JOINT) if name not in names)
    unit, zero, width = np.eye(3), np.zeros(3), FREE_WIDTHS["floating"]
    base = Link(
        body, root, "floating", -1, unit, zero, unit[2], 0, inertia=None if inertia is None else np.array(inertia)
    )
    terms = [
        replace(t, values=tuple((0.0,) * width + row for row in t.values)) if t.on == "joint" else t
        for t in robot.nominal_terms
    ]
    return replace(
        robot,
        joints=(*free_coordinates(root, "floating"), *robot.joints),
        links=(base, *(replace(k, parent=k.parent + 1, coordinate=k.coordinate + width) for k in robot.links)),
        torque_used=(True,) * width + robot.torque_used,
        nominal_terms=tuple(terms),
        frames={name: replace(frame, host=frame.host + 1) for name, frame in robot.frames.items()},
    )


def _numbered(name: str) -> Sequence[str]:
    return [name, *(f"{name}_{k}" for k in range(2, 1000))]
