"""`deliver`: writes and prints the result of a command."""

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
from steelyard.ground.progress import ProgressReport, report_progress, report_progress_to
from steelyard.ground.reasons import explained
from steelyard.ground.repeat import repeat_command, with_command

AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def deliver(
    make: Callable[[], AnyOutcome], output: str | None = None, overwrite: bool = False, as_json: bool = False
) -> AnyOutcome:
    """Compute a result, write its run folder, and print it.

    Args:
        make: Computes the result; called after the run folder is checked.
        output: Run folder; "": not given, so print how to save the result; None: the command writes no folder.
        overwrite: Replace an existing run.
        as_json: Print JSON instead of tables.
    """
    if output:
        check_target(Path(output), overwrite)
    with progress_bar(as_json):
        result = make()
        if output:
            report_progress("Writing the result", 0.99)
            result.save(output, overwrite=overwrite)
    show(result, output or "", as_json)
    if output == "" and not as_json:
        print_not_saved()
    return result


def show(result: Outcome, output: str = "", as_json: bool = False) -> None:
    """Print a result.

    Args:
        result: Result of a command.
        output: Folder that was written, "" for none.
        as_json: Print JSON instead of tables.
    """
    if as_json:
        print_json(with_command(result.to_json()))
        return
    from steelyard.report.terminal import console

    result.print_to(console(), output)


def print_not_saved() -> None:
    """Print that nothing was written, and the command that saves the result."""
    from steelyard.report.terminal import console, say

    again = repeat_command("-o", "RUN")
    say(console(), f"\nNothing was written; to save the result: {again}" if again else "\nNothing was written.")


def print_json(value: Any) -> None:
    """Print a `value` as JSON, with a reason for every null."""
    data = [explained(x) for x in value] if isinstance(value, list) else explained(value)
    typer.echo(printed_json(data, 2))


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[None]:
    """Show a progress bar on standard error, unless `quiet` or without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from steelyard.report.terminal import bar

    with bar() as callback, report_progress_to(callback):
        yield


@contextmanager
def search_progress(what: str, seconds: float | None = None) -> Iterator[Callable[[ProgressReport], bool]]:
    """Yield a progress callback that stops a search of motions at Ctrl-C or at a time limit.

    Args:
        what: Name of the result that an interrupted search returns, for the message.
        seconds: Time limit [s].
    """
    start = time.monotonic()
    with best_on_interrupt(what):
        yield lambda _: stop_wanted() or (seconds is not None and time.monotonic() - start > seconds)


def exit_if_stopped() -> None:
    """Exit with the code of an interrupted program, after an interrupted search has returned its result."""
    if stop_wanted():
        raise typer.Exit(130)
