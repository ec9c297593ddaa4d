"""`steelyard friction`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.friction.breakaway import BreakAwayRun
    from steelyard.friction.experiment import FrictionExperiment
    from steelyard.friction.measure import FrictionCurves


@dataclass(frozen=True)
class FrictionOptions:
    """What may be typed."""

    robot: opt.RobotSource
    logs: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOG", help="Constant-speed runs, sweeps, or any motion."),
        opt.FromProject("logs.friction", "logs.identify", unless=("design",)),
    ] = None
    design: Annotated[
        bool, typer.Option("--design", help="Instead of measuring, write the motion (motion.csv) that shows friction.")
    ] = False
    break_away: Annotated[
        bool,
        typer.Option("--break-away", help="Instead of curves, the torques at which joints set off under slow ramps."),
    ] = False
    dwell: Annotated[float, typer.Option(metavar="S", help="With --design: seconds at each speed, at least.")] = 0.5
    rate: Annotated[float, typer.Option(metavar="HZ", help="With --design: samples a second of motion.csv.")] = 100.0
    only: Annotated[
        str, typer.Option(metavar="A,B,…", help="Joints to look at (motors, with --on drive); default: all that move.")
    ] = ""
    on: Annotated[
        str,
        typer.Option(metavar="SIDE", help="joint, or drive: of motors that move several joints."),
    ] = "joint"
    how: Annotated[str, typer.Option(metavar="HOW", help="plateaus, table (any motion), or auto.")] = "auto"
    gravity_by: Annotated[
        str, typer.Option(metavar="BY", help="How gravity is taken off plateaus: pairs, symmetry, model, none, auto.")
    ] = "auto"
    middle: Annotated[
        float | None, typer.Option(metavar="POS", help="Position about which gravity is odd, for symmetry.")
    ] = None
    model: Annotated[str, typer.Option(metavar="RUN", help="The run folder of an identified model.")] = ""
    law: Annotated[str, typer.Option(metavar="LAW", help="A law of friction; default: chosen.")] = "auto"
    loaded: Annotated[bool, typer.Option("--loaded", help="Dry friction may grow with load (needs --model).")] = False
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("friction", epilog="Example: steelyard friction arm.urdf sweeps/*.parquet --map columns.toml -o friction")
@opt.taking(FrictionOptions)
def friction(o: FrictionOptions) -> None:
    """Measure friction over velocity, joint by joint or drive by drive, and find the law behind it."""
    from steelyard.export import load_model
    from steelyard.friction.breakaway import measure_break_away
    from steelyard.friction.experiment import design_sweeps
    from steelyard.friction.measure import measure_friction

    def made() -> FrictionExperiment | FrictionCurves | BreakAwayRun:
        arm = o.described.robot(o.robot)
        if o.design and o.break_away:
            raise SteelyardError("--design writes sweeps, which --break-away does not need; leave one of the two out.")
        if o.design:
            return design_sweeps(arm, opt.words(o.only), on=cast(Any, o.on), dwell=o.dwell, rate=o.rate)
        if not o.logs:
            raise SteelyardError("There is no log; give some, or --design to write the motion that shows friction.")
        model = load_model(o.model) if o.model else None
        logs = opt.logs_from(o.logs, arm, o.mapping)
        if o.break_away:
            if o.on != "joint":
                raise SteelyardError("Break-away torques are those of joints; leave out --on drive.")
            return measure_break_away(arm, logs, opt.words(o.only), model)
        return measure_friction(
            arm,
            logs,
            joints=opt.words(o.only),
            on=cast(Any, o.on),
            how=cast(Any, o.how),
            gravity=o.gravity_by,
            middle=o.middle,
            model=model,
            law=o.law,
            loaded=o.loaded,
        )

    o.end.deliver(made)
