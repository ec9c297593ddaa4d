"""Designed motions for the terminal and as a page: joints and torques beside their limits, the arm as it moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console

from steelyard.excitation.controllers.target import MOTION_TARGETS
from steelyard.excitation.designed import Designed
from steelyard.excitation.fitness import Fitness
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
    """The motion of a `plan` beside its limits, joint by joint."""
    t = plan.trajectory.times(plan.rate)
    return joint_motion(t, *plan.trajectory.sample(t), plan.limits, plan.joint_names)


def search_figure(plan: Plan) -> Figure:
    """The best value of the search for a `plan` over the evaluations that it took; of a population its mean, too."""
    if plan.fitness is not None:
        return fitness_figure(plan.fitness)
    return _search_history(plan.history, plan.label)


def joint_motion(
    t: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, limits: Any, joints: Sequence[str]
) -> Figure:
    """One panel per joint: position, velocity and acceleration as shares of their limits, so that one scale serves.

    Args:
        t: times, s.
        q: positions `(samples, joints)`, rad or m.
        dq: velocities.
        ddq: accelerations.
        limits: a `Limits`.
        joints: the joints' names.
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
    """One panel per joint: the torque that the nominal model needs, and what the drive allows."""
    named = units(unit, len(joints))
    series = {"torque": (by_joint("tau", tau, len(joints)), BLUE)}
    return _over_time(t, series, joints, [f"torque [{u}]" for u in named], named, limits)


def _over_time(
    t: ArrayLike,
    series: dict[str, tuple[Array, str]],
    joints: Sequence[str],
    titles: Sequence[str],
    unit: Sequence[str],
    limits: Array,
) -> Figure:
    """One panel per joint: series with their colours, and limits where they are finite."""
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


def _workspace_coverage(places: ArrayLike) -> Figure:
    """The way of the last joint's origin `(samples, 3)`, from above and from the side."""
    p = np.asarray(places, dtype=float)
    figure = Figure.panels(["from above", "from the side"], shared=False, height=320)
    for row, (a, b) in enumerate(((0, 1), (0, 2)), start=1):
        hover = "%{x:.3f}, %{y:.3f} m"
        figure.line(row, p[:, a], p[:, b], "way of the last link", BLUE, 1.2, hovertemplate=hover)
        start = {"x": p[:1, a], "y": p[:1, b], "marker": {"color": ORANGE, "size": 9}}
        figure.add("scatter", row, mode="markers", name="start", **start)
        figure.x_axis(row, "x [m]")
        figure.y_axis(row, f"{'xyz'[b]} [m]", scaleanchor="x" if row == 1 else f"x{row}")
    return figure


def fitness_figure(fitness: Fitness) -> Figure:
    """The best so far and the mean of the population over the evaluations.

    Args:
        fitness: Generation by generation.
    """
    figure = Figure(320)
    n = [g.evaluations for g in fitness.generations]
    best, mean = [g.best for g in fitness.generations], [g.mean for g in fitness.generations]
    figure.add("scatter", x=n, y=best, mode="lines", line={"color": BLUE, "shape": "hv"}, name="best so far")
    figure.add("scatter", x=n, y=mean, mode="lines", line={"color": ORANGE}, name="mean of the population")
    known = np.array([x for x in (*best, *mean) if np.isfinite(x)])
    wide = known.min() > 0.0 and known.max() > 5.0 * known.min()
    figure.y_axis(title=fitness.label, type="log" if wide else None)
    figure.x_axis(title="evaluations")
    return figure


def _search_history(history: Sequence[tuple[int, float]], label: str) -> Figure:
    """The best value so far over the evaluations that it took."""
    figure = Figure(320)
    n, value = [h[0] for h in history], [h[1] for h in history]
    line = {"color": BLUE, "shape": "hv"}
    figure.add("scatter", x=n, y=value, mode="lines+markers", line=line, name="best so far", showlegend=None)
    wide = min(value) > 0.0 and max(value) > 5.0 * min(value)
    figure.y_axis(title=label, type="log" if wide else None)
    figure.x_axis(title="evaluations")
    return figure


