"""A sequential identification for the terminal and as a page."""

from __future__ import annotations

from rich.console import Console

from steelyard.ground.numbers import NO_SIGN, Known, number, with_error
from steelyard.report.elements import TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.estimates import parameter_intervals
from steelyard.report.terminal import say, table
from steelyard.use.stepwise import Stepwise


def print_stepwise(found: Stepwise, out: Console, folder: str = "") -> None:
    """What was `found` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    rows = [
        [r["movement"], r["name"], r["unit"],
         with_error(r["value"], r["standard_error"]) if found.told(r) else NO_SIGN,
         number(r["own_error"], 2)]
        for r in found.rows
    ]  # fmt: skip
    heads = ["movement", "found", "unit", "value ± standard error", "of its own noise"]
    out.print(table(f"{found.plan.base.robot.name}, movement by movement", heads, rows, right=heads[3:]))
    say(out, _said(found))
    if folder:
        say(out, f"\nLook at {folder}/report.html; found.csv holds the table.")


def _said(found: Stepwise) -> str:
    count, missing, zero = found.found.base.rank, found.found.undetermined, len(found.found.neglected)
    said = f"{count - zero - len(missing)} of {count} base parameters follow from these movements"
    said += f", {zero} are taken for zero" if zero else ""
    shown = ", ".join(missing[:6]) + (" …" if len(missing) > 6 else "")
    return f"{said}; no movement shows {shown}." if missing else f"{said}."


def stepwise_report(found: Stepwise) -> str:
    """The page of what was `found`, self-contained."""
    numbers: list[TableColumn | str] = [
        TableColumn("value"), TableColumn("± standard error", digits=2), TableColumn("of its own noise", digits=2)
    ]  # fmt: skip
    rows: list[list[TableCell]] = [
        [r["movement"], r["name"], r["unit"], Known(r["value"], r["standard_error"]) if found.told(r) else NO_SIGN,
         r["standard_error"], r["own_error"]]
        for r in found.rows
    ]  # fmt: skip
    steps: list[list[TableCell]] = [
        [step.movement, ", ".join(movement.moves), step.rows, ", ".join(step.known) or "nothing"]
        for step, movement in zip(found.found.steps, found.plan.movements, strict=True)
    ]
    names, units, values, errors = ([r[key] for r in found.rows] for key in ("name", "unit", "value", "standard_error"))
    shown: list[list[TableCell]] = [
        [r["name"], r["unit"], None if r["value"] is None else Known(r["value"], r["standard_error"]),
         r["standard_error"], r["neglected"]]
        for r in found.base_rows
    ]  # fmt: skip
    columns: list[TableColumn | str] = ["base parameter", "unit", *numbers[:2], "taken for zero"]
    sections = [
        Section(
            "What each movement found",
            join(
                paragraph(
                    "A movement subtracts what the ones before it found. Its error bar counts their errors, too; "
                    "beside it stands that of its own noise alone."
                ),
                table_html(["movement", "found", "unit", *numbers], rows, "Found"),
                figure_html(parameter_intervals(names, units, values, errors), "Found, with 95 % intervals"),
                table_html(["movement", "what moved", "rows", "resting on"], steps, "The movements"),
            ),
        ),
        Section(
            "Base parameters",
            join(
                callout("warning" if found.found.undetermined else "note", _said(found)),
                table_html(columns, shown, "All movements together", "No movement shows it."),
            ),
        ),
    ]
    return render_report(f"{found.plan.base.robot.name}, movement by movement", sections)
