"""Friction curves for the terminal and as a page; a weighed load for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from steelyard.friction.measure import FrictionCurves
from steelyard.payload.load import Load
from steelyard.report.elements import Column, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.friction import friction_points
from steelyard.report.terminal import number, table


def print_friction(found: FrictionCurves, out: Console, folder: str = "") -> None:
    rows = []
    for joint in found.joints:
        law = joint.law
        parts = [f"{s} {number(c, 3)} ± {number(e, 2)}" for s, c, e in
                 zip(law.law.symbols, law.coefficients, law.standard_errors, strict=False)]  # fmt: skip
        if law.law.shaped:
            parts.append(f"speed {number(law.shape, 2)}")
        rows.append([escape(joint.joint), law.law.name, ", ".join(parts), str(len(joint.points)), escape(joint.how)])
    columns = ["joint", "law", "coefficients (N m, rad/s; N, m/s)", "points", "from"]
    out.print(table(f"Friction of {escape(found.robot.name)}", columns, rows, right=("points",)))
    for name, reason in found.missing.items():
        out.print(f" • {escape(name)}: {escape(reason)}")
    for joint in found.joints:
        for note in joint.notes:
            out.print(f" • {escape(joint.joint)}: {escape(note)}")
    if folder:
        out.print(f"\nWritten to {escape(folder)}: result.json, report.html, points.csv")


def friction_report(found: FrictionCurves) -> str:
    """The page, self-contained."""
    robot = found.robot
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
    return render_report(f"{robot.name}: friction", sections)


def print_load(load: Load, out: Console, folder: str = "") -> None:
    """Mass, centre of gravity and inertia with their error bars, in the units that robot makers ask for."""
    low, high = load.interval()
    cog, cog_error = 1000.0 * load.center_of_gravity, 1000.0 * load.center_of_gravity_error
    moments = [(i, j) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    names = "xyz"
    rows = [["mass", "kg", number(load.mass), number(load.mass_error, 2)]]
    rows += [[f"centre of gravity {names[k]}", "mm", number(cog[k]), number(cog_error[k], 2)] for k in range(3)]
    rows += [
        [f"inertia {names[i]}{names[j]}", "kg m²", number(load.inertia[i, j], 3), number(error, 2)]
        for (i, j), error in zip(moments, load.inertia_error, strict=True)
    ]
    title = f"Load in frame '{load.frame}', inertia about its centre of gravity"
    out.print(
        table(escape(title), ["", "unit", "value", "± standard error"], rows, right=("value", "± standard error"))
    )
    out.print(f"The mass lies between {number(low)} and {number(high)} kg with 95 % confidence.")
    for note in load.notes:
        out.print(f" • {escape(note)}")
    if folder:
        out.print(f"\nWritten to {escape(folder)}: result.json, load.csv, load.yaml and the robot with it.")
