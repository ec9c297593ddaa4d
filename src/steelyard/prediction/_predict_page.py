"""Presents predictions on the terminal and as an HTML page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.console import Console

from steelyard.errors import UnknownNameError
from steelyard.ground.numbers import number, percent
from steelyard.prediction.predict import PredictedLog, Predictions
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import say, table


def print_predictions(predictions: Predictions, out: Console, folder: str = "") -> None:
    """Print predictions.

    Args:
        predictions: The predictions.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    names = list(predictions.robot.joint_names)
    rows = [
        [log.name, *(number(x, 3) for x in log.error_percent)]
        for log in predictions.logs
        if log.error_percent is not None
    ]
    if rows:
        title = f"Error below {number(predictions.cutoff_hz)} Hz, % of the torque's standard deviation"
        out.print(table(title, ["log", *names], rows, right=names))
    for log in predictions.logs:
        if log.inside_percent is not None:
            inside = ", ".join(f"{n} {percent(x, 3)}" for n, x in zip(names, log.inside_percent, strict=True) if x == x)
            say(out, f" • {log.name}: inside the 95 % band: {inside}.")
        if log.outside_share:
            say(out, f" • {log.name}: {percent(log.outside_share)} of the samples are outside all regions.")
    if folder:
        say(out, f"\nWritten to {folder}: a table for every log, report.html, result.json.")


def predictions_report(predictions: Predictions) -> str:
    """Build the HTML page of predictions, `predictions`."""
    compared = [log for log in predictions.logs if log.error_percent is not None]
    rows: list[list[TableCell]] = [[log.name, *np.asarray(log.error_percent).tolist()] for log in compared]
    columns: list[TableColumn | str] = ["log", *(TableColumn(n, "%", digits=3) for n in predictions.robot.joint_names)]
    errors = (
        table_html(columns, rows, "Error, % of the torque's standard deviation")
        if compared
        else paragraph("The logs contain no torque to compare with.")
    )
    about = paragraph(
        f"Torques predicted by {predictions.by}. "
        f"Both torques pass the same low-pass of {number(predictions.cutoff_hz)} Hz."
    )
    sections = [Section("Prediction errors", join(about, errors))]
    sections += [Section(log.name, _shown(predictions, log)) for log in predictions.logs]
    return render_report(f"{predictions.robot.name}: predicted torques", sections)


def predicted_figure(predictions: Predictions, log: str = "") -> Figure:
    """Draw measured and predicted torque.

    Args:
        predictions: The predictions.
        log: Name of the log; default: the first.
    """
    by_name = {each.name: each for each in predictions.logs}
    if log and log not in by_name:
        raise UnknownNameError("log", log, by_name)
    chosen = by_name[log] if log else predictions.logs[0]
    units = [j.effort_unit for j in predictions.robot.joints]
    measured = chosen.filtered if chosen.measured is None else chosen.measured
    band = None if chosen.half_width is None else np.nan_to_num(chosen.half_width)
    return torque_measured_predicted(chosen.t, measured, chosen.filtered, predictions.robot.joint_names, units, band)


def _shown(predictions: Predictions, log: PredictedLog) -> Html:
    figure = predicted_figure(replace(predictions, logs=(log,)))
    caption = "The log contains no measured torque: both lines are the prediction." if log.measured is None else ""
    pieces = [figure_html(figure, "Measured and predicted torque", caption)]
    if log.outside_share:
        share = percent(log.outside_share)
        text = f"{share} of the samples are outside all regions; there the model of the nearest region is used."
        pieces.insert(0, callout("warning", text))
    return join(*pieces)
