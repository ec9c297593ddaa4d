"""A rehearsal for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.ground.numbers import Known
from steelyard.identification.score_page import effort_units
from steelyard.rehearse._judge import Judgement
from steelyard.rehearse.rehearse import Rehearsal
from steelyard.report.elements import (
    CalloutKind,
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


def print_rehearsal(found: Rehearsal, out: Console, folder: str = "") -> None:
    """What was `found` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    say(out, bold(f"{found.robot.name}: {found.sentence}"))
    for j in found.judgements:
        say(out, f" {'✓' if j.passed else '✕'} {j.name}. {j.text}")
    _print_z_scores(found, out)
    if folder:
        say(out, f"\nLook at {folder}/report.html.")


# So many base parameters, those farthest off, are shown on a terminal.
_SHOWN = 8
# Of more robots than this nobody reads the z-scores one by one.
_EACH = 10


def _columns(found: Rehearsal) -> list[TableColumn]:
    """What is told of the z-scores of a base parameter: each robot's, or of many how they are spread."""
    if len(found.trials) <= _EACH:
        return [TableColumn(f"seed {trial.seed}", "z", places=1) for trial in found.trials]
    names = {"mean z": 2, "std of z": 2, "outside 95 % [%]": 1, "farthest z": 1}
    return [TableColumn(name, places=places) for name, places in names.items()]


def _told_of(found: Rehearsal, z: Sequence[float]) -> list[float]:
    """The entries of `_columns`."""
    if len(found.trials) <= _EACH:
        return list(z)
    all_of_them = np.array(z)
    outside = 100.0 * float(np.mean(np.abs(all_of_them) > 1.96))
    return [float(all_of_them.mean()), float(all_of_them.std()), outside, float(max(z, key=abs))]


def _print_z_scores(found: Rehearsal, out: Console) -> None:
    """How far off the worst base parameters are, robot by robot."""
    ranked = sorted(found.rows, key=lambda r: -max(abs(z) for z in r["z_scores"]))[:_SHOWN]
    columns = ["base parameter", *(column.name for column in _columns(found))]
    rows = [[r["name"], *(f"{z:+.1f}" for z in _told_of(found, r["z_scores"]))] for r in ranked]
    title = f"z-scores: error over standard error (the {len(rows)} of {len(found.rows)} farthest off)"
    out.print(table(title, columns, rows, right=columns[1:]))
    every = np.array([r["z_scores"] for r in found.rows])
    say(
        out,
        f"All {every.size}: mean {every.mean():+.2f}, standard deviation {every.std():.2f} (honest error bars: 0, 1).",
    )


def _tone(judgement: Judgement) -> CalloutKind:
    return "good" if judgement.passed else "bad" if judgement.decides else "warning"


def rehearsal_report(found: Rehearsal) -> str:
    """The page of what was `found`, self-contained."""
    motions = [(f"motion {k + 1}", run.t, run.q) for k, run in enumerate(found.runs)]
    sections = [
        Section("Judgement", join(*(callout(_tone(j), f"{j.name}: {j.text}") for j in found.judgements))),
        Section("The motion", scene_html(scene_of(found.robot, motions), "As the first planted robot played it")),
        Section("Errors over their bars", _z_scores(found)),
        Section("Parameters", _parameters(found)),
        Section("Torques", _torques(found)),
    ]
    return render_report(
        f"{found.robot.name}: rehearsal",
        sections,
        verdict=Verdict("good" if found.passed else "bad", found.sentence, tuple(j.text for j in found.judgements)),
    )


def _z_scores(found: Rehearsal) -> Html:
    """All errors of all robots, beside what honest error bars give."""
    seeds = [f"seed {trial.seed}" for trial in found.trials]
    every = np.array([r["z_scores"] for r in found.rows])
    said = (
        f"z is the error of a base parameter over its standard error, for every robot that was planted: {every.size} "
        f"in all, of mean {every.mean():+.2f} and standard deviation {every.std():.2f}; honest error bars give 0 and 1."
    )
    many = len(seeds) > _EACH
    figure = z_scores({f"{len(seeds)} robots": every} if many else dict(zip(seeds, every.T, strict=True)))
    return join(paragraph(said), figure_html(figure, "z-scores of all planted robots"))


def _parameters(found: Rehearsal) -> Html:
    rows: list[list[TableCell]] = [
        [r["name"], r["unit"], whisker(r["found"], 1.96 * r["standard_error"], r["true"]),
         *(Known(r[key], r["standard_error"]) for key in ("true", "found")), 1.96 * r["standard_error"],
         *_heated(found, r["z_scores"])]
        for r in found.rows
    ]  # fmt: skip
    numbers = [TableColumn("planted"), TableColumn("found"), TableColumn("± 95 %", digits=2)]
    columns: list[TableColumn | str] = ["base parameter", "unit", "on its own scale", *numbers, *_columns(found)]
    said = (
        "Of the free fit, whose error bars are those of the noise; the delivered model is physical. Values are those "
        "of the first robot: dot and line for what was found, an open diamond for what was planted. z-scores are "
        "coloured from 1 to 4."
    )
    return join(paragraph(said), table_html(columns, rows, "Planted and found", tall=len(rows) > 16))


def _heated(found: Rehearsal, z: Sequence[float]) -> list[TableCell]:
    """The z-scores of a base parameter, coloured where each robot has one."""
    if len(found.trials) > _EACH:
        return list(_told_of(found, z))
    return [Heat(x, float(np.clip((abs(x) - 1.0) / 3.0, 0.0, 1.0))) for x in z]


def _torques(found: Rehearsal) -> Html:
    log, run = found.logs[0], found.runs[0]
    assert log.tau is not None
    used = np.flatnonzero(found.robot.torque_used)
    predicted = found.found.model.torque(run.q, run.dq, run.ddq)
    joints = [found.robot.joint_names[k] for k in used]
    units = effort_units(found.robot)
    torque = torque_measured_predicted(run.t, log.tau[:, used], predicted[:, used], joints, units, clock="motion 1")
    return figure_html(torque, "Simulated and predicted", "As the simulated sensors saw them.")
