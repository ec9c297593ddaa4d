"""`Paper` and the elements of a reproduction: a paper's tables and figures with our numbers beside the printed ones.

A paper is a module with one `Paper`, which `papers/__init__.py` lists. Its items are functions: each takes the paper's
laboratory (objects that the items share), has the item's title as its docstring, and returns an `Item`.
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
from steelyard.ground import Array, OutcomeWithPage, Presentation, number
from steelyard.report import Panel, TableCell, TableColumn


@dataclass(frozen=True)
class _Printed:
    """A printed table: rows of text by column."""

    rows: tuple[dict[str, str], ...]

    def words(self, column: str) -> tuple[str, ...]:
        self._check(column)
        return tuple(row[column] for row in self.rows)

    def numbers(self, column: str) -> Array:
        """Return a column as numbers; NaN for an empty cell."""
        return np.array([float(word) if word else np.nan for word in self.words(column)])

    def _check(self, column: str) -> None:
        if column not in self.rows[0]:
            raise UnknownNameError("column", column, self.rows[0])


def printed_table(paper: str, name: str) -> _Printed:
    """Return a printed table.

    >>> printed_table("rotradi", "table2").numbers("filtered_power").tolist()
    [3.76, 2.7, 7.29]

    Args:
        paper: Name of the paper.
        name: Name of the table.
    """
    text = files("steelyard.papers").joinpath("data", paper, f"{name}.csv").read_text(encoding="utf-8")
    return _Printed(tuple(csv.DictReader(StringIO(text))))


# A statement is "asserted" (must hold, or the run fails), "shown" (a tested claim, which holds here or not) or
# "measured" (a result without a claim).
_Kind = Literal["asserted", "shown", "measured"]


@dataclass(frozen=True)
class Statement:
    """A sentence with its evidence.

    Attributes:
        claim: The sentence.
        kind: "asserted", "shown" or "measured".
        found: Result of the test, in words.
        holds: Whether the sentence holds; None: open or measured.
        why: Reason, if a claim does not hold.
    """

    why_null: ClassVar = {"holds": "It is a measurement without a claim, or the claim is open."}
    claim: str
    kind: _Kind
    found: str
    holds: bool | None = None
    why: str = ""

    @property
    def result(self) -> str:
        """Result in a word: "holds", "does not hold", "open" (an undecided claim) or "measured"."""
        if self.holds is None:
            return "open" if self.kind == "shown" else "measured"
        return "holds" if self.holds else "does not hold"

    @property
    def evidence(self) -> str:
        """Result of the test and, if the claim does not hold, the reason."""
        return f"{self.found} {self.why}" if self.holds is False and self.why else self.found

    @property
    def failed(self) -> bool:
        return self.kind == "asserted" and self.holds is not True


def assertion(claim: str, holds: Any, result: str) -> Statement:
    """Return a statement that must hold.

    Args:
        claim: The sentence.
        holds: Whether it holds.
        result: Result of the test, in words.
    """
    return Statement(claim, "asserted", result, bool(holds))


def claim_result(claim: str, holds: Any, result: str, why: str = "") -> Statement:
    """Return the result of a tested claim.

    Args:
        claim: The sentence.
        holds: Whether it holds here; None: undecided.
        result: Result of the test, in words.
        why: Reason, if the claim does not hold.
    """
    return Statement(claim, "shown", result, None if holds is None else bool(holds), why)


def measurement(claim: str, result: str) -> Statement:
    """Return a result without a claim.

    Args:
        claim: The measured quantity.
        result: The result, in words.
    """
    return Statement(claim, "measured", result)


# Reason for an empty cell of a table.
NO_NUMBER = "The paper does not print this number, or it could not be computed."


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
    """A table or a figure of the paper, or a claim of its text.

    Attributes:
        text: Explanation.
        tables: Tables.
        figures: Figures.
        statements: Statements.
        differences: Differences from the paper with their reasons, one line each.
        title: Title.
    """

    text: str = ""
    tables: tuple[PaperTable, ...] = ()
    figures: tuple[PaperFigure, ...] = ()
    statements: tuple[Statement, ...] = ()
    differences: tuple[str, ...] = ()
    title: str = ""


_NAMED = re.compile(r"(?:, | and )?(Table|Figure)s? ((?:\d+|[IVX]+)(?:(?:, | and |–)(?:\d+|[IVX]+)\b)*)")


def tables_and_figures(text: str) -> tuple[str, ...]:
    """List the tables and figures that the beginning of a `text` names.

    >>> tables_and_figures("Table 5 and Figures 3, 7–9: validation")
    ('Table 5', 'Figure 3', 'Figure 7', 'Figure 8', 'Figure 9')
    """
    out: list[str] = []
    at = 0
    while match := _NAMED.match(text, at):
        kind, numbers = match.groups()
        for first, last in re.findall(r"(\w+)(?:–(\w+))?", numbers.replace(" and ", ", ")):
            out += [f"{kind} {n}" for n in (range(int(first), int(last) + 1) if last else (first,))]
        at = match.end()
    return tuple(out)


@dataclass(frozen=True)
class PrintedItem:
    """A table or a figure of a paper.

    Attributes:
        name: Name of the table or figure, such as "Table 2".
        shown_in: Titles of the items that show it.
        reason: Reason, if no item shows it.
    """

    name: str
    shown_in: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper that can be reproduced.

    Attributes:
        name: Short name.
        title: Title of the paper.
        source: Authors, journal, year.
        about: Summary of the paper and the reproduction.
        lab: `lab(fast)` makes the objects that the items share; compute expensive ones lazily.
        items: Functions of the laboratory `lab`. The first line of the docstring is the title, which begins with the
            tables and figures that the item shows.
        missing: Tables and figures that cannot be regenerated, each with its reason.
        prints: All tables and figures of the paper, such as "Tables 1–4, Figures 1–8" (default: those of items and of
            `missing`); each must be in an item or in `missing`.
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
    def contents(self) -> tuple[PrintedItem, ...]:
        """Every table and figure of the paper, with the items that show it or the reason why none does."""
        titles = [self.item_title(index) for index in range(len(self.items))]
        where = {title: tables_and_figures(title) for title in titles}
        lacks = {name: why for what, why in self.missing for name in tables_and_figures(what)}
        named = dict.fromkeys([*(name for names in where.values() for name in names), *lacks])
        listed = tables_and_figures(self.prints) or tuple(named)
        if strange := [name for name in named if name not in listed]:
            raise SteelyardError(f"{self.name}: the paper has no {strange[0]}; it has {self.prints}.")
        return tuple(
            PrintedItem(name, tuple(title for title in titles if name in where[title]), lacks.get(name, ""))
            for name in listed
        )

    def item_title(self, index: int) -> str:
        """Return the first line of the docstring of item `index`, without its full stop."""
        return (self.items[index].__doc__ or "").strip().splitlines()[0].rstrip(".")


@dataclass(frozen=True)
class Reproduction(OutcomeWithPage):
    """A paper and its results.

    Attributes:
        paper: The paper.
        fast: Whether the run was fast.
        items: Results of the items.
        processor_seconds: Time of this run on all cores [s], without an interrupted run before it. No file contains it,
            so equal runs write equal files.
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
        from steelyard.papers.reproduce import reproduction_to_json

        return reproduction_to_json(self)

    def view(self) -> Presentation:
        from steelyard.papers.reproduce import paper_page, print_reproduction

        return paper_page, print_reproduction


