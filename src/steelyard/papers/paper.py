"""What a reproduction is: a paper's tables and figures in its own order, with our numbers beside the printed ones.

A paper is a module with one `Paper` in it, which is listed in `papers/__init__.py`. Its items are functions: each takes
the paper's laboratory (whatever the items share), has the item's title as its docstring, and gives an `Item`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from io import StringIO
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground import Array, Presentation, Viewed, number
from steelyard.report import Panel, TableCell, TableColumn


@dataclass(frozen=True)
class _Printed:
    """A table as printed: rows of text by column."""

    rows: tuple[dict[str, str], ...]

    def words(self, column: str) -> tuple[str, ...]:
        self._check(column)
        return tuple(row[column] for row in self.rows)

    def numbers(self, column: str) -> Array:
        """NaN where the paper leaves a cell empty."""
        return np.array([float(word) if word else np.nan for word in self.words(column)])

    def _check(self, column: str) -> None:
        if column not in self.rows[0]:
            raise UnknownNameError("column", column, self.rows[0])


def printed(paper: str, paper_table: str) -> _Printed:
    """A `paper_table` of a `paper`, both by name.

    >>> printed("rotradi", "table2").numbers("filtered_power").tolist()
    [3.76, 2.7, 7.29]
    """
    text = files("steelyard.papers").joinpath("data", paper, f"{paper_table}.csv").read_text(encoding="utf-8")
    return _Printed(tuple(csv.DictReader(StringIO(text))))


# What is claimed of a statement: it is "asserted" (must hold, a run fails otherwise), "shown" (a claim that was tested,
# and holds here or does not), or "measured" (no yes or no; here is what came out).
_Kind = Literal["asserted", "shown", "measured"]


@dataclass(frozen=True)
class Statement:
    """A sentence that can be tested, what came out, and whether the sentence holds (None: it is no yes or no); where a
    claim does not hold, `why`."""

    why_null: ClassVar = {"holds": "It was measured, and is no yes or no."}
    claim: str
    kind: _Kind
    found: str
    holds: bool | None = None
    why: str = ""

    @property
    def result(self) -> str:
        """In a word: "holds", "does not hold", "open" (a claim that could not be told), "measured" (there is none)."""
        if self.holds is None:
            return "open" if self.kind == "shown" else "measured"
        return "holds" if self.holds else "does not hold"

    @property
    def evidence(self) -> str:
        """What came out and, where the claim does not hold, why."""
        return f"{self.found} {self.why}" if self.holds is False and self.why else self.found

    @property
    def failed(self) -> bool:
        return self.kind == "asserted" and self.holds is not True


def asserted(claim: str, holds: Any, found: str) -> Statement:
    """What must hold: the `claim`, whether it `holds`, and what was `found`, in words."""
    return Statement(claim, "asserted", found, bool(holds))


def shown(claim: str, holds: Any, found: str, why: str = "") -> Statement:
    """A claim that was tested: `claim`, whether it `holds` here (None: unsaid), what was `found`, and `why` it does not
    hold, for the case that it does not."""
    return Statement(claim, "shown", found, None if holds is None else bool(holds), why)


def measured(claim: str, found: str) -> Statement:
    """What is no yes or no: the `claim`, and what was `found`."""
    return Statement(claim, "measured", found)


# Of an empty cell of a table.
NO_NUMBER = "The paper prints no such number, or there is none to be found."


@dataclass(frozen=True)
class PaperTable:
    """Printed numbers and ours, side by side."""

    why_null: ClassVar = {"rows/*/*": NO_NUMBER}

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class PaperFigure:
    """Panels with lines."""

    title: str
    panels: tuple[Panel, ...]
    caption: str = ""


@dataclass(frozen=True)
class Item:
    """A table or a figure of the paper, or something that its text claims.

    `differences` has a line on each way in which ours differs from what is printed, with its reason.
    """

    text: str = ""
    tables: tuple[PaperTable, ...] = ()
    figures: tuple[PaperFigure, ...] = ()
    statements: tuple[Statement, ...] = ()
    differences: tuple[str, ...] = ()
    title: str = ""


_NAMED = re.compile(r"(?:, | and )?(Table|Figure)s? ((?:\d+|[IVX]+)(?:(?:, | and |–)(?:\d+|[IVX]+)\b)*)")


def tables_and_figures(text: str) -> tuple[str, ...]:
    """Those that the beginning of a `text` names, one by one.

    >>> tables_and_figures("Table 5 and Figures 3, 7–9: validation")
    ('Table 5', 'Figure 3', 'Figure 7', 'Figure 8', 'Figure 9')
    """
    out: list[str] = []
    at = 0
    while found := _NAMED.match(text, at):
        kind, numbers = found.groups()
        for first, last in re.findall(r"(\w+)(?:–(\w+))?", numbers.replace(" and ", ", ")):
            out += [f"{kind} {n}" for n in (range(int(first), int(last) + 1) if last else (first,))]
        at = found.end()
    return tuple(out)


@dataclass(frozen=True)
class InPrint:
    """A table or a figure of a paper: in which items it is to be seen, by their titles; where in none, why."""

    name: str
    shown_in: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper that can be reproduced.

    `lab(fast)` makes what the items share; let it work out expensive things when they are first asked for. An item is a
    function of that `lab`; the first line of its docstring is its title, which begins with the tables and figures that
    it has. `missing` lists what cannot be regenerated, each with its reason. `prints` are all tables and figures of the
    paper, such as "Tables 1–4, Figures 1–8" (default: those of items and of `missing`); each must be in one of both.
    """

    name: str
    title: str
    source: str
    about: str
    lab: Callable[[bool], Any]
    items: tuple[Callable[[Any], Item], ...]
    missing: tuple[tuple[str, str], ...] = ()
    prints: str = ""

    def __post_init__(self) -> None:
        for content in self.contents:
            if not (content.shown_in or content.reason):
                raise SteelyardError(f"{self.name}: {content.name} is in no item; list it in `missing`, with a reason.")

    @property
    def contents(self) -> tuple[InPrint, ...]:
        """Every table and figure of the paper, and where it is or why not."""
        titles = [self.item_title(index) for index in range(len(self.items))]
        where = {title: tables_and_figures(title) for title in titles}
        lacks = {name: why for what, why in self.missing for name in tables_and_figures(what)}
        named = dict.fromkeys([*(name for names in where.values() for name in names), *lacks])
        listed = tables_and_figures(self.prints) or tuple(named)
        if strange := [name for name in named if name not in listed]:
            raise SteelyardError(f"{self.name}: the paper has no {strange[0]}; it has {self.prints}.")
        return tuple(
            InPrint(name, tuple(title for title in titles if name in where[title]), lacks.get(name, ""))
            for name in listed
        )

    def item_title(self, index: int) -> str:
        """The first line of the docstring of item `index`, without its full stop."""
        return (self.items[index].__doc__ or "").strip().splitlines()[0].rstrip(".")


