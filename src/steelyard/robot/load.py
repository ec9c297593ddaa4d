"""`load_robot`: a robot from a file, by name, from a text, or from what another library holds; `as_robot` for all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.xml import parse_xml
from steelyard.robot.formats import ROBOT_FORMATS, read_robot
from steelyard.robot.lock import lock_joints, without_loops
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import snap as snap_entries

# Entries this close to 0 and ±1 are rounding of angles written with twelve or more digits. Exact zeros and
# ones let the tracer drop whole products, and make the structure of the base parameters the intended one.
ROUNDING = 1e-11

# Angles that miss a right angle by less are taken for rounding (1.5708 misses it by 4e-6). A frame that is turned by so
# much moves a tool by 0.1 mm in a metre.
SNAP = 1e-4

# Whatever `as_robot` takes; objects of other libraries have no type here, since those need not be installed.
RobotLike = Robot | str | os.PathLike[str] | Any


def as_robot(given: RobotLike) -> Robot:
    """The robot that a caller means: every function that takes a robot asks here.

    Args:
        given: a `Robot`, or what `load_robot` takes as its source.
    """
    return given if isinstance(given, Robot) else load_robot(given)


def load_robot(
    source: RobotLike,
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    gravity: ArrayLike | None = None,
    torque_used: Sequence[str] | None = None,
    snap: float | None = None,
) -> Robot:
    """A robot from a file, a text, by name, from another library's model, or from another robot.

    Args:
        source: path of a file of any format in `steelyard.robot.formats.ROBOT_FORMATS` (.urdf; .xml, MJCF or URDF;
            .yaml and .toml, Denavit–Hartenberg tables); the text of a URDF or MJCF; name of a built-in robot or of one
            in the package robot_descriptions whose files are here; a `pinocchio.Model`, `mujoco.MjModel` or
            `mujoco.MjSpec`; or a `Robot` to change.
        joints: the joints that move, in the order of the arrays; all others are locked. Default: all but `locked`.
            Closed chains (of grippers) must be locked, each joint of them where it stands.
        locked: positions of locked joints in rad or m; 0 where nothing is said.
        gravity: in the base frame, m/s². Default: what the description says, else (0, 0, −9.81).
        torque_used: the joints whose torque can be trusted; the others move, but their rows count nowhere.
        snap: entries of rotations and axes this close to 0 and ±1 become exactly that. The default, 1e-4, takes angles
            that were written with few digits (1.5708) as right angles; `Robot.snapped` names the joints. 0 keeps the
            description as it is.
    """
    if snap is not None and not 0.0 <= snap < 0.1:
        raise RobotError(f"snap is {snap}; give a tolerance from 0 to 0.1, such as 1e-4.")
    robot = source if isinstance(source, Robot) else _read(source)
    if joints is not None or locked:
        held = locked or {}
        robot = lock_joints(robot, joints if joints is not None else _others(robot, held), held)
    robot = without_loops(robot)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if torque_used is not None:
        robot = robot.with_torque_used(torque_used)
    if snap is None and isinstance(source, Robot) and joints is None and not locked:
        return robot
    # A robot that is handed over was read before, and keeps its angles.
    tolerance = (ROUNDING if isinstance(source, Robot) else SNAP) if snap is None else snap
    links = tuple(_snapped_link(link, tolerance) for link in robot.links)
    moved = {new.joint: _distance(old, new) for old, new in zip(robot.links, links, strict=True)}
    changed = {joint: distance for joint, distance in moved.items() if distance > ROUNDING}
    return replace(robot, links=links, snapped={**robot.snapped, **changed})


def _others(robot: Robot, held: Mapping[str, float]) -> list[str]:
    cut = {name for loop in robot.loops for name in loop.cut}
    for name in held:
        if name not in cut:
            robot.joint_index(name)
    return [name for name in robot.joint_names if name not in held]


def _read(source: Any) -> Robot:
    if not isinstance(source, str | os.PathLike):
        return _from_object(source)
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return _from_text(source)
    path = Path(source)
    if not os.path.exists(path) or os.path.isdir(path):  # false, not an error, for a name that no file can have
        return _builtin(source, path)
    return read_robot(path, loops=True)


def _from_text(text: str) -> Robot:
    root = parse_xml("the text of the robot", text)
    for kind in ROBOT_FORMATS.values():
        if kind.root == root.tag and kind.parse is not None:
            return replace(kind.parse(root), source="")
    raise root.error("is not a robot's; a text begins with <robot> (URDF) or <mujoco> (MJCF).")


def _from_object(given: Any) -> Robot:
    from steelyard.robot.objects import robot_from_object

    robot = robot_from_object(given)
    if robot is None:
        raise RobotError(
            f"A robot is given as path, name, text of a URDF, Robot, pinocchio.Model, mujoco.MjModel or MjSpec, not as "
            f"'{type(given).__name__}'."
        )
    return robot


def _builtin(source: str | os.PathLike[str], path: Path) -> Robot:
    """A robot by name, where the source cannot be a file: it has no suffix and names no folder."""
    from steelyard.robot.descriptions import described
    from steelyard.robot.library import builtin, builtin_names

    name = str(source)
    if name in builtin_names():
        return builtin(name)
    if (found := described(name)) is not None:
        return read_robot(found, loops=True)
    if os.path.isdir(path):
        raise RobotError(f"{path}: this is a folder; give the path of a robot description inside it.")
    if path.suffix or path.name != name:
        raise RobotError(
            f"{path}: there is no such file; check the path, or name one of: {', '.join(builtin_names())}."
        )
    raise UnknownNameError("file or built-in robot", name, builtin_names())


def _snapped_link(link: Link, tolerance: float) -> Link:
    axis = _without_small(link.axis, tolerance)
    return replace(
        link,
        rotation=_snapped_rotation(link.rotation, tolerance),
        frame_rotation=_snapped_rotation(link.frame_rotation, tolerance),
        axis=snap_entries(axis / np.linalg.norm(axis), ROUNDING),
    )


def _snapped_rotation(rotation: Array, tolerance: float) -> Array:
    out = _without_small(rotation, tolerance)
    if tolerance <= ROUNDING or np.array_equal(out, rotation):
        return snap_entries(rotation, ROUNDING)
    u, _, v = np.linalg.svd(out)
    nearest = snap_entries(u @ v, ROUNDING)
    # What was rounding leaves a rotation when it is gone, to second order. A small product of larger turns does not.
    return nearest if np.max(np.abs(nearest - out)) <= tolerance**2 else snap_entries(rotation, ROUNDING)


def _distance(old: Link, new: Link) -> float:
    """The largest difference between the rotations and axes of two links."""
    pairs = ((old.rotation, new.rotation), (old.frame_rotation, new.frame_rotation), (old.axis, new.axis))
    return max(float(np.max(np.abs(a - b))) for a, b in pairs)


def _without_small(entries: Array, tolerance: float) -> Array:
    """Set entries within a tolerance of zero to zero. (The cosine of 0.01 rad is one to 5e-5, which is no rounding.)"""
    return np.where(np.abs(entries) <= tolerance, 0.0, entries)


def nearly_aligned(robot: Robot, tolerance: float = SNAP) -> list[tuple[str, float]]:
    """Joints of `robot` whose placement or axis misses alignment by no more than `tolerance`, with the largest miss.

    Such angles were mostly written with few digits (1.5708 for a right angle). They cost speed and blur the
    structure of the base parameters; `load_robot` makes them exact.
    """
    out = []
    for link in robot.links:
        deviation = np.abs(np.concatenate([link.rotation.ravel(), link.frame_rotation.ravel(), link.axis]))
        close = deviation[(deviation > ROUNDING) & (deviation <= tolerance)]
        if close.size:
            out.append((link.joint, float(close.max())))
    return out
