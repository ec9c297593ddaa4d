"""`steelyard check`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import app


@app.command(epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml")
def check(
    robot: opt.RobotSource,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log to look at.")],
    mapping: opt.MapFile = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    snap: opt.Snap = None,
    as_json: opt.AsJson = False,
) -> None:
    """Look at a log before identifying from it: is it sound, what can it show, what to do."""
    from steelyard.check import check_log
    from steelyard.signals.read import read_log

    loaded = opt.robot_from(robot, joints, gravity, snap)
    found = check_log(loaded, read_log(log, loaded, mapping or None), opt.words(term_names) or None)
    if as_json:
        opt.print_json(found.to_json())
        return
    from steelyard.report.check import print_check
    from steelyard.report.terminal import console

    print_check(found, console())
