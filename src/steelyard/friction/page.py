"""Friction over velocity on the terminal and as a report page: samples, measured points, fitted laws."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console

from steelyard.errors import SteelyardError
from steelyard.friction.compensation import read_friction
from steelyard.friction.coordinates import Coordinates
from steelyard.friction.laws import Choice
from steelyard.friction.measure import FrictionCurves, JointFriction
from steelyard.friction.plateaus import Plateau
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import NO_SIGN, Known, number, with_error
from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import (
    Html,
    TableColumn,
    callout,
    commands,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import BLUE, MEASURED, PREDICTED, VERMILLION, Figure
from steelyard.report.plots.series import by_joint, decimate_over, in_steps, position_unit, share, units
from steelyard.report.terminal import say, table
from steelyard.robot.robot import Robot

_LINE = 200


def friction_curve(
    velocity: ArrayLike,
    friction: ArrayLike,
    curve_velocity: ArrayLike,
    curve: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
) -> Figure:
    """Draw measured friction as points and the model's friction as a line, one panel per joint.

    Args:
        velocity: Velocities of the points [rad/s or m/s], shape (samples, joints).
        friction: Friction of the points, shape (samples, joints).
        curve_velocity: Velocities of the line [rad/s or m/s], shape (points, joints).
        curve: Friction of the line, shape (points, joints).
        joints: Names of the joints.
        unit: Unit of friction, for all joints or for each.
    """
    n, torque_units = len(joints), units(unit, len(joints))
    v, f = by_joint("velocity", velocity, n), by_joint("friction", friction, n)
    cv, c = by_joint("curve_velocity", curve_velocity, n), by_joint("curve", curve, n)
    figure = Figure.by_joint(joints, shared=False, height=210)
    marker = {"color": MEASURED, "size": 4, "opacity": 0.6}
    for k in range(n):
        keep = decimate_over(v[:, k], f[:, k], share(2 * n))
        order = np.argsort(cv[:, k], kind="stable")
        x, y = in_steps(v[keep, k]), in_steps(f[keep, k])
        figure.add("scatter", k + 1, x=x, y=y, mode="markers", name="measured", marker=marker)
        figure.line(k + 1, cv[order, k], c[order, k], "model", PREDICTED, 2.0)
        _name_axes(figure, k + 1, torque_units[k])
    return figure


def curves_figure(curves: FrictionCurves) -> Figure:
    """Draw the points of `curves` with error bars, and the laws with their bands, one panel per joint."""
    coordinates = Coordinates.of(curves.robot, curves.on)
    return _friction_points(curves.joints, [coordinates.effort_unit(coordinates.index(j.joint)) for j in curves.joints])


def saved_curves_figure(robot: Robot, folder: str | os.PathLike[str]) -> Figure:
    """Draw the curves of a run of `steelyard friction`.

    Args:
        robot: Robot.
        folder: Folder of the run.
    """
    laws = read_friction(folder)
    result = read_json(Path(folder) / RESULT, SteelyardError, "give a run of `steelyard friction`").table(
        ("joints",), ("on",), others=True
    )
    on = cast(Any, result["on"].choice(("joint", "drive")) if "on" in result else "joint")
    coordinates = Coordinates.of(robot, on)
    joints, nothing = [], np.zeros(0)
    for (name, law), entry in zip(laws.items(), result["joints"].items("joint"), strict=True):
        points = []
        for point in entry.table(("points",), others=True)["points"].items("point"):
            at = point.table(("velocity", "torque"), ("standard_error", "temperature"), others=True)
            error = at["standard_error"].number() if "standard_error" in at else 0.0
            warm = at["temperature"].number() if "temperature" in at else None
            v, tau = at["velocity"].number(), at["torque"].number()
            points.append(Plateau(coordinates.index(name), 0.0, 0.0, v, tau, error, nothing, nothing, temperature=warm))
        joints.append(JointFriction(name, tuple(points), Choice(law, {}), ""))
    return _friction_points(joints, [coordinates.effort_unit(coordinates.index(j.joint)) for j in joints])


def _friction_points(joints: Sequence[JointFriction], unit: Sequence[str]) -> Figure:
    """Draw points with error bars, coloured by temperature if it is known, and laws with their bands."""
    figure = Figure.by_joint([j.joint for j in joints], shared=False, height=230)
    figure.titles = tuple(f"{j.joint}: {j.law.law.name}" for j in joints)
    for row, joint in enumerate(joints, start=1):
        marker: dict[str, Any] = {"color": BLUE, "size": 7}
        if joint.law.slopes is not None:
            warm = [p.temperature for p in joint.points]
            marker = {"color": warm, "colorscale": "Cividis", "size": 7, "colorbar": {"title": {"text": "°C"}}}
        bars = {"type": "data", "array": np.asarray(HALF_WIDTH_95 * joint.error), "thickness": 1, "color": BLUE}
        x, y = np.asarray(joint.velocity), np.asarray(joint.torque)
        figure.add("scatter", row, x=x, y=y, error_y=bars, mode="markers", name="measured, 95 %", marker=marker)
        # Separate lines for the directions avoid a line across the jump at zero.
        for side in (-1.0, 1.0):
            _law(figure, row, joint, side)
        _name_axes(figure, row, unit[row - 1])
    return figure


def _law(figure: Figure, row: int, joint: JointFriction, side: float) -> None:
    speeds = np.abs(joint.velocity[side * joint.velocity > 0.0])
    if not speeds.size:
        return
    v = side * np.geomspace(max(speeds.min() / 3.0, 1e-4), speeds.max(), _LINE)
    value, band = joint.law(v), HALF_WIDTH_95 * joint.law.band(v)
    edge = np.concatenate([value + band, (value - band)[::-1]])
    filled = {"fill": "toself", "fillcolor": "rgba(213,94,0,0.15)", "hoverinfo": "skip", "showlegend": False}
    figure.line(row, np.concatenate([v, v[::-1]]), edge, None, VERMILLION, 0, **filled)
    figure.line(row, v, value, "law, 95 % band", VERMILLION, 2.0)


def _name_axes(figure: Figure, row: int, unit: str) -> None:
    figure.x_axis(row, f"velocity [{position_unit(unit)}/s]")
    figure.y_axis(row, f"friction [{unit}]")


def print_friction(curves: FrictionCurves, out: Console, folder: str = "") -> None:
    """Print friction laws and remarks.

    Args:
        curves: Friction curves.
        out: Console to print to.
        folder: Folder of the written files; "" if nothing was written.
    """
    rows = []
    for joint in curves.joints:
        law = joint.law
        parts = [f"{s} {NO_SIGN if s in law.impossible else with_error(c, e)}" for s, c, e in
                 zip(law.law.symbols, law.coefficients, law.standard_errors, strict=False)]  # fmt: skip
        if law.law.shaped:
            parts.append(f"speed {number(law.shape, 2)}")
        rows.append([joint.joint, law.law.name, ", ".join(parts), str(len(joint.points)), joint.how])
    columns = ["joint", "law", "coefficients (N m, rad/s; N, m/s)", "points", "from"]
    out.print(table(f"Friction of {curves.robot.name}", columns, rows, right=("points",)))
    for name, reason in curves.missing.items():
        say(out, f" • {name}: {reason}")
    for joint in curves.joints:
        for note in joint.notes:
            say(out, f" • {joint.joint}: {note}")
    if folder:
        say(out, f"\nWritten to {folder}: result.json, report.html, points.csv")


def friction_report(curves: FrictionCurves) -> str:
    """Render the self-contained page of friction `curves`."""
    robot = curves.robot
    figure = figure_html(
        curves_figure(curves),
        "Friction over velocity",
        "Points are means over constant speed, or knots of a fitted table, with 95 % intervals; the line is the "
        "simplest law whose cross-validation error is within one standard error of the best.",
    )
    laws = table_html(
        ["joint", "law", TableColumn("coefficient"), TableColumn("value"), TableColumn("± standard error", digits=2)],
        [
            [
                j.joint,
                j.law.law.name,
                symbol,
                NO_SIGN if symbol in j.law.impossible else Known(float(value), float(error)),
                float(error),
            ]
            for j in curves.joints
            for symbol, value, error in zip(j.law.law.symbols, j.law.coefficients, j.law.standard_errors, strict=False)
        ],
        "Laws (N m and rad/s; N and m/s for prismatic joints)",
        dash="The standard error is not identifiable from these points.",
    )
    candidates = table_html(
        ["joint", "law", TableColumn("squared error on left-out speeds", "σ²", digits=3)],
        [[j.joint, name, float(score)] for j in curves.joints for name, score in j.choice.scores.items()],
        "Candidates",
        dash="Too few points to leave one out.",
    )
    remarks = [callout("note", f"{j.joint}: {note}") for j in curves.joints for note in j.notes]
    remarks += [callout("warning", f"{name}: {reason}") for name, reason in curves.missing.items()]
    methods = [paragraph(f"{j.joint}: {j.how}.") for j in curves.joints]
    sections = [
        Section("Curves", join(figure, *remarks)),
        Section("Laws", tabs(("chosen", laws), ("candidates", candidates))),
        Section("Next steps", _next(curves)),
        Section("Method", join(*methods)),
    ]
    return render_report(f"{robot.name}: friction", sections, verdict=_verdict(curves))


def _verdict(curves: FrictionCurves) -> Verdict:
    """State the number of joints with a law, and the joints without one."""
    count = len(curves.joints) + len(curves.missing)
    laws = "; ".join(f"{j.joint}: {j.law.law.name}, {len(j.points)} points" for j in curves.joints)
    headline = f"Friction laws are fitted for {len(curves.joints)} of {count} joints."
    points = [laws] if laws else []
    points += [f"{name}: {reason}" for name, reason in curves.missing.items()]
    return Verdict("good" if not curves.missing else "warning" if curves.joints else "bad", headline, tuple(points))


def _next(curves: FrictionCurves) -> Html:
    robot = shlex.quote(curves.robot.source or "ROBOT")
    why = "Identify the other parameters with this friction subtracted from the torques:"
    return commands((why, f"steelyard identify {robot} LOG.csv --friction RUN -o run"))
