"""The report of an identification: a list of sections, each from results to HTML."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.assessment.score import Score
from steelyard.identify import Identification
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.report.elements import Cell, Column, Html, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.autocorrelation import residual_autocorrelation
from steelyard.report.plots.excitation import singular_values
from steelyard.report.plots.friction import friction_curve
from steelyard.report.plots.parameters import parameter_intervals
from steelyard.report.plots.residuals import residuals
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.robot.spatial import Array


def identification_report(found: Identification) -> str:
    """The page, self-contained."""
    verdict = found.verdict
    kind = {"good": "good", "usable": "warning", "poor": "bad"}[verdict.grade]
    sections = [_scores(found), _torques(found), _residuals(found), _friction(found)]
    sections += [_parameters(found), _links(found), _data(found), _how(found)]
    return render_report(
        f"{found.robot.name}: identified model",
        [s for s in sections if s is not None],
        verdict=Verdict(kind, verdict.sentence, verdict.reasons),  # type: ignore[arg-type]
        subtitle=f"{found.base.rank} base parameters from {len(found.identification)} log(s)",
    )


def _judged(found: Identification) -> tuple[Score, ...]:
    return found.validation or found.identification


def _units(found: Identification) -> list[str]:
    return [j.effort_unit for j, used in zip(found.robot.joints, found.robot.torque_used, strict=True) if used]


def _scores(found: Identification) -> Section:
    def table(title: str, scores: Sequence[Score]) -> list[Html]:
        out = []
        for s in scores:
            rows: list[Sequence[Cell]] = [
                (j.joint, j.rmse, j.nrmse_percent, j.r2, j.relative_error_percent, j.raw["rmse"]) for j in s.joints
            ]
            columns: list[Column | str] = [
                "joint",
                Column("RMSE", "N m, N"),
                Column("of std", "%", 3),
                Column("R²", "", 4),
                Column("relative", "%", 3),
                Column("RMSE, unfiltered", "N m, N"),
            ]
            out.append(table_html(columns, rows, f"{title}: {s.log} ({s.samples:,} samples)"))
        return out

    pieces = [
        paragraph(
            f"Predicted against measured torque, both through a zero-phase Butterworth of order 4 at "
            f"{found.score_cutoff:.3g} Hz; 'of std' is the error as a share of the torque's standard deviation."
        ),
        *table("Not used for the fit", found.validation),
        *table("Used for the fit", found.identification),
        *table("The description's own parameters", found.nominal),
    ]
    return Section("How well it predicts", join(*pieces))


def _torques(found: Identification) -> Section:
    figures = []
    for s in _judged(found):
        names = [j.joint for j in s.joints]
        figure = torque_measured_predicted(s.t, s.measured, s.predicted, names, _units(found))
        figures.append(figure_html(figure, f"Torque measured and predicted: {s.log}"))
    return Section("Torque", join(*figures))


def _residuals(found: Identification) -> Section:
    s = _judged(found)[0]
    names, error = [j.joint for j in s.joints], s.measured - s.predicted
    used = np.flatnonzero(found.robot.torque_used)
    period = float(np.median(np.diff(s.t)))
    pieces = [
        figure_html(residuals(s.t, error, names, "time", _units(found)), f"Residuals over time: {s.log}"),
        figure_html(residuals(s.dq[:, used], error, names, "velocity", _units(found)), "Residuals over velocity"),
        figure_html(residuals(s.q[:, used], error, names, "position", _units(found)), "Residuals over position"),
        figure_html(residual_autocorrelation(error, 1.0 / period, names), "Autocorrelation of the residuals"),
    ]
    return Section("Residuals", join(*pieces))


def _friction(found: Identification) -> Section | None:
    """Measured torque less the rest of the model, over velocity, beside the model's friction."""
    terms = found.model.terms
    if not any(t.potential(0.0) is None and not t.inertial for t in terms.terms):
        return None
    s = _judged(found)[0]
    used = np.flatnonzero(found.robot.torque_used)
    points = _friction_torque(found, s.q, s.dq)[:, used]
    speeds = np.linspace(s.dq.min(axis=0), s.dq.max(axis=0), 201)
    curve = _friction_torque(found, np.zeros_like(speeds), speeds)[:, used]
    names = [j.joint for j in s.joints]
    figure = friction_curve(
        s.dq[:, used], points + s.measured - s.predicted, speeds[:, used], curve, names, _units(found)
    )
    return Section("Friction", figure_html(figure, "Friction: model, and what the rest of the model leaves"))


