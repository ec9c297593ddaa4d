"""Predictions for the terminal and as a page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.console import Console

from steelyard.errors import UnknownNameError
from steelyard.ground.numbers import number, percent
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import say, table
from steelyard.use.predict import PredictedLog, Predictions


def print_predictions(found: Predictions, out: Console, folder: str = "") -> None:
    """What was `found` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    names = list(found.robot.joint_names)
    rows = [
        [log.name, *(number(x, 3) for x in log.error_percent)] for log in found.logs if log.error_percent is not None
    ]
    if rows:
        title = f"Error below {number(found.cutoff_hz)} Hz, % of the torque's standard deviation"
        out.print(table(title, ["log", *names], rows, right=names))
    for log in found.logs:
        if log.inside_percent is not None:
            inside = ", ".join(f"{n} {percent(x, 3)}" for n, x in zip(names, log.inside_percent, strict=True) if x == x)
            say(out, f" • {log.name}: inside the 95 % band: {inside}.")
        if log.outside_share:
            say(out, f" • {log.name}: {percent(log.outside_share)} of the samples lie outside all regions.")
    if folder:
        say(out, f"\nWritten to {folder}: a table for every log, report.html, result.json.")


def predictions_report(found: Predictions) -> str:
    """The page of what was `found`, self-contained."""
    told = [log for log in found.logs if log.error_percent is not None]
    rows: list[list[TableCell]] = [[log.name, *np.asarray(log.error_percent).tolist()] for log in told]
    columns: list[TableColumn | str] = ["log", *(TableColumn(n, "%", digits=3) for n in found.robot.joint_names)]
    said = (
        table_html(columns, rows, "Error, % of the torque's standard deviation")
        if told
        else paragraph("The logs have no torque to compare with.")
    )
    about = paragraph(
        f"Torques by {found.by}; compared below {number(found.cutoff_hz)} Hz, both through the same filter."
    )
    sections = [Section("How far measured torques are off", join(about, said))]
    sections += [Section(log.name, _shown(found, log)) for log in found.logs]
    return render_report(f"{found.robot.name}: predicted torques", sections)


def predicted_figure(found: Predictions, log: str = "") -> Figure:
    """Torque measured and predicted of what was `found` for the `log` of that name; default: the first."""
    named = {one.name: one for one in found.logs}
    if log and log not in named:
        raise UnknownNameError("log", log, named)
    one = named[log] if log else found.logs[0]
    units = [j.effort_unit for j in found.robot.joints]
    measured = one.filtered if one.measured is None else one.measured
    band = None if one.half_width is None else np.nan_to_num(one.half_width)
    return torque_measured_predicted(one.t, measured, one.filtered, found.robot.joint_names, units, band)


def _shown(found: Predictions, log: PredictedLog) -> Html:
    figure = predicted_figure(replace(found, logs=(log,)))
    caption = "There is no measured torque: both lines are the prediction." if log.measured is None else ""
    pieces = [figure_html(figure, "Measured and predicted torque", caption)]
    if log.outside_share:
        share = percent(log.outside_share)
        text = f"{share} of the samples lie outside all regions; the nearest region answers there."
        pieces.insert(0, callout("warning", text))
    return join(*pieces)
