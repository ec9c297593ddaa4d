"""Where a robot may be: a box for its tool, a floor for all links, bodies that keep apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from steelyard.excitation.problem import FreeSpace

# Pairs that are near in so many of some random postures are bolted together; their models overlap.
_ALWAYS, _POSTURES = 0.95, 40
# The folders above the robot's file in which meshes of packages are looked for.
_FOLDERS_ABOVE = 6


def stays_in(robot: Robot, box: Sequence[float] | None, floor: float | None, frame: str) -> list[FreeSpace]:
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


def keeps_apart(
    robot: Robot, wanted: bool | None, clearance: float, packages: Sequence[str | Path]
) -> tuple[list[Callable[[Sequence[Family]], Constraint]], list[str]]:
    """Self-collision by the geometry in the robot's own URDF, and what a user should know of it.

    `wanted`: True (impossible is an error), False, or None (where there is geometry; a note otherwise).
    """
    path = Path(robot.source)
    has = path.suffix.lower() == ".urdf" and path.exists() and b"<collision" in read_bytes(path, MAX_BYTES)
    if wanted is False:
        return [], []
    if not has and wanted is None:
        return [], ["Collisions were not looked at: the robot's file has no collision geometry that can be read."]
    if not has:
        raise SteelyardError(
            f"{robot.source or robot.name} has no collision geometry (a URDF with <collision> is needed); leave "
            "--collision out."
        )
    from steelyard.excitation.constraints._collision import collision

    folders = [str(p) for p in packages] or [str(p) for p in list(path.resolve().parents)[:_FOLDERS_ABOVE]]
    notes = []
    try:
        scene = collision(robot, path, clearance, folders)((Idle(1.0),) * robot.dof).scene
        touching = _always_touching(scene, robot, clearance)
        if touching:
            pairs = ", ".join(f"{a}–{b}" for a, b in touching)
            notes.append(f"These bodies are close to each other in nearly every posture and were left out: {pairs}.")
        return [collision(robot, path, clearance, folders, ignore=touching)], notes
    except (ExcitationError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        if wanted:
            raise SteelyardError(f"Collision geometry of {robot.source} cannot be used: {said}") from None
        return [], [f"Collisions were not looked at: {said}"]


def _always_touching(scene: Any, robot: Robot, clearance: float) -> list[tuple[str, str]]:
    """Pairs that are near in nearly every posture: overlapping models of what is bolted together, not collisions."""
    low = [max(j.lower, -np.pi) for j in robot.joints]
    high = [min(j.upper, np.pi) for j in robot.joints]
    postures = np.random.default_rng(0).uniform(low, high, (_POSTURES, robot.dof))
    near = np.mean([scene.measure(q).distances < clearance for q in postures], axis=0)
    return [pair for pair, share in zip(scene.names, near, strict=True) if share > _ALWAYS]
