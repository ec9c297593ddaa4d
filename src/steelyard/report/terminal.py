"""Tables and bars for the terminal; tables stay whole when they are piped into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.errors import printable
from steelyard.ground.numbers import number as number
from steelyard.ground.progress import HowFar

# Where output is no terminal nobody has chosen a width; cells fold, so nothing is lost.
_WIDTH_OF_FILES = 120
# Narrower terminals break the lines themselves; tables squeezed further would lose columns.
_LEAST_WIDTH = 80
_WIDTH_OF_NAMES = 28


def console() -> Console:
    """A console on standard output."""
    made = Console(highlight=False)
    chosen = made.is_terminal or "COLUMNS" in os.environ
    return Console(highlight=False, width=max(made.width, _LEAST_WIDTH) if chosen else _WIDTH_OF_FILES)


def plain_text(words: str | Text) -> Text:
    """`words` as they stand: brackets are no markup, colons no emoji, and nothing in them moves a cursor."""
    return words if isinstance(words, Text) else Text(printable(words))


def bold(words: str) -> Text:
    """`words` as they stand, in bold."""
    return Text(printable(words), "bold")


def say(out: Console, *pieces: str | Text) -> None:
    """Print the `pieces`, as they stand, to `out`. Names come from files: all that is printed goes this way, or through
    `table`."""
    out.print(Text.assemble(*(plain_text(piece) for piece in pieces)))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Sequence[str] = ()
) -> Table:  # fmt: skip
    """A table `title` of `columns` and `rows` whose cells fold, not to be cut; columns in `right` hold numbers."""
    heading = Text(printable(title), "bold")
    made = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    filled = [[plain_text(cell) for cell in row] for row in rows]
    # The first column names the row: it folds last.
    widest = max((row[0].cell_len for row in filled), default=0)
    for k, name in enumerate(columns):
        least = min(widest, _WIDTH_OF_NAMES) if k == 0 else None
        made.add_column(
            plain_text(name), justify="right" if name in right else "left", overflow="fold", min_width=least
        )
    for row in filled:
        made.add_row(*row)
    return made


@contextmanager
def bar(quiet: bool = False) -> Iterator[Callable[[HowFar], None]]:
    """A bar on standard error, so that output can be piped, of how far work is, with the time that is left; none if
    `quiet`, and none where standard error is no terminal.

    Yields what long functions take as `progress`.
    """
    where = _bars(quiet)
    if where.quiet:
        yield lambda said: None
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

    class Left(ProgressColumn):
        """The time that is left, which goes on falling between two tellings."""

        def render(self, task: Task) -> Text:
            at, elapsed = task.fields["at"], task.elapsed or 0.0
            return Text(time_left(at, task.completed, elapsed - at))

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        Left(), TextColumn("{task.fields[last]}", markup=False),
    )  # fmt: skip
    drawn = Progress(*columns, console=where, transient=True)
    task = drawn.add_task("", total=1.0, at=0.0, last="")

    def update(said: HowFar) -> None:
        drawn.start()  # what says nothing gets no bar
        at, doing, last = drawn.tasks[0].elapsed or 0.0, printable(said.stage), printable(said.message)
        drawn.update(task, completed=said.fraction, description=doing, last=last, at=at)

    try:
        yield update
    finally:
        drawn.stop()


# Before this share of the work is done, or this time is over, nobody knows how long it takes.
_LEAST_SHARE, _LEAST_SECONDS = 0.03, 1.0


def time_left(elapsed: float, fraction: float, since: float = 0.0) -> str:
    """How long work will take that had done the share `fraction` of itself in `elapsed` seconds, so many seconds ago
    (`since`); "" if nobody knows."""
    if fraction < _LEAST_SHARE or elapsed < _LEAST_SECONDS or fraction >= 1.0:
        return ""
    seconds = max(0, round(elapsed * (1.0 - fraction) / fraction - since))
    if seconds < 60:
        return f"{seconds} s left"
    return f"{seconds // 60} min left" if seconds < 3600 else f"{seconds // 3600} h {seconds % 3600 // 60} min left"


def _bars(quiet: bool) -> Console:
    """Standard error, where a bar is drawn if it is a terminal; elsewhere not even the line that it would stand on."""
    made = Console(stderr=True)
    return made if made.is_terminal and not quiet else Console(stderr=True, quiet=True)
