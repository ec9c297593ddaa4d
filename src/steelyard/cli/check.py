"""`steelyard check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import shortened
from steelyard.ground.files import check_file, write_whole


@command("check", epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml --fix mended.toml")
def check(
    robot: opt.RobotSource,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log to look at.")],
    mapping: opt.MapFile = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    velocity: opt.Velocity = "auto",
    snap: opt.Snap = None,
    fix: Annotated[
        str, typer.Option("--fix", metavar="F", help="Write a mapping (TOML) that mends what can be mended.")
    ] = "",
    as_json: opt.AsJson = False,
) -> None:
    """Look at a log before identifying from it: is it sound, what can it show, what to do.

    Exits with 0 if it can be identified from, 1 if it must be mended first, 2 if it is of no use.
    """
    from steelyard.check import check_log
    from steelyard.signals.prepare import Preparation, as_velocity
    from steelyard.signals.source import open_log, pieces_of

    if fix:
        check_file(fix)
    loaded = opt.robot_from(robot, joints, gravity, snap)
    read = open_log(Path(log), loaded, mapping or None)
    settings = Preparation(velocity=as_velocity(velocity))
    found = deliver(lambda: check_log(loaded, read, opt.words(term_names) or None, settings), as_json=as_json)
    if fix:
        from steelyard.check.fix import as_toml, mended
        from steelyard.errors import LogError
        from steelyard.ground.documents import read_document

        data, by_hand = mended(
            found, loaded, next(pieces_of(read)), read_document(Path(mapping), LogError) if mapping else {}
        )
        write_whole(fix, as_toml(data), new=True)
        for text in by_hand if not as_json else ():
            typer.echo(shortened(f"Not in {fix}: {text}"))
    if found.exit_code:
        raise typer.Exit(found.exit_code)
