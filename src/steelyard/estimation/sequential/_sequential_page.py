"""Presents a sequential identification on the terminal and as an HTML page."""

from __future__ import annotations

from rich.console import Console

from steelyard.estimation.sequential.sequential_result import SequentialResult
from steelyard.ground.numbers import NO_SIGN, Known, number, with_error
from steelyard.report.elements import TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.estimates import parameter_intervals
from steelyard.report.terminal import say, table


def print_sequential(result: SequentialResult, out: Console, folder: str = "") -> None:
    """Print a sequential identification.

    Args:
        result: The identification.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    rows = [
        [r["movement"], r["name"], r["unit"],
         with_error(r["value"], r["standard_error"]) if result.has_possible_sign(r) else NO_SIGN,
         number(r["own_error"], 2)]
        for r in result.rows
    ]  # fmt: skip
    heads = ["movement", "parameter", "unit", "value ± standard error", "own noise only"]
    out.print(table(f"{result.plan.base.robot.name}, sequential identification", heads, rows, right=heads[3:]))
    say(out, _summary(result))
    if folder:
        say(out, f"\nReport: {folder}/report.html; table: found.csv.")


def _summary(result: SequentialResult) -> str:
    count, missing, zero = result.found.base.rank, result.found.undetermined, len(result.found.neglected)
    text = f"{count - zero - len(missing)} of {count} base parameters are identified by these movements"
    text += f", {zero} are assumed to be zero" if zero else ""
    shown = ", ".join(missing[:6]) + (" …" if len(missing) > 6 else "")
    return f"{text}; not identifiable from any movement: {shown}." if missing else f"{text}."


def sequential_report(result: SequentialResult) -> str:
    """Build the HTML page of a sequential identification, `result`."""
    numbers: list[TableColumn | str] = [
        TableColumn("value"), TableColumn("± standard error", digits=2), TableColumn("own noise only", digits=2)
    ]  # fmt: skip
    rows: list[list[TableCell]] = [
        [r["movement"], r["name"], r["unit"],
         Known(r["value"], r["standard_error"]) if result.has_possible_sign(r) else NO_SIGN,
         r["standard_error"], r["own_error"]]
        for r in result.rows
    ]  # fmt: skip
    steps: list[list[TableCell]] = [
        [step.movement, ", ".join(movement.moves), step.rows, ", ".join(step.known) or "none"]
        for step, movement in zip(result.found.steps, result.plan.movements, strict=True)
    ]
    names, units, values, errors = (
        [r[key] for r in result.rows] for key in ("name", "unit", "value", "standard_error")
    )
    shown: list[list[TableCell]] = [
        [r["name"], r["unit"], None if r["value"] is None else Known(r["value"], r["standard_error"]),
         r["standard_error"], r["neglected"]]
        for r in result.base_rows
    ]  # fmt: skip
    columns: list[TableColumn | str] = ["base parameter", "unit", *numbers[:2], "assumed zero"]
    sections = [
        Section(
            "Results of each movement",
            join(
                paragraph(
                    "Each movement subtracts the results of earlier movements. Its standard error includes their "
                    "errors; the last column counts only its own noise."
                ),
                table_html(["movement", "parameter", "unit", *numbers], rows, "Identified parameters"),
                figure_html(parameter_intervals(names, units, values, errors), "Parameters with 95 % intervals"),
                table_html(["movement", "moving joints", "rows", "known parameters"], steps, "The movements"),
            ),
        ),
        Section(
            "Base parameters",
            join(
                callout("warning" if result.found.undetermined else "note", _summary(result)),
                table_html(columns, shown, "All movements together", "Not identifiable from any movement."),
            ),
        ),
    ]
    return render_report(f"{result.plan.base.robot.name}, sequential identification", sections)
