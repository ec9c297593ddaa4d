"""`steelyard friction`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import app
from steelyard.cli.models import model_from
from steelyard.errors import SteelyardError


@app.command(epilog="Example: steelyard friction arm.urdf sweeps/*.parquet --map columns.toml -o friction")
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
    from pathlib import Path

    from steelyard.friction.measure import measure_friction
    from steelyard.ground.files import check_target
    from steelyard.signals.read import read_log

    if output:
        check_target(Path(output), overwrite)
    loaded_robot = opt.robot_from(robot, "", gravity, snap)
    if design:
        _design(loaded_robot, opt.words(joints), dwell, rate, output, overwrite, as_json)
        return
    if not logs:
        raise SteelyardError("There is no log; give some, or --design to write the motion that shows friction.")
    found = measure_friction(
        loaded_robot,
        [read_log(path, loaded_robot, mapping or None) for path in logs],
        joints=opt.words(joints),
        how=cast(Any, how),
        gravity=gravity_by,
        middle=middle,
        model=model_from(model),
        law=law,
        loaded=loaded,
    )
    if output:
        from steelyard.friction.write import write_friction

        write_friction(found, loaded_robot, Path(output), overwrite=overwrite)
    if as_json:
        opt.print_json(found.to_json())
        return
    from steelyard.report.friction_and_load import print_friction
    from steelyard.report.terminal import console

    print_friction(found, loaded_robot, console(), output)


def _design(
    robot: Any, joints: list[str], dwell: float, rate: float, output: str, overwrite: bool, as_json: bool
) -> None:  # fmt: skip
    from pathlib import Path

    from steelyard.friction.experiment import design_sweeps, write_experiment
    from steelyard.report.terminal import console

    plan = design_sweeps(robot, joints, dwell=dwell)
    if output:
        write_experiment(plan, Path(output), rate, overwrite=overwrite)
    if as_json:
        opt.print_json(plan.to_json())
        return
    out = console()
    for name, speeds in plan.speeds.items():
        out.print(f"{name}: {len(speeds)} speeds from {speeds[0]:.3g} to {speeds[-1]:.3g} {_unit(robot, name)}")
    out.print(f"{plan.duration:.0f} s in all." + (f" Written to {output}: motion.csv, result.json" if output else ""))


def _unit(robot: Any, name: str) -> str:
    return f"{robot.joints[robot.joint_index(name)].unit}/s"
