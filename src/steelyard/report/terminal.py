"""Tables and progress bars for the terminal. Tables are not cut when they are piped into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.errors import printable
from steelyard.ground.display import Headline
from steelyard.ground.numbers import number as number
from steelyard.ground.progress import ProgressReport

# Width of output that is not a terminal; longer cells are wrapped.
_WIDTH_OF_FILES = 120
# Narrower terminals break lines themselves; tables squeezed further would lose columns.
_LEAST_WIDTH = 80
_WIDTH_OF_NAMES = 28


def console() -> Console:
    """Return a console on standard output."""
    usual = Console(highlight=False)
    has_width = usual.is_terminal or "COLUMNS" in os.environ
    return Console(highlight=False, width=max(usual.width, _LEAST_WIDTH) if has_width else _WIDTH_OF_FILES)


def plain_text(words: str | Text) -> Text:
    """Return `words` without interpretation of markup, emoji codes or control characters."""
    return words if isinstance(words, Text) else Text(printable(words))


def bold(words: str) -> Text:
    """Return `words` in bold, without interpretation of markup."""
    return Text(printable(words), "bold")


def say(out: Console, *pieces: str | Text, whole_words: bool = False) -> None:
    """Print text without interpretation of markup: names come from files. All output uses this function or `table`.

    Args:
        out: Console to print to.
        *pieces: Parts of one line.
        whole_words: Whether the line breaks between words only, so that a path can be copied.
    """
    text = Text.assemble(*(plain_text(piece) for piece in pieces))
    if whole_words:
        out.print(text, overflow="ignore", crop=False)
    else:
        out.print(text)


def say_headline(out: Console, headline: Headline) -> None:
    """Print a result in one sentence, and its reasons as a list.

    Args:
        out: Console to print to.
        headline: The result.
    """
    say(out, headline.sentence)
    for point in headline.points:
        say(out, f" • {point}")


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Sequence[str] = ()
) -> Table:  # fmt: skip
    """Build a table for the terminal. Long cells are wrapped, never cut.

    Args:
        title: Title above the table.
        columns: Names of the columns.
        rows: Cells, row by row.
        right: Names of the columns to align to the right.
    """
    heading = Text(printable(title), "bold")
    out = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[plain_text(cell) for cell in row] for row in rows]
    # The first column names the row, so it is the last one to be wrapped.
    widest = max((row[0].cell_len for row in cells), default=0)
    for k, name in enumerate(columns):
        least = min(widest, _WIDTH_OF_NAMES) if k == 0 else None
        out.add_column(plain_text(name), justify="right" if name in right else "left", overflow="fold", min_width=least)
    for row in cells:
        out.add_row(*row)
    return out


@contextmanager
def bar(quiet: bool = False) -> Iterator[Callable[[ProgressReport], None]]:
    """Show a progress bar with the remaining time on standard error, if that is a terminal and not `quiet`.

    Yields a callback for the argument `progress` of long functions.
    """
    screen = _standard_error(quiet)
    if screen.quiet:
        yield lambda state: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    class TimeLeft(ProgressColumn):
        """The remaining time, which continues to fall between two updates."""

        def render(self, task: Task) -> Text:
            at, elapsed = task.fields["at"], task.elapsed or 0.0
            return Text(time_left(at, task.completed, elapsed - at))

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        TimeLeft(), TextColumn("{task.fields[last]}", markup=False),
    )  # fmt: skip
    progress_bar = Progress(*columns, console=screen, transient=True)
    task = progress_bar.add_task("", total=1.0, at=0.0, last="")

    def update(state: ProgressReport) -> None:
        progress_bar.start()  # work without any update gets no bar
        at, stage, last = progress_bar.tasks[0].elapsed or 0.0, printable(state.stage), printable(state.message)
        progress_bar.update(task, completed=state.fraction, description=stage, last=last, at=at)

    try:
        yield update
    finally:
        progress_bar.stop()


# Below this share of the work, or this time [s], the remaining time cannot be estimated.
_LEAST_SHARE, _LEAST_SECONDS = 0.03, 1.0


def time_left(elapsed: float, fraction: float, since: float = 0.0) -> str:
    """Estimate the remaining time of a task; "" if that is not possible yet.

    Args:
        elapsed: Time from the start to the last update [s].
        fraction: Share of the work that was complete at the last update, 0 to 1.
        since: Time since the last update [s].
    """
    if fraction < _LEAST_SHARE or elapsed < _LEAST_SECONDS or fraction >= 1.0:
        return ""
    seconds = max(0, round(elapsed * (1.0 - fraction) / fraction - since))
    if seconds < 60:
        return f"{seconds} s left"
    return f"{seconds // 60} min left" if seconds < 3600 else f"{seconds // 3600} h {seconds % 3600 // 60} min left"


def _standard_error(quiet: bool) -> Console:
    """Return a console on standard error; a silent one if it is not a terminal."""
    usual = Console(stderr=True)
    return usual if usual.is_terminal and not quiet else Console(stderr=True, quiet=True)
