"""`load_robot`: a robot from a file, from the library of built-in robots, or from another robot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.robot.formats import read_robot
from steelyard.robot.lock import lock_joints
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import snap as snap_entries

# Entries this close to 0 and ±1 are rounding of angles written with twelve or more digits. Exact zeros and
# ones let the tracer drop whole products, and make the structure of the base parameters the intended one.
ROUNDING = 1e-11


def load_robot(
    source: str | Path | Robot,
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    gravity: ArrayLike | None = None,
    torque_used: Sequence[str] | None = None,
    snap: float | None = None,
) -> Robot:
    """A robot from a file, by name from the library, or from another robot.

    Args:
        source: path of a file of any format in `steelyard.robot.formats.ROBOT_FORMATS` (.urdf; .xml, MJCF or URDF;
            .yaml and .toml, Denavit–Hartenberg tables), name of a built-in robot, or a `Robot` to change.
        joints: the joints that move, in the order of the arrays; all others are locked. Default: all but `locked`.
        locked: positions of locked joints in rad or m; 0 where nothing is said.
        gravity: in the base frame, m/s². Default: what the description says, else (0, 0, −9.81).
        torque_used: the joints whose torque can be trusted; the others move, but their rows count nowhere.
        snap: entries of rotations and axes this close to 0 and ±1 become exactly that. The default, 1e-11, mends
            rounding only; about 1e-4 mends angles written as 1.5708, which changes the robot by as much.
    """
    if snap is not None and not 0.0 <= snap < 0.1:
        raise RobotError(f"snap is {snap}; give a tolerance from 0 to 0.1, such as 1e-4.")
    robot = source if isinstance(source, Robot) else _read(source)
    if joints is not None or locked:
        held = locked or {}
        robot = lock_joints(robot, joints if joints is not None else _others(robot, held), held)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if torque_used is not None:
        robot = robot.with_torque_used(torque_used)
    if snap is None and isinstance(source, Robot) and joints is None and not locked:
        return robot
    # Entries of placements and axes this near to 0 and ±1 are set to exactly that.
    tolerance = ROUNDING if snap is None else snap
    return replace(robot, links=tuple(_snapped_link(link, tolerance) for link in robot.links))


def _others(robot: Robot, held: Mapping[str, float]) -> list[str]:
    for name in held:
        robot.joint_index(name)
    return [name for name in robot.joint_names if name not in held]


def _read(source: str | Path) -> Robot:
    path = Path(source)
    if not os.path.exists(path) or os.path.isdir(path):  # false, not an error, for a name that no file can have
        return _builtin(source, path)
    return read_robot(path)


def _builtin(source: str | Path, path: Path) -> Robot:
    """A built-in robot, where the source cannot be a file: it has no suffix and names no folder."""
    from steelyard.robot.library import builtin, builtin_names

    name = str(source)
    if name in builtin_names():
        return builtin(name)
    if os.path.isdir(path):
        raise RobotError(f"{path}: this is a folder; give the path of a robot description inside it.")
    if path.suffix or path.name != name:
        raise RobotError(
            f"{path}: there is no such file; check the path, or name one of: {', '.join(builtin_names())}."
        )
    raise UnknownNameError("file or built-in robot", name, builtin_names())


def _snapped_link(link: Link, tolerance: float) -> Link:
    axis = snap_entries(link.axis, tolerance)
    return replace(
        link,
        rotation=_snapped_rotation(link.rotation, tolerance),
        frame_rotation=_snapped_rotation(link.frame_rotation, tolerance),
        axis=snap_entries(axis / np.linalg.norm(axis), ROUNDING),
    )


def _snapped_rotation(rotation: Array, tolerance: float) -> Array:
    out = snap_entries(rotation, tolerance)
    if tolerance <= ROUNDING:
        return out
    # Snapping some entries of a rotation but not others leaves it askew: take the nearest rotation instead.
    u, _, v = np.linalg.svd(out)
    return snap_entries(u @ v, ROUNDING)


def nearly_aligned(robot: Robot, tolerance: float = 1e-4) -> list[tuple[str, float]]:
    """Joints of `robot` whose placement or axis misses alignment by no more than `tolerance`, with the largest miss.

    Such angles were mostly written with few digits (1.5708 for a right angle). They cost speed and blur the
    structure of the base parameters; `load_robot(…, snap=1e-4)` mends them.
    """
    out = []
    for link in robot.links:
        entries = np.abs(np.concatenate([link.rotation.ravel(), link.frame_rotation.ravel(), link.axis]))
        deviation = np.minimum(entries, np.abs(entries - 1.0))
        close = deviation[(deviation > ROUNDING) & (deviation <= tolerance)]
        if close.size:
            out.append((link.joint, float(close.max())))
    return out
