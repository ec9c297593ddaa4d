"""`steelyard friction`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError
from steelyard.friction import FrictionOptions

if TYPE_CHECKING:
    from steelyard.friction.breakaway import BreakAwayRun
    from steelyard.friction.design_sweeps import FrictionExperiment
    from steelyard.friction.measure import FrictionCurves


@dataclass(frozen=True, kw_only=True)
class FrictionCommand:
    """Options of `steelyard friction`."""

    robot: opt.RobotSource
    logs: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOG", help="Logs of constant speeds, sweeps, or any motion."),
        opt.FromProject("logs.friction", "logs.identify", unless=("design",)),
    ] = None
    design: Annotated[
        bool, typer.Option("--design", help="Instead of measuring, write a motion for it (motion.csv).")
    ] = False
    break_away: Annotated[
        bool,
        typer.Option("--break-away", help="Measure break-away torques from slow ramps instead of curves."),
    ] = False
    dwell: Annotated[float, typer.Option(metavar="S", help="With --design: shortest time at each speed, s.")] = 0.5
    rate: Annotated[float, typer.Option(metavar="HZ", help="With --design: sampling rate of motion.csv, Hz.")] = 100.0
    measure: opt.Typed[FrictionOptions]
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("friction", epilog="Example: steelyard friction arm.urdf sweeps/*.parquet --map columns.toml -o friction")
@opt.with_options(FrictionCommand)
def friction(o: FrictionCommand) -> None:
    """Measure friction over velocity, per joint or per drive, and fit a friction law."""
    from steelyard.export import load_model
    from steelyard.friction.breakaway import measure_break_away
    from steelyard.friction.design_sweeps import design_sweeps
    from steelyard.friction.measure import measure_friction

    def run() -> FrictionExperiment | FrictionCurves | BreakAwayRun:
        arm = o.robot_options.robot(o.robot)
        if o.design and o.break_away:
            raise SteelyardError("--design writes sweeps, which --break-away does not use; remove one of the two.")
        if o.design:
            return design_sweeps(arm, opt.words(o.measure["only"]), on=o.measure["on"], dwell=o.dwell, rate=o.rate)
        if not o.logs:
            raise SteelyardError("There is no log; give logs, or --design to write a motion for the measurement.")
        model = load_model(o.measure["model"]) if o.measure["model"] else None
        logs = opt.logs_from(o.logs, arm, o.mapping)
        if o.break_away:
            if o.measure["on"] != "joint":
                raise SteelyardError("Break-away torques are measured per joint; remove --on drive.")
            return measure_break_away(arm, logs, opt.words(o.measure["only"]), model)
        return measure_friction(arm, logs, o.measure.options(model=model))

    o.out.deliver(run)
