"""Results as JSON, and items back from it, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from steelyard.papers.paper import Figure, Item, Reproduction, Statement, Table
from steelyard.plain import plain
from steelyard.report.elements import Column
from steelyard.report.plots.lines import Line, Panel


def item_to_json(item: Item) -> dict[str, Any]:
    return plain(asdict(item))  # type: ignore[no-any-return]


def item_from_json(saved: dict[str, Any]) -> Item:
    return Item(
        text=saved["text"],
        tables=tuple(_table(t) for t in saved["tables"]),
        figures=tuple(_figure(f) for f in saved["figures"]),
        statements=tuple(Statement(**s) for s in saved["statements"]),
        differences=tuple(saved["differences"]),
        title=saved["title"],
    )


def reproduction_to_json(done: Reproduction) -> dict[str, Any]:
    paper = done.paper
    return {
        "format": "steelyard-reproduction-1",
        "steelyard": version("steelyard"),
        "paper": {"name": paper.name, "title": paper.title, "source": paper.source},
        "fast": done.fast,
        "holds": not done.failures,
        "statements": [asdict(s) for s in done.statements],
        "items": [item_to_json(item) for item in done.items],
        "missing": [{"what": what, "why": why} for what, why in paper.missing],
    }


def _table(saved: dict[str, Any]) -> Table:
    columns = tuple(Column(**column) for column in saved["columns"])
    return Table(columns, tuple(tuple(row) for row in saved["rows"]), saved["title"])


def _figure(saved: dict[str, Any]) -> Figure:
    return Figure(saved["title"], tuple(_panel(panel) for panel in saved["panels"]), saved["caption"])


def _panel(saved: dict[str, Any]) -> Panel:
    ends = saved["range"]
    lines = tuple(_line(line) for line in saved["lines"])
    return Panel(**{**saved, "lines": lines, "range": None if ends is None else tuple(ends)})


def _line(saved: dict[str, Any]) -> Line:
    # A gap in a line is null in JSON.
    x, y = (tuple(float("nan") if v is None else v for v in saved[axis]) for axis in ("x", "y"))
    return Line(saved["name"], x, y, saved["dashed"])
