"""`steelyard friction`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.friction.experiment import FrictionExperiment
    from steelyard.friction.measure import FrictionCurves


@command("friction", epilog="Example: steelyard friction arm.urdf sweeps/*.parquet --map columns.toml -o friction")
def friction(
    robot: opt.RobotSource,
    logs: Annotated[
        list[str] | None, typer.Argument(metavar="[LOG...]", help="Constant-speed runs, sweeps, or any motion.")
    ] = None,
    design: Annotated[
        bool, typer.Option("--design", help="Instead of measuring, write the motion (motion.csv) that shows friction.")
    ] = False,
    dwell: Annotated[float, typer.Option(metavar="S", help="With --design: seconds at each speed, at least.")] = 0.5,
    rate: Annotated[float, typer.Option(metavar="HZ", help="With --design: samples a second of motion.csv.")] = 100.0,
    joints: Annotated[str, typer.Option(metavar="A,B,…", help="Joints to look at; default: all that move.")] = "",
    how: Annotated[str, typer.Option(metavar="HOW", help="plateaus, table (any motion), or auto.")] = "auto",
    gravity_by: Annotated[
        str, typer.Option(metavar="BY", help="How gravity is taken off plateaus: pairs, symmetry, model, none, auto.")
    ] = "auto",
    middle: Annotated[
        float | None, typer.Option(metavar="POS", help="Position about which gravity is odd, for symmetry.")
    ] = None,
    model: Annotated[str, typer.Option(metavar="RUN", help="The run folder of an identified model.")] = "",
    law: Annotated[str, typer.Option(metavar="LAW", help="A law of friction; default: chosen.")] = "auto",
    loaded: Annotated[bool, typer.Option("--loaded", help="Dry friction may grow with load (needs --model).")] = False,
    mapping: opt.MapFile = "",
    gravity: opt.Gravity = "",
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Measure friction over velocity, joint by joint, and find the law behind it."""
    from steelyard.export import load_model
    from steelyard.friction.experiment import design_sweeps
    from steelyard.friction.measure import measure_friction

    def made() -> FrictionExperiment | FrictionCurves:
        arm = opt.robot_from(robot, "", gravity, snap)
        if design:
            return design_sweeps(arm, opt.words(joints), dwell=dwell, rate=rate)
        if not logs:
            raise SteelyardError("There is no log; give some, or --design to write the motion that shows friction.")
        return measure_friction(
            arm,
            opt.logs_from(logs, arm, mapping),
            joints=opt.words(joints),
            how=cast(Any, how),
            gravity=gravity_by,
            middle=middle,
            model=load_model(model) if model else None,
            law=law,
            loaded=loaded,
        )

    deliver(made, output, overwrite, as_json)
