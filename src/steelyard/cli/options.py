"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from steelyard.errors import SteelyardError
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot

RobotSource = Annotated[
    str, typer.Argument(metavar="ROBOT", help="A .urdf, .xml (MJCF), .yaml or .toml file, or a built-in robot.")
]
Joints = Annotated[str, typer.Option(metavar="A,B,…", help="The joints that move; others are locked.")]
Gravity = Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s².")]
Snap = Annotated[float | None, typer.Option(metavar="TOL", help="Make nearly right angles exact, e.g. 1e-4.")]
MapFile = Annotated[str, typer.Option("--map", metavar="F", help="What the logs' columns mean (TOML, JSON).")]
ControllerFile = Annotated[
    str, typer.Option("--controller", metavar="F", help="What controlled the robot (YAML, TOML), for didim, cloe, ….")
]
TermNames = Annotated[
    str, typer.Option("--terms", metavar="T,…", help="Joint terms; default rotor,viscous,coulomb,offset.")
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run, whole.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def robot_from(robot: str, joints: str = "", gravity: str = "", snap: float | None = None, **more: Any) -> Robot:
    """The robot that the shared options describe."""
    return load_robot(
        robot,
        joints=words(joints) or None,
        gravity=numbers("--gravity", gravity, 3) if gravity else None,
        snap=snap,
        **more,
    )


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(option: str, text: str, count: int) -> Sequence[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise SteelyardError(f"{option} is '{text}'; give {count} numbers with commas between, e.g. 0,0,-9.81.")
    return values
