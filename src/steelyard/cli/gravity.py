"""`steelyard gravity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError


@dataclass(frozen=True)
class GravityOptions:
    """Options of `steelyard gravity`."""

    robot: opt.RobotSource
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Tables with a pose in each row, or logs of motions with stops."),
    ]
    validate: Annotated[list[str] | None, typer.Option(metavar="LOG", help="Log for validation. May be repeated.")] = (
        None
    )
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: Annotated[
        str,
        typer.Option("--terms", metavar="T,…", help="Joint terms that act at rest: offset, spring, counterbalance."),
    ] = "offset"
    rows: Annotated[
        bool | None,
        typer.Option(
            "--rows/--standing", help="Each row is a pose, or poses are the stops of a motion; default: automatic."
        ),
    ] = None
    goal: opt.GoalColumns = ""
    stiffness: Annotated[
        str,
        typer.Option(metavar="K,…", help="With --goal: stiffness of each servo, N m/rad or N/m."),
    ] = ""
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("gravity", epilog="Example: steelyard gravity arm.urdf poses.csv -o gravity")
@opt.with_options(GravityOptions)
def gravity(o: GravityOptions) -> None:
    """Identify the gravity torque of a robot from poses at rest, and write its compensation in C."""
    from steelyard.gravity import GravityModel, identify_gravity

    def run() -> GravityModel:
        robot = o.robot_options.robot(o.robot)
        if bool(o.goal) != bool(o.stiffness):
            raise SteelyardError(
                "--goal and --stiffness belong together; `steelyard payload --known` gives the stiffness from a weight."
            )
        stiffness = opt.numbers("--stiffness", o.stiffness, robot.dof) if o.stiffness else [1.0]
        logs = opt.servo_logs(o.logs, robot, o.mapping, o.goal, stiffness)
        extra = opt.servo_logs(o.validate, robot, o.mapping, o.goal, stiffness)
        return identify_gravity(robot, logs, extra, terms=opt.words(o.term_names), rows=o.rows)

    o.out.deliver(run)
