"""`steelyard check`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.app import app
from steelyard.cli.options import (
    AsJson,
    Gravity,
    Joints,
    MapFile,
    RobotSource,
    Snap,
    TermNames,
    print_json,
    robot_from,
    words,
)


@app.command(epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml")
def check(
    robot: RobotSource,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log to look at.")],
    mapping: MapFile = "",
    joints: Joints = "",
    gravity: Gravity = "",
    term_names: TermNames = "",
    snap: Snap = None,
    as_json: AsJson = False,
) -> None:
    """Look at a log before identifying from it: is it sound, what can it show, what to do."""
    from steelyard.check import check_log
    from steelyard.signals.read import read_log

    loaded = robot_from(robot, joints, gravity, snap)
    found = check_log(loaded, read_log(log, loaded, mapping or None), words(term_names) or None)
    if as_json:
        print_json(found.to_json())
        return
    from steelyard.report.check import print_check
    from steelyard.report.terminal import console

    print_check(found, console())
