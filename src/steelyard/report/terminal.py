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
def counted(what: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """A bar for `what` is done, of which the amount is known, on standard error, so that output can be piped; none if
    `quiet`.

    Yields a function of (done, in all, what was done last).
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(), TextColumn("{task.fields[last]}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=_bars(quiet), transient=True) as bar:
        task = bar.add_task(what, total=None, last="")

        def update(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, last=printable(last))

        yield update


@contextmanager
def best_so_far(what: str, quiet: bool = False) -> Iterator[Callable[[str, int, int, float], None]]:
    """A bar for `what` is searched, on standard error; none if `quiet`.

    Yields a function of (what is being done, stage, stages in all, the best value yet).
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    doing = TextColumn("{task.description}", markup=False)
    columns = doing, BarColumn(), TextColumn("best {task.fields[best]}"), TimeElapsedColumn()
    with Progress(*columns, console=_bars(quiet), transient=True) as bar:
        task = bar.add_task(what, total=None, best="–")

        def update(doing: str, stage: int, stages: int, best: float) -> None:
            bar.update(task, completed=stage, total=stages, description=printable(doing), best=f"{best:.5g}")

        yield update


def _bars(quiet: bool) -> Console:
    """Standard error, where a bar is drawn if it is a terminal; elsewhere not even the line that it would stand on."""
    made = Console(stderr=True)
    return made if made.is_terminal and not quiet else Console(stderr=True, quiet=True)
