"""`steelyard payload`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError


@command(
    "payload", epilog="Example: steelyard payload arm.urdf --without empty.csv --with loaded.csv --frame tool0 -o load"
)
def payload(
    robot: opt.RobotSource,
    with_load: Annotated[
        list[str], typer.Option("--with", metavar="LOG", help="A log with the load. May be repeated.")
    ],
    without: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log without the load. May be repeated.")
    ] = None,
    arm: Annotated[
        str, typer.Option(metavar="RUN", help="The run folder of the bare arm's model, which is taken as exact.")
    ] = "",
    sensor: Annotated[
        bool, typer.Option("--sensor", help="Weigh by the force–torque sensor at --frame instead of by the joints.")
    ] = False,
    frame: Annotated[str, typer.Option(metavar="FRAME", help="Where the load is described; default: last link.")] = "",
    friction: Annotated[str, typer.Option(metavar="F", help="own (every log has its own friction) or common.")] = "own",
    mapping: opt.MapFile = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    physical: Annotated[bool, typer.Option("--physical/--free", help="A body that can exist, or the free fit.")] = True,
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Weigh what a robot carries: mass, centre of gravity and inertia, with error bars."""
    if friction not in ("own", "common"):
        raise SteelyardError(f"--friction is '{friction}'; choose own or common.")
    from steelyard.export import load_model
    from steelyard.payload import weigh, weigh_by_sensor
    from steelyard.payload.load import LoadRun

    def weighed() -> LoadRun:
        loaded = opt.robot_from(robot, joints, gravity, snap)
        carrying = opt.logs_from(with_load, loaded, mapping)
        bare = opt.logs_from(without, loaded, mapping)
        if sensor:
            load = weigh_by_sensor(loaded, carrying, frame, physical=physical)
        else:
            load = weigh(
                loaded,
                carrying,
                bare,
                arm=load_model(arm) if arm else None,
                frame=frame,
                terms=opt.words(term_names) or None,
                friction=cast(Any, friction),
                physical=physical,
            ).load
        return LoadRun(load, loaded, opt.description(robot))

    deliver(weighed, output, overwrite, as_json)
