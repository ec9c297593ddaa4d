"""Rehearsals on the terminal and as a report page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.ground.grades import HALF_WIDTH_95, Tone
from steelyard.ground.numbers import Known
from steelyard.identification.score_page import effort_units
from steelyard.rehearsal._judge import Judgement
from steelyard.rehearsal.rehearse import Rehearsal
from steelyard.report.elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    callout,
    figure_html,
    join,
    paragraph,
    table_html,
    whisker,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.ranking import z_scores
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.scene import scene_html
from steelyard.report.terminal import bold, say, table
from steelyard.robot.shapes import scene_of


def print_rehearsal(rehearsal: Rehearsal, out: Console, folder: str = "") -> None:
    """Print a rehearsal.

    Args:
        rehearsal: Rehearsal.
        out: Console to print to.
        folder: Folder of the written files; "" if nothing was written.
    """
    say(out, bold(f"{rehearsal.robot.name}: {rehearsal.sentence}"))
    for j in rehearsal.judgements:
        say(out, f" {'✓' if j.passed else '✕'} {j.name}. {j.text}")
    _print_z_scores(rehearsal, out)
    if folder:
        say(out, f"\nLook at {folder}/report.html.")


# Number of base parameters with the largest errors that the terminal shows.
_SHOWN = 8
# With more robots than this, statistics replace the single z-scores.
_EACH = 10


def _columns(rehearsal: Rehearsal) -> list[TableColumn]:
    """Return the columns for z-scores: one per robot, or statistics of many robots."""
    if len(rehearsal.trials) <= _EACH:
        return [TableColumn(f"seed {trial.seed}", "z", places=1) for trial in rehearsal.trials]
    names = {"mean z": 2, "std of z": 2, "outside 95 % [%]": 1, "farthest z": 1}
    return [TableColumn(name, places=places) for name, places in names.items()]


def _values(rehearsal: Rehearsal, z: Sequence[float]) -> list[float]:
    """Return the values of `_columns`."""
    if len(rehearsal.trials) <= _EACH:
        return list(z)
    scores = np.array(z)
    outside = 100.0 * float(np.mean(np.abs(scores) > HALF_WIDTH_95))
    return [float(scores.mean()), float(scores.std()), outside, float(max(z, key=abs))]


def _print_z_scores(rehearsal: Rehearsal, out: Console) -> None:
    """Print the base parameters with the largest z-scores."""
    ranked = sorted(rehearsal.rows, key=lambda r: -max(abs(z) for z in r["z_scores"]))[:_SHOWN]
    columns = ["base parameter", *(column.name for column in _columns(rehearsal))]
    rows = [[r["name"], *(f"{z:+.1f}" for z in _values(rehearsal, r["z_scores"]))] for r in ranked]
    title = f"z-scores: error over standard error (the {len(rows)} largest of {len(rehearsal.rows)})"
    out.print(table(title, columns, rows, right=columns[1:]))
    every = np.array([r["z_scores"] for r in rehearsal.rows])
    say(
        out,
        f"All {every.size}: mean {every.mean():+.2f}, standard deviation {every.std():.2f} (calibrated: 0, 1).",
    )


def _tone(judgement: Judgement) -> Tone:
    return "good" if judgement.passed else "bad" if judgement.decides else "warning"


def rehearsal_report(rehearsal: Rehearsal) -> str:
    """Render the self-contained page of a rehearsal `rehearsal`."""
    motions = [(f"motion {k + 1}", run.t, run.q) for k, run in enumerate(rehearsal.runs)]
    sections = [
        Section("Judgement", join(*(callout(_tone(j), f"{j.name}: {j.text}") for j in rehearsal.judgements))),
        Section("Motion", scene_html(scene_of(rehearsal.robot, motions), "Played by the first simulated robot")),
        Section("z-scores", _z_scores(rehearsal)),
        Section("Parameters", _parameters(rehearsal)),
        Section("Torques", _torques(rehearsal)),
    ]
    return render_report(
        f"{rehearsal.robot.name}: rehearsal",
        sections,
        verdict=Verdict(
            "good" if rehearsal.passed else "bad", rehearsal.sentence, tuple(j.text for j in rehearsal.judgements)
        ),
    )


def _z_scores(rehearsal: Rehearsal) -> Html:
    """Show the distribution of all z-scores, and that of calibrated error bars."""
    seeds = [f"seed {trial.seed}" for trial in rehearsal.trials]
    every = np.array([r["z_scores"] for r in rehearsal.rows])
    explanation = (
        f"z is the error of a base parameter over its standard error, for all simulated robots: {every.size} values "
        f"with mean {every.mean():+.2f} and standard deviation {every.std():.2f}; calibrated error bars give 0 and 1."
    )
    many = len(seeds) > _EACH
    figure = z_scores({f"{len(seeds)} robots": every} if many else dict(zip(seeds, every.T, strict=True)))
    return join(paragraph(explanation), figure_html(figure, "z-scores of all simulated robots"))


def _parameters(rehearsal: Rehearsal) -> Html:
    rows: list[list[TableCell]] = [
        [r["name"], r["unit"], whisker(r["found"], HALF_WIDTH_95 * r["standard_error"], r["true"]),
         *(Known(r[key], r["standard_error"]) for key in ("true", "found")), HALF_WIDTH_95 * r["standard_error"],
         *_cells(rehearsal, r["z_scores"])]
        for r in rehearsal.rows
    ]  # fmt: skip
    numbers = [TableColumn("true"), TableColumn("identified"), TableColumn("± 95 %", digits=2)]
    columns: list[TableColumn | str] = ["base parameter", "unit", "interval", *numbers, *_columns(rehearsal)]
    explanation = (
        "Values are those of the free fit, whose error bars describe the noise, for the first robot: dot and line for "
        "the identified value, an open diamond for the true value. The delivered model is physically possible. "
        "z-scores are coloured from 1 to 4."
    )
    return join(paragraph(explanation), table_html(columns, rows, "True and identified", tall=len(rows) > 16))


def _cells(rehearsal: Rehearsal, z: Sequence[float]) -> list[TableCell]:
    """Return the values of `_columns`; z-scores of single robots are coloured."""
    if len(rehearsal.trials) > _EACH:
        return list(_values(rehearsal, z))
    return [Heat(x, float(np.clip((abs(x) - 1.0) / 3.0, 0.0, 1.0))) for x in z]


def _torques(rehearsal: Rehearsal) -> Html:
    log, run = rehearsal.logs[0], rehearsal.runs[0]
    assert log.tau is not None
    used = np.flatnonzero(rehearsal.robot.torque_used)
    predicted = rehearsal.identification.model.torque(run.q, run.dq, run.ddq)
    joints = [rehearsal.robot.joint_names[k] for k in used]
    units = effort_units(rehearsal.robot)
    torque = torque_measured_predicted(run.t, log.tau[:, used], predicted[:, used], joints, units, clock="motion 1")
    return figure_html(torque, "Simulated and predicted", "Simulated: torque of the simulated sensors.")
