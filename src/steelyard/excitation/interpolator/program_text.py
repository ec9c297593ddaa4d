"""A via-point program as JSON, and as lines that a person can type into a robot's controller."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.errors import ProgramError, UnknownNameError
from steelyard.excitation.interpolator.moves import CircleMove, JointMove, LineMove, Move, Pause, Program
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.inverse import Pose
from steelyard.robot.robot import Robot

_FORMAT = "steelyard-program-1"


def program_to_dict(program: Program) -> dict[str, Any]:
    """A `program` as plain data."""
    return {"format": _FORMAT, "start": list(program.start), "moves": [_entry(move) for move in program.moves]}


def program_from_dict(document: dict[str, Any]) -> Program:
    """The program of a `document` that `program_to_dict` made."""
    if document.get("format") != _FORMAT:
        raise ProgramError(f"This is no via-point program: format is {document.get('format')!r}, not {_FORMAT!r}.")
    try:
        return Program(tuple(document["start"]), tuple(_move(entry) for entry in document["moves"]))
    except (KeyError, TypeError) as error:
        raise ProgramError(
            f"The via-point program cannot be read: {error!r} is missing or of the wrong kind."
        ) from None


def program_text(program: Program, robot: Robot) -> str:
    """A `program` of `robot`, one line per move. Angles in degrees, lengths in mm, orientations as roll, pitch, yaw
    about fixed axes."""
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
    """Roll, pitch, yaw (rad) of a `rotation` about fixed axes: Rz(yaw) Ry(pitch) Rx(roll)."""
    level = float(np.hypot(rotation[0, 0], rotation[1, 0]))
    pitch = float(np.arctan2(-rotation[2, 0], level))
    if level < 1e-9:  # straight up or down: roll and yaw turn about the same line, so roll is set to zero
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


def _move(entry: dict[str, Any]) -> Move:
    kind = entry["move"]
    if kind == "pause":
        return Pause(entry["seconds"])
    if kind not in ("joint", "line", "circle"):
        raise UnknownNameError("move", str(kind), ("joint", "line", "circle", "pause"))
    speed, fly = entry["speed"], entry["fly"]
    if "posture" in entry:
        return JointMove(tuple(entry["posture"]), speed, fly)
    target = Pose(**entry["pose"])
    if kind == "joint":
        return JointMove(target, speed, fly)
    return LineMove(target, speed, fly) if kind == "line" else CircleMove(Pose(**entry["via"]), target, speed, fly)
