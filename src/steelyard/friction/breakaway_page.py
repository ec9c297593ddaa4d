"""Break-away torques for the terminal and as a page."""

from __future__ import annotations

from rich.console import Console

from steelyard.friction.breakaway import BreakAwayRun
from steelyard.ground.numbers import number
from steelyard.report.elements import TableCell, TableColumn, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import BLUE, VERMILLION, Figure
from steelyard.report.terminal import say, table

_WAYS = ("forward", "backward")


def _sentence(found: BreakAwayRun) -> str:
    if not found.gravity_from:
        return "Gravity is in these torques: there was neither --model nor a description with inertias."
    return f"Gravity is taken off, by {found.gravity_from}."


def _rows(found: BreakAwayRun) -> list[tuple[str, str, str, int, float | None, float | None]]:
    return [
        (j["joint"], j["unit"], way, j[way]["starts"], j[way]["mean"], j[way]["std"])
        for j in found.to_json()["joints"]
        for way in _WAYS
    ]


def break_away_report(found: BreakAwayRun) -> str:
    """The page of what was `found`: means and every single start."""
    figure = Figure(320)
    for way, colour in zip(_WAYS, (BLUE, VERMILLION), strict=True):
        starts = [(j.joint, abs(float(x))) for j in found.joints for x in getattr(j, way)]
        marker = {"color": colour, "size": 7, "opacity": 0.7}
        x, y = [name for name, _ in starts], [torque for _, torque in starts]
        figure.add("scatter", x=x, y=y, mode="markers", name=way, marker=marker)
    figure.y_axis(title="torque at the start [N m, N]", rangemode="tozero")
    columns: list[TableColumn | str]
    columns = ["joint", "unit", "direction", "starts", TableColumn("mean", digits=4), TableColumn("std", digits=2)]
    rows: list[list[TableCell]] = [list(row) for row in _rows(found)]
    body = join(
        paragraph(f"The torque just before a joint set off from rest, as a magnitude. {_sentence(found)}"),
        table_html(columns, rows, dash="The joint set off that way less than twice, or never."),
        figure_html(figure, "Every start"),
    )
    return render_report(f"{found.robot.name}: break-away torque", [Section("Break-away torque", body)])


def print_break_away(found: BreakAwayRun, out: Console, folder: str = "") -> None:
    """What was `found` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    columns = ["joint", "direction", "starts", "mean", "std", "unit"]
    rows = [[j, way, str(n), number(mean, 4), number(std, 2), unit] for j, unit, way, n, mean, std in _rows(found)]
    out.print(table(f"Break-away torque of {found.robot.name}", columns, rows, right=columns[2:5]))
    say(out, _sentence(found))
    if folder:
        say(out, f"Written to {folder}: result.json, starts.csv, report.html")
