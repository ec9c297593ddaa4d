"""`steelyard map`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import show
from steelyard.errors import shortened
from steelyard.ground.files import check_file, write_whole

if TYPE_CHECKING:
    from steelyard.check.columns import GuessedMapping


@dataclass(frozen=True)
class MapOptions:
    """What may be typed."""

    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="The log whose columns are looked at."),
        opt.FromProject("logs.identify"),
    ]
    robot: Annotated[
        str,
        typer.Argument(metavar="ROBOT", help="Whose log it is; with it more can be told."),
        opt.FromProject("robot"),
    ] = ""
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="The recorder: {presets:or}; default: the one it looks like, if any.")
    ] = ""
    described: opt.Described = opt.DESCRIBED
    output: Annotated[str, typer.Option("-o", "--output", metavar="F", help="The mapping to write (TOML).")] = ""
    ask: Annotated[bool, typer.Option("--ask/--assume", help="Ask where it is unsure, if this is a terminal.")] = True
    as_json: opt.AsJson = False


@command("map", epilog="Example: steelyard map run.csv arm.urdf -o columns.toml")
@opt.taking(MapOptions)
def map(o: MapOptions) -> None:
    """Guess what the columns of a log mean, say why, ask where it is unsure, and write the mapping.

    Exits with 0 if all is certain or was answered, 1 if something was assumed or is missing.
    """
    from steelyard.check.fix import as_toml
    from steelyard.check.guess import guess_mapping

    if o.output:
        check_file(o.output)
    robot = o.described.robot(o.robot) if o.robot else None
    guessed = guess_mapping(o.log, robot, o.preset or None)
    show(guessed, as_json=o.as_json)
    if o.ask and not o.as_json and _is_terminal():
        guessed = _asked(guessed)
    if o.output:
        notes = [f"# Assumed: {next(iter(guess.choices))}. {guess.question}" for guess in guessed.questions]
        notes += [f"# Missing: {gap.text}" for gap in guessed.missing]
        write_whole(o.output, "\n".join([f"# {o.log}", *notes, as_toml(guessed.keys)]), new=True)
        if not o.as_json:
            again = f" {o.robot}" if o.robot else " ROBOT"
            typer.echo(shortened(f"{o.output} is written. Next: steelyard check{again} {o.log} --map {o.output}"))
    elif not o.as_json:
        typer.echo("Nothing was written; -o columns.toml writes the mapping.")
    if guessed.exit_code:
        raise typer.Exit(guessed.exit_code)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _asked(guessed: GuessedMapping) -> GuessedMapping:
    """With the answers of whoever sits before the terminal; an empty one takes what was assumed."""
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
