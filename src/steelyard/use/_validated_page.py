"""How a model did, for the terminal and as a page."""

from __future__ import annotations

from rich.console import Console

from steelyard.assessment.score import Score
from steelyard.errors import UnknownNameError
from steelyard.ground.numbers import DASH, number
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import SERIES, Figure
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import bold, say, table
from steelyard.robot.robot import Robot
from steelyard.use.validated import Swept, Trial, Validated

# Parameters of a sweep that a terminal shows; the page has all.
_SHOWN = 10
_SWEPT_HEADS = {"closed_loop_percent": "in the loop [%]", "open_loop_percent": "open loop [%]"}
_MEANT = {
    "torque prediction": "the model's torque along the motion",
    "open loop": "the torques played to the model",
    "feed-forward": "the model beside a PD controller, on the plant",
    "computed torque": "the model in the controller, on the plant",
}


_RELATIVE = "As a share of the signal: RSD (0 is perfect), agreement index (1 is perfect)"


def print_validated(found: Validated, out: Console, folder: str = "") -> None:
    """What was `found` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    joints = list(found.model.robot.joint_names)
    for warning in found.warnings:
        say(out, bold(f"! {warning}"))
    for trial in found.trials:
        rows = [
            [way.name, way.unit, *(number(x) for x in way.errors or [None] * len(joints)), way.reason]
            for way in trial.ways
        ]
        title = f"{found.model.robot.name} against {found.against}: {trial.name}, RMS errors"
        out.print(table(title, ["way", "unit", *joints, ""], rows, right=joints))
        relative = [row for row in found.relative_rows() if row[0] == trial.name]
        shown = [[way, what, *(number(x, 3) for x in figures)] for _, way, what, *figures in relative]
        if shown:
            out.print(table(_RELATIVE, ["way", "measure", *joints], shown, right=joints))
    if found.swept is not None:
        _print_swept(found.swept, out)
    if folder:
        say(out, f"Look at {folder}/report.html.")


def _print_swept(swept: Swept, out: Console) -> None:
    rows = swept.rows
    keys = [key for key in _SWEPT_HEADS if key in rows[0]]
    shown = [[r["name"], *(number(r[key], 3) for key in keys)] for r in rows[:_SHOWN]]
    heads = [_SWEPT_HEADS[key] for key in keys]
    out.print(table(_swept_title(swept), ["base parameter", *heads], shown, right=heads))
    if any(DASH in row for row in shown):
        say(out, f"{DASH} {_RAN_AWAY}")
    if len(rows) > _SHOWN:
        say(out, f"{len(rows) - _SHOWN} more move it less.")


_RAN_AWAY = "A robot with this parameter changed ran away, or cannot exist."


def _swept_title(swept: Swept) -> str:
    return f"What ±{100.0 * swept.share:g} % of a parameter do to the positions, of the worst joint"


def validated_report(found: Validated) -> str:
    """The page of what was `found`, self-contained."""
    sections = [Section(_title(found, trial), _trial(found, trial)) for trial in found.trials]
    if found.swept is not None:
        sections.append(Section("What each parameter does", _swept(found.swept)))
    headline = "The model came through in every way." if not found.warnings else "Look at the warnings first."
    headline = headline if found.trials or found.warnings else "The model can exist; nothing judged it here."
    return render_report(
        f"{found.model.robot.name}: validation",
        sections,
        subtitle=f"Judged against {found.against}.",
        verdict=Verdict("warning" if found.warnings else "good", headline, found.warnings),
    )


def _title(found: Validated, trial: Trial) -> str:
    return f"Errors: {trial.name}" if len(found.trials) > 1 else "Errors"


def _trial(found: Validated, trial: Trial) -> Html:
    robot = found.model.robot
    rows: list[list[TableCell]] = [
        [way.name, next((said for name, said in _MEANT.items() if way.name.startswith(name)), ""), way.unit,
         *(way.errors or [None] * robot.dof)]
        for way in trial.ways
    ]  # fmt: skip
    reasons = " ".join(f"{way.name}: {way.reason}" for way in trial.ways if way.reason)
    heads: list[TableColumn | str] = ["way", "what it looks at", "unit", *(TableColumn(j) for j in robot.joint_names)]
    pieces = [table_html(heads, rows, "Root mean square errors", reasons or "The joint's torque is not used.")]
    relative: list[list[TableCell]] = [row[1:] for row in found.relative_rows() if row[0] == trial.name]
    if relative:
        measured: list[TableColumn | str] = ["way", "measure", *(TableColumn(j, digits=3) for j in robot.joint_names)]
        pieces.append(table_html(measured, relative, _RELATIVE, "The torque is not used, or the signal does not vary."))
    if trial.score is not None:
        score, used = trial.score, [k for k, counts in enumerate(robot.torque_used) if counts]
        columns: list[TableColumn | str] = [
            "joint", TableColumn("RMSE"), "unit", TableColumn("NRMSE", "%", digits=3), TableColumn("R²", digits=3),
        ]  # fmt: skip
        figures: list[list[TableCell]] = [
            [joint.joint, joint.rmse, robot.joints[k].effort_unit, joint.nrmse_percent, joint.r2]
            for joint, k in zip((x.told for x in score.joints), used, strict=True)
        ]
        below = f"Torque prediction below {number(score.cutoff_hz, 3)} Hz"
        drawn = _torques(score, robot)
        pieces += [
            table_html(columns, figures, below, dash="The torque does not vary."),
            figure_html(drawn, "Measured and predicted torque"),
        ]
    return join(*pieces)


def _swept(swept: Swept) -> Html:
    rows = swept.rows
    keys = [key for key in _SWEPT_HEADS if key in rows[0]]
    heads: list[TableColumn | str] = ["base parameter", *(TableColumn(_SWEPT_HEADS[key], digits=3) for key in keys)]
    cells: list[list[TableCell]] = [[r["name"], *(r[key] for key in keys)] for r in rows]
    figure = Figure(150 + 16 * len(rows) * len(keys))
    for colour, key in zip(SERIES, keys, strict=False):
        figure.add(
            "bar", x=[r[key] for r in rows], y=[r["name"] for r in rows], orientation="h", name=_SWEPT_HEADS[key],
            marker={"color": colour}, hovertemplate="%{y}: %{x:.3g} %",
        )  # fmt: skip
    figure.x_axis(title="change of the positions [% of their RMS]", type="log", exponentformat="power")
    figure.y_axis(autorange="reversed", dtick=1)
    free = f"open loop for {swept.horizon:g} s under the model's torques of the motion" if swept.free else ""
    explained = "in the loop of a PD controller with the model's own feed-forward, which hides much of it"
    missing = "" if swept.free else "; open loop the model itself does not come through"
    note = callout("note", f"A joint's RMS change over its RMS position: {explained}{free and '; ' + free}{missing}.")
    return join(
        paragraph(f"{_swept_title(swept)}. What comes first must be known best."),
        note,
        figure_html(figure, "Parameters by what they do"),
        table_html(heads, cells, "All parameters", _RAN_AWAY),
    )


def _torques(score: Score, robot: Robot) -> Figure:
    names = [joint.joint for joint in score.joints]
    units = [robot.joints[robot.joint_index(name)].effort_unit for name in names]
    return torque_measured_predicted(score.t, score.measured, score.predicted, names, units)


def torque_figure(found: Validated, log: str = "") -> Figure:
    """Torque measured and predicted of what was `found` on the `log` of that name; default: the first."""
    scores = {trial.name: trial.score for trial in found.trials if trial.score is not None}
    if log and log not in scores:
        raise UnknownNameError("log", log, scores)
    return _torques(scores[log] if log else next(iter(scores.values())), found.model.robot)
