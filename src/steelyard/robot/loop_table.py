"""A loop table: closed loops of a description that cannot state them, such as a URDF.

driven = ["crank"]                     # joints with a drive
start = {coupler = 1.2}                # positions near which the loops close [rad, m]; default: 0
[loops.rod_end]
first = "rod_tip"                      # a frame or link; "world" is the base
second = "rocker"
second_position = [0.3, 0, 0]          # place in that frame [m]; also first_position, first_rpy, second_rpy
kind = "point"                         # see `CLOSINGS`
[loops.gear]
kind = "curve"                         # a joint follows another one by a polynomial
follower = "jaw"
leader = "screw"
coefficients = [0.0, 1.0, 0.3]         # [rad, m] in powers of the leader's position
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import RobotError, UnknownNameError
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.robot._tree import joints_between
from steelyard.robot.loop_constraints import CLOSINGS, FramePair, JointCurve, Loop
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, rotation_from_rpy

# Loops of a robot: those of its description (True), or a table of them.
LoopSource = bool | str | os.PathLike[str] | Mapping[str, Any]
_PLACES = tuple(f"{end}_{part}" for end in ("first", "second") for part in ("position", "rpy"))


def with_loop_table(robot: Robot, table: str | os.PathLike[str] | Mapping[str, Any]) -> Robot:
    """Return `robot` with further closed loops.

    Args:
        robot: Robot.
        table: Loop table: TOML file or dict.
    """
    source = "loop table" if isinstance(table, Mapping) else str(table)
    data = table if isinstance(table, Mapping) else read_document(Path(table))
    entries = Field(data, source, error=RobotError).table(optional=("loops", "start", "driven"))
    if not entries:
        raise RobotError(f"{source}: it is empty; state at least one table [loops.NAME].")
    loops = [
        _loop(robot, name, entry, source)
        for name, entry in (entries["loops"].entries() if "loops" in entries else {}).items()
    ]
    start = dict(robot.start)
    for name, entry in (entries["start"].entries() if "start" in entries else {}).items():
        _known_joint(robot, name, entry)
        start[name] = entry.number()
    driven = entries["driven"].texts() if "driven" in entries else []
    for name in driven:
        _known_joint(robot, name, entries["driven"])
    actuated = tuple(name for name in robot.joint_names if name in driven) or robot.actuated
    return replace(robot, loops=(*robot.loops, *loops), start=start, actuated=actuated)


def _known_joint(robot: Robot, name: str, entry: Field) -> None:
    if name not in robot.joint_names:
        entry.fail(str(UnknownNameError("joint", name, robot.joint_names)))


def _loop(robot: Robot, name: str, entry: Field, source: str) -> Loop:
    place = f"{source}: loop '{name}' closes a loop"
    if isinstance(entry.value, Mapping) and entry.value.get("kind") == "curve":
        table = entry.table(("kind", "follower", "leader", "coefficients"))
        joints = (_tree_joint(robot, table["follower"]), _tree_joint(robot, table["leader"]))
        own = {link.joint: robot.joint_names[link.coordinate] for link in robot.links}
        numbers = tuple(item.number() for item in table["coefficients"].items("coefficient"))
        return Loop(place, tuple(own[j] for j in joints), name=name, constraint=JointCurve(*joints, numbers))
    table = entry.table(("first", "second", "kind"), _PLACES)
    rows = CLOSINGS[table["kind"].choice(tuple(CLOSINGS))]
    first, second = (_frame(robot, table, end) for end in ("first", "second"))
    between = joints_between(robot.links, robot.joints, first.host, second.host)
    if not between:
        entry.fail("its two frames do not move relative to each other; name frames on different links.")
    return Loop(place, between, name=name, constraint=FramePair(first, second, rows))


def _tree_joint(robot: Robot, entry: Field) -> str:
    name, names = entry.text(), tuple(link.joint for link in robot.links if link.kind in ("revolute", "prismatic"))
    if name not in names:
        entry.fail(str(UnknownNameError("joint", name, names)))
    return name


def _frame(robot: Robot, table: Mapping[str, Field], end: str) -> LinkFrame:
    name = table[end].text()
    if name == "world":
        frame = LinkFrame()
    elif name in robot.frames or name in robot.link_names:
        frame = robot.frame(name)
    else:
        table[end].fail(str(UnknownNameError("frame", name, (*robot.link_names, *robot.frames, "world"))))
    position, rpy = (
        table[key].vector(3) if (key := f"{end}_{part}") in table else [0.0] * 3 for part in ("position", "rpy")
    )
    return frame.at(rotation_from_rpy(*rpy), np.array(position))
