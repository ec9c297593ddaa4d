"""Report sections on predictions: errors of the model and of its robot files, torques, residuals and friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.assessment.columns import SCORES, score_row
from steelyard.assessment.score import Score
from steelyard.assessment.torque_error import TorqueError
from steelyard.friction.page import friction_curve
from steelyard.ground.numbers import number, percent
from steelyard.ground.result_tables import TableField, TableRow
from steelyard.identification.file_scores import FileScore
from steelyard.identification.identification import Identification
from steelyard.identification.torque_parts import friction_torque, prediction_band, torque_parts
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, figure_html, join, paragraph, table_html, tabs
from steelyard.report.html import Section
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.residuals import residual_autocorrelation, residual_map, residual_spectrum, residuals
from steelyard.report.plots.torque import torque_measured_predicted, torque_shares
from steelyard.robot.robot import Robot

# Maximum number of logs with torque figures; the table has all logs.
_MOST_DRAWN = 4
_MEASURES = ("moving_percent", "nrmse_percent", "standing_percent", "time_standing_percent", "rmse", "raw_rmse",
             "relative_error_percent", "r2")  # fmt: skip
_STANDING = ("moving_percent", "standing_percent", "time_standing_percent")
_DASH = "The torque is constant, or the joint never moves or never stands still in this log."


def effort_units(robot: Robot) -> list[str]:
    """Return the effort unit of each joint of `robot` whose torque is used (N m, or N for prismatic joints)."""
    return [j.effort_unit for j, used in zip(robot.joints, robot.torque_used, strict=True) if used]


def effort_unit(robot: Robot) -> str:
    """Return the effort units of `robot` for the head of a column with all joints."""
    return ", ".join(dict.fromkeys(effort_units(robot)))


def shown_scores(result: Identification) -> tuple[Score, ...]:
    """Return the scores of `result` on the validation logs; without such logs those on the fitted logs."""
    return result.validation or result.identification


def scores_section(result: Identification) -> Section:
    """Build the tables of errors of `result` by joint and log, one for each measure."""
    unit, error = effort_unit(result.robot), result.torque_error
    pooled = (replace(result.evaluation_scores[0], log="pooled", joints=error.joints),) if len(error.logs) > 1 else ()
    groups = [
        (name, scores)
        for name, scores in (
            ("all validation logs" if error.unseen else "all fitted logs", pooled),
            ("validation", result.validation),
            ("fitted", result.identification),
            ("robot description (nominal)", result.nominal),
        )
        if scores
    ]
    stands = any(s.stands for _, scores in groups for s in scores)
    names = _MEASURES if stands else [name for name in _MEASURES if name not in _STANDING]
    pieces = [(SCORES[name].head, _heat(SCORES[name], groups, unit)) for name in names]
    note = (
        "Predicted and measured torque, both filtered by a zero-phase Butterworth filter of order 4 at "
        f"{number(result.score_cutoff_hz, 3)} Hz. The colour of a cell shows the error relative to the torque's "
        "standard deviation (NRMSE). At standstill the friction torque is undetermined, so errors in motion and at "
        f"standstill are shown separately. {_headline(error)}"
    )
    return Section("How well it predicts", join(paragraph(note), tabs(*pieces)))


def _headline(error: TorqueError) -> str:
    """State the error in motion, which the verdict uses, and the error of all samples."""
    kind = "validation" if error.unseen else "fitted"
    logs = f"{kind} log" if len(error.logs) == 1 else f"{len(error.logs)} {kind} logs together"
    return (
        f"On the {logs}, the mean error over joints is {error.moving_percent:.1f} % in motion and "
        f"{error.all_percent:.1f} % over all samples."
    )


def _heat(measure: TableField, groups: Sequence[tuple[str, Sequence[Score]]], unit: str) -> Html:
    """Build a table of joints by logs for one measure, with the means over joints in the last row."""
    scores = [s for _, some in groups for s in some]
    by_log = [[score_row(j) for j in s.joints] for s in scores]
    heads = [TableColumn(s.log, places=4 if measure.name == "r2" else None, digits=3) for s in scores]
    rows: list[Sequence[TableCell]] = [
        (joint.joint, *(Heat(column[k][measure.name], error_level(column[k]["nrmse_percent"])) for column in by_log))
        for k, joint in enumerate(scores[0].joints)
    ]
    if measure.name in ("moving_percent", "nrmse_percent"):
        means = [float(np.mean([_all_or_moving(row, measure.name) for row in column])) for column in by_log]
        rows.append(("mean of joints", *(Heat(m, error_level(m)) for m in means)))
    title = f"{measure.head}: {measure.about.format(unit=unit)}"
    above = [("", 1), *((group, len(some)) for group, some in groups)]
    return table_html(["joint", *heads], rows, title, dash=_DASH, above=above)


def _all_or_moving(row: TableRow, name: str) -> float:
    """Return the error of a row; that of all samples if motion and standstill are not separated."""
    value: float = row["nrmse_percent"] if row[name] is None else row[name]
    return value


def error_level(nrmse_percent: float) -> float:
    """Map the error `nrmse_percent` [% of the torque's standard deviation] to a colour: 0 at 1 %, 1 at 100 %."""
    return float(np.clip(0.5 * np.log10(max(nrmse_percent, 1e-9)), 0.0, 1.0)) if np.isfinite(nrmse_percent) else 0.0


def torques_html(result: Identification) -> Html:
    """Build the figures of measured and predicted torque of `result` with bands, one tab per log."""
    units, drawn = effort_units(result.robot), []
    for s in shown_scores(result)[:_MOST_DRAWN]:
        names, band = [j.joint for j in s.joints], prediction_band(result, s)
        figure = torque_measured_predicted(s.t, s.measured, s.predicted, names, units, band, s.standing, clock=s.log)
        inside = "" if band is None else _inside(np.abs(s.measured - s.predicted) <= band, names)
        caption = f"Wide line: predicted; thin line: measured. {inside} Grey: standstill."
        drawn.append((s.log, figure_html(figure, f"Torque measured and predicted: {s.log}", caption)))
    return tabs(*drawn)


def torque_parts_section(result: Identification) -> Section | None:
    """Build the figure of the shares of the model's parts in the torque of `result`; None without a prediction."""
    parts = torque_parts(result, shown_scores(result)[0])
    if not parts:
        return None
    names = [j.joint for j in shown_scores(result)[0].joints]
    about = "Mean absolute values of the model's parts, as shares of their sum, since parts can have opposite signs."
    figure = torque_shares(parts, names, effort_units(result.robot))
    return Section("Parts of the torque", figure_html(figure, "Shares of the parts by joint", about))


def _inside(inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], names: Sequence[str]) -> str:
    shares = np.mean(inside, axis=0)
    worst = int(np.argmin(shares))
    return (
        "The band is designed to contain 95 % of the samples. It combines the parameter errors, the residuals of the "
        "fitted logs with their variation along the logs, and dry friction at standstill. "
        f"{percent(100.0 * float(np.mean(shares)), 3)} of the samples are inside; lowest joint: {names[worst]} with "
        f"{percent(100.0 * float(shares[worst]), 3)}."
    )


