"""`steelyard identify`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import app


@app.command(epilog="Example: steelyard identify arm.urdf a.parquet --validate b.parquet --map columns.toml -o run")
def identify(
    robot: opt.RobotSource,
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs to identify from.")],
    validate: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log to judge by. May be repeated.")
    ] = None,
    output: opt.Output = "",
    mapping: opt.MapFile = "",
    joints: opt.Joints = "",
    torque_used: Annotated[
        str, typer.Option(metavar="A,B,…", help="The joints whose torque can be trusted; the others still move.")
    ] = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    scheme: Annotated[
        str,
        typer.Option(
            metavar="S",
            help="dynamic, power, filtered-dynamic, filtered-power, momentum or energy; options as name:key=value.",
        ),
    ] = "dynamic",
    estimator: Annotated[
        str, typer.Option(metavar="E", help="The method; docs/how-to-choose.md lists all of them.")
    ] = "wls",
    physical: Annotated[bool, typer.Option("--physical/--free", help="Physically possible, or the free fit.")] = True,
    prior: Annotated[str, typer.Option(metavar="P", help="nominal (the description's inertias) or none.")] = "nominal",
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass of the fit; default by a rule.")] = None,
    score_cutoff: Annotated[
        float | None, typer.Option(metavar="HZ", help="Low-pass of the scores; default: that of the fit.")
    ] = None,
    mask: Annotated[float, typer.Option(metavar="SPEED", help="Leave out rows slower than this, rad/s or m/s.")] = 0.0,
    delay: Annotated[float, typer.Option(metavar="S", help="How far the torques lag behind the positions, s.")] = 0.0,
    period: Annotated[
        float | None, typer.Option(metavar="S", help="Average a periodic motion over its periods of S seconds.")
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Keep the last part of each log to judge by, e.g. 0.3.")
    ] = None,
    holdout_blocks: Annotated[
        str, typer.Option(metavar="S:K", help="Keep every K-th block of S seconds to judge by, e.g. 0.5:3.")
    ] = "",
    significant: Annotated[
        bool, typer.Option("--significant", help="Also take away what the data do not support, and say what it does.")
    ] = False,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose cut-off, smoothing and velocity by cross-validation on LOG….")
    ] = False,
    fit_shapes: Annotated[
        bool, typer.Option("--fit-shapes", help="Find the speeds at which dry friction bends, joint by joint.")
    ] = False,
    friction: Annotated[
        str, typer.Option(metavar="RUN", help="A run of `steelyard friction`, whose curves are taken off the torque.")
    ] = "",
    controller: opt.ControllerFile = "",
    snap: opt.Snap = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Find a robot's parameters from logs, judge them, and write a run folder."""
    from pathlib import Path

    from steelyard.ground.files import check_target
    from steelyard.identification.files import identify_files
    from steelyard.identification.result import result_json

    if output:
        check_target(Path(output), overwrite)
    loaded = opt.robot_from(robot, joints, gravity, snap, torque_used=opt.words(torque_used) or None)
    found = identify_files(
        loaded,
        [Path(p) for p in logs],
        [Path(p) for p in validate or ()],
        mapping=mapping or None,
        holdout=holdout,
        holdout_blocks=holdout_blocks,
        terms=opt.words(term_names) or None,
        scheme=scheme,
        estimator=estimator,
        physical=physical,
        prior=prior,
        cutoff=cutoff,
        score_cutoff=score_cutoff,
        mask=mask,
        delay=delay,
        period=period,
        significant=significant,
        tune=tune,
        fit_shapes=fit_shapes,
        known_friction=_curves(friction),
        controller=controller or None,
    )
    known = [str(Path(friction) / "result.json")] if friction else []
    inputs = [Path(p) for p in [robot, *logs, *(validate or ()), mapping, controller, *known] if p]
    if output:
        from steelyard.write_run import write_run

        source = Path(robot) if robot.lower().endswith((".urdf", ".xml")) else None
        write_run(found, output, overwrite=overwrite, inputs=inputs, source=source)
    if as_json:
        opt.print_json(result_json(found, inputs))
        return
    from steelyard.report.identification import print_identification
    from steelyard.report.terminal import console

    print_identification(found, console(), output)


def _curves(folder: str) -> Any:
    if not folder:
        return None
    from steelyard.friction.known import read_friction

    return read_friction(folder)
