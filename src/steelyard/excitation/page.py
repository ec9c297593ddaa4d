"""Designed motions for the terminal and as a page: joints and torques with their limits, and the arm in motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console

from steelyard.excitation.controller_formats.target import MOTION_TARGETS
from steelyard.excitation.fitness import Fitness
from steelyard.excitation.motion_design import MotionDesign
from steelyard.excitation.plan import Plan
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import BLUE, GREEN, ORANGE, VERMILLION, Figure
from steelyard.report.plots.series import by_joint, decimate, share, units
from steelyard.report.scene import scene_html
from steelyard.report.terminal import bold, say, table
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.shapes import scene_of


def motion_figure(plan: Plan) -> Figure:
    """Plot the motion of a `plan` with its limits, joint by joint."""
    t = plan.trajectory.times(plan.rate)
    return joint_motion(t, *plan.trajectory.sample(t), plan.limits, plan.joint_names)


def search_figure(plan: Plan) -> Figure:
    """Plot the best value of the search for a `plan` over the evaluations, for a population with its mean."""
    if plan.fitness is not None:
        return fitness_figure(plan.fitness)
    return _search_history(plan.history, plan.label)


def joint_motion(
    t: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, limits: Any, joints: Sequence[str]
) -> Figure:
    """Plot position, velocity and acceleration as shares of their limits, one panel per joint.

    Args:
        t: Times [s].
        q: Positions [rad, m], shape (samples, joints).
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
        limits: A `Limits`.
        joints: Names of the joints.
    """
    n = len(joints)
    half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
    scaled = {
        "position": ((by_joint("q", q, n) - middle) / half, BLUE),
        "velocity": (by_joint("dq", dq, n) / limits.dq, VERMILLION),
        "acceleration": (by_joint("ddq", ddq, n) / limits.ddq, GREEN),
    }
    series = {name: (100.0 * np.nan_to_num(table), colour) for name, (table, colour) in scaled.items()}
    return _over_time(t, series, joints, ["of limit [%]"] * n, ["%"] * n, np.full(n, 100.0))


def _torque_limits(
    t: ArrayLike, tau: ArrayLike, limits: Array, joints: Sequence[str], unit: Sequence[str] | str
) -> Figure:
    """Plot the nominal torque and the drive's limit, one panel per joint."""
    effort_units = units(unit, len(joints))
    series = {"torque": (by_joint("tau", tau, len(joints)), BLUE)}
    return _over_time(t, series, joints, [f"torque [{u}]" for u in effort_units], effort_units, limits)


def _over_time(
    t: ArrayLike,
    series: dict[str, tuple[Array, str]],
    joints: Sequence[str],
    titles: Sequence[str],
    unit: Sequence[str],
    limits: Array,
) -> Figure:
    """Plot series with their colours, and finite limits, one panel per joint."""
    time, n = np.asarray(t, dtype=float), len(joints)
    figure = Figure.by_joint(joints, height=150)
    for k in range(n):
        hover = f"%{{y:.4g}} {unit[k]} at %{{x:.3f}} s"
        for name, (values, colour) in series.items():
            keep = decimate(values[:, k], share(len(series) * n))
            figure.line(k + 1, time[keep], values[keep, k], name, colour, 1.3, hovertemplate=hover)
        for bound in (-limits[k], limits[k]):
            if np.isfinite(bound):
                figure.bound(k + 1, float(bound))
        figure.y_axis(k + 1, titles[k])
    figure.x_axis(n, "time [s]")
    return figure


def _workspace_coverage(path: ArrayLike) -> Figure:
    """Plot the path of the last joint's origin, shape (samples, 3), from above and from the side."""
    p = np.asarray(path, dtype=float)
    figure = Figure.panels(["from above", "from the side"], shared=False, height=320)
    for row, (a, b) in enumerate(((0, 1), (0, 2)), start=1):
        hover = "%{x:.3f}, %{y:.3f} m"
        figure.line(row, p[:, a], p[:, b], "path of the last link", BLUE, 1.2, hovertemplate=hover)
        start = {"x": p[:1, a], "y": p[:1, b], "marker": {"color": ORANGE, "size": 9}}
        figure.add("scatter", row, mode="markers", name="start", **start)
        figure.x_axis(row, "x [m]")
        figure.y_axis(row, f"{'xyz'[b]} [m]", scaleanchor="x" if row == 1 else f"x{row}")
    return figure


def fitness_figure(fitness: Fitness) -> Figure:
    """Plot the best value so far and the mean of the population over the evaluations of a `fitness`."""
    figure = Figure(320)
    n = [g.evaluations for g in fitness.generations]
    best, mean = [g.best for g in fitness.generations], [g.mean for g in fitness.generations]
    figure.add("scatter", x=n, y=best, mode="lines", line={"color": BLUE, "shape": "hv"}, name="best so far")
    figure.add("scatter", x=n, y=mean, mode="lines", line={"color": ORANGE}, name="mean of the population")
    values = np.array([x for x in (*best, *mean) if np.isfinite(x)])
    wide = values.min() > 0.0 and values.max() > 5.0 * values.min()
    figure.y_axis(title=fitness.label, type="log" if wide else None)
    figure.x_axis(title="evaluations")
    return figure


