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
    """Options of `steelyard check`."""

    robot: opt.RobotSource
    logs: Annotated[list[str], typer.Argument(metavar="LOG", help="Logs to check."), opt.FromProject("logs.all")]
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    floating: opt.Floating = False
    loops: opt.Loops = ""
    term_names: opt.TermNames = ""
    velocity: opt.Velocity = "auto"
    fix: Annotated[
        str,
        typer.Option(
            "--fix", metavar="F", help="Write a mapping (TOML) that fixes the repairable problems of one log."
        ),
    ] = ""
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[:JOINT]", help="Let --fix fix only this problem, e.g. sign:elbow. May be repeated."),
    ] = None
    output: opt.Output = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command("check", epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml --fix fixed.toml")
@opt.with_options(CheckOptions)
def check(o: CheckOptions) -> None:
    """Check logs before identification: data quality, identifiable parameters, advice.

    Exits with 0 if all logs are usable, 1 if one must be fixed first, 2 if one is unusable.
    """
    if o.fix and len(o.logs) > 1:
        raise SteelyardError("--fix works on one log at a time; give one log.")
    if o.only and not o.fix:
        raise SteelyardError("--only selects the problems for --fix; give --fix F as well.")
    if o.fix:
        check_file(o.fix)
    from steelyard.floating import is_floating

    robot = o.robot_options.robot(o.robot, True, floating=o.floating, loops=o.loops or True)
    if robot.loops:
        _check_loops(o, robot)
        return
    if is_floating(robot, o.mapping):
        _floating(o, robot)
        return
    result = deliver(lambda: _check(o, robot), o.output or None, o.overwrite, o.as_json)
    if o.fix:
        _fix(o, robot, result)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _floating(o: CheckOptions, robot: Robot) -> None:
    """Check a log of a robot with a floating base or contacts."""
    from steelyard.floating import check_floating_log

    if len(o.logs) > 1 or o.fix:
        raise SteelyardError("Logs of floating bases are checked one at a time and without --fix; give one log.")
    made = deliver(
        lambda: check_floating_log(robot, o.logs[0], mapping=o.mapping or None),
        o.output or None,
        o.overwrite,
        o.as_json,
    )
    if made.exit_code:
        raise typer.Exit(made.exit_code)


def _check_loops(o: CheckOptions, robot: Robot) -> None:
    """Check logs of a mechanism with closed loops."""
    from steelyard.floating import check_loops

    if o.fix or o.velocity != "auto":
        option = "--fix" if o.fix else "--velocity"
        raise SteelyardError(f"{option} is not available for closed loops yet; remove it.")
    terms = opt.words(o.term_names) or None
    mapping = o.mapping or None
    result = deliver(
        lambda: check_loops(robot, o.logs, mapping=mapping, terms=terms), o.output or None, o.overwrite, o.as_json
    )
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _check(o: CheckOptions, robot: Robot) -> Check | Checks:
    from steelyard.check import check_log
    from steelyard.check.several_checks import join_checks
    from steelyard.signals.prepare import Preparation, as_velocity
    from steelyard.signals.source import open_log

    settings = Preparation(velocity=as_velocity(o.velocity))
    terms = opt.words(o.term_names) or None
    sources = [open_log(Path(log), robot, o.mapping or None) for log in o.logs]
    pairs = steps(zip(o.logs, sources, strict=True), "Checking", lambda pair: pair[0])
    return join_checks(o.logs, [check_log(robot, log, terms, settings) for _, log in pairs])


def _fix(o: CheckOptions, robot: Robot, result: Check | Checks) -> None:
    """Write the mapping that fixes the repairable problems, and print the others."""
    from steelyard.check import Check
    from steelyard.check.repair_mapping import as_toml, repair_mapping
    from steelyard.signals.mapping import mapping_table
    from steelyard.signals.source import open_log, pieces_of

    assert isinstance(result, Check)  # for one log
    piece = next(pieces_of(open_log(Path(o.logs[0]), robot, o.mapping or None)))
    data, by_hand = repair_mapping(result, robot, piece, mapping_table(o.mapping, o.logs[0]), o.only or ())
    write_whole(o.fix, as_toml(data), new=True)
    for text in by_hand if not o.as_json else ():
        typer.echo(shortened(f"Not fixed in {o.fix}: {text}"))
