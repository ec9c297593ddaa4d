"""`steelyard map`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import show
from steelyard.errors import shortened
from steelyard.ground.files import check_file, write_whole

if TYPE_CHECKING:
    from steelyard.check.guessed_mapping import GuessedMapping


@dataclass(frozen=True)
class MapOptions:
    """Options of `steelyard map`."""

    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="Log whose columns are to be mapped."),
        opt.FromProject("logs.identify"),
    ]
    robot: Annotated[
        str,
        typer.Argument(metavar="ROBOT", help="Robot of the log; it makes the mapping more certain."),
        opt.FromProject("robot"),
    ] = ""
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Recorder: {presets:or}; default: the best match, if any.")
    ] = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    output: Annotated[str, typer.Option("-o", "--output", metavar="F", help="Mapping to write (TOML).")] = ""
    ask: Annotated[bool, typer.Option("--ask/--assume", help="Ask where unsure, if this is a terminal.")] = True
    as_json: opt.AsJson = False


@command("map", epilog="Example: steelyard map run.csv arm.urdf -o columns.toml")
@opt.with_options(MapOptions)
def map(o: MapOptions) -> None:
    """Guess the meaning of a log's columns with reasons, ask where unsure, and write the mapping.

    Exits with 0 if nothing was assumed, 1 if something was assumed or is missing.
    """
    from steelyard.check.guess import guess_mapping
    from steelyard.check.repair_mapping import as_toml

    if o.output:
        check_file(o.output)
    if o.robot and _is_robot(o.log) and not _is_robot(o.robot):
        # All other commands take the robot first.
        o = replace(o, log=o.robot, robot=o.log)
    robot = o.robot_options.robot(o.robot) if o.robot else None
    guessed = guess_mapping(o.log, robot, o.preset or None)
    show(guessed, as_json=o.as_json)
    if o.ask and not o.as_json and _is_terminal():
        guessed = _ask(guessed)
    if o.output:
        notes = [f"# Assumed: {next(iter(guess.choices))}. {guess.question}" for guess in guessed.questions]
        for gap in guessed.missing:
            notes += [f"# Missing: {gap.text}", *(f"# {line}" for line in gap.lines)]
        write_whole(o.output, "\n".join([f"# {o.log}", *notes, as_toml(guessed.keys)]), new=True)
        if not o.as_json:
            robot_name = o.robot or "ROBOT"
            typer.echo(shortened(f"{o.output} is written. Next: steelyard check {robot_name} {o.log} --map {o.output}"))
    elif not o.as_json:
        typer.echo("Nothing was written; add -o columns.toml to write the mapping.")
    if guessed.exit_code:
        raise typer.Exit(guessed.exit_code)


def _is_robot(name: str) -> bool:
    """Whether a name is that of a built-in robot, or has the suffix of a robot format."""
    from steelyard.robot import ROBOT_FORMATS, builtin_names

    suffix = Path(name).suffix.lower()
    return name in builtin_names() or any(suffix in kind.suffixes for kind in ROBOT_FORMATS.values())


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(guessed: GuessedMapping) -> GuessedMapping:
    """Ask the user about uncertain columns; an empty answer keeps the assumption."""
    for guess in guessed.questions:
        choices = list(guess.choices)
        typer.echo(shortened(guess.question))
        for k, choice in enumerate(choices, start=1):
            typer.echo(shortened(f"  {k}  {choice}"))
        number = typer.prompt("Number", default=1, type=int)
        guessed = guessed.answered(guess, choices[min(max(int(number), 1), len(choices)) - 1])
    for gap in guessed.missing:
        if gap.key and (typed := typer.prompt(shortened(f"{gap.key}: {gap.text} Numbers", 300), default="")):
            guessed = guessed.filled(gap, opt.numbers(gap.key, typed, typed.count(",") + 1))
    return guessed
