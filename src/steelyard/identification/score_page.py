"""The sections of a report on predictions: how large errors are, the torques themselves, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from steelyard.assessment.pooled import TorqueError
from steelyard.assessment.score import JointScore, Score
from steelyard.friction.page import friction_curve
from steelyard.ground.numbers import number, percent
from steelyard.identification.identification import Identification
from steelyard.identification.parts import friction_torque, prediction_band, torque_parts
from steelyard.report.elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
)
from steelyard.report.html import Section
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.residuals import residual_autocorrelation, residual_map, residual_spectrum, residuals
from steelyard.report.plots.torque import torque_measured_predicted, torque_shares
from steelyard.robot.robot import Robot

# Logs whose torques are drawn; the others are in the table.
_MOST_DRAWN = 4
_DASH = "The torque does not vary; or the joint never moves, or never stands, in this log."


def effort_units(robot: Robot) -> list[str]:
    """One per joint of `robot` whose torque is used: N m for those that turn, N for those that slide."""
    return [j.effort_unit for j, used in zip(robot.joints, robot.torque_used, strict=True) if used]


def effort_unit(robot: Robot) -> str:
    """For the head of a column that holds all joints of `robot`."""
    return ", ".join(dict.fromkeys(effort_units(robot)))


def judged_scores(found: Identification) -> tuple[Score, ...]:
    """Of what was `found`: the scores on other logs, or where there are none on those that were fitted to."""
    return found.validation or found.identification


def scores_section(found: Identification) -> Section:
    """Errors of what was `found`, joint by joint and log by log, as one table in several measures."""
    unit, error = effort_unit(found.robot), found.torque_error
    together = (replace(found.judging_scores[0], log="together", joints=error.joints),) if len(error.logs) > 1 else ()
    groups = [
        (name, scores)
        for name, scores in (
            ("all logs that judge", together),
            ("not used for the fit", found.validation),
            ("used for the fit", found.identification),
            ("the description (nominal)", found.nominal),
        )
        if scores
    ]
    measures: list[tuple[str, str, Callable[[JointScore], float | None]]] = [
        (
            "moving",
            "root mean square error while the joint moves, % of the torque's standard deviation",
            lambda j: j.moving.get("nrmse_percent"),
        ),
        (
            "NRMSE",
            "root mean square error of all samples, % of the torque's standard deviation",
            lambda j: j.nrmse_percent,
        ),
        ("standing", "the same while the joint stands", lambda j: j.standing.get("nrmse_percent")),
        ("time standing", "% of the samples in which the joint stands", lambda j: 100.0 * j.standing.get("share", 0.0)),
        ("RMSE", f"root mean square error, {unit}", lambda j: j.rmse),
        ("RMSE, unfiltered", f"against the torque as it was measured, {unit}", lambda j: j.raw["rmse"]),
        (
            "of rms",
            "root mean square error, % of the torque's own root mean square",
            lambda j: j.relative_error_percent,
        ),
        ("R²", "1 less the squared error over the torque's variance", lambda j: j.r2),
    ]
    if not any(s.stands for _, scores in groups for s in scores):
        measures = [m for m in measures if m[0] not in ("moving", "standing", "time standing")]
    pieces = [(name, _heat(f"{name}: {what}", groups, of, name)) for name, what, of in measures]
    said = (
        f"Predicted against measured torque, both through a zero-phase Butterworth of order 4 at "
        f"{number(found.score_cutoff_hz, 3)} Hz. Cells are coloured by the error as a share of the torque's standard "
        "deviation (NRMSE). Where a joint stands, friction is whatever holds it, which no model can know: errors while "
        "it moves and while it stands are told apart. "
        f"{_headline(error)}"
    )
    return Section("How well it predicts", join(paragraph(said), tabs(*pieces)))


def _headline(error: TorqueError) -> str:
    """Say the figure of the verdict, with that of all samples beside it."""
    logs = "log that judges" if len(error.logs) == 1 else f"{len(error.logs)} logs that judge, all rows together"
    return (
        f"On the {logs}, the mean over joints is {error.moving_percent:.1f} % while they move, and "
        f"{error.all_percent:.1f} % of all samples."
    )


def _heat(
    title: str,
    groups: Sequence[tuple[str, Sequence[Score]]],
    of: Callable[[JointScore], float | None],
    name: str,
) -> Html:
    """A table of joints by logs; its last row has the means over joints."""
    scores = [s for _, some in groups for s in some]
    told = [[j.told for j in s.joints] for s in scores]
    heads = [TableColumn(s.log, places=4 if name == "R²" else None, digits=3) for s in scores]
    rows: list[Sequence[TableCell]] = [
        (joint.joint, *(Heat(of(column[k]), error_level(column[k].nrmse_percent)) for column in told))
        for k, joint in enumerate(scores[0].joints)
    ]
    if name in ("moving", "NRMSE"):
        moving = name == "moving"
        means = [
            float(np.mean([j.moving_nrmse_percent if moving else j.nrmse_percent for j in column])) for column in told
        ]
        rows.append(("mean of joints", *(Heat(m, error_level(m)) for m in means)))
    above = [("", 1), *((what, len(some)) for what, some in groups)]
    return table_html(["joint", *heads], rows, title, dash=_DASH, above=above)


def error_level(nrmse_percent: float) -> float:
    """The colour of an error, `nrmse_percent` of a torque's standard deviation: from 0, at 1 %, to 1, at all of it."""
    return float(np.clip(0.5 * np.log10(max(nrmse_percent, 1e-9)), 0.0, 1.0)) if np.isfinite(nrmse_percent) else 0.0