def print_designed(made: Designed, out: Console, folder: str = "") -> None:
    """What was `made` on the terminal `out`; `folder` is where it was written, "" if nowhere."""
    plan = made.plan
    say(
        out,
        bold(made.robot.name),
        f": {len(made.plans)} motion(s) of {number(plan.trajectory.duration)} s, "
        f"condition number {number(made.condition_number)} of {len(plan.columns)} base columns "
        f"(a random motion: {number(made.careless[0])})",
    )
    say(out, f"{plan.label}: {number(plan.value)}, first guess {number(plan.start_value)}\n")
    for k, one in enumerate(made.plans):
        columns = ["joint", "from", "to", "velocity", "acceleration", "torque", "of limit %"]
        rows = [[c if isinstance(c, str) else number(c) for c in row] for row in _joint_rows(made, one)]
        out.print(table(f"Motion {k + 1}", columns, rows, right=columns[1:]))
    made.play.tell(out, folder)
    say(out, bold(made.verdict[1]))
    for note in dict.fromkeys((*made.unseen, *made.notes)):
        say(out, f" • {note}")
    if folder:
        say(out, f"\nLook at {folder}/report.html; the motion is in {folder}. Before you play it: "
                  f"steelyard rehearse ROBOT {folder}")  # fmt: skip


def designed_report(made: Designed) -> str:
    """The page of what was `made`, self-contained."""
    plan = made.plan
    sections = [Section("In numbers", _numbers(made))]
    for k, one in enumerate(made.plans):
        end = f" {k + 1}" if len(made.plans) > 1 else ""
        sections.append(Section(f"The arm in motion{end}", _arm(made, one)))
        sections.append(Section(f"Joints and torques{end}", _signals(made, one)))
    sections += [Section("Slow first", _slow_first(made)), Section("What to expect", _expected(made))]
    sections.append(Section("The search", _search(plan)))
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
    kind, sentence = made.verdict
    return Verdict("good" if kind == "good" else "warning", sentence, (*made.unseen, *points))


def _joint_rows(made: Designed, plan: Plan) -> list[list[str | float | None]]:
    rows: list[list[str | float | None]] = []
    for entry in made._numbers(plan)["joints"]:
        torque, limit = entry["torque"], entry["torque_limit"]
        share = None if torque is None or not np.isfinite(limit) else 100.0 * torque / limit
        rows.append([entry[x] for x in ("joint", "lowest", "highest", "velocity", "acceleration")] + [torque, share])
    return rows


def _numbers(made: Designed) -> Html:
    kinds = {j.unit for j in made.robot.joints}
    unit = kinds.pop() if len(kinds) == 1 else "rad or m"
    units = {"from": unit, "to": unit, "velocity": f"{unit}/s", "acceleration": f"{unit}/s²", "torque": "N m or N"}
    numbers = [*(TableColumn(*pair) for pair in units.items()), TableColumn("of its limit", "%", digits=3)]
    parts = [
        table_html(
            ["joint", *numbers],
            _joint_rows(made, plan),
            "Ranges and peaks" if k == 0 else f"Motion {k + 1}",
            dash="The description gives no inertias, or no limit.",
        )
        for k, plan in enumerate(made.plans)
    ]
    margins: list[list[TableCell]] = [[name, float(-100.0 * x)] for name, x in made.plan.margins.items()]
    room = TableColumn("room left", "% (distances: cm)", places=2)
    parts.append(table_html(["limit", room], margins, "How near the limits come", dash="There is no such limit."))
    parts += [callout("note", note) for note in made.notes]
    return join(*parts)


def _clock(made: Designed, plan: Plan) -> str:
    """What the time of a motion goes by on the page."""
    return f"motion {made.plans.index(plan) + 1}"


