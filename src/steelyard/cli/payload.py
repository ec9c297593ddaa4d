"""`steelyard payload`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError


@dataclass(frozen=True)
class PayloadOptions:
    """What may be typed."""

    robot: opt.RobotSource
    with_load: Annotated[list[str], typer.Option("--with", metavar="LOG", help="A log with the load. May be repeated.")]
    without: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log without the load. May be repeated.")
    ] = None
    arm: Annotated[
        str, typer.Option(metavar="RUN", help="The run folder of the bare arm's model, which is taken as exact.")
    ] = ""
    sensor: Annotated[
        bool, typer.Option("--sensor", help="Weigh by the force–torque sensor at --frame instead of by the joints.")
    ] = False
    frame: Annotated[str, typer.Option(metavar="FRAME", help="Where the load is described; default: last link.")] = ""
    friction: Annotated[str, typer.Option(metavar="F", help="own (every log has its own friction) or common.")] = "own"
    mapping: opt.MapFile = ""
    joints: opt.Joints = ""
    gravity: opt.Gravity = ""
    term_names: opt.TermNames = ""
    physical: Annotated[bool, typer.Option("--physical/--free", help="A body that can exist, or the free fit.")] = True
    end: opt.End = opt.END


@command(
    "payload", epilog="Example: steelyard payload arm.urdf --without empty.csv --with loaded.csv --frame tool0 -o load"
)
@opt.taking(PayloadOptions)
def payload(o: PayloadOptions) -> None:
    """Weigh what a robot carries: mass, centre of gravity and inertia, with error bars."""
    if o.friction not in ("own", "common"):
        raise SteelyardError(f"--friction is '{o.friction}'; choose own or common.")
    from steelyard.export import load_model
    from steelyard.payload import weigh, weigh_by_sensor
    from steelyard.payload.load import LoadRun

    def weighed() -> LoadRun:
        loaded = opt.robot_from(o.robot, o.joints, o.gravity, o.end.snap)
        carrying = opt.logs_from(o.with_load, loaded, o.mapping)
        bare = opt.logs_from(o.without, loaded, o.mapping)
        if o.sensor:
            load = weigh_by_sensor(loaded, carrying, o.frame, physical=o.physical)
        else:
            load = weigh(
                loaded,
                carrying,
                bare,
                arm=load_model(o.arm) if o.arm else None,
                frame=o.frame,
                terms=opt.words(o.term_names) or None,
                friction=cast(Any, o.friction),
                physical=o.physical,
            ).load
        return LoadRun(load, loaded, opt.description(o.robot))

    o.end.deliver(weighed)
