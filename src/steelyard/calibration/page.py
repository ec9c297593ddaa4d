"""Report page and terminal text of a calibration."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from steelyard.calibration.joint_effects import EFFECTS
from steelyard.calibration.trust import verdict_of
from steelyard.calibration.weights import distances, pose_means, shown_error
from steelyard.gravity.page import joints_html
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import Known, number
from steelyard.report.elements import Html, callout, commands, figure_html, join, paragraph, table_html, whisker
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import BLUE, VERMILLION, Figure
from steelyard.report.plots.series import in_steps

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.calibration.calibration import Calibration

_STAGES = {"nominal": "description", "geometry": "corrected description", "full": "with all effects"}
# Stages in the figure with their colours, and the size of the largest marker in pixels.
_SHOWN, _MARKER = {"nominal": VERMILLION, "full": BLUE}, 14.0


def calibration_report(calibration: Calibration) -> str:
    """Render the page of a `calibration`."""
    sections = [
        Section("Errors", join(*_errors(calibration))),
        Section("Choice of the model", _candidates(calibration)),
        Section("Parameters", join(*_parameters(calibration))),
        Section("What cannot be separated", join(*_inseparable(calibration))),
        Section("Poses", join(*_poses(calibration))),
        *_gravity(calibration),
        Section("Next steps", _next(calibration)),
    ]
    title = f"{calibration.chain.robot.name}: calibration"
    return render_report(title, sections, verdict=verdict_of(calibration))


def error_rows(calibration: Calibration) -> list[list[str]]:
    """Return the rows of the table of errors of a `calibration`: poses, model, channel, mean, median, 95 %, largest."""
    tables = {f"fit ({len(calibration.table)})": calibration.table}
    if calibration.holdout is not None:
        tables[f"hold-out ({len(calibration.holdout)})"] = calibration.holdout
    out = []
    for where, table in tables.items():
        for stage, label in _STAGES.items():
            for channel, e in calibration.errors(table, stage).items():
                out.append(
                    [where, label, channel, *(shown_error(x, channel) for x in (e.mean, e.median, e.p95, e.largest))]
                )
    for stage, candidate in calibration.left_out.items():
        for channel, mean in candidate.mean.items():
            out.append(["left out", _STAGES[stage], channel, shown_error(mean, channel), "", "", ""])
    return out


_COLUMNS = ("poses", "model", "reading", "mean", "median", "95 %", "largest")


def _errors(calibration: Calibration) -> list[Html]:
    below = (
        "Each model has its own best place of the sensor and of the tool. Left out: poses in ten groups, each "
        "predicted from the others."
    )
    return [
        figure_html(_in_space(calibration), "Errors in space, before and after", _CAPTION),
        table_html(_COLUMNS, error_rows(calibration), "Distance of predicted and measured readings"),
        paragraph(below),
    ]


def _in_space(calibration: Calibration) -> Figure:
    """Errors at the measured tool positions, before and after: the size of a marker is the error."""
    table, figure = calibration.table, Figure(480, flat=False)
    places = calibration.chain.tips(table.q).position
    channel = table.measurement.blocks[0][1]
    sizes = {stage: pose_means(distances(table.measurement, calibration.residuals(table, stage))) for stage in _SHOWN}
    largest = max(float(np.nanmax(size)) for size in sizes.values()) or 1.0
    for stage, size in sizes.items():
        finite = np.isfinite(size)
        x, y, z = (in_steps(column) for column in places[finite].T)
        marker = {
            "color": _SHOWN[stage],
            "opacity": 0.7,
            "size": np.round(_MARKER * size[finite] / largest + 1.0, 1).tolist(),
        }
        text = [
            f"row {n}: {shown_error(s, channel)}" for n, s in zip(table.row_numbers[finite], size[finite], strict=True)
        ]
        figure.add("scatter3d", x=x, y=y, z=z, mode="markers", name=_STAGES[stage], marker=marker, text=text,
                   hoverinfo="text")  # fmt: skip
    axes = {f"{name}axis": {"title": {"text": f"{name}, m"}} for name in "xyz"}
    figure.layout["scene"] = {**axes, "aspectmode": "data"}
    return figure


_CAPTION = "Origin of the tool's frame in the base of the robot. The larger a marker, the larger the error of its pose."


def _candidates(calibration: Calibration) -> Html:
    rows = []
    for c in calibration.choice.candidates:
        means = ", ".join(shown_error(m, channel) for channel, m in c.mean.items())
        rows.append((c.label, c.parameters, means, "chosen" if c is calibration.choice.chosen else ""))
    return table_html(["effects", "parameters", "mean error on left-out poses", ""], rows, "Models that were tried")


def _parameters(calibration: Calibration) -> list[Html]:
    rows = []
    for p in calibration.parameters():
        half = HALF_WIDTH_95 * p["standard_error"]
        note = "" if p["determined"] > 0.5 else "hardly determined by these poses"
        rows.append(
            (p["name"], p["unit"], whisker(p["value"], half), Known(p["value"], p["standard_error"]), half, note)
        )
    about = [paragraph(f"{e}: {EFFECTS[e].about}.") for e in calibration.effects]
    table = table_html(["parameter", "unit", "interval", "value", "± 95 %", ""], rows, "Corrections", tall=True)
    return [*about, table]


def _inseparable(calibration: Calibration) -> list[Html]:
    own = calibration.identifiability
    above = (
        f"This kind of measurement determines {own.rank} of {len(own.names)} unknowns of sensor, tool and joints, "
        "for any set of poses. Each line names an unknown that no pose can separate from others."
    )
    return [paragraph(above), table_html(["no pose can separate"], [(formula,) for formula in own.formulas])]


def _poses(calibration: Calibration) -> list[Html]:
    table = calibration.table
    sizes = distances(table.measurement, calibration.residuals(table))
    worst = np.argsort(-np.nan_to_num(sizes).max(axis=1))[:10]
    rows = [
        (
            int(table.row_numbers[k]),
            ", ".join(
                shown_error(s, c)
                for s, (_, c) in zip(sizes[k], table.measurement.blocks, strict=True)
                if np.isfinite(s)
            ),
        )
        for k in worst
    ]
    remarks = [callout("note", text) for text in (*calibration.findings, *table.notes)]
    return [*remarks, table_html(["row", "errors of its readings"], rows, "Poses with the largest errors")]


def _gravity(calibration: Calibration) -> list[Section]:
    """The gravity of the same robot, if it was identified from torques at rest."""
    if calibration.gravity is None:
        return []
    glance = calibration.gravity.headline()
    points = [paragraph(point) for point in glance.points]
    above = "Its torques are those of compliance and bearings above."
    return [
        Section("Gravity", join(paragraph(f"{glance.sentence} {above}"), *points, joints_html(calibration.gravity)))
    ]


def _next(calibration: Calibration) -> Html:
    source = shlex.quote(calibration.chain.robot.source or "ROBOT")
    name = calibration.chain.robot.name
    return commands(
        (
            "Identify the dynamics of the calibrated robot:",
            f"steelyard identify RUN/{name}_calibrated.urdf LOG.csv --snap 0",
        ),
        ("Design the next poses:", f"steelyard calibrate {source} --design 40 -o poses"),
    )


def print_calibration(calibration: Calibration, out: Console, folder: str = "") -> None:
    """Print a calibration.

    Args:
        calibration: Calibration.
        out: Console.
        folder: Run folder; "" if none was written.
    """
    from steelyard.report.terminal import bold, say, table

    verdict = verdict_of(calibration)
    say(out, bold(verdict.headline))
    for point in verdict.points:
        say(out, f" • {point}")
    rows = [[str(x) for x in row] for row in error_rows(calibration)]
    out.print(table("Errors", list(_COLUMNS), rows, right=_COLUMNS[3:]))
    trial = calibration.choice.chosen
    say(out, f"Model: {trial.label} ({number(trial.parameters)} parameters).")
    if folder:
        say(out, f"\nWritten to {folder}: {', '.join(['result.json', 'report.html', *calibration.files()])}.")
