"""Spatial constraints of a robot: a box for its tool, a floor for all links, distances of its bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import ExcitationError, SteelyardError, UnknownNameError
from steelyard.excitation.constraints.limits import Constraint
from steelyard.excitation.constraints.traced_limit import Plane, Point
from steelyard.excitation.constraints.traced_limit import box as inside_box
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.trajectories import Family, Idle
from steelyard.ground.untrusted_files import read_bytes
from steelyard.ground.xml import MAX_BYTES
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from steelyard.excitation.constraints._collision import Collision
    from steelyard.excitation.search_problem import FreeSpace

# Number of folders above the robot's file in which meshes of packages are searched.
_FOLDERS_ABOVE = 6


def free_spaces(robot: Robot, box: Sequence[float] | None, floor: float | None, frame: str) -> list[FreeSpace]:
    """Return the regions of a box and a floor.

    Args:
        robot: The robot.
        box: (x0, x1, y0, y1, z0, z1) [m] for the origin of link `frame`, or None.
        floor: Smallest height of all link origins [m], or None.
        frame: Link of the box; "": the last one.
    """
    out: list[FreeSpace] = []
    if frame and frame not in robot.link_names:
        raise UnknownNameError("link", frame, robot.link_names)
    if box is not None:
        x0, x1, y0, y1, z0, z1 = box
        out.append(([Point(frame or robot.link_names[-1])], inside_box((x0, y0, z0), (x1, y1, z1))))
    if floor is not None:
        # The height of a link that only rotates about its origin is constant.
        postures = np.random.default_rng(0).uniform(-1.0, 1.0, (20, robot.dof))
        heights = link_poses(robot, postures)[1][:, :, 2]
        moved = [Point(n) for n, z in zip(robot.link_names, np.ptp(heights, axis=0), strict=True) if z > 1e-9]
        if moved:
            out.append((moved, [Plane.floor(floor)]))
    return out


def options_in_space(robot: Robot, o: ExciteOptions) -> tuple[ExciteOptions, list[str]]:
    """Return options whose regions contain the box and the floor, and whose constraints contain the collisions.

    Args:
        robot: The robot.
        o: Options with the box, the floor, and whether collisions are avoided.
    """
    apart, notes = collision_constraints(robot, o.collision, o.clearance, o.packages, o.srdf)
    regions = [*free_spaces(robot, o.box, o.floor, o.frame), *o.regions]
    in_space = replace(o, regions=regions, constraints=[*apart, *o.constraints])
    return replace(in_space, box=None, frame="", floor=None, collision=False), notes


def collision_constraints(
    robot: Robot, wanted: bool | None, clearance: float, packages: Sequence[str | Path], srdf: str | Path | None = None
) -> tuple[list[Callable[[Sequence[Family]], Constraint]], list[str]]:
    """Return constraints against self-collision by the geometry in the robot's own URDF, and notes for the user.

    Args:
        robot: The robot.
        wanted: True (raise an error if impossible), False, or None (if there is geometry; else a note).
        clearance: Smallest distance [m].
        packages: Folders with `package://` meshes.
        srdf: File whose disabled pairs are left out.
    """
    path = Path(robot.source)
    has = path.suffix.lower() == ".urdf" and path.exists() and b"<collision" in read_bytes(path, MAX_BYTES)
    if wanted is False:
        return [], []
    if not has and wanted is None:
        return [], ["Collisions were not checked: no collision geometry of the robot's file can be read."]
    if not has:
        raise SteelyardError(
            f"{robot.source or robot.name} has no collision geometry (a URDF with <collision> is needed); leave "
            "--collision out."
        )
    from steelyard.excitation.constraints._collision import collision

    folders = [str(p) for p in packages] or [str(p) for p in list(path.resolve().parents)[:_FOLDERS_ABOVE]]
    try:
        apart = collision(robot, path, clearance, folders, srdf)
        return [apart], _clearance_notes(apart((Idle(1.0),) * robot.dof), clearance)
    except (ExcitationError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        if wanted:
            raise SteelyardError(f"Collision geometry of {robot.source} cannot be used: {reason}") from None
        return [], [f"Collisions were not checked: {reason}"]


def _clearance_notes(collision: Collision, clearance: float) -> list[str]:
    """Name the pairs whose clearance differs from `clearance` [m]."""
    pairs = [(f"{a}–{b}", least) for (a, b), least in zip(collision.scene.names, collision.clearance, strict=True)]
    touch = [name for name, least in pairs if 0.0 <= least < clearance]
    overlap = [name for name, least in pairs if least < 0.0]
    notes = []
    if touch:
        notes.append(
            f"These bodies are closer than {clearance:g} m in nearly every posture; the design only keeps them from "
            f"touching: {', '.join(touch)}."
        )
    if overlap:
        notes.append(
            "The hulls of these bodies overlap in nearly every posture; the design keeps them from overlapping by more "
            f"than in the zero posture: {', '.join(overlap)}."
        )
    return notes