def _friction_torque(found: Identification, q: Array, dq: Array) -> Array:
    """The torque of all terms that dissipate."""
    links = 10 * len(found.robot.links)
    theta = np.zeros_like(found.model.theta)
    column = links
    for term, _ in found.model.terms.placed:
        count = len(term.columns)
        if not term.inertial and term.potential(0.0) is None:
            theta[column : column + count] = found.model.theta[column : column + count]
        column += count
    return found.model.dynamics.inverse_dynamics(q, dq, np.zeros_like(q), theta)


def _parameters(found: Identification) -> Section:
    estimate, errors = found.estimate, found.estimate.standard_errors
    before = found.base.values(_nominal_theta(found)) if found.robot.has_inertia else None
    figure = parameter_intervals(found.base.names, found.base.units, estimate.beta, errors, before)
    rows: list[Sequence[Cell]] = [
        (
            found.base.formulas[k],
            found.base.units[k],
            float(estimate.beta[k]),
            float(errors[k]),
            float(found.free.beta[k]),
            None if before is None else float(before[k]),
        )
        for k in range(found.base.rank)
    ]
    columns = ["base parameter", "unit", "value", "standard error", "free fit", "description"]
    return Section(
        "Parameters",
        join(
            paragraph(
                f"Condition number {found.condition_number:.3g} of the base columns (rows weighted by the joints' "
                "noise, columns scaled to unit norm). Intervals are 95 %, for residuals as correlated as they are."
            ),
            table_html(columns, rows),
            figure_html(figure, "Base parameters: before (description) and after, with 95 % intervals"),
        ),
    )


def _nominal_theta(found: Identification) -> Array:
    """The description's inertias; zero for the terms, of which it says nothing in this model's columns."""
    return np.concatenate([found.robot.inertial_parameters, np.zeros(len(found.model.terms))])


def _links(found: Identification) -> Section:
    links = 10 * len(found.robot.links)
    blocks = found.model.theta[:links].reshape(-1, 10)
    eigenvalues = smallest_pseudo_eigenvalues(found.model.theta[:links])
    rows: list[Sequence[Cell]] = []
    for link, p, e in zip(found.robot.links, blocks, eigenvalues, strict=True):
        com = p[1:4] / p[0] if p[0] > 0.0 else np.full(3, np.nan)
        place = ", ".join(f"{x:.3g}" for x in com)
        rows.append((link.name, float(p[0]), place, float(p[4]), float(p[6]), float(p[9]), bool(e > 0.0)))
    columns: list[Column | str] = ["link", Column("mass", "kg"), Column("centre of mass", "m"), Column("Ixx", "kg m²")]
    columns += [Column("Iyy", "kg m²"), Column("Izz", "kg m²"), "possible"]
    terms: list[Sequence[Cell]] = [
        (p.name, p.unit, float(v)) for p, v in zip(found.model.terms.parameters, found.model.theta[links:], strict=True)
    ]
    return Section(
        "The model",
        join(
            paragraph("One of the many sets of link parameters that have the base parameters above."),
            table_html(columns, rows, "Links, about their own frames"),
            table_html(["term", "unit", "value"], terms, "Joint terms"),
        ),
    )


def _data(found: Identification) -> Section:
    """What reading the logs brought to light, and how well the motion shows the parameters."""
    rows: list[Sequence[Cell]] = [(log, f.kind.replace("_", " "), f.message) for log, f in found.findings]
    said = table_html(["log", "finding", "what"], rows) if rows else paragraph("The clocks and channels are clean.")
    figure = singular_values(found.singular_values, "base columns, weighted by the joints' noise, unit columns")
    shown = sorted(zip(found.estimate.standard_errors / _sizes(found), found.base.formulas, strict=True), reverse=True)
    columns: list[Column | str] = ["base parameter", Column("standard error", "% of value", 3)]
    weak: list[Sequence[Cell]] = [(formula, 100.0 * float(share)) for share, formula in shown[:10]]
    return Section(
        "Data and excitation",
        join(
            said,
            figure_html(figure, "Excitation: singular values"),
            table_html(columns, weak, "What this motion shows least"),
        ),
    )


def _sizes(found: Identification) -> Array:
    return np.maximum(np.abs(found.estimate.beta), 1e-9)


def _how(found: Identification) -> Section:
    s = found.settings
    rows: list[Sequence[Cell]] = [
        ("scheme", s.scheme),
        ("estimator", s.estimator + (", physically consistent" if s.physical else ", free")),
        ("prior", s.prior),
        ("cut-off of the fit", f"{found.cutoff:.4g} Hz"),
        ("velocity", found.velocity),
        ("result", found.estimate.result.value),
        *(("note", note) for note in found.estimate.notes),
    ]
    return Section("How it was done", table_html(["setting", "value"], rows))
