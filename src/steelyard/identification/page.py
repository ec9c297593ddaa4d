"""An identification as a page, a list of sections, each from results to HTML; and in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.assessment.score import JointScore, Score
from steelyard.check.page import checked
from steelyard.estimation.history_page import history_section
from steelyard.friction.page import friction_curve
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import Known, number
from steelyard.identification.identification import Identification
from steelyard.identification.parameters_page import (
    base_parameters_section,
    between_logs_section,
    effort_unit,
    effort_units,
    model_section,
    reduced,
    significance_sentence,
)
from steelyard.report.elements import (
    Html,
    TableCell,
    TableColumn,
    figure_html,
    join,
    paragraph,
    side_by_side,
    table_html,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.torque import residual_autocorrelation, residuals, torque_measured_predicted
from steelyard.report.terminal import bold, say, table


def identification_report(found: Identification) -> str:
    """The page of what was `found`, self-contained."""
    verdict = found.verdict
    history = found.free.parameter_history
    kind = {"good": "good", "usable": "warning", "poor": "bad"}[verdict.grade]
    sections: list[Section | None] = [
        _scores(found),
        checked(found.checks, found.singular_values),
        _torques(found),
        _residuals(found),
    ]
    sections += [
        _structure(found),
        _friction(found),
        base_parameters_section(found),
        between_logs_section(found),
        reduced(found),
        model_section(found),
        None if history is None else history_section(history),
        _how(found),
    ]
    return render_report(
        f"{found.robot.name}: identified model",
        [s for s in sections if s is not None],
        verdict=Verdict(kind, verdict.sentence, verdict.reasons),  # type: ignore[arg-type]
        subtitle=_subtitle(found),
    )


def _subtitle(found: Identification) -> str:
    used, judged = len(found.identification), len(found.validation)
    logs = f"{used} log{'s' if used > 1 else ''}"
    rest = f", judged on {judged} other{'s' if judged > 1 else ''}" if judged else ", not judged on others"
    return f"{found.base.rank} base parameters of {found.robot.dof} joints from {logs}{rest}"


def _judged(found: Identification) -> tuple[Score, ...]:
    return found.validation or found.identification


def _apart(s: Score, j: JointScore) -> tuple[float | None, ...]:
    """If a joint of `s` stands: the error of `j` moving and standing, in percent of the std, and how long it stands."""
    if not s.stands:
        return ()
    share = 100.0 * j.standing.get("share", 0.0)
    return (j.moving.get("nrmse_percent"), j.standing.get("nrmse_percent"), share)


def _scores(found: Identification) -> Section:
    unit = effort_unit(found.robot)

    def table(title: str, scores: Sequence[Score]) -> list[Html]:
        out = []
        for s in scores:
            rows: list[Sequence[TableCell]] = [
                (j.joint, j.rmse, j.nrmse_percent, j.r2, j.relative_error_percent, j.raw["rmse"], *_apart(s, j))
                for j in (joint.told for joint in s.joints)
            ]
            columns: list[TableColumn | str] = [
                "joint",
                TableColumn("RMSE", unit),
                TableColumn("of std", "%", digits=3),
                TableColumn("R²", places=4),
                TableColumn("of rms", "%", digits=3),
                TableColumn("RMSE, unfiltered", unit),
            ]
            if s.stands:
                columns += [TableColumn(name, "%", digits=3) for name in ("moving", "standing", "of the time")]
            heading = f"{title}: {s.log} ({s.samples:,} samples)"
            why = "The torque does not vary; or the joint never moves, or never stands."
            out.append(table_html(columns, rows, heading, dash=why))
        return out

    pieces = [
        paragraph(
            f"Predicted against measured torque, both through a zero-phase Butterworth of order 4 at "
            f"{number(found.score_cutoff_hz, 3)} Hz. The root mean square error is also given as a share of the "
            "torque's standard deviation (of std) and of its root mean square (of rms). Where a joint stands, friction "
            "is whatever holds it, which no model can know: errors while it moves and while it stands are told apart."
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
        figure = torque_measured_predicted(s.t, s.measured, s.predicted, names, effort_units(found.robot))
        figures.append(figure_html(figure, f"Torque measured and predicted: {s.log}"))
    return Section("Torque", join(*figures))


def _residuals(found: Identification) -> Section:
    s = _judged(found)[0]
    names, error = [j.joint for j in s.joints], s.measured - s.predicted
    used = np.flatnonzero(found.robot.torque_used)
    period = float(np.median(np.diff(s.t)))
    pieces = [
        paragraph(
            "What the model leaves. A curve over velocity is friction that it lacks, a curve over position gravity, "
            "cables or gears; spikes at the moment of reversal are friction too. Noise shows none of these."
        ),
        figure_html(residuals(s.t, error, names, "time", effort_units(found.robot)), f"Residuals over time: {s.log}"),
        side_by_side(
            figure_html(
                residuals(s.dq[:, used], error, names, "velocity", effort_units(found.robot)), "Residuals over velocity"
            ),
            figure_html(
                residuals(s.q[:, used], error, names, "position", effort_units(found.robot)), "Residuals over position"
            ),
        ),
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
    curve = _friction_torque(found, np.zeros_like(speeds), speeds, steady=True)[:, used]
    names = [j.joint for j in s.joints]
    figure = friction_curve(
        s.dq[:, used], points + s.measured - s.predicted, speeds[:, used], curve, names, effort_units(found.robot)
    )
    return Section("Friction", figure_html(figure, "Friction: model, and what the rest of the model leaves"))


def _friction_torque(found: Identification, q: Array, dq: Array, steady: bool = False) -> Array:
    """The torque of all terms that dissipate, along a motion or (`steady`) after a long one at each velocity."""
    model = found.model
    rubs = [False] * found.robot.inertial_count + model.terms.per_parameter(lambda term, _: term.dissipative)
    theta = np.where(rubs, model.theta, 0.0)
    still, past = np.zeros_like(q), None
    if model.remembers and steady:
        rigid = list(model.rigid_torque(q, dq, still).T)
        signals = model.terms.steady(list(q.T), list(dq.T), rigid)
        past = np.column_stack([np.broadcast_to(s, len(q)) for s in signals])
    elif model.remembers:
        past = model.dynamics.history(q, dq, still, model.theta)
    return model.dynamics.inverse_dynamics(q, dq, still, theta, past)


def _structure(found: Identification) -> Section | None:
    """What the search tried, gained and chose, joint by joint."""
    if found.structure is None:
        return None
    rows: list[Sequence[TableCell]] = [
        (s.joint, s.change, *(Known(x, s.doubt_percent) for x in (s.before_percent, s.after_percent)),
         s.doubt_percent, "taken" if s.taken else "left")
        for s in found.structure.steps
    ]  # fmt: skip
    words = (
        f"{found.structure.sentence} Errors are in per cent of a torque's standard deviation, on blocks of the "
        "identification logs that took no part in the fit; “=” takes the usual dry friction's place, “+” is added, “-” "
        "is taken away as idle. A term is taken where it gains more than its doubt (one standard error)."
    )
    heads = ["joint", "change", "error before", "after", "doubt", ""]
    return Section("Structure of friction and drives", join(paragraph(words), table_html(heads, rows)))


def _how(found: Identification) -> Section:
    s = found.settings
    rows: list[Sequence[TableCell]] = [
        ("scheme", s.scheme),
        ("estimator", s.estimator + (", physically possible" if s.physical else ", free")),
        ("prior", s.prior),
        ("cut-off of the fit", f"{number(found.cutoff_hz, 4)} Hz"),
        ("velocity", found.velocity),
        *([("structure", found.structure.sentence)] if found.structure is not None else []),
        ("result", found.estimate.result.value),
        *(("note", note) for note in found.estimate.notes),
    ]
    return Section("How it was done", table_html(["setting", "value"], rows))


def print_identification(found: Identification, console: Console, folder: str = "") -> None:
    """Scores and verdict of what was `found`, to `console`, and where to look: the run's `folder`, if there is one."""
    kind = "physically possible" if found.possible else "not physically possible"
    say(
        console,
        bold(found.robot.name),
        f": {found.base.rank} base parameters, condition number "
        f"{number(found.condition_number, 3)}, {kind}; "
        f"low-pass {number(found.cutoff_hz, 3)} Hz, velocity {found.velocity}\n",
    )
    if found.structure is not None:
        say(console, f"{found.structure.sentence}\n")
    for scores, title in ((found.validation, "not used for the fit"), (found.identification, "used for the fit")):
        for s in scores:
            rows = [
                [
                    j.joint,
                    number(j.rmse),
                    number(j.nrmse_percent, 3),
                    number(j.r2, 5),
                    number(j.relative_error_percent, 3),
                ]
                for j in (joint.told for joint in s.joints)
            ]
            columns = ["joint", "RMSE", "% of std", "R²", "relative %"]
            if s.stands:
                columns += ["moving %", "standing %", "of the time %"]
                rows = [
                    [*row, *("" if x is None else number(x, 3) for x in _apart(s, j.told))]
                    for row, j in zip(rows, s.joints, strict=True)
                ]
            console.print(
                table(f"{s.log} ({title}, scored at {number(s.cutoff_hz, 3)} Hz)", columns, rows, right=columns[1:])
            )
    say(console, bold(found.verdict.sentence))
    for reason in found.verdict.reasons:
        say(console, f" · {reason}")
    if found.reduced is not None:
        say(console, f" · {significance_sentence(found)}")
        gone = ", ".join(s.name for s in found.reduced.details["removals"].steps)
        if gone:
            what = "the free fit" if found.settings.physical else "the delivered model"
            say(console, f"   Taken away from {what}, in this order: {gone}.")
        if found.settings.physical:
            say(console, "   The delivered model is physically possible and keeps all of them.")
    for name, check in found.checks:
        say(console, f" · Check of {name}: {check.verdict}")
        for advice in check.advice:
            say(console, f"   {advice}")
    if folder:
        say(console, f"\nLook at {folder}/report.html; the model is in {folder}.")
