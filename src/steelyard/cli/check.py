"""`steelyard check`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError, shortened
from steelyard.ground.files import check_file, write_whole
from steelyard.ground.progress import steps

if TYPE_CHECKING:
    from steelyard.check import Check, Checks
    from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class CheckOptions:
    """What may be typed."""

    robot: opt.RobotSource
    logs: Annotated[list[str], typer.Argument(metavar="LOG", help="The logs to look at."), opt.FromProject("logs.all")]
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    velocity: opt.Velocity = "auto"
    fix: Annotated[
        str, typer.Option("--fix", metavar="F", help="Write a mapping (TOML) that mends what can be mended in one log.")
    ] = ""
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[:JOINT]", help="Of what --fix would mend, this alone: sign:elbow. May be repeated."),
    ] = None
    output: opt.Output = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command("check", epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml --fix mended.toml")
@opt.taking(CheckOptions)
def check(o: CheckOptions) -> None:
    """Look at logs before identifying from them: are they sound, what can they show, what to do.

    Exits with 0 if all can be identified from, 1 if one must be mended first, 2 if one is of no use.
    """
    if o.fix and len(o.logs) > 1:
        raise SteelyardError("--fix mends one log at a time; give one log.")
    if o.only and not o.fix:
        raise SteelyardError("--only says what --fix mends; give --fix F as well.")
    if o.fix:
        check_file(o.fix)
    robot = o.described.robot(o.robot)
    found = deliver(lambda: _checked(o, robot), o.output or None, o.overwrite, o.as_json)
    if o.fix:
        _mend(o, robot, found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _checked(o: CheckOptions, robot: Robot) -> Check | Checks:
    from steelyard.check import check_log
    from steelyard.check.many import checked_alike
    from steelyard.signals.prepare import Preparation, as_velocity
    from steelyard.signals.source import open_log

    settings = Preparation(velocity=as_velocity(o.velocity))
    terms = opt.words(o.term_names) or None
    sources = [open_log(Path(log), robot, o.mapping or None) for log in o.logs]
    looked = steps(zip(o.logs, sources, strict=True), "Checking", lambda one: one[0])
    return checked_alike(o.logs, [check_log(robot, log, terms, settings) for _, log in looked])


def _mend(o: CheckOptions, robot: Robot, found: Check | Checks) -> None:
    """Write the mapping that mends what can be mended, and say what cannot be."""
    from steelyard.check import Check
    from steelyard.check.fix import as_toml, mended
    from steelyard.signals.mapping import mapping_table
    from steelyard.signals.source import open_log, pieces_of

    assert isinstance(found, Check)  # of one log
    piece = next(pieces_of(open_log(Path(o.logs[0]), robot, o.mapping or None)))
    data, by_hand = mended(found, robot, piece, mapping_table(o.mapping), o.only or ())
    write_whole(o.fix, as_toml(data), new=True)
    for text in by_hand if not o.as_json else ():
        typer.echo(shortened(f"Not in {o.fix}: {text}"))