def _search_history(history: Sequence[tuple[int, float]], label: str) -> Figure:
    """Plot the best value so far over the evaluations."""
    figure = Figure(320)
    n, value = [h[0] for h in history], [h[1] for h in history]
    line = {"color": BLUE, "shape": "hv"}
    figure.add("scatter", x=n, y=value, mode="lines+markers", line=line, name="best so far", showlegend=None)
    wide = min(value) > 0.0 and max(value) > 5.0 * min(value)
    figure.y_axis(title=label, type="log" if wide else None)
    figure.x_axis(title="evaluations")
    return figure


def print_design(design: MotionDesign, out: Console, folder: str = "") -> None:
    """Print designed motions.

    Args:
        design: The motions.
        out: The terminal.
        folder: Folder of the written run, or "".
    """
    plan = design.plan
    say(
        out,
        bold(design.robot.name),
        f": {len(design.plans)} motion(s) of {number(plan.trajectory.duration)} s, "
        f"condition number {number(design.condition_number)} of {len(plan.columns)} base columns "
        f"(random motion: {number(design.random_motion[0])})",
    )
    say(out, f"{plan.label}: {number(plan.value)}, first guess {number(plan.start_value)}\n")
    for k, one in enumerate(design.plans):
        columns = ["joint", "from", "to", "velocity", "acceleration", "torque", "of limit %"]
        rows = [[c if isinstance(c, str) else number(c) for c in row] for row in _joint_rows(design, one)]
        out.print(table(f"Motion {k + 1}", columns, rows, right=columns[1:]))
    design.play.print_to(out, folder)
    say(out, bold(design.verdict[1]))
    for note in dict.fromkeys((*design.unchecked_limits, *design.notes)):
        say(out, f" • {note}")
    if folder:
        say(out, f"\nSee {folder}/report.html; the motion is in {folder}. Before you play it: "
                  f"steelyard rehearse ROBOT {folder}")  # fmt: skip


def design_report(design: MotionDesign) -> str:
    """Return the self-contained page of a `design`."""
    plan = design.plan
    sections = [Section("In numbers", _numbers(design))]
    for k, one in enumerate(design.plans):
        end = f" {k + 1}" if len(design.plans) > 1 else ""
        sections.append(Section(f"The arm in motion{end}", _arm(design, one)))
        sections.append(Section(f"Joints and torques{end}", _signals(design, one)))
    sections += [Section("Slow first", _slow_first(design)), Section("What to expect", _expected(design))]
    sections.append(Section("The search", _search(plan)))
    return render_report(
        f"{design.robot.name}: a motion for identification",
        sections,
        verdict=_verdict(design),
        subtitle=f"{len(plan.columns)} base parameters, {number(plan.trajectory.duration)} s at {number(plan.rate)} Hz",
    )


def _verdict(design: MotionDesign) -> Verdict:
    gain = np.median(design.random_motion[1] / design.standard_errors)
    points = (
        f"Condition number {number(design.condition_number)}; a random motion within the same joint limits has "
        f"{number(design.random_motion[0])}.",
        f"Expected standard errors are {number(float(gain), 2)} times smaller than for the random motion (median).",
        "Rehearse the motion before you move hardware: steelyard rehearse ROBOT RUN.",
    )
    kind, sentence = design.verdict
    return Verdict("good" if kind == "good" else "warning", sentence, (*design.unchecked_limits, *points))


def _joint_rows(design: MotionDesign, plan: Plan) -> list[list[str | float | None]]:
    rows: list[list[str | float | None]] = []
    for entry in design._numbers(plan)["joints"]:
        torque, limit = entry["torque"], entry["torque_limit"]
        share = None if torque is None or not np.isfinite(limit) else 100.0 * torque / limit
        rows.append([entry[x] for x in ("joint", "lowest", "highest", "velocity", "acceleration")] + [torque, share])
    return rows


def _numbers(design: MotionDesign) -> Html:
    kinds = {j.unit for j in design.robot.joints}
    unit = kinds.pop() if len(kinds) == 1 else "rad or m"
    units = {"from": unit, "to": unit, "velocity": f"{unit}/s", "acceleration": f"{unit}/s²", "torque": "N m or N"}
    numbers = [*(TableColumn(*pair) for pair in units.items()), TableColumn("of its limit", "%", digits=3)]
    parts = [
        table_html(
            ["joint", *numbers],
            _joint_rows(design, plan),
            "Ranges and peaks" if k == 0 else f"Motion {k + 1}",
            dash="The description gives no inertias, or no limit.",
        )
        for k, plan in enumerate(design.plans)
    ]
    margins: list[list[TableCell]] = [[name, float(-100.0 * x)] for name, x in design.plan.margins.items()]
    room = TableColumn("room left", "% (distances: cm)", places=2)
    parts.append(table_html(["limit", room], margins, "Distance from the limits", dash="There is no such limit."))
    parts += [callout("note", note) for note in design.notes]
    return join(*parts)


