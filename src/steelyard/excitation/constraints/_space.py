"""Where a robot may be: a box for its tool, a floor for all links, bodies that keep apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import ExcitationError, SteelyardError, UnknownNameError
from steelyard.excitation.constraints.limits import Constraint
from steelyard.excitation.constraints.traced_limit import Plane, Point
from steelyard.excitation.constraints.traced_limit import box as inside_box
from steelyard.excitation.trajectories import Family, Idle
from steelyard.ground.untrusted import read_bytes
from steelyard.ground.xml import MAX_BYTES
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from steelyard.excitation.constraints._collision import Collision
    from steelyard.excitation.problem import FreeSpace

# The folders above the robot's file in which meshes of packages are looked for.
_FOLDERS_ABOVE = 6


def free_spaces(robot: Robot, box: Sequence[float] | None, floor: float | None, frame: str) -> list[FreeSpace]:
    """A box (x0, x1, y0, y1, z0, z1; m) that the origin of link `frame` stays in ("": the last one), and a height (m)
    that no link's origin comes below."""
    out: list[FreeSpace] = []
    if frame and frame not in robot.link_names:
        raise UnknownNameError("link", frame, robot.link_names)
    if box is not None:
        x0, x1, y0, y1, z0, z1 = box
        out.append(([Point(frame or robot.link_names[-1])], inside_box((x0, y0, z0), (x1, y1, z1))))
    if floor is not None:
        # Links that turn on the spot never come nearer to the floor.
        postures = np.random.default_rng(0).uniform(-1.0, 1.0, (20, robot.dof))
        heights = link_poses(robot, postures)[1][:, :, 2]
        moved = [Point(n) for n, z in zip(robot.link_names, np.ptp(heights, axis=0), strict=True) if z > 1e-9]
        if moved:
            out.append((moved, [Plane.floor(floor)]))
    return out


def collision_constraints(
    robot: Robot, wanted: bool | None, clearance: float, packages: Sequence[str | Path], srdf: str | Path | None = None
) -> tuple[list[Callable[[Sequence[Family]], Constraint]], list[str]]:
    """Self-collision by the geometry in the robot's own URDF, and what a user should know of it.

    `wanted`: True (impossible is an error), False, or None (where there is geometry; a note otherwise). `srdf`: a file
    whose disabled pairs are left out.
    """
    path = Path(robot.source)
    has = path.suffix.lower() == ".urdf" and path.exists() and b"<collision" in read_bytes(path, MAX_BYTES)
    if wanted is False:
        return [], []
    if not has and wanted is None:
        return [], ["Collisions were not checked: the robot's file has no collision geometry that can be read."]
    if not has:
        raise SteelyardError(
            f"{robot.source or robot.name} has no collision geometry (a URDF with <collision> is needed); leave "
            "--collision out."
        )
    from steelyard.excitation.constraints._collision import collision

    folders = [str(p) for p in packages] or [str(p) for p in list(path.resolve().parents)[:_FOLDERS_ABOVE]]
    try:
        apart = collision(robot, path, clearance, folders, srdf)
        return [apart], _held_notes(apart((Idle(1.0),) * robot.dof), clearance)
    except (ExcitationError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        if wanted:
            raise SteelyardError(f"Collision geometry of {robot.source} cannot be used: {said}") from None
        return [], [f"Collisions were not checked: {said}"]


def _held_notes(found: Collision, clearance: float) -> list[str]:
    """Which pairs are held to something else than the `clearance` (m), and to what."""
    named = [f"{a}–{b}" for a, b in found.scene.names]
    touch = [n for n, least in zip(named, found.clearance, strict=True) if 0.0 <= least < clearance]
    overlap = [n for n, least in zip(named, found.clearance, strict=True) if least < 0.0]
    notes = []
    if touch:
        notes.append(
            f"These bodies are nearer than {clearance:g} m in nearly every posture; they are kept from touching: "
            f"{', '.join(touch)}."
        )
    if overlap:
        notes.append(
            "The hulls of these bodies overlap wherever the robot stands; they are kept from overlapping by more than "
            f"in its zero posture: {', '.join(overlap)}."
        )
    return notes
