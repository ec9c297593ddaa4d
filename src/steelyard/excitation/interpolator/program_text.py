"""A via-point program as JSON, and as readable lines for a robot's pendant."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.errors import ProgramError, UnknownNameError, shortened
from steelyard.excitation.interpolator.moves import CircleMove, JointMove, LineMove, Move, Pause, Program
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.robot.kinematics.inverse import Pose
from steelyard.robot.robot import Robot

_FORMAT = "steelyard-program-1"
_MOST_MOVES = 10_000


def program_to_dict(program: Program) -> dict[str, Any]:
    """Return a `program` as plain data."""
    return {"format": _FORMAT, "start": list(program.start), "moves": [_entry(move) for move in program.moves]}


def program_from_dict(document: dict[str, Any] | Field) -> Program:
    """Read the program of a `document` that `program_to_dict` made."""
    whole = document if isinstance(document, Field) else Field(document, "program", error=ProgramError, exact=True)
    kind = whole.table((), ("format",), others=True).get("format", whole).value
    if kind != _FORMAT:
        whole.fail(f"it is no via-point program; its format is not {_FORMAT!r}.")
    table = whole.table(("start", "moves"), others=True)
    moves = table["moves"].items("move", _MOST_MOVES)
    return Program(tuple(table["start"].array(None).tolist()), tuple(_move(entry) for entry in moves))


def program_text(program: Program, robot: Robot) -> str:
    """Format a program with one line per move: degrees, mm, orientations as roll, pitch, yaw about fixed axes.

    Args:
        program: The program.
        robot: Robot of the program.
    """
    lines = [f"# {robot.name}: {len(program.moves)} moves; joints {', '.join(robot.joint_names)}"]
    lines.append(f"START  {_posture(program.start, robot)}")
    for move in program.moves:
        lines.append(_line(move, robot))
    return "\n".join(lines) + "\n"


def _line(move: Move, robot: Robot) -> str:
    if isinstance(move, Pause):
        return f"WAIT   {move.seconds:g} s"
    fly = f"  FLY {100 * move.fly:g} %" if move.fly else ""
    if isinstance(move, JointMove):
        target = _place(move.target) if isinstance(move.target, Pose) else _posture(move.target, robot)
        return f"JOINTS {target}  SPEED {100 * move.speed:g} %{fly}"
    speed = f"SPEED {1000 * move.speed:g} mm/s{fly}"
    if isinstance(move, LineMove):
        return f"LINE   {_place(move.target)}  {speed}"
    return f"CIRCLE VIA {_place(Pose(move.via.position))} TO {_place(move.target)}  {speed}"


def _posture(q: tuple[float, ...], robot: Robot) -> str:
    def each(value: float, kind: str) -> str:
        return f"{np.degrees(value):.4f}" if kind == "revolute" else f"{1000 * value:.3f}mm"

    return "[" + ", ".join(each(x, joint.kind) for x, joint in zip(q, robot.joints, strict=True)) + "]"


def _place(pose: Pose) -> str:
    where = ", ".join(f"{1000 * x:.3f}" for x in pose.position)
    if pose.rotation is None:
        return f"({where})"
    return f"({where}; {', '.join(f'{np.degrees(a):.4f}' for a in rpy(pose.rotation))})"


def rpy(rotation: Array) -> tuple[float, float, float]:
    """Return roll, pitch and yaw [rad] of a `rotation` about fixed axes: Rz(yaw) Ry(pitch) Rx(roll)."""
    level = float(np.hypot(rotation[0, 0], rotation[1, 0]))
    pitch = float(np.arctan2(-rotation[2, 0], level))
    if level < 1e-9:  # straight up or down: roll and yaw have the same axis, so roll is set to zero
        return 0.0, pitch, float(np.arctan2(-rotation[0, 1], rotation[1, 1]))
    return float(np.arctan2(rotation[2, 1], rotation[2, 2])), pitch, float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def _pose(pose: Pose) -> dict[str, Any]:
    rotation = None if pose.rotation is None else pose.rotation.tolist()
    return {"position": pose.position.tolist(), "rotation": rotation}


def _entry(move: Move) -> dict[str, Any]:
    if isinstance(move, Pause):
        return {"move": "pause", "seconds": move.seconds}
    how = {"speed": move.speed, "fly": move.fly}
    if isinstance(move, JointMove):
        if isinstance(move.target, Pose):
            return {"move": "joint", "pose": _pose(move.target), **how}
        return {"move": "joint", "posture": list(move.target), **how}
    if isinstance(move, LineMove):
        return {"move": "line", "pose": _pose(move.target), **how}
    return {"move": "circle", "via": _pose(move.via), "pose": _pose(move.target), **how}


def _move(entry: Field) -> Move:
    kind = entry.table(("move",), others=True)["move"].value
    if kind == "pause":
        return Pause(entry.table(("move", "seconds"))["seconds"].number())
    if kind not in ("joint", "line", "circle"):
        raise UnknownNameError("move", shortened(str(kind), 60), ("joint", "line", "circle", "pause"))
    table = entry.table(("move", "speed", "fly"), ("posture", "pose", "via"))
    speed, fly = table["speed"].number(), table["fly"].number()
    if "posture" in table:
        return JointMove(tuple(table["posture"].array(None).tolist()), speed, fly)
    table = entry.table(("move", "speed", "fly", "pose", *(("via",) if kind == "circle" else ())))
    target = _read_pose(table["pose"])
    if kind == "joint":
        return JointMove(target, speed, fly)
    return LineMove(target, speed, fly) if kind == "line" else CircleMove(_read_pose(table["via"]), target, speed, fly)


def _read_pose(entry: Field) -> Pose:
    table = entry.table(("position",), ("rotation",))
    return Pose(table["position"].array(3), table["rotation"].array(3, 3) if "rotation" in table else None)
