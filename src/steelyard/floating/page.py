"""Report page and terminal text of a `FloatingIdentification`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from steelyard.floating.result import FloatingIdentification
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import Known, number, percent
from steelyard.report.elements import Html, TableCell, TableColumn, figure_html, join, paragraph, table_html, whisker
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.ranking import error_ranking

if TYPE_CHECKING:
    from rich.console import Console

# Rows of the table of bodies in a terminal; the page and parameters.csv have all.
_MOST_BODIES = 24


def floating_report(result: FloatingIdentification) -> str:
    """Render the page of a `result`."""
    verdict = result.verdict()
    sections = [
        Section("Bodies", _bodies(result)),
        Section("Rows left out", _left_out(result)),
        Section("Base parameters", _base(result)),
    ]
    if result.phases:
        sections.insert(2, Section("Contact phases", _phases(result)))
    title = f"{result.robot.name}: identification"
    return render_report(title, sections, verdict=Verdict(verdict.kind, verdict.sentence, verdict.points))


def _bodies(result: FloatingIdentification) -> Html:
    columns = result.body_columns()
    described = columns.get("described_mass", [None] * len(columns["body"]))
    rows: list[list[TableCell]] = []
    for k, name in enumerate(columns["body"]):
        mass, error = float(columns["mass"][k]), float(columns["standard_error"][k])
        before = None if described[k] is None else float(described[k])
        centre = [Known(1000.0 * float(columns[f"c{x}"][k]), 0.1) for x in "xyz"]
        rows.append(
            [str(name), whisker(mass, HALF_WIDTH_95 * error, before), before, Known(mass, error), HALF_WIDTH_95 * error,
             100.0 * float(columns["share_of_data"][k]), *centre]
        )  # fmt: skip
    heads: list[TableColumn | str] = [
        "body", "mass", TableColumn("described", "kg"), TableColumn("identified", "kg"),
        TableColumn("± 95 %", "kg", digits=2), TableColumn("from the rows", "%", digits=2),
        *(TableColumn(f"centre {x}", "mm") for x in "xyz"),
    ]  # fmt: skip
    below = (
        "Dot: identified mass with its interval from rows and description; diamond: described mass. 'From the rows' is "
        "the share of the information about a mass that the rows add to the description."
    )
    return join(table_html(heads, rows, "Masses and centres of mass", dash="Not described."), paragraph(below))


def _left_out(result: FloatingIdentification) -> Html:
    fit = result.fit
    names = [_weight(c.weight) for c in fit.candidates]
    figure = error_ranking(names, [c.error for c in fit.candidates], "error of rows left out [%]", _weight(fit.weight))
    caption = (
        "Weight of the description against the rows. Each bar: error of left-out stretches of time. "
        "The model uses the best weight."
    )
    rows: list[list[TableCell]] = [
        [name, *(x for s in result.scores for x in (s.rms[k], _finite(s.described_rms, k))), float(noise)]
        for k, (name, noise) in enumerate(zip(result.equations, fit.noise, strict=True))
    ]
    heads = [
        "equation",
        *(f"{s.name}, {who}" for s in result.scores for who in ("identified", "described")),
        "left out",
    ]
    return join(
        figure_html(figure, "Weight of the description", caption),
        table_html(heads, rows, "Error of each equation (rms)", dash="Not available."),
    )


def _finite(values: tuple[float, ...], k: int) -> float | None:
    return values[k] if k < len(values) else None


def _weight(weight: float) -> str:
    return "description alone" if math.isinf(weight) else f"weight {number(weight, 3)}"


def _base(result: FloatingIdentification) -> Html:
    estimate = result.fit.estimate
    cells = zip(
        estimate.base.names, estimate.base.formulas, estimate.base.units, estimate.beta, estimate.standard_errors,
        strict=True,
    )  # fmt: skip
    rows: list[list[TableCell]] = [
        [n, f, u, Known(float(b), float(e)), HALF_WIDTH_95 * float(e)] for n, f, u, b, e in cells
    ]
    heads: list[TableColumn | str] = ["", "combination", "unit", "value", TableColumn("± 95 %", digits=2)]
    text = (
        "Combinations of parameters that the rows determine; the intervals are those of the rows without description."
    )
    return join(paragraph(text), table_html(heads, rows, "Base parameters", tall=True))


def _phases(result: FloatingIdentification) -> Html:
    whole = ("stretches", "rows", "rank")
    rows: list[list[TableCell]] = [
        [str(p["contacts"]), float(p["seconds"]), *(int(p[name]) for name in whole)] for p in result.phases
    ]
    heads: list[TableColumn | str] = [
        "contacts", TableColumn("time", "s"), "stretches", "rows per sample", "base parameters it can show",
    ]  # fmt: skip
    return table_html(heads, rows, "Contact phases")


def print_floating(result: FloatingIdentification, out: Console, folder: str = "") -> None:
    """Print a result.

    Args:
        result: Result to print.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    from steelyard.report.terminal import say, say_headline, table

    verdict = result.verdict()
    say_headline(out, verdict)
    columns = result.body_columns()
    described = columns.get("described_mass", [np.nan] * len(columns["body"]))
    errors = columns["standard_error"]
    rows = [
        [
            str(name), number(float(described[k])), str(Known(float(columns["mass"][k]), float(errors[k]))),
            number(HALF_WIDTH_95 * float(errors[k]), 2), percent(100.0 * float(columns["share_of_data"][k])),
            ", ".join(number(1000.0 * float(columns[f"c{x}"][k]), 3) for x in "xyz"),
        ]
        for k, name in enumerate(columns["body"][:_MOST_BODIES])
    ]  # fmt: skip
    heads = ["body", "described kg", "mass kg", "± 95 %", "from the rows", "centre of mass mm"]
    out.print(table("Bodies", heads, rows, right=heads[1:]))
    if len(columns["body"]) > _MOST_BODIES:
        say(out, f"… and {len(columns['body']) - _MOST_BODIES} more in parameters.csv.")
    if result.phases:
        cells = [
            [str(p["contacts"]), number(float(p["seconds"]), 3), str(p["rows"]), str(p["rank"])] for p in result.phases
        ]
        heads = ["contacts", "time s", "rows per sample", "base parameters it can show"]
        out.print(table("Contact phases", heads, cells, right=heads[1:]))
    if folder:
        say(out, f"\nWritten to {folder}: result.json, report.html, {', '.join(result.files())}.")
