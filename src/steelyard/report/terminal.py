"""Tables for the terminal, that stay whole when they are piped into a file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.markup import render
from rich.table import Table

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
    """A table whose cells fold instead of being cut; columns named in `right` hold numbers."""
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


def number(value: float | None, digits: int = 4) -> str:
    """A number in few digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value + 0.0:.{digits}g}"  # + 0.0 turns -0 into 0