def _clock(design: MotionDesign, plan: Plan) -> str:
    """Return the name of a motion's clock, which synchronises its figures."""
    return f"motion {design.plans.index(plan) + 1}"


def _arm(design: MotionDesign, plan: Plan) -> Html:
    t = plan.trajectory.times(50.0)
    q = plan.trajectory.derivative(t, 0)
    _, origins = link_poses(design.robot, q)
    keep = np.unique(np.linspace(0, len(t) - 1, 800).astype(int))
    path = _workspace_coverage(np.round(origins[keep, -1], 4))
    packages = design.settings.get("packages") or ()
    folders = packages.split(",") if isinstance(packages, str) else packages
    scene = scene_of(design.robot, [(_clock(design, plan), t, q)], folders)
    return join(
        scene_html(scene, "The arm", "▶ plays it; drag it to turn it."),
        figure_html(path, "Path", "The origin of the last joint."),
    )


def _signals(design: MotionDesign, plan: Plan) -> Html:
    t = plan.trajectory.times(plan.rate)
    names = design.robot.joint_names
    joints = joint_motion(t, *plan.trajectory.sample(t), plan.limits, names)
    joints.clock = _clock(design, plan)
    parts = [
        figure_html(
            joints,
            "Joints",
            "Positions (from the middle of their range), velocities and accelerations as shares of their limits.",
        )
    ]
    torque = design.torque(plan)
    if torque is None:
        parts.append(paragraph("The description states no inertias, so torques cannot be predicted."))
    else:
        figure = _torque_limits(*torque, plan.limits.tau, names, [j.effort_unit for j in design.robot.joints])
        figure.clock = _clock(design, plan)
        parts.append(figure_html(figure, "Torques", "Predicted by the nominal model; dashed: the drives' limits."))
    return join(*parts)


def _slow_first(design: MotionDesign) -> Html:
    play, wide = design.play, len(design.plans) > 1
    text = (
        "Play the files in their order: 25 %, then 50 %, then 100 % of the speed, with a hand on the emergency stop. "
        "Compare the torques with these of the nominal model; play.md gives instructions for each controller."
    )
    parts = [paragraph(text)]
    for k in range(len(design.plans)):
        title = f"Largest magnitudes by speed, motion {k + 1}" if wide else "Largest magnitudes by speed"
        rows: list[list[TableCell]] = [[name, unit, *sizes] for name, unit, sizes in play.values(k)]
        columns: list[TableColumn | str] = [*play.columns(k)[:2]]
        columns += [TableColumn(head, digits=3) for head in play.columns(k)[2:]]
        parts.append(table_html(columns, rows, title, dash="The description gives no inertias, or no limit."))
    targets = [(name, MOTION_TARGETS[name]) for name in play.targets]
    parts += [paragraph(f"Folder {name}, {target.title}: {target.changes}") for name, target in targets]
    return join(*parts)


def _expected(design: MotionDesign) -> Html:
    plan, random_errors = design.plan, design.random_motion[1]
    rows: list[list[TableCell]] = [
        [n, u, float(e), float(r) if np.isfinite(r) else None, float(r / e) if np.isfinite(r) else None]
        for n, u, e, r in zip(plan.columns, plan.units, design.standard_errors, random_errors, strict=True)
    ]
    noise = ", ".join(f"{n} {number(s)}" for n, s in zip(design.robot.joint_names, design.noise, strict=True))
    text = (
        f"Expected standard errors after one pass of every motion, with white torque noise of {noise} (N m, N) at "
        f"{number(plan.rate)} samples per second and weighted least squares, compared with a random motion of the same "
        "length within the same joint limits."
    )
    numbers = [TableColumn(x, digits=3) for x in ("± expected", "± random motion", "times better")]
    columns: list[TableColumn | str] = ["base parameter", "unit", *numbers]
    return join(
        paragraph(text),
        table_html(columns, rows, "Standard errors to expect", dash="The random motion does not excite it."),
    )


def _search(plan: Plan) -> Html:
    text = (
        f"{plan.label}: {number(plan.value)} after {plan.evaluations} evaluations; the first guess had "
        f"{number(plan.start_value)}. The same seed ({plan.seed}) gives the same motion."
    )
    if len(plan.history) < 2:
        return paragraph(text)
    if plan.fitness is not None:
        note = (
            "When the mean reaches the best, all individuals are alike, and more generations gain little. The numbers "
            "are in fitness.csv."
        )
        return join(paragraph(text), figure_html(fitness_figure(plan.fitness), "Fitness by generation", note))
    return join(paragraph(text), figure_html(_search_history(plan.history, plan.criterion), "Best so far"))
