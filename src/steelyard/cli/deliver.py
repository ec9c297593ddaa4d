"""`deliver`: how every command hands out what it found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from steelyard.ground.folders import check_target
from steelyard.ground.interrupt import best_on_interrupt, stop_wanted
from steelyard.ground.outcome import Outcome, printed_json
from steelyard.ground.progress import HowFar, tell_progress, told_to
from steelyard.ground.reasons import explained
from steelyard.ground.repeat import repeat_command, with_command

Found = TypeVar("Found", bound=Outcome)


def deliver(
    make: Callable[[], Found], output: str | None = None, overwrite: bool = False, as_json: bool = False
) -> Found:
    """Find something, write its run folder, and print it for people or for machines.

    Args:
        make: finds it; called when the folder is known to be one that may be written.
        output: the run folder; "" if none was given, which is said; None of commands that write none.
        overwrite: replace an existing run.
        as_json: print JSON instead of tables.
    """
    if output:
        check_target(Path(output), overwrite)
    with shown_as_bar(as_json):
        found = make()
        if output:
            tell_progress("Writing the result", 0.99)
            found.save(output, overwrite=overwrite)
    show(found, output or "", as_json)
    if output == "" and not as_json:
        say_not_written()
    return found


def show(found: Outcome, output: str = "", as_json: bool = False) -> None:
    """Print what was `found`, `as_json` or for people; `output` is the folder that was written."""
    if as_json:
        print_json(with_command(found.to_json()))
        return
    from steelyard.report.terminal import console

    found.tell(console(), output)


def say_not_written() -> None:
    """Say that nothing was written, and how to keep what was found."""
    from steelyard.report.terminal import console, say

    again = repeat_command("-o", "RUN")
    say(console(), f"\nNothing was written; to keep the result: {again}" if again else "\nNothing was written.")


def print_json(value: Any) -> None:
    """`value` as JSON is printed: two spaces deep, a reason for every null."""
    made = [explained(x) for x in value] if isinstance(value, list) else explained(value)
    typer.echo(printed_json(made, 2))


@contextmanager
def shown_as_bar(quiet: bool = False) -> Iterator[None]:
    """In here a bar on standard error shows how far long work is; none if `quiet`, or where that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from steelyard.report.terminal import bar

    with bar() as watch, told_to(watch):
        yield


@contextmanager
def watching(what: str, seconds: float | None = None) -> Iterator[Callable[[HowFar], bool]]:
    """For searches of motions: an end that delivers.

    Args:
        what: is delivered where Ctrl-C ends the search.
        seconds: how long the search may take.

    Yields what a search wants as its `progress`.
    """
    begun = time.monotonic()
    with best_on_interrupt(what):
        yield lambda _: stop_wanted() or (seconds is not None and time.monotonic() - begun > seconds)


def told_if_stopped() -> None:
    """Exit as a program that was interrupted does, once the best so far is delivered."""
    if stop_wanted():
        raise typer.Exit(130)
