"""`steelyard check`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver


@command("check", epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml")
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

    loaded = opt.robot_from(robot, joints, gravity, snap)
    [read] = opt.logs_from([log], loaded, mapping)
    deliver(lambda: check_log(loaded, read, opt.words(term_names) or None), as_json=as_json)
