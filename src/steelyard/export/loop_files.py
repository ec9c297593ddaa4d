"""Closed loops in exported files: a loop table next to a URDF, equality constraints in a new MJCF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.export._xml_text import numbers, tag
from steelyard.ground.files import write_whole
from steelyard.robot.loop_constraints import CLOSINGS, FramePair, JointCurve
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, quaternion_of, rpy_of

_SUFFIX = ".loops.toml"


def loop_table_path(description: Path) -> Path:
    """Return the path of the loop table of a `description`: `arm.urdf` has `arm.loops.toml`; an MJCF needs none."""
    stem = description.stem if description.suffix.lower() == ".urdf" else f"{description.name}"
    return description.with_name(stem + _SUFFIX)


def loops_to_table(robot: Robot, path: Path, stated: Sequence[str] = ()) -> None:
    """Write the loop table of a robot.

    Args:
        robot: Robot with closed loops.
        path: Path of the file.
        stated: Loops that the description states itself.
    """
    lines = ["# Closed loops of the URDF beside this file, for Steelyard (load_robot(…, loops=…), --loops)."]
    if robot.actuated:
        lines.append(f"driven = {json.dumps(list(robot.actuated), ensure_ascii=False)}")
    if robot.start:
        values = ", ".join(f"{json.dumps(name, ensure_ascii=False)} = {x!r}" for name, x in robot.start.items())
        lines.append(f"start = {{{values}}}")
    kinds = {rows: name for name, rows in CLOSINGS.items()}
    for loop in robot.loops:
        if loop.name in stated:
            continue
        lines += ["", f"[loops.{json.dumps(loop.name, ensure_ascii=False)}]"]
        constraint = loop.constraint
        if isinstance(constraint, JointCurve):
            names = {"follower": constraint.follower, "leader": constraint.leader}
            lines += ['kind = "curve"', *(f"{k} = {json.dumps(x, ensure_ascii=False)}" for k, x in names.items())]
            lines.append(f"coefficients = {[float(c) for c in constraint.coefficients]!r}")
        elif isinstance(constraint, FramePair):
            lines.append(f'kind = "{kinds[constraint.rows]}"')
            for end, frame in (("first", constraint.first), ("second", constraint.second)):
                lines += _end_lines(robot, end, frame)
    write_whole(path, "\n".join(lines) + "\n")


def _end_lines(robot: Robot, end: str, frame: LinkFrame) -> list[str]:
    if frame.host < 0:
        name, place = "world", frame
    else:
        link = robot.links[frame.host]
        back = link.frame_rotation.T
        name = link.name
        place = LinkFrame(frame.host, back @ frame.rotation, back @ (frame.translation - link.frame_translation))
    out = [f"{end} = {json.dumps(name, ensure_ascii=False)}"]
    parts = {"position": place.translation, "rpy": rpy_of(place.rotation)}
    return out + [f"{end}_{key} = {[float(x) for x in value]!r}" for key, value in parts.items() if np.any(value)]


def site_lines(robot: Robot, host: int) -> list[str]:
    """Return the sites of a body that close loops.

    Args:
        robot: Robot with closed loops.
        host: Index of the link; -1 for the world.
    """
    out = []
    for k, loop in enumerate(robot.loops):
        if isinstance(loop.constraint, FramePair) and loop.constraint.rows in _TAGS:
            for end, frame in (("first", loop.constraint.first), ("second", loop.constraint.second)):
                if frame.host == host:
                    place = {"pos": numbers(frame.translation), "quat": numbers(quaternion_of(frame.rotation))}
                    out.append(tag("site", {"name": f"loop{k + 1}_{end}", **place}))
    return out


_TAGS = {CLOSINGS["point"]: "connect", CLOSINGS["pose"]: "weld"}


def equality_lines(robot: Robot, hosts: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the equality constraints of the loops, and sentences on those that MJCF lacks.

    Args:
        robot: Robot with closed loops.
        hosts: Links that have a body.
    """
    out, missing = [], []
    for k, loop in enumerate(robot.loops):
        constraint = loop.constraint
        if isinstance(constraint, JointCurve) and constraint.follower and constraint.leader:
            row = numbers([*constraint.coefficients, *[0.0] * (5 - len(constraint.coefficients))])
            names = {"joint1": constraint.follower, "joint2": constraint.leader}
            out.append(tag("joint", {"name": loop.name, **names, "polycoef": row}))
            continue
        ends = [constraint.first, constraint.second] if isinstance(constraint, FramePair) else []
        if not ends or constraint.rows not in _TAGS or any(end.host not in (-1, *hosts) for end in ends):  # type: ignore[union-attr]
            missing.append(f"The loop '{loop.name}' is left open, because MJCF has no such constraint.")
            continue
        sites = {f"site{n}": f"loop{k + 1}_{end}" for n, end in ((1, "first"), (2, "second"))}
        out.append(tag(_TAGS[constraint.rows], {"name": loop.name, **sites}))  # type: ignore[union-attr]
    return out, missing
