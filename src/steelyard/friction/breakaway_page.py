"""Break-away torques on the terminal and as a report page."""

from __future__ import annotations

from rich.console import Console

from steelyard.friction.breakaway import BreakAwayRun
from steelyard.ground.numbers import number
from steelyard.report.elements import TableCell, TableColumn, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import BLUE, VERMILLION, Figure
from steelyard.report.terminal import say, table

_SIDES = ("forward", "backward")


def _sentence(run: BreakAwayRun) -> str:
    if not run.gravity_from:
        return "These torques include gravity: there was neither --model nor a description with inertias."
    return f"The gravity torque of {run.gravity_from} is subtracted."


def _rows(run: BreakAwayRun) -> list[tuple[str, str, str, int, float | None, float | None]]:
    return [
        (j["joint"], j["unit"], side, j[side]["starts"], j[side]["mean"], j[side]["std"])
        for j in run.to_json()["joints"]
        for side in _SIDES
    ]


def break_away_report(run: BreakAwayRun) -> str:
    """Render the page of a `run`: means and every start."""
    figure = Figure(320)
    for side, colour in zip(_SIDES, (BLUE, VERMILLION), strict=True):
        starts = [(j.joint, abs(float(x))) for j in run.joints for x in getattr(j, side)]
        marker = {"color": colour, "size": 7, "opacity": 0.7}
        x, y = [name for name, _ in starts], [torque for _, torque in starts]
        figure.add("scatter", x=x, y=y, mode="markers", name=side, marker=marker)
    figure.y_axis(title="torque at the start [N m, N]", rangemode="tozero")
    columns: list[TableColumn | str]
    columns = ["joint", "unit", "direction", "starts", TableColumn("mean", digits=4), TableColumn("std", digits=2)]
    rows: list[list[TableCell]] = [list(row) for row in _rows(run)]
    body = join(
        paragraph(f"Magnitude of the torque just before a joint starts from rest. {_sentence(run)}"),
        table_html(columns, rows, dash="The joint started in this direction less than twice, or never."),
        figure_html(figure, "Every start"),
    )
    return render_report(f"{run.robot.name}: break-away torque", [Section("Break-away torque", body)])


def print_break_away(run: BreakAwayRun, out: Console, folder: str = "") -> None:
    """Print break-away torques.

    Args:
        run: Break-away torques.
        out: Console to print to.
        folder: Folder of the written files; "" if nothing was written.
    """
    columns = ["joint", "direction", "starts", "mean", "std", "unit"]
    rows = [[j, side, str(n), number(mean, 4), number(std, 2), unit] for j, unit, side, n, mean, std in _rows(run)]
    out.print(table(f"Break-away torque of {run.robot.name}", columns, rows, right=columns[2:5]))
    say(out, _sentence(run))
    if folder:
        say(out, f"Written to {folder}: result.json, starts.csv, report.html")