def paper_table(columns: Iterable[Any], rows: Iterable[Iterable[Any]], title: str = "") -> PaperTable:
    """Return a table; NumPy's numbers become Python's, and NaN a dash.

    Args:
        columns: Columns or their names.
        rows: Rows.
        title: Title.
    """
    heads = tuple(c if isinstance(c, TableColumn) else TableColumn(c) for c in columns)
    return PaperTable(
        heads, tuple(tuple(x.item() if isinstance(x, np.generic) else x for x in row) for row in rows), title
    )


_Test = TypeVar("_Test", bound=Hashable)


def holm(p: Mapping[_Test, float]) -> dict[_Test, float]:
    """Correct p-values `p` of a family of tests for multiple testing (Holm 1979)."""
    out, least = {}, 0.0
    for rank, test in enumerate(sorted(p, key=lambda key: p[key])):
        least = max(least, min(1.0, (len(p) - rank) * p[test]))
        out[test] = least
    return {test: out[test] for test in p}


def number_list(values: Iterable[Any], form: str = ".2g") -> str:
    """Format numbers for a sentence.

    Args:
        values: The numbers.
        form: Format as for `format`, but without exponents if plain digits suffice.
    """
    return ", ".join(number(x, int(form[1:-1])) if form.endswith("g") else format(x, form) for x in values)


def paired_columns(
    name: str, unit: str = "", digits: int = 4, places: int | None = None
) -> tuple[TableColumn, TableColumn]:
    """Return the two columns of a quantity: printed, and ours.

    Args:
        name: Name of the quantity.
        unit: Unit of the quantity.
        digits: Significant digits.
        places: Decimal places; None: by `digits`.
    """
    return TableColumn(f"{name}, paper", unit, digits, places), TableColumn(f"{name}, ours", unit, digits, places)
