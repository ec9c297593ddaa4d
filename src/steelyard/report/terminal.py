"""Tables and bars for the terminal; tables stay whole when they are piped into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import render
from rich.table import Table

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


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A table `title` of `columns` and `rows` whose cells fold, not to be cut; columns in `right` hold numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    filled = [list(row) for row in rows]
    # The first column names the row: it folds last.
    widest = max((render(row[0]).cell_len for row in filled), default=0)  # without its markup
    for k, name in enumerate(columns):
        least = min(widest, _WIDTH_OF_NAMES) if k == 0 else None
        made.add_column(name, justify="right" if name in right else "left", overflow="fold", min_width=least)
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
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(), TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bar:
        task = bar.add_task(what, total=None, last="")

        def update(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, last=last)

        yield update


@contextmanager
def best_so_far(what: str, quiet: bool = False) -> Iterator[Callable[[str, int, int, float], None]]:
    """A bar for `what` is searched, on standard error; none if `quiet`.

    Yields a function of (what is being done, stage, stages in all, the best value yet).
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("best {task.fields[best]}"), TimeElapsedColumn()
    shown = Console(stderr=True, quiet=quiet)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task(what, total=None, best="–")

        def update(doing: str, stage: int, stages: int, best: float) -> None:
            bar.update(task, completed=stage, total=stages, description=doing, best=f"{best:.5g}")

        yield update