def torques_section(found: Identification) -> Section:
    """Torques of what was `found`, measured and predicted with its band, log by log; and what they are made of."""
    units, drawn = effort_units(found.robot), []
    for s in judged_scores(found)[:_MOST_DRAWN]:
        names, band = [j.joint for j in s.joints], prediction_band(found, s)
        figure = torque_measured_predicted(s.t, s.measured, s.predicted, names, units, band, s.standing, clock=s.log)
        inside = "" if band is None else _inside(np.abs(s.measured - s.predicted) <= band, names)
        caption = "Wide: predicted; thin, on top: measured. " + inside + " Grey: the joint stands."
        drawn.append((s.log, figure_html(figure, f"Torque measured and predicted: {s.log}", caption)))
    parts = torque_parts(found, judged_scores(found)[0])
    pieces = [tabs(*drawn)]
    if parts:
        names = [j.joint for j in judged_scores(found)[0].joints]
        about = (
            "Mean sizes by the model; parts may work against each other, so that shares are of the sum of their sizes."
        )
        pieces.append(figure_html(torque_shares(parts, names, units), "What the torque is made of", about))
    return Section("Torque", join(*pieces))


def _inside(inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], names: Sequence[str]) -> str:
    shares = np.mean(inside, axis=0)
    worst = int(np.argmin(shares))
    return (
        "The band is made for 95 of 100 samples. It has the errors of the parameters, what the model leaves of the "
        "fitted logs and how much that changes along them, and dry friction where a joint stands. "
        f"{percent(100.0 * float(np.mean(shares)), 3)} lie inside, of {names[worst]} "
        f"{percent(100.0 * float(shares[worst]), 3)}."
    )


def residuals_section(found: Identification) -> Section:
    """What the model that was `found` leaves of the first log that judges it, looked at in six ways."""
    s = judged_scores(found)[0]
    names, error, units = [j.joint for j in s.joints], s.measured - s.predicted, effort_units(found.robot)
    used = np.flatnonzero(found.robot.torque_used)
    rate = 1.0 / float(np.median(np.diff(s.t)))
    q, dq = s.q[:, used], s.dq[:, used]
    ways = (
        ("time", residuals(s.t, error, names, "time", units, clock=s.log), "Residuals over time",
         "Spikes at the moment of reversal are friction."),
        ("position × velocity", residual_map(q, dq, error, names, units), "Mean residual over position and velocity",
         "Orange: the measured torque is above the predicted, blue: below; full colour at twice the root mean square. "
         "Noise is a patchwork; whole regions of a colour are physics that the model lacks."),
        ("velocity", residuals(dq, error, names, "velocity", units), "Residuals over velocity",
         "A curve is friction that the model lacks."),
        ("position", residuals(q, error, names, "position", units), "Residuals over position",
         "A curve is gravity, cables or gears that the model lacks."),
        ("frequency", residual_spectrum(error, s.measured, rate, names, units), "Spectrum of the residuals",
         "Beside that of the torque. Peaks are resonances, or gears that mesh."),
        ("correlation", residual_autocorrelation(error, rate, names), "Autocorrelation of the residuals",
         "Noise, as the filter leaves it, is forgotten within a few samples."),
    )  # fmt: skip
    said = paragraph(f"What the model leaves of {s.log}; noise shows none of the following.")
    return Section("Residuals", join(said, tabs(*((n, figure_html(f, title, below)) for n, f, title, below in ways))))


def friction_section(found: Identification) -> Section | None:
    """Of what was `found`: the figure of its friction; None where the model has none."""
    terms = found.model.terms
    if not any(t.potential(0.0) is None and not t.inertial for t in terms.terms):
        return None
    return Section(
        "Friction", figure_html(friction_figure(found), "Friction: model, and what the rest of the model leaves")
    )


def friction_figure(found: Identification) -> Figure:
    """Of what was `found`: measured torque less the rest of the model, over velocity, beside the model's friction."""
    s = judged_scores(found)[0]
    used = np.flatnonzero(found.robot.torque_used)
    points = friction_torque(found, s.q, s.dq)[:, used]
    speeds = np.linspace(s.dq.min(axis=0), s.dq.max(axis=0), 201)
    curve = friction_torque(found, np.zeros_like(speeds), speeds, steady=True)[:, used]
    names = [j.joint for j in s.joints]
    return friction_curve(
        s.dq[:, used], points + s.measured - s.predicted, speeds[:, used], curve, names, effort_units(found.robot)
    )
