"""The actuator card: one page with the log, the split, the errors, the parameters, the rollouts and all files."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from steelyard.actuators.drive_model import DRIVE_KINDS, DRIVE_PARAMETERS
from steelyard.actuators.simulator_drive import SIMULATOR_NUMBERS
from steelyard.ground.grades import Tone
from steelyard.ground.numbers import number
from steelyard.report import (
    Html,
    Line,
    Panel,
    Section,
    TableCell,
    TableColumn,
    Verdict,
    callout,
    figure_html,
    join,
    line_panels,
    paragraph,
    render_report,
    table_html,
    tabs,
    whisker,
)

if TYPE_CHECKING:
    from steelyard.actuators.actuator_identification import ActuatorIdentification, RunError
    from steelyard.actuators.command_log import CommandLog
    from steelyard.actuators.deliver_drive import DeliveredDrive
    from steelyard.actuators.drive_model import DriveModel

# Limit of the number of tabs; the table lists all runs.
_MOST_FIGURES = 12
_MRAD = 1e3


def actuator_card(result: ActuatorIdentification, delivered: DeliveredDrive | None = None) -> str:
    """Return the page of an identified drive, self-contained.

    Args:
        result: Identified drive.
        delivered: Its files for simulators; None omits this section.
    """
    model = result.model
    sections = [
        Section("Measured and predicted positions", _rollouts(result)),
        Section("Log and split", _runs(result)),
        Section("Parameters", _parameters(model)),
    ]
    if result.structures:
        sections.append(Section("Candidate structures", _structures(result)))
    if result.inseparable:
        sections.append(Section("Parameters that these logs cannot separate", _inseparable(result)))
    if delivered is not None:
        sections.append(Section("For simulators", _simulators(delivered)))
    title = f"Actuator card: {model.name}"
    subtitle = f"{model.kind} drive, friction {model.friction}; {len(result.logs)} runs in the fit"
    return render_report(title, sections, verdict=drive_verdict(result), subtitle=subtitle)


def drive_verdict(result: ActuatorIdentification) -> Verdict:
    """Judge a `result` by held-out runs, left-out runs, or else the runs of the fit."""
    holdout_error = result.error("hold-out")
    fold_errors = [r.left_out_error for r in result.runs if math.isfinite(r.left_out_error)]
    points = [f"Rollouts of the runs of the fit: {_mrad(result.error('fit'))} mrad."]
    if fold_errors:
        points.append(f"Rollouts of left-out runs: {_mrad(float(np.mean(fold_errors)))} mrad on average.")
    if math.isfinite(holdout_error):
        points.append(f"Held-out runs, which the fit did not use: {_mrad(holdout_error)} mrad.")
    odd = [r for r in result.runs if not r.predictable]
    points += [f"Run '{r.name}' is not predictable from the others: {r.reason}" for r in odd]
    points += list(result.notes)
    goal = _weighted(result.runs, "goal_error")
    judged = (
        holdout_error
        if math.isfinite(holdout_error)
        else float(np.mean(fold_errors))
        if fold_errors
        else result.error("fit")
    )
    if math.isfinite(goal) and judged >= goal:
        points.insert(0, "Check units and signs of goal, position and duty, the gains, the load and its rest angle.")
        return Verdict("bad", "The drive predicts its logs no better than the goal itself.", tuple(points))
    kind: Tone = "warning" if odd or not (fold_errors or math.isfinite(holdout_error)) else "good"
    where = (
        "held-out runs" if math.isfinite(holdout_error) else "left-out runs" if fold_errors else "the runs of the fit"
    )
    return Verdict(kind, f"The drive predicts the positions of {where} to {_mrad(judged)} mrad.", tuple(points))


def _mrad(value: float) -> str:
    return number(_MRAD * value, 3)


def _weighted(runs: Sequence[RunError], name: str) -> float:
    values = [getattr(r, name) for r in runs if math.isfinite(getattr(r, name))]
    return float(np.mean(values)) if values else math.nan


def _runs(result: ActuatorIdentification) -> Html:
    logs = {log.name: log for log in result.all_logs}
    rows: list[Sequence[TableCell]] = []
    for r in result.runs:
        log = logs.get(r.name)
        rows.append(
            [
                r.name, r.role, log.trajectory if log else "", _finite(log.kp) if log else None,
                _finite(log.load.mass) if log else None, log.duration if log else None,
                _finite(_MRAD * r.goal_error), _finite(_MRAD * r.error), _finite(_MRAD * r.left_out_error),
                "" if r.predictable else r.reason,
            ]
        )  # fmt: skip
    columns: list[TableColumn | str] = [
        "run", "role", "motion", TableColumn("kp", digits=4), TableColumn("mass", "kg", 3),
        TableColumn("length", "s", 3),
        TableColumn("goal", "mrad", 3), TableColumn("rollout", "mrad", 3), TableColumn("left out", "mrad", 3), "",
    ]  # fmt: skip
    about = (
        "Mean absolute position errors. Goal: the goal as prediction. Rollout: the final model, simulated from the "
        "first sample to the last with the goal as its only input. Left out: a model fitted without the run's group"
        f"{f' (runs of one {result.grouped_by})' if result.grouped_by else ''}."
    )
    return join(table_html(columns, rows, "Runs", dash="Not known, or no group was left out."), paragraph(about))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rollouts(result: ActuatorIdentification) -> Html:
    judged = [r for r in result.runs if r.name in result.rollouts]
    # Held-out runs first, then those with the largest errors, so that the card shows all failures.
    judged.sort(key=lambda r: (r.role != "hold-out", -r.error))
    logs = {log.name: log for log in result.all_logs}
    pieces = [(r.name, _figure(logs[r.name], result.rollouts[r.name], r)) for r in judged[:_MOST_FIGURES]]
    if not pieces:
        return paragraph("The result contains no rollouts.")
    more = len(judged) - len(pieces)
    after = f" The {more} runs with the smallest errors are not drawn." if more > 0 else ""
    return join(tabs(*pieces), paragraph(f"Held-out runs first, then by error.{after}"))


def _figure(log: CommandLog, predicted: np.ndarray, run: RunError) -> Html:
    t = log.time - log.time[0]
    goal = np.where(np.isfinite(log.goal) & log.enabled, log.goal, np.nan)
    known = np.isfinite(goal)
    lines = [Line.of("measured", t, log.position), Line.of("predicted", t, predicted)]
    if known.any():
        lines.append(Line.of("goal", t[known], goal[known], dashed=True))
    error = Line.of("error", t, _MRAD * (predicted - log.position))
    panels = [
        Panel("position", tuple(lines), y="position [rad]"),
        Panel("predicted minus measured", (error,), y="error [mrad]"),
    ]
    caption = f"{run.role}; mean absolute error {_mrad(run.error)} mrad."
    return figure_html(line_panels(panels), f"Run {log.name}", caption)


def _parameters(model: DriveModel) -> Html:
    rows: list[Sequence[TableCell]] = []
    for row in model.rows():
        half = 0.5 * (row["high"] - row["low"])
        rows.append(
            [
                row["name"], row["unit"], whisker(row["value"], half) if row["estimated"] else Html(""), row["value"],
                row["low"] if row["estimated"] else None, row["high"] if row["estimated"] else None, row["about"],
            ]
        )  # fmt: skip
    columns: list[TableColumn | str] = [
        "parameter", "unit", "interval", TableColumn("value", digits=5), TableColumn("from", digits=3),
        TableColumn("to", digits=3), "meaning",
    ]  # fmt: skip
    law = f"{DRIVE_KINDS[model.kind]}."
    motor = ""
    if model.kind == "voltage" and math.isfinite(model.kt):
        motor = f" In a motor's constants: kt = {number(model.kt, 4)} N m/A, R = {number(model.resistance, 4)} Ω."
    table = table_html(columns, rows, "Parameters with 95 % intervals", dash="Given, not estimated.")
    return join(table, paragraph(law + motor))


def _structures(result: ActuatorIdentification) -> Html:
    rows: list[Sequence[TableCell]] = [
        [s.label, s.parameters, _finite(_MRAD * s.left_out_error), _finite(_MRAD * s.standard_error), s.chosen]
        for s in result.structures
    ]
    columns: list[TableColumn | str] = [
        "structure", "parameters", TableColumn("left-out error", "mrad", 3), TableColumn("±", "mrad", 2), "chosen",
    ]  # fmt: skip
    return table_html(columns, rows, "Errors on left-out runs", dash="Not computed.")


def _inseparable(result: ActuatorIdentification) -> Html:
    return join(
        *[
            callout("note", f"{i.reason} Next experiment: {i.experiment} Here: {i.convention}", ", ".join(i.parameters))
            for i in result.inseparable
        ]
    )


def _simulators(delivered: DeliveredDrive) -> Html:
    drive = delivered.drive
    rows: list[Sequence[TableCell]] = [
        [name, unit, drive[name], drive.numbers[name].low, drive.numbers[name].high, _MEANING[name]]
        for name, unit in SIMULATOR_NUMBERS.items()
        if drive[name] and math.isfinite(drive[name])
    ]
    columns: list[TableColumn | str] = [
        "number", "unit", TableColumn("value", digits=5), TableColumn("from", digits=3), TableColumn("to", digits=3),
        "meaning",
    ]  # fmt: skip
    pieces = [table_html(columns, rows, f"Joint '{delivered.target.joint}' at {drive.setting()}")]
    if drive.missing:
        pieces.append(
            callout("note", " ".join(drive.missing) + " The nearest Coulomb and viscous friction replaces it.")
        )
    if delivered.replays:
        errors: list[Sequence[TableCell]] = [
            [r.format, *(_finite(_MRAD * x) for x in (r.fit, r.full, r.holdout, r.full_holdout))]
            for r in delivered.replays
        ]
        heads: list[TableColumn | str] = [
            "written file", TableColumn("logs of the fit", "mrad", 3), TableColumn("full model", "mrad", 3),
            TableColumn("held-out logs", "mrad", 3), TableColumn("full model", "mrad", 3),
        ]  # fmt: skip
        step = f"{_MRAD * delivered.replays[0].step:g} ms"
        title = f"Rollouts in MuJoCo from the written joint and actuator, steps of {step}"
        pieces.append(table_html(heads, errors, title,
                                 dash="No held-out logs."))  # fmt: skip
    pieces.append(_files(delivered))
    return join(*pieces)


_MEANING = {
    "stiffness": "torque per radian of error",
    "damping": "torque per rad/s, inside the torque limit",
    "torque_limit": "largest torque at standstill",
    "no_load_speed": DRIVE_PARAMETERS["no_load_speed"].about,
    "drag": "back-EMF, only while the drive is on",
    "effort_limit": "largest torque, drag included",
    "armature": DRIVE_PARAMETERS["armature"].about,
    "frictionloss": "Coulomb friction of the simulator",
    "viscous": "viscous friction of the simulator",
    "delay": DRIVE_PARAMETERS["delay"].about,
    "goal_time": DRIVE_PARAMETERS["goal_time"].about,
}


def _files(delivered: DeliveredDrive) -> Html:
    from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS

    rows: list[Sequence[TableCell]] = [
        [_links(written.files), ACTUATOR_FORMATS[name].about, " ".join(written.notes)]
        for name, written in delivered.formats.items()
    ]
    rows.append([_links({"drive.json": "", "simulators.json": ""}), "the drive, and these numbers, as JSON", ""])
    return table_html(["file", "use", "limitations and remaining steps"], rows, "Files in the folder of this page")


def _links(files: Mapping[str, object]) -> Html:
    return Html("<br>".join(f'<a href="{quote(name)}">{html.escape(name)}</a>' for name in files))