@dataclass(frozen=True)
class Reproduction(Viewed):
    """A paper and what came out.

    `processor_seconds` is what this run took, of all cores together; what an interrupted one had left is not in it, and
    it is in no file: the same run gives the same bytes.
    """

    paper: Paper
    fast: bool
    items: tuple[Item, ...] = field(default=())
    processor_seconds: float | None = field(default=None, compare=False)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for item in self.items for s in item.statements)

    @property
    def failures(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.failed)

    def to_json(self) -> dict[str, Any]:
        from steelyard.papers.run import reproduction_to_json

        return reproduction_to_json(self)

    def view(self) -> Presentation:
        from steelyard.papers.run import paper_page, print_reproduction

        return paper_page, print_reproduction


def paper_table(columns: Iterable[Any], rows: Iterable[Iterable[Any]], title: str = "") -> PaperTable:
    """A table called `title` from `columns` (or their names) and anything that can be gone through as `rows`.

    NumPy's numbers become Python's, and not-a-number a dash.
    """
    heads = tuple(c if isinstance(c, TableColumn) else TableColumn(c) for c in columns)
    return PaperTable(
        heads, tuple(tuple(x.item() if isinstance(x, np.generic) else x for x in row) for row in rows), title
    )


_Test = TypeVar("_Test", bound=Hashable)


def holm(p: Mapping[_Test, float]) -> dict[_Test, float]:
    """Values `p` of a family of tests, each made safe against there being many of them (Holm 1979)."""
    out, least = {}, 0.0
    for rank, test in enumerate(sorted(p, key=lambda key: p[key])):
        least = max(least, min(1.0, (len(p) - rank) * p[test]))
        out[test] = least
    return {test: out[test] for test in p}


def listed(values: Iterable[Any], form: str = ".2g") -> str:
    """Numbers in a sentence: `values` in the `form` of `format`, but without exponents where plain digits do."""
    return ", ".join(number(x, int(form[1:-1])) if form.endswith("g") else format(x, form) for x in values)


def beside(name: str, unit: str = "", digits: int = 4, places: int | None = None) -> tuple[TableColumn, TableColumn]:
    """The two columns of a quantity: as the paper prints it, and ours. It has a `name`, a `unit`, and significant
    `digits`, or so many `places` behind the point."""
    return TableColumn(f"{name}, paper", unit, digits, places), TableColumn(f"{name}, ours", unit, digits, places)
