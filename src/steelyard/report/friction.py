"""Friction curves for the terminal and as a page."""

from __future__ import annotations

from importlib.metadata import version

from rich.console import Console
from rich.markup import escape

from steelyard.friction.measure import FrictionCurves
from steelyard.report.elements import Column, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.friction_points import friction_points
from steelyard.report.terminal import number, table
from steelyard.robot.robot import Robot


def print_friction(found: FrictionCurves, robot: Robot, out: Console, folder: str = "") -> None:
    rows = []
    for joint in found.joints:
        law = joint.law
        parts = [f"{s} {number(c, 3)} ± {number(e, 2)}" for s, c, e in
                 zip(law.law.symbols, law.coefficients, law.standard_errors, strict=False)]  # fmt: skip
        if law.law.shaped:
            parts.append(f"speed {number(law.shape, 2)}")
        rows.append([escape(joint.joint), law.law.name, ", ".join(parts), str(len(joint.points)), escape(joint.how)])
    columns = ["joint", "law", "coefficients (N m, rad/s; N, m/s)", "points", "from"]
    out.print(table(f"Friction of {escape(robot.name)}", columns, rows, right=("points",)))
    for name, reason in found.missing.items():
        out.print(f" • {escape(name)}: {escape(reason)}")
    for joint in found.joints:
        for note in joint.notes:
            out.print(f" • {escape(joint.joint)}: {escape(note)}")
    if folder:
        out.print(f"\nWritten to {escape(folder)}: result.json, report.html, points.csv")


def friction_report(found: FrictionCurves, robot: Robot) -> str:
    """The page, self-contained."""
    units = [robot.joints[robot.joint_index(j.joint)].effort_unit for j in found.joints]
    figure = figure_html(
        friction_points(found.joints, units),
        "Friction over velocity",
        "Points are means over constant speed, or knots of a fitted table, with 95 % intervals; the line is the law "
        "that predicts left-out speeds best, or nearly so with fewer coefficients.",
    )
    laws = table_html(
        ["joint", "law", Column("coefficient"), Column("value"), Column("± standard error", digits=2)],
        [
            [j.joint, j.law.law.name, symbol, float(value), float(error)]
            for j in found.joints
            for symbol, value, error in zip(j.law.law.symbols, j.law.coefficients, j.law.standard_errors, strict=False)
        ],
        "Laws (N m and rad/s; N and m/s on slides)",
    )
    tried = table_html(
        ["joint", "law", Column("squared error on left-out speeds", "σ²", digits=3)],
        [[j.joint, name, float(score)] for j in found.joints for name, score in j.choice.scores.items()],
        "Candidates",
    )
    remarks = [callout("note", f"{j.joint}: {note}") for j in found.joints for note in j.notes]
    remarks += [callout("warning", f"{name}: {reason}") for name, reason in found.missing.items()]
    how = [paragraph(f"{j.joint}: {j.how}.") for j in found.joints]
    sections = [
        Section("Curves", join(figure, *remarks)),
        Section("Laws", join(laws, tried)),
        Section("How", join(*how)),
    ]
    return render_report(f"{robot.name}: friction", sections, footer=f"Made by steelyard {version('steelyard')}.")
