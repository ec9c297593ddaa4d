"""A rehearsal for the terminal and as a page."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from steelyard.ground.numbers import Known
from steelyard.identification.score_page import effort_units
from steelyard.rehearse._judge import Judgement
from steelyard.rehearse.rehearse import Rehearsal
from steelyard.report.elements import (
    CalloutKind,
    TableCell,
    TableColumn,
    callout,
    figure_html,
    join,
    paragraph,
    table_html,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.estimates import parameter_intervals
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import bold, say, table


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


def _print_z_scores(found: Rehearsal, out: Console) -> None:
    """How far off the worst base parameters are, robot by robot."""
    ranked = sorted(found.rows, key=lambda r: -max(abs(z) for z in r["z_scores"]))[:_SHOWN]
    columns = ["base parameter", *(f"seed {trial.seed}" for trial in found.trials)]
    rows = [[r["name"], *(f"{z:+.1f}" for z in r["z_scores"])] for r in ranked]
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
    rows: list[list[TableCell]] = [
        [r["name"], r["unit"], *(Known(r[key], r["standard_error"]) for key in ("true", "found")),
         r["standard_error"], *r["z_scores"]]
        for r in found.rows
    ]  # fmt: skip
    numbers = [TableColumn("planted"), TableColumn("found"), TableColumn("± standard error", digits=2)]
    off = [TableColumn(f"z, seed {trial.seed}", "1", places=1) for trial in found.trials]
    columns: list[TableColumn | str] = ["base parameter", "unit", *numbers, *off]
    log = found.logs[0]
    assert log.tau is not None
    run = found.runs[0]
    used = np.flatnonzero(found.robot.torque_used)
    predicted = found.found.model.torque(run.q, run.dq, run.ddq)
    joints = [found.robot.joint_names[k] for k in used]
    torque = torque_measured_predicted(run.t, log.tau[:, used], predicted[:, used], joints, effort_units(found.robot))
    names, units, after, errors, true = (
        [r[key] for r in found.rows] for key in ("name", "unit", "found", "standard_error", "true")
    )
    intervals = parameter_intervals(names, units, after, errors, true, before_is="planted")
    sections = [
        Section(
            "Judgement",
            join(*(callout(_tone(j), f"{j.name}: {j.text}") for j in found.judgements)),
        ),
        Section(
            "Parameters",
            join(
                paragraph("Of the free fit, whose error bars are those of the noise; the delivered model is physical."),
                paragraph(
                    "z is the error over its standard error, for every robot that was planted: honest error bars "
                    "give a mean of 0 and a standard deviation of 1. Values are those of the first robot."
                ),
                table_html(columns, rows, "Planted and found"),
                figure_html(intervals, "Planted and found, with 95 % intervals"),
            ),
        ),
        Section("Torques", figure_html(torque, "Simulated and predicted", "As the simulated sensors saw them.")),
    ]
    return render_report(
        f"{found.robot.name}: rehearsal",
        sections,
        verdict=Verdict("good" if found.passed else "bad", found.sentence, tuple(j.text for j in found.judgements)),
    )
