"""Designed motions, and their rehearsals, for the terminal and as pages."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.markup import escape

from steelyard.excitation.designed import Designed
from steelyard.excitation.plan import Plan
from steelyard.rehearse import Rehearsal
from steelyard.report.elements import Cell, Column, Html, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.designed_motion import (
    joint_motion,
    search_history,
    skeleton,
    torque_limits,
    workspace_coverage,
)
from steelyard.report.plots.estimates import parameter_intervals
from steelyard.report.plots.series import effort_units
from steelyard.report.plots.torque import torque_measured_predicted
from steelyard.report.terminal import number, table
from steelyard.robot.kinematics.poses import link_poses


def print_designed(made: Designed, out: Console, folder: str = "") -> None:
    plan = made.plan
    out.print(
        f"[bold]{escape(made.robot.name)}[/bold]: {len(made.plans)} motion(s) of {number(plan.trajectory.duration)} s, "
        f"condition number {number(made.condition_number)} of {len(plan.columns)} base columns "
        f"(a random motion: {number(made.careless[0])})"
    )
    out.print(f"{escape(plan.label)}: {number(plan.value)}, first guess {number(plan.start_value)}\n")
    for k, one in enumerate(made.plans):
        columns = ["joint", "from", "to", "velocity", "acceleration", "torque", "of limit %"]
        rows = [[str(c) if isinstance(c, str) else number(c) for c in row] for row in _joint_rows(made, one)]
        out.print(table(f"Motion {k + 1}", columns, rows, right=columns[1:]))
    for note in made.notes:
        out.print(f" • {escape(note)}")
    if folder:
        out.print(f"\nLook at {escape(folder)}/report.html; the motion is in {escape(folder)}. Before you play it: "
                  f"steelyard rehearse ROBOT {escape(folder)}")  # fmt: skip


def designed_report(made: Designed) -> str:
    """The page, self-contained."""
    plan = made.plan
    sections = [Section("In numbers", _numbers(made))]
    for k, one in enumerate(made.plans):
        end = f" {k + 1}" if len(made.plans) > 1 else ""
        sections.append(Section(f"The arm in motion{end}", _arm(made, one)))
        sections.append(Section(f"Joints and torques{end}", _signals(made, one)))
    sections += [Section("What to expect", _expected(made)), Section("The search", _search(plan))]
    return render_report(
        f"{made.robot.name}: a motion that shows the parameters",
        sections,
        verdict=_verdict(made),
        subtitle=f"{len(plan.columns)} base parameters, {number(plan.trajectory.duration)} s at {number(plan.rate)} Hz",
    )


def _verdict(made: Designed) -> Verdict:
    gain = np.median(made.careless[1] / made.standard_errors)
    points = (
        f"Condition number {number(made.condition_number)}; of a random motion within the same joint limits: "
        f"{number(made.careless[0])}.",
        f"Expected standard errors are {number(float(gain), 2)} times smaller than that motion's (median).",
        "Rehearse it before anyone moves hardware: steelyard rehearse ROBOT RUN.",
    )
    return Verdict("good", "The motion keeps to all limits at every instant.", points)


def _joint_rows(made: Designed, plan: Plan) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for entry in made._numbers(plan)["joints"]:
        torque, limit = entry["torque"], entry["torque_limit"]
        share = None if torque is None or not np.isfinite(limit) else 100.0 * torque / limit
        rows.append([entry[x] for x in ("joint", "lowest", "highest", "velocity", "acceleration")] + [torque, share])
    return rows


def _numbers(made: Designed) -> Html:
    kinds = {j.unit for j in made.robot.joints}
    unit = kinds.pop() if len(kinds) == 1 else "rad or m"
    columns: list[Column | str] = [
        "joint",
        Column("from", unit),
        Column("to", unit),
        Column("velocity", f"{unit}/s"),
        Column("acceleration", f"{unit}/s²"),
        Column("torque", "N m or N"),
        Column("of its limit", "%", places=1),
    ]
    parts = [
        table_html(columns, _joint_rows(made, plan), "Ranges and peaks" if k == 0 else f"Motion {k + 1}")
        for k, plan in enumerate(made.plans)
    ]
    margins: list[list[Cell]] = [
        [
            name,
            float(-100.0 * x),
        ]
        for name, x in made.plan.margins.items()
    ]
    parts.append(
        table_html(["limit", Column("room left", "% (distances: cm)", places=2)], margins, "How near the limits come")
    )
    parts += [callout("note", note) for note in made.notes]
    return join(*parts)


def _arm(made: Designed, plan: Plan) -> Html:
    t = plan.trajectory.times(50.0)
    q = plan.trajectory.derivative(t, 0)
    _, origins = link_poses(made.robot, q)
    keep = np.unique(np.linspace(0, len(t) - 1, 800).astype(int))
    return join(
        figure_html(
            skeleton(made.robot, t, q), "The arm", "Lines join the joints' origins; press ▶ or drag the slider."
        ),
        figure_html(
            workspace_coverage(np.round(origins[keep, -1], 4)), "Where it goes", "The origin of the last joint."
        ),
    )


def _signals(made: Designed, plan: Plan) -> Html:
    t = plan.trajectory.times(plan.rate)
    names = made.robot.joint_names
    parts = [
        figure_html(
            joint_motion(t, *plan.trajectory.sample(t), plan.limits, names),
            "Joints",
            "Positions (from the middle of their range), velocities and accelerations as shares of their limits.",
        )
    ]
    found = made.torque(plan)
    if found is None:
        parts.append(paragraph("The description states no inertias, so torques cannot be foretold."))
    else:
        units = [j.effort_unit for j in made.robot.joints]
        parts.append(
            figure_html(
                torque_limits(found[0], found[1], plan.limits.tau, names, units),
                "Torques",
                "By the nominal model; dashed: the drives' limits.",
            )
        )
    return join(*parts)


def _expected(made: Designed) -> Html:
    plan, careless = made.plan, made.careless[1]
    rows: list[list[Cell]] = [
        [n, u, float(e), float(r) if np.isfinite(r) else None, float(r / e) if np.isfinite(r) else None]
        for n, u, e, r in zip(plan.columns, plan.units, made.standard_errors, careless, strict=True)
    ]
    noise = ", ".join(f"{n} {number(s)}" for n, s in zip(made.robot.joint_names, made.noise, strict=True))
    said = (
        f"Expected standard errors after one pass of every motion, with white torque noise of {noise} (N m, N) at "
        f"{number(plan.rate)} samples per second and weighted least squares. Beside them those of a random motion of "
        "the same length within the same joint limits."
    )
    numbers = [Column(x, digits=3) for x in ("± expected", "± random motion", "times better")]
    columns: list[Column | str] = ["base parameter", "unit", *numbers]
    return join(paragraph(said), table_html(columns, rows, "Standard errors to expect"))


def _search(plan: Plan) -> Html:
    said = (
        f"{plan.label}: {number(plan.value)} after {plan.evaluations} evaluations; the first guess had "
        f"{number(plan.start_value)}. The same seed ({plan.seed}) gives the same motion."
    )
    if len(plan.history) < 2:
        return paragraph(said)
    return join(paragraph(said), figure_html(search_history(plan.history, plan.criterion), "Best so far"))


def print_rehearsal(found: Rehearsal, out: Console, folder: str = "") -> None:
    out.print(f"[bold]{escape(found.robot.name)}: {escape(found.sentence)}[/bold]")
    for j in found.judgements:
        out.print(f" {'✓' if j.passed else '✕'} {escape(j.name)}. {escape(j.text)}")
    if folder:
        out.print(f"\nLook at {escape(folder)}/report.html.")


def rehearsal_report(found: Rehearsal) -> str:
    """The page, self-contained."""
    rows: list[list[Cell]] = [
        [
            r["name"],
            r["unit"],
            r["true"],
            r["found"],
            r["standard_error"],
            (r["found"] - r["true"]) / r["standard_error"],
        ]
        for r in found.rows
    ]
    numbers = [Column("planted"), Column("found"), Column("± standard error", digits=2)]
    off = Column("off by", "standard errors", places=1)
    columns: list[Column | str] = ["base parameter", "unit", *numbers, off]
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
            join(*(callout("good" if j.passed else "bad", f"{j.name}: {j.text}") for j in found.judgements)),
        ),
        Section(
            "Parameters",
            join(
                paragraph("Of the free fit, whose error bars are those of the noise; the delivered model is physical."),
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