def _arm(made: Designed, plan: Plan) -> Html:
    t = plan.trajectory.times(50.0)
    q = plan.trajectory.derivative(t, 0)
    _, origins = link_poses(made.robot, q)
    keep = np.unique(np.linspace(0, len(t) - 1, 800).astype(int))
    way = _workspace_coverage(np.round(origins[keep, -1], 4))
    named = made.settings.get("packages") or ()
    scene = scene_of(made.robot, [(_clock(made, plan), t, q)], named.split(",") if isinstance(named, str) else named)
    return join(
        scene_html(scene, "The arm", "▶ plays it; drag it to turn it."),
        figure_html(way, "Where it goes", "The origin of the last joint."),
    )


def _signals(made: Designed, plan: Plan) -> Html:
    t = plan.trajectory.times(plan.rate)
    names = made.robot.joint_names
    joints = joint_motion(t, *plan.trajectory.sample(t), plan.limits, names)
    joints.clock = _clock(made, plan)
    parts = [
        figure_html(
            joints,
            "Joints",
            "Positions (from the middle of their range), velocities and accelerations as shares of their limits.",
        )
    ]
    found = made.torque(plan)
    if found is None:
        parts.append(paragraph("The description states no inertias, so torques cannot be foretold."))
    else:
        figure = _torque_limits(*found, plan.limits.tau, names, [j.effort_unit for j in made.robot.joints])
        figure.clock = _clock(made, plan)
        parts.append(figure_html(figure, "Torques", "By the nominal model; dashed: the drives' limits."))
    return join(*parts)


def _slow_first(made: Designed) -> Html:
    play, wide = made.play, len(made.plans) > 1
    said = (
        "Play the files in their order: 25 %, then 50 %, then 100 % of the speed, with a hand on the stop, and compare "
        "the torques with these, which the nominal model expects; play.md says how, controller by controller."
    )
    parts = [paragraph(said)]
    for k in range(len(made.plans)):
        title = f"Largest magnitudes by speed, motion {k + 1}" if wide else "Largest magnitudes by speed"
        rows: list[list[TableCell]] = [[name, unit, *sizes] for name, unit, sizes in play.values(k)]
        columns: list[TableColumn | str] = [*play.columns(k)[:2]]
        columns += [TableColumn(head, digits=3) for head in play.columns(k)[2:]]
        parts.append(table_html(columns, rows, title, dash="The description gives no inertias, or no limit."))
    targets = [(name, MOTION_TARGETS[name]) for name in play.targets]
    parts += [paragraph(f"Folder {name}, {target.title}: {target.changes}") for name, target in targets]
    return join(*parts)


def _expected(made: Designed) -> Html:
    plan, careless = made.plan, made.careless[1]
    rows: list[list[TableCell]] = [
        [n, u, float(e), float(r) if np.isfinite(r) else None, float(r / e) if np.isfinite(r) else None]
        for n, u, e, r in zip(plan.columns, plan.units, made.standard_errors, careless, strict=True)
    ]
    noise = ", ".join(f"{n} {number(s)}" for n, s in zip(made.robot.joint_names, made.noise, strict=True))
    said = (
        f"Expected standard errors after one pass of every motion, with white torque noise of {noise} (N m, N) at "
        f"{number(plan.rate)} samples per second and weighted least squares. Beside them those of a random motion of "
        "the same length within the same joint limits."
    )
    numbers = [TableColumn(x, digits=3) for x in ("± expected", "± random motion", "times better")]
    columns: list[TableColumn | str] = ["base parameter", "unit", *numbers]
    return join(
        paragraph(said), table_html(columns, rows, "Standard errors to expect", dash="That motion does not show it.")
    )


def _search(plan: Plan) -> Html:
    said = (
        f"{plan.label}: {number(plan.value)} after {plan.evaluations} evaluations; the first guess had "
        f"{number(plan.start_value)}. The same seed ({plan.seed}) gives the same motion."
    )
    if len(plan.history) < 2:
        return paragraph(said)
    if plan.fitness is not None:
        note = (
            "Where the mean has come up to the best, the population is all alike, and more generations bring little. "
            "The numbers are in fitness.csv."
        )
        return join(paragraph(said), figure_html(fitness_figure(plan.fitness), "Fitness by generation", note))
    return join(paragraph(said), figure_html(_search_history(plan.history, plan.criterion), "Best so far"))
