"""An identification at a prompt and in a notebook: its tables as columns, its figures one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.assessment.columns import score_columns, signal_columns
from steelyard.assessment.score import Score
from steelyard.errors import UnknownNameError
from steelyard.ground.displayed import Glance, NamedColumns
from steelyard.identification.identification import Identification

if TYPE_CHECKING:
    from steelyard.report.plots import Figure

_KINDS: dict[str, Any] = {"good": "good", "usable": "warning", "poor": "bad"}


def identification_glance(found: Identification) -> Glance:
    """What was `found`, in a sentence: the robot, how many parameters, how far off, and the verdict."""
    verdict = found.verdict
    return Glance(_KINDS[verdict.grade], f"{found.robot.name}. {verdict.sentence}", verdict.reasons)


def identification_tables(found: Identification) -> Mapping[str, Callable[[], NamedColumns]]:
    """Base parameters with error bars, all parameters of the model, scores, and signals of what was `found`."""
    scores = [("judged by", s) for s in found.validation] + [("fitted", s) for s in found.identification]
    scores += [("description", s) for s in found.nominal]
    return {
        "parameters": partial(_parameters, found),
        "model": partial(_model, found),
        "scores": partial(score_columns, scores, {j.name: j.effort_unit for j in found.robot.joints}),
        "signals": partial(signal_columns, found.validation or found.identification, found.robot.joint_names),
    }


def _parameters(found: Identification) -> NamedColumns:
    base, estimate = found.base, found.estimate
    half = 1.96 * estimate.standard_errors
    return {
        "name": base.names,
        "formula": base.formulas,
        "unit": base.units,
        "value": estimate.beta,
        "standard_error": estimate.standard_errors,
        "low_95": estimate.beta - half,
        "high_95": estimate.beta + half,
    }


def _model(found: Identification) -> NamedColumns:
    classes = [*found.base.classes, *["known"] * (len(found.model.theta) - len(found.base.classes))]
    every = found.model.dynamics.parameters
    return {
        "name": [p.name for p in every],
        "unit": [p.unit for p in every],
        "value": found.model.theta,
        "class": classes,
    }


def identification_figures(found: Identification) -> Mapping[str, Callable[..., Any]]:
    """The figures of the report of what was `found`."""
    return {
        "torque": partial(_torque, found),
        "residuals": partial(_residuals, found),
        "friction": partial(_friction, found),
        "parameters": partial(_intervals, found),
        "correlation": partial(_correlation, found),
        "singular_values": partial(_singular_values, found),
    }


def _score(found: Identification, log: str) -> Score:
    """The score on the log of that name; "": the first that judges."""
    every = {s.log: s for s in (*found.identification, *found.validation)}
    if log and log not in every:
        raise UnknownNameError("log", log, every)
    return every[log] if log else (found.validation or found.identification)[0]


def _torque(found: Identification, log: str = "") -> Figure:
    """Torque measured and predicted, with its band, of the log of that name (default: the first that judges)."""
    from steelyard.identification.parts import prediction_band
    from steelyard.identification.score_page import effort_units
    from steelyard.report.plots.torque import torque_measured_predicted

    s = _score(found, log)
    names, band = [j.joint for j in s.joints], prediction_band(found, s)
    units = effort_units(found.robot)
    return torque_measured_predicted(s.t, s.measured, s.predicted, names, units, band, s.standing)


def _residuals(found: Identification, over: str = "time", log: str = "") -> Figure:
    """What the model leaves, over "time", "velocity", "position", "frequency" or "correlation", of one log."""
    from steelyard.identification.score_page import effort_units
    from steelyard.report.plots.residuals import residual_autocorrelation, residual_spectrum, residuals

    s = _score(found, log)
    used = np.flatnonzero(found.robot.torque_used)
    left, names, units = s.measured - s.predicted, [j.joint for j in s.joints], effort_units(found.robot)
    across = {"time": s.t, "velocity": s.dq[:, used], "position": s.q[:, used]}
    rate = 1.0 / float(np.median(np.diff(s.t)))
    if over == "frequency":
        return residual_spectrum(left, s.measured, rate, names, units)
    if over == "correlation":
        return residual_autocorrelation(left, rate, names)
    if over not in across:
        raise UnknownNameError("axis", over, (*across, "frequency", "correlation"))
    return residuals(across[over], left, names, over, units)  # type: ignore[arg-type]


def _friction(found: Identification) -> Figure:
    """Friction over velocity: the model's, and what the rest of the model leaves."""
    from steelyard.identification.score_page import friction_figure

    return friction_figure(found)


def _intervals(found: Identification) -> Figure:
    """Base parameters with 95 % intervals, beside the description's where it has any."""
    from steelyard.identification.parameters_page import described_base
    from steelyard.report.plots.estimates import parameter_intervals

    errors = found.estimate.standard_errors
    before = described_base(found)
    return parameter_intervals(found.base.names, found.base.units, found.estimate.beta, errors, before, "nominal")


def _correlation(found: Identification) -> Figure:
    """Correlation of the parameters' errors."""
    from steelyard.report.plots.estimates import correlations

    return correlations(found.base.names, found.estimate.covariance)


def _singular_values(found: Identification) -> Figure:
    """Singular values of the base columns: how much the motion shows of what."""
    from steelyard.report.plots.estimates import singular_values

    return singular_values(found.singular_values, "1")
