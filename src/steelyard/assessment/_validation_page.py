"""Presents a validation on the terminal and as an HTML page."""

from __future__ import annotations

from rich.console import Console

from steelyard.assessment.model_validation import ModelValidation, Swept, Trial
from steelyard.assessment.score import Score
from steelyard.errors import UnknownNameError
from steelyard.ground.numbers import DASH, number
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import SERIES, Figure
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import bold, say, table
from steelyard.robot.robot import Robot

# Number of parameters of a sweep on the terminal; the page shows all.
_SHOWN = 10
_SWEEP_HEADS = {"closed_loop_percent": "closed loop [%]", "open_loop_percent": "open loop [%]"}
_MEANINGS = {
    "torque prediction": "the model's torque along the motion",
    "open loop": "the model driven by the torques",
    "feed-forward": "the plant under a PD controller with the model as feed-forward",
    "computed torque": "the plant under computed torque with the model",
}


_RELATIVE = "Relative errors: RSD (0 is perfect), agreement index (1 is perfect)"


def print_validation(validation: ModelValidation, out: Console, folder: str = "") -> None:
    """Print a validation.

    Args:
        validation: The validation.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    joints = list(validation.model.robot.joint_names)
    for warning in validation.warnings:
        say(out, bold(f"! {warning}"))
    for trial in validation.trials:
        rows = [
            [way.name, way.unit, *(number(x) for x in way.errors or [None] * len(joints)), way.reason]
            for way in trial.ways
        ]
        title = f"{validation.model.robot.name} against {validation.against}: {trial.name}, RMS errors"
        out.print(table(title, ["test", "unit", *joints, ""], rows, right=joints))
        relative = [row for row in validation.relative_rows() if row[0] == trial.name]
        shown = [[way, measure, *(number(x, 3) for x in values)] for _, way, measure, *values in relative]
        if shown:
            out.print(table(_RELATIVE, ["test", "measure", *joints], shown, right=joints))
    if validation.swept is not None:
        _print_swept(validation.swept, out)
    if folder:
        say(out, f"Report: {folder}/report.html.")


def _print_swept(swept: Swept, out: Console) -> None:
    rows = swept.rows
    keys = [key for key in _SWEEP_HEADS if key in rows[0]]
    shown = [[r["name"], *(number(r[key], 3) for key in keys)] for r in rows[:_SHOWN]]
    heads = [_SWEEP_HEADS[key] for key in keys]
    out.print(table(_swept_title(swept), ["base parameter", *heads], shown, right=heads))
    if any(DASH in row for row in shown):
        say(out, f"{DASH} {_DIVERGED}")
    if len(rows) > _SHOWN:
        say(out, f"{len(rows) - _SHOWN} more parameters have less influence.")


_DIVERGED = "With this parameter changed the simulation diverges, or the robot is physically impossible."


def _swept_title(swept: Swept) -> str:
    return f"Effect of a parameter change of ±{100.0 * swept.share:g} % on the positions of the worst joint"


def validation_report(validation: ModelValidation) -> str:
    """Build the HTML page of a validation, `validation`."""
    sections = [Section(_title(validation, trial), _trial(validation, trial)) for trial in validation.trials]
    if validation.swept is not None:
        sections.append(Section("Influence of each parameter", _swept(validation.swept)))
    headline = "The model passed all tests." if not validation.warnings else "See the warnings first."
    headline = (
        headline if validation.trials or validation.warnings else "The model is physically possible; no test was run."
    )
    return render_report(
        f"{validation.model.robot.name}: validation",
        sections,
        subtitle=f"Compared with {validation.against}.",
        verdict=Verdict("warning" if validation.warnings else "good", headline, validation.warnings),
    )


def _title(validation: ModelValidation, trial: Trial) -> str:
    return f"Errors: {trial.name}" if len(validation.trials) > 1 else "Errors"


def _trial(validation: ModelValidation, trial: Trial) -> Html:
    robot = validation.model.robot
    rows: list[list[TableCell]] = [
        [way.name, next((text for name, text in _MEANINGS.items() if way.name.startswith(name)), ""), way.unit,
         *(way.errors or [None] * robot.dof)]
        for way in trial.ways
    ]  # fmt: skip
    reasons = " ".join(f"{way.name}: {way.reason}" for way in trial.ways if way.reason)
    heads: list[TableColumn | str] = ["test", "meaning", "unit", *(TableColumn(j) for j in robot.joint_names)]
    pieces = [table_html(heads, rows, "RMS errors", reasons or "The joint's torque is not used.")]
    relative: list[list[TableCell]] = [row[1:] for row in validation.relative_rows() if row[0] == trial.name]
    if relative:
        heads = ["test", "measure", *(TableColumn(j, digits=3) for j in robot.joint_names)]
        pieces.append(table_html(heads, relative, _RELATIVE, "The torque is not used, or the signal is constant."))
    if trial.score is not None:
        score, used = trial.score, [k for k, use in enumerate(robot.torque_used) if use]
        columns: list[TableColumn | str] = [
            "joint", TableColumn("RMSE"), "unit", TableColumn("NRMSE", "%", digits=3), TableColumn("R²", digits=3),
        ]  # fmt: skip
        scores: list[list[TableCell]] = [
            [joint.joint, joint.rmse, robot.joints[k].effort_unit, joint.nrmse_percent, joint.r2]
            for joint, k in zip((x.for_display for x in score.joints), used, strict=True)
        ]
        caption = f"Torque prediction below {number(score.cutoff_hz, 3)} Hz"
        pieces += [
            table_html(columns, scores, caption, dash="The torque is constant."),
            figure_html(_torques(score, robot), "Measured and predicted torque"),
        ]
    return join(*pieces)


def _swept(swept: Swept) -> Html:
    rows = swept.rows
    keys = [key for key in _SWEEP_HEADS if key in rows[0]]
    heads: list[TableColumn | str] = ["base parameter", *(TableColumn(_SWEEP_HEADS[key], digits=3) for key in keys)]
    cells: list[list[TableCell]] = [[r["name"], *(r[key] for key in keys)] for r in rows]
    figure = Figure(150 + 16 * len(rows) * len(keys))
    for colour, key in zip(SERIES, keys, strict=False):
        figure.add(
            "bar", x=[r[key] for r in rows], y=[r["name"] for r in rows], orientation="h", name=_SWEEP_HEADS[key],
            marker={"color": colour}, hovertemplate="%{y}: %{x:.3g} %",
        )  # fmt: skip
    figure.x_axis(title="change of the positions [% of their RMS]", type="log", exponentformat="power")
    figure.y_axis(autorange="reversed", dtick=1)
    open_loop = (
        f"Open loop: {swept.horizon:g} s under the model's torques of the motion."
        if swept.free
        else "Open loop: not available, because the simulation of the model diverges."
    )
    note = (
        "RMS change of a joint's position, divided by its RMS position. Closed loop: a PD controller with the "
        f"unchanged model as feed-forward, which hides much of the change. {open_loop}"
    )
    return join(
        paragraph(f"{_swept_title(swept)}. The first parameters must be identified best."),
        callout("note", note),
        figure_html(figure, "Parameters by influence"),
        table_html(heads, cells, "All parameters", _DIVERGED),
    )


def _torques(score: Score, robot: Robot) -> Figure:
    names = [joint.joint for joint in score.joints]
    units = [robot.joints[robot.joint_index(name)].effort_unit for name in names]
    return torque_measured_predicted(score.t, score.measured, score.predicted, names, units)


def torque_figure(validation: ModelValidation, log: str = "") -> Figure:
    """Draw measured and predicted torque.

    Args:
        validation: The validation.
        log: Name of the log; default: the first.
    """
    scores = {trial.name: trial.score for trial in validation.trials if trial.score is not None}
    if log and log not in scores:
        raise UnknownNameError("log", log, scores)
    return _torques(scores[log] if log else next(iter(scores.values())), validation.model.robot)