def residuals_section(result: Identification) -> Section:
    """Build the residual figures of `result`, six views of the first validation log."""
    s = shown_scores(result)[0]
    names, error, units = [j.joint for j in s.joints], s.measured - s.predicted, effort_units(result.robot)
    used = np.flatnonzero(result.robot.torque_used)
    rate = 1.0 / float(np.median(np.diff(s.t)))
    q, dq = s.q[:, used], s.dq[:, used]
    views = (
        ("time", residuals(s.t, error, names, "time", units, clock=s.log), "Residuals over time",
         "Spikes at velocity reversals indicate friction."),
        ("position × velocity", residual_map(q, dq, error, names, units), "Mean residual over position and velocity",
         "Orange: the measured torque is above the predicted one; blue: below. Full colour: twice the root mean "
         "square. Noise gives a random pattern. Large regions of one colour indicate missing physics."),
        ("velocity", residuals(dq, error, names, "velocity", units), "Residuals over velocity",
         "A curve indicates missing friction terms."),
        ("position", residuals(q, error, names, "position", units), "Residuals over position",
         "A curve indicates missing effects of gravity, cables or gears."),
        ("frequency", residual_spectrum(error, s.measured, rate, names, units), "Spectrum of the residuals",
         "With the spectrum of the torque. Peaks indicate resonances or gear meshing."),
        ("correlation", residual_autocorrelation(error, rate, names), "Autocorrelation of the residuals",
         "The correlation of filtered noise decays within a few samples."),
    )  # fmt: skip
    note = paragraph(f"Residuals of {s.log}. Pure noise shows none of the following patterns.")
    return Section("Residuals", join(note, tabs(*((n, figure_html(f, title, below)) for n, f, title, below in views))))


def friction_section(result: Identification) -> Section | None:
    """Build the friction figure of `result`; None if the model has no friction."""
    terms = result.model.terms
    if not any(t.potential(0.0) is None and not t.inertial for t in terms.terms):
        return None
    return Section(
        "Friction",
        figure_html(friction_figure(result), "Friction: model, and measured torque minus the rest of the model"),
    )


def friction_figure(result: Identification) -> Figure:
    """Draw friction of `result` over velocity: the model's, and measured torque minus the rest of the model."""
    s = shown_scores(result)[0]
    used = np.flatnonzero(result.robot.torque_used)
    points = friction_torque(result, s.q, s.dq)[:, used]
    speeds = np.linspace(s.dq.min(axis=0), s.dq.max(axis=0), 201)
    curve = friction_torque(result, np.zeros_like(speeds), speeds, steady=True)[:, used]
    names = [j.joint for j in s.joints]
    return friction_curve(
        s.dq[:, used], points + s.measured - s.predicted, speeds[:, used], curve, names, effort_units(result.robot)
    )


def files_section(result: Identification) -> Section | None:
    """Build the section on the robot files, one table each; None if `result` has no scored files."""
    if not result.files:
        return None
    logs = "the validation logs" if result.files[0].unseen else "the fitted logs"
    note = (
        "The sidecar, C code and FMU contain the full model. URDF and MJCF cannot store all terms, so a separate "
        "model was fitted for each of them to the same rows. Each file was written, read back by the named program, "
        f"and scored on {logs}. Errors are in per cent of the torque's standard deviation. The cost of a file is its "
        "error less that of the full model."
    )
    return Section("The files", join(paragraph(note), tabs(*((file.file, file_table(file)) for file in result.files))))


def file_table(file: FileScore) -> Html:
    """Build the table of a `file`, joint by joint: errors, omitted terms and stored numbers."""
    names = list(file.joints[0].numbers)
    rows: list[Sequence[TableCell]] = [
        (
            j.joint,
            Heat(j.nrmse_percent, error_level(j.nrmse_percent)),
            Heat(j.model_nrmse_percent, error_level(j.model_nrmse_percent)),
            j.cost_percent,
            ", ".join(j.left_out) or "nothing",
            *(j.numbers[name] for name in names),
        )
        for j in file.joints
    ]
    heads = ["joint", "file %", "full model %", "cost %", "omitted", *names]
    return join(paragraph(file.sentence), table_html(heads, rows, f"{file.file}, read by {file.program}"))
