"""`load_robot`: a robot from a file, a name, a text or another library's object; `as_robot` accepts all of them.

Names are those of built-in robots and of the package `robot_descriptions`. Only its files on this machine are read; the
package itself would download missing ones without asking.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.xml import parse_xml
from steelyard.robot.formats import ROBOT_FORMATS, read_robot
from steelyard.robot.free import floating_urdf, free_links, with_floating_base
from steelyard.robot.lock import lock_joints, refuse_loops, refuse_unknown_loops
from steelyard.robot.loop_table import LoopSource, with_loop_table
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import snap as snap_entries
from steelyard.robot.urdf import robot_from_urdf

# Entries this close to 0 and ±1 are rounding of angles written with twelve or more digits. Exact zeros and
# ones let the tracer drop whole products, and make the structure of the base parameters the intended one.
ROUNDING = 1e-11

# Angles closer than this to a right angle are treated as rounded (1.5708 is off by 4e-6). This rotation moves a tool by
# 0.1 mm at a distance of one metre.
SNAP = 1e-4

# Arguments of `as_robot`. Objects of other libraries are `Any`, since those libraries are optional.
RobotLike = Robot | str | os.PathLike[str] | Any


def as_robot(source: RobotLike) -> Robot:
    """Convert an argument to a robot; every function that takes a robot calls this.

    Args:
        source: A `Robot`, or a source for `load_robot`.
    """
    return source if isinstance(source, Robot) else load_robot(source)


def load_robot(
    source: RobotLike,
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    gravity: ArrayLike | None = None,
    torque_used: Sequence[str] | None = None,
    snap: float | None = None,
    floating: bool = False,
    loops: LoopSource = False,
) -> Robot:
    """Load a robot from a file, a text, a name, another library's model, or another robot.

    Args:
        source: Path of a file of any format in `steelyard.robot.formats.ROBOT_FORMATS` (.urdf; .xml, MJCF or URDF;
            .yaml and .toml, Denavit–Hartenberg tables); text of a URDF or MJCF; name of a built-in robot or of a
            downloaded one in the package robot_descriptions; a `pinocchio.Model`, `mujoco.MjModel` or `mujoco.MjSpec`;
            or a `Robot` to change.
        joints: Joints that move, in the order of the arrays; all others are locked. Default: all but `locked`.
            All joints of closed chains (of grippers) must be locked.
        locked: Positions of locked joints [rad, m]; default 0.
        gravity: Gravity in the base frame [m/s²]. Default: from the description, else (0, 0, −9.81).
        torque_used: Joints whose torque is trusted; the rows of the others are ignored.
        snap: Entries of rotations and axes this close to 0 and ±1 become exactly that. The default, 1e-4, treats angles
            with few digits (1.5708) as right angles; `Robot.snap_distances` names the joints. 0 keeps the
            description unchanged.
        floating: The root link of a URDF, or the base of a Denavit–Hartenberg table, floats: it is a body with a free
            joint "root_joint", not fixed to the world.
        loops: True keeps closed loops of the description (`Robot.loops`); a loop table (TOML file or dict) adds
            further ones. False refuses loops that are not locked.
    """
    if snap is not None and not 0.0 <= snap < 0.1:
        raise RobotError(f"snap is {snap}; give a tolerance from 0 to 0.1, such as 1e-4.")
    robot = source if isinstance(source, Robot) else _read(source, floating)
    if floating and not any(link.kind == "floating" for link in robot.links):
        raise RobotError(
            f"{robot.source or robot.name}: its base cannot be set free after reading; read it from a URDF or a "
            "Denavit–Hartenberg table, or add a <freejoint/> (MJCF) or a free flyer (Pinocchio)."
        )
    if not isinstance(loops, bool):
        robot = with_loop_table(robot, loops)
    if joints is not None or locked:
        positions = locked or {}
        robot = lock_joints(robot, joints if joints is not None else _others(robot, positions), positions)
    robot = refuse_loops(robot) if loops is False else refuse_unknown_loops(robot)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if torque_used is not None:
        robot = robot.with_torque_used(torque_used)
    if snap is None and isinstance(source, Robot) and joints is None and not locked:
        return robot
    # A `Robot` was snapped when it was read.
    tolerance = (ROUNDING if isinstance(source, Robot) else SNAP) if snap is None else snap
    links = tuple(_snapped_link(link, tolerance) for link in robot.links)
    distances = {new.joint: _distance(old, new) for old, new in zip(robot.links, links, strict=True)}
    changed = {joint: distance for joint, distance in distances.items() if distance > ROUNDING}
    return replace(robot, links=links, snap_distances={**robot.snap_distances, **changed})


def _others(robot: Robot, locked: Mapping[str, float]) -> list[str]:
    cut = {name for loop in robot.loops for name in loop.cut}
    for name in locked:
        if name not in cut:
            robot.joint_index(name)
    return [name for name in robot.joint_names if name not in locked]


def _read(source: Any, floating: bool) -> Robot:
    if not isinstance(source, str | os.PathLike):
        return _from_object(source)
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return _from_text(source, floating)
    path = Path(source)
    if not os.path.exists(path) or os.path.isdir(path):  # False for impossible file names; pathlib would raise
        return _builtin(source, path, floating)
    return _read_file(path, floating)


def _read_file(path: Path, floating: bool) -> Robot:
    if floating and path.suffix.lower() in (".urdf", ".xml"):
        root = parse_xml(path)
        if root.tag == "robot":
            return robot_from_urdf(floating_urdf(root))
    robot = read_robot(path, loops=True)
    if floating and not free_links(robot) and path.suffix.lower() in ROBOT_FORMATS["dh"].suffixes:
        return with_floating_base(robot)
    return robot


def _from_text(text: str, floating: bool) -> Robot:
    root = parse_xml("the text of the robot", text)
    root = floating_urdf(root) if floating and root.tag == "robot" else root
    for kind in ROBOT_FORMATS.values():
        if kind.root == root.tag and kind.parse is not None:
            return replace(kind.parse(root), source="")
    raise root.error("is not the root of a robot; a text begins with <robot> (URDF) or <mujoco> (MJCF).")


def _from_object(source: Any) -> Robot:
    from steelyard.robot.objects import robot_from_object

    robot = robot_from_object(source)
    if robot is None:
        raise RobotError(
            f"No robot can be read from '{type(source).__name__}'; give a path, a name, the text of a URDF, a Robot, "
            "pinocchio.Model, mujoco.MjModel or MjSpec."
        )
    return robot


def _builtin(source: str | os.PathLike[str], path: Path, floating: bool) -> Robot:
    """Load a robot by name, for a source other than a file."""
    from steelyard.robot.library import builtin, builtin_names

    name = str(source)
    if name in builtin_names():
        return builtin(name)
    if (description := description_path(name)) is not None:
        return _read_file(description, floating)
    if os.path.isdir(path):
        raise RobotError(f"{path}: this is a folder; give the path of a robot description inside it.")
    if path.suffix or path.name != name:
        raise RobotError(
            f"{path}: there is no such file; check the path, or name a built-in robot: {', '.join(builtin_names())}."
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
    # Removing rounding keeps a rotation to second order; removing a small product of larger rotations does not.
    return nearest if np.max(np.abs(nearest - out)) <= tolerance**2 else snap_entries(rotation, ROUNDING)


def _distance(old: Link, new: Link) -> float:
    """Compute the largest difference between the rotations and axes of two links."""
    pairs = ((old.rotation, new.rotation), (old.frame_rotation, new.frame_rotation), (old.axis, new.axis))
    return max(float(np.max(np.abs(a - b))) for a, b in pairs)


def _without_small(entries: Array, tolerance: float) -> Array:
    """Set entries near zero to zero, but keep entries near one: cos 0.01 rad is one to 5e-5 without any rounding."""
    return np.where(np.abs(entries) <= tolerance, 0.0, entries)


def nearly_aligned(robot: Robot, tolerance: float = SNAP) -> list[tuple[str, float]]:
    """List joints with a placement or axis that is almost aligned, with the largest deviation.

    Such angles were mostly written with few digits (1.5708 for a right angle). They cost speed and obscure the
    structure of the base parameters; `load_robot` makes them exact.

    Args:
        robot: Robot.
        tolerance: Largest deviation of an entry from 0 or ±1.
    """
    out = []
    for link in robot.links:
        deviation = np.abs(np.concatenate([link.rotation.ravel(), link.frame_rotation.ravel(), link.axis]))
        close = deviation[(deviation > ROUNDING) & (deviation <= tolerance)]
        if close.size:
            out.append((link.joint, float(close.max())))
    return out


_PACKAGE = "robot_descriptions"


def description_path(name: str) -> Path | None:
    """Return the URDF or MJCF of a robot in `robot_descriptions`; None if the package does not have it.

    Args:
        name: Module name (panda_description, panda_mj_description) or its beginning (panda).
    """
    if not name.isidentifier():
        return None
    if find_spec(_PACKAGE) is None:
        if name.endswith("_description"):
            raise RobotError(
                f"'{name}' is a robot of the package {_PACKAGE}, which is not installed; install it with "
                f"'pip install {_PACKAGE}', or give the path of a file."
            )
        return None
    for module in (name,) if name.endswith("_description") else (f"{name}_description", f"{name}_mj_description"):
        if find_spec(f"{_PACKAGE}.{module}") is not None:
            return _path(module)
    return None


def _path(module: str) -> Path:
    """Return the path of a description whose files are on this machine."""
    full = f"{_PACKAGE}.{module}"
    description = sys.modules.get(full) or _import_offline(full, module)
    for kind in ("URDF_PATH", "MJCF_PATH"):
        if path := vars(description).get(kind):
            return Path(path)
    raise RobotError(f"{full} is neither URDF nor MJCF (xacro, perhaps); convert it to URDF and give its path.")


def _import_offline(full: str, module: str) -> Any:
    """Import the module of a description while the package's downloads are disabled."""
    cache: Any = importlib.import_module(f"{_PACKAGE}._cache")

    def local_folder(url: str, target_dir: str, commit: str | None = None) -> SimpleNamespace:
        if not os.path.isdir(target_dir):
            raise RobotError(
                f"'{module}' of {_PACKAGE} is not on this machine; download it once with '{_PACKAGE} pull {module}' "
                f"(or 'python -c \"import {full}\"')."
            )
        return SimpleNamespace(working_dir=target_dir)

    download = cache.clone_to_directory
    cache.clone_to_directory = local_folder
    try:
        return importlib.import_module(full)
    finally:
        cache.clone_to_directory = download
