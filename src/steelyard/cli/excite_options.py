"""How the options of `steelyard excite` are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from steelyard.cli.options import numbers, words
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.excitation.constraints import Plane, Point, box
from steelyard.excitation.requirements import Region
from steelyard.excitation.trajectories import Acceleration, BSpline, Family, Fourier, Idle, SplinedQuintic
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

FAMILIES = ("fourier", "bspline", "quintic", "acceleration")
NONE = ("none", "off", "inf")


def limit(option: str, text: str) -> Any:
    """One number, one per joint, or pairs low:high; "none" lifts the limit."""
    if text.lower() in NONE:
        return None
    parts = words(text)
    try:
        if any(":" in part for part in parts):
            pairs = [tuple(float(x) for x in part.split(":")) for part in parts]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError
            return np.array(pairs)
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if not values:
        raise SteelyardError(
            f"{option} is '{text}'; give one number, one per joint with commas between (positions also as low:high), "
            "or none."
        )
    return values[0] if len(values) == 1 else np.array(values)


def limits_of(**texts: str) -> dict[str, Any]:
    """Those limits that are given."""
    return {name: limit(f"--{name}", text) for name, text in texts.items() if text != ""}


def family_of(kind: str, harmonics: int, duration: float) -> Family:
    if kind not in FAMILIES:
        raise UnknownNameError("family", kind, FAMILIES)
    if kind == "bspline":
        return BSpline(duration, spans=2 * harmonics, closed=True)
    if kind == "quintic":
        return SplinedQuintic(duration, harmonics)
    if kind == "acceleration":
        return Acceleration(duration, 4 * harmonics)
    return Fourier(harmonics, duration)


def regions_of(robot: Robot, box_text: str, floor: float | None, frame: str) -> list[Region]:
    """The tool's box, and a floor for all links."""
    out: list[Region] = []
    link = frame or robot.link_names[-1]
    if frame and frame not in robot.link_names:
        raise UnknownNameError("link", frame, robot.link_names)
    if box_text:
        x0, x1, y0, y1, z0, z1 = numbers("--box", box_text, 6)
        out.append(([Point(link)], box((x0, y0, z0), (x1, y1, z1))))
    if floor is not None:
        # Links that turn on the spot never come nearer to the floor.
        postures = np.random.default_rng(0).uniform(-1.0, 1.0, (20, robot.dof))
        heights = link_poses(robot, postures)[1][:, :, 2]
        moved = [Point(n) for n, z in zip(robot.link_names, np.ptp(heights, axis=0), strict=True) if z > 1e-9]
        if moved:
            out.append((moved, [Plane.floor(floor)]))
    return out


def collision_of(
    robot: Robot, source: str, wanted: bool | None, clearance: float, packages: str, notes: list[str]
) -> list[Any]:
    """Self-collision where the file has geometry; asked for and impossible is an error, otherwise a note."""
    path = Path(source)
    has = path.suffix.lower() == ".urdf" and path.exists() and "<collision" in path.read_text("utf-8", "replace")
    if wanted is False or (wanted is None and not has):
        if wanted is None:
            notes.append("Collisions were not looked at: the robot's file has no collision geometry that can be read.")
        return []
    if not has:
        raise SteelyardError(
            f"{source} has no collision geometry (a URDF with <collision> is needed); leave --collision out."
        )
    from steelyard.errors import ExcitationError
    from steelyard.excitation.constraints.collision import collision

    folders = words(packages) or [str(p) for p in list(path.resolve().parents)[:6]]
    try:
        touching = _always_touching(
            collision(robot, path, clearance, folders)((Idle(1.0),) * robot.dof).scene, robot, clearance
        )
        if touching:
            pairs = ", ".join(f"{a}–{b}" for a, b in touching)
            notes.append(f"These bodies are close to each other in nearly every posture and were left out: {pairs}.")
        return [collision(robot, path, clearance, folders, ignore=touching)]
    except (ExcitationError, ValueError, RuntimeError) as error:
        if wanted:
            raise SteelyardError(
                f"Collision geometry of {source} cannot be used: {' '.join(str(error).split())}"
            ) from None
        notes.append(f"Collisions were not looked at: {' '.join(str(error).split())}")
        return []


def _always_touching(scene: Any, robot: Robot, clearance: float) -> list[tuple[str, str]]:
    """Pairs that are near in nearly every posture: overlapping models of what is bolted together, not collisions."""
    low = [max(j.lower, -np.pi) for j in robot.joints]
    high = [min(j.upper, np.pi) for j in robot.joints]
    postures = np.random.default_rng(0).uniform(low, high, (40, robot.dof))
    near = np.mean([scene.measure(q).distances < clearance for q in postures], axis=0)
    return [pair for pair, share in zip(scene.names, near, strict=True) if share > 0.95]
