"""Presents an identification at the Python prompt and in notebooks: summary, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.assessment.columns import score_columns, signal_columns
from steelyard.assessment.score import Score
from steelyard.errors import UnknownNameError
from steelyard.ground.display import Headline, NamedColumns
from steelyard.ground.grades import tone
from steelyard.identification.identification import Identification
from steelyard.identification.parameter_table import BASE_PARAMETERS, base_rows

if TYPE_CHECKING:
    from steelyard.report.plots import Figure


def identification_headline(result: Identification) -> Headline:
    """Summarize `result`: robot, verdict and reasons."""
    verdict = result.verdict
    return Headline(tone(verdict.grade), f"{result.robot.name}. {verdict.sentence}", verdict.reasons)


def identification_tables(result: Identification) -> Mapping[str, Callable[[], NamedColumns]]:
    """Return the tables of `result`: base parameters with error bars, model parameters, scores and signals."""
    scores = [("judged by", s) for s in result.validation] + [("fitted", s) for s in result.identification]
    scores += [("description", s) for s in result.nominal]
    return {
        "parameters": lambda: BASE_PARAMETERS.frame(base_rows(result)),
        "model": partial(_model, result),
        "scores": partial(score_columns, scores, {j.name: j.effort_unit for j in result.robot.joints}),
        "signals": partial(signal_columns, result.validation or result.identification, result.robot.joint_names),
    }


def _model(result: Identification) -> NamedColumns:
    classes = [*result.base.classes, *["known"] * (len(result.model.theta) - len(result.base.classes))]
    parameters = result.model.dynamics.parameters
    return {
        "name": [p.name for p in parameters],
        "unit": [p.unit for p in parameters],
        "value": result.model.theta,
        "class": classes,
    }


def identification_figures(result: Identification) -> Mapping[str, Callable[..., Any]]:
    """Return the figures of the report of `result`, by name."""
    return {
        "torque": partial(_torque, result),
        "residuals": partial(_residuals, result),
        "friction": partial(_friction, result),
        "parameters": partial(_intervals, result),
        "correlation": partial(_correlation, result),
        "singular_values": partial(_singular_values, result),
    }


def _score(result: Identification, log: str) -> Score:
    """Return the score of a log by name; "" means the first validation log."""
    scores = {s.log: s for s in (*result.identification, *result.validation)}
    if log and log not in scores:
        raise UnknownNameError("log", log, scores)
    return scores[log] if log else (result.validation or result.identification)[0]


def _torque(result: Identification, log: str = "") -> Figure:
    """Draw measured and predicted torque of a log with its band (default: the first validation log)."""
    from steelyard.identification.score_page import effort_units
    from steelyard.identification.torque_parts import prediction_band
    from steelyard.report.plots.torque import torque_measured_predicted

    s = _score(result, log)
    names, band = [j.joint for j in s.joints], prediction_band(result, s)
    units = effort_units(result.robot)
    return torque_measured_predicted(s.t, s.measured, s.predicted, names, units, band, s.standing)


def _residuals(result: Identification, over: str = "time", log: str = "") -> Figure:
    """Draw the residuals of a log over "time", "velocity", "position", "frequency" or "correlation"."""
    from steelyard.identification.score_page import effort_units
    from steelyard.report.plots.residuals import residual_autocorrelation, residual_spectrum, residuals

    s = _score(result, log)
    used = np.flatnonzero(result.robot.torque_used)
    left, names, units = s.measured - s.predicted, [j.joint for j in s.joints], effort_units(result.robot)
    across = {"time": s.t, "velocity": s.dq[:, used], "position": s.q[:, used]}
    rate = 1.0 / float(np.median(np.diff(s.t)))
    if over == "frequency":
        return residual_spectrum(left, s.measured, rate, names, units)
    if over == "correlation":
        return residual_autocorrelation(left, rate, names)
    if over not in across:
        raise UnknownNameError("axis", over, (*across, "frequency", "correlation"))
    return residuals(across[over], left, names, over, units)  # type: ignore[arg-type]


def _friction(result: Identification) -> Figure:
    """Draw friction over velocity: the model's, and measured torque minus the rest of the model."""
    from steelyard.identification.score_page import friction_figure

    return friction_figure(result)


def _intervals(result: Identification) -> Figure:
    """Draw base parameters with 95 % intervals and the values of the robot description."""
    from steelyard.identification.parameters_page import described_base
    from steelyard.report.plots.estimates import parameter_intervals

    errors = result.estimate.standard_errors
    before = described_base(result)
    return parameter_intervals(result.base.names, result.base.units, result.estimate.beta, errors, before, "nominal")


def _correlation(result: Identification) -> Figure:
    """Draw the correlations of the parameter errors."""
    from steelyard.report.plots.estimates import correlations

    return correlations(result.base.names, result.estimate.covariance)


def _singular_values(result: Identification) -> Figure:
    """Draw the singular values of the base columns, which show how well the motion excites them."""
    from steelyard.report.plots.estimates import singular_values

    return singular_values(result.singular_values, "1")
