"""`steelyard compare`: several ways to the same end, side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import Commands, app

compare = typer.Typer(
    cls=Commands,
    help="Run several schemes or estimators on the same data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(compare, name="compare")


@compare.command(epilog="Example: steelyard compare schemes arm.urdf run.parquet --map columns.toml -o schemes")
def schemes(
    robot: opt.RobotSource,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log to identify from.")],
    validate: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log to judge by. May be repeated.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Without --validate: the last part of the log to judge by.")
    ] = 0.3,
    only: Annotated[
        str, typer.Option("--schemes", metavar="S,…", help="Those to run, e.g. dynamic,energy; default: all.")
    ] = "",
    horizon: Annotated[float, typer.Option(metavar="S", help="Length of the open-loop replays.")] = 0.5,
    mapping: opt.MapFile = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    physical: Annotated[bool, typer.Option("--physical/--free", help="Physically possible, or the free fit.")] = True,
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass of the fit; default by a rule.")] = None,
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Identify by every scheme from one log: parameters, intervals, errors on held-out data, time."""
    from pathlib import Path

    from steelyard.compare.schemes import compare_schemes
    from steelyard.ground.files import check_target
    from steelyard.regression.schemes import SCHEMES
    from steelyard.report.terminal import console
    from steelyard.signals.prepare import Preparation
    from steelyard.signals.read import read_log

    if output:
        check_target(Path(output), overwrite)
    loaded = opt.robot_from(robot, joints, gravity, snap)
    out = console()
    with out.status("Comparing schemes …") as status:
        found = compare_schemes(
            loaded,
            read_log(log, loaded, mapping or None),
            [read_log(path, loaded, mapping or None) for path in validate or ()],
            schemes=opt.words(only) or tuple(SCHEMES),
            holdout=holdout,
            horizon=horizon,
            progress=lambda name: status.update(f"Scheme {name} …"),
            terms=opt.words(term_names) or None,
            physical=physical,
            preparation=Preparation(cutoff=cutoff),
        )
    if output:
        from steelyard.report.on_log import schemes_report
        from steelyard.write_comparison import write_comparison

        write_comparison(found.to_json(), schemes_report(found), Path(output), overwrite=overwrite)
    if as_json:
        opt.print_json(found.to_json())
        return
    from steelyard.report.on_log import print_schemes

    print_schemes(found, out, output)
