"""Gravity from poses at rest, on the terminal and as a report page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.console import Console

from steelyard.gravity.next_poses import next_poses
from steelyard.ground.numbers import Known, number, percent
from steelyard.report.elements import Html, TableCell, TableColumn, commands, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import BLUE, VERMILLION, Figure
from steelyard.report.plots.series import in_steps
from steelyard.report.terminal import say, say_headline, table

if TYPE_CHECKING:
    from steelyard.gravity.gravity_model import GravityModel

_MOST_SHOWN = 40
_FRICTION = {"noise": "as noise", "side": "against the last motion", "tube": "any value in a tube"}


def tell_gravity(gravity: GravityModel, out: Console, folder: str = "") -> None:
    """Print a gravity model.

    Args:
        gravity: Gravity model.
        out: Console to print to.
        folder: Run folder that was written; "" for none.
    """
    glance = gravity.headline()
    head = ["joint", "unit", "torque std", "error", "error %", "with friction %", "friction ±", "kind", "± workspace"]
    out.print(table(_title(gravity), head, _joint_rows(gravity), right=head[2:7] + head[8:]))
    say_headline(out, glance)
    if folder:
        say(out, f"\nWritten to {folder}: gravity in C, poses.csv, next_poses.csv, result.json, report.html.")


def gravity_page(gravity: GravityModel) -> str:
    """Render the report of a `gravity` model."""
    glance = gravity.headline()
    sections = [
        Section(
            "Joints", join(joints_html(gravity), figure_html(_errors(gravity), "Errors at left-out poses", _CAPTION))
        ),
        Section("Parameters", join(_parameters(gravity), _links(gravity))),
        Section("What stays unknown", _unknown(gravity)),
        Section("Next poses", _next(gravity)),
    ]
    verdict = Verdict(glance.kind, glance.sentence, glance.points)
    return render_report(f"{gravity.robot.name}: gravity", sections, verdict=verdict)


_CAPTION = "Measured torque minus gravity and offset, at poses outside of the fit; the row counts from 1."


def _title(gravity: GravityModel) -> str:
    return f"Gravity of {gravity.robot.name} from {len(gravity.poses)} poses, scored at left-out poses"


def _joint_rows(gravity: GravityModel) -> list[list[str]]:
    score = gravity.scores["left-out poses"]
    rows = []
    for k, joint in enumerate(gravity.robot.joints):
        f = gravity.friction[k]
        both = percent(100.0 * float(score.rms_with_friction[k]) / max(float(score.std[k]), 1e-300))
        rows.append(
            [joint.name, joint.effort_unit, number(float(score.std[k]), 3), number(float(score.rms[k]), 2),
             percent(float(score.percent[k])), both, number(abs(f.limit) or f.half_width, 2), _FRICTION[f.kind],
             number(float(gravity.workspace_band[k]), 2)]
        )  # fmt: skip
    return rows


def joints_html(gravity: GravityModel) -> Html:
    """Return the table of the joints of a `gravity` model: errors, friction, band."""
    heads = ["joint", "unit", "torque std", "error", "% of std", "% with friction", "friction ±", "", "± 95 % anywhere"]
    below = (
        "Error: root mean square at left-out poses, of gravity and offset alone, and with the friction against the "
        "last motion. The last column is half the width of the 95 % interval of the gravity torque within the joint "
        "limits."
    )
    pieces = [
        table_html(heads, cast(list[Sequence[TableCell]], _joint_rows(gravity)), _title(gravity)),
        paragraph(below),
    ]
    if "validation" in gravity.scores:
        score = gravity.scores["validation"]
        rows: list[Sequence[TableCell]] = [
            (j.name, float(score.rms[k]), float(score.percent[k]), float(score.rms_with_friction[k]))
            for k, j in enumerate(gravity.robot.joints)
        ]
        pieces.append(table_html(["joint", "error", "% of std", "error with friction"], rows,
                                 f"{score.poses} poses for validation"))  # fmt: skip
    return join(*pieces)


def _errors(gravity: GravityModel) -> Figure:
    figure = Figure.by_joint(gravity.robot.joint_names, shared=True, height=140)
    x = np.arange(1, len(gravity.poses) + 1, dtype=float)
    marker = {"color": BLUE, "size": 5, "opacity": 0.8}
    for k in range(gravity.robot.dof):
        figure.add("scatter", k + 1, x=in_steps(x), y=in_steps(gravity.errors[:, k]), mode="markers", name="error",
                   marker=marker)  # fmt: skip
        limit = gravity.friction[k].half_width + gravity.friction[k].limit * (gravity.friction[k].kind == "side")
        for sign in (-1.0, 1.0):
            figure.line(k + 1, x[[0, -1]], np.full(2, sign * limit), "friction", VERMILLION, 1.0)
    return figure


def _parameters(gravity: GravityModel) -> Html:
    names, units = gravity.columns.base_names, gravity.columns.units
    rows: list[Sequence[TableCell]] = [
        (name, unit, Known(float(b), float(h)), float(h), "left open by the poses" if o else "")
        for name, unit, b, h, o in zip(names, units, gravity.beta, gravity.half_widths, gravity.open, strict=True)
    ]
    columns: list[TableColumn | str] = ["combination", "unit", "value", TableColumn("± 95 %", digits=2), ""]
    return table_html(columns, rows, "Identifiable combinations of masses, first moments and offsets")


def _links(gravity: GravityModel) -> Html:
    blocks = gravity.model.theta[: gravity.robot.inertial_count].reshape(-1, 10)
    rows: list[Sequence[TableCell]] = [
        (name, float(b[0]), *(1000.0 * float(x) / max(float(b[0]), 1e-300) for x in b[1:4]),
         "at a bound" if name in gravity.border else "")
        for name, b in zip(gravity.robot.link_names, blocks, strict=True)
    ]  # fmt: skip
    below = (
        "One robot among those with the same gravity torque: masses are positive and centres of mass within reach. A "
        "single mass is meaningful only if the table above lists it alone."
    )
    heads = ["link", "mass, kg", "centre x, mm", "y", "z", ""]
    return join(table_html(heads, rows, "Links of the exported model"), paragraph(below))


def _unknown(gravity: GravityModel) -> Html:
    lines = [paragraph("Inertias, rotor inertias and friction in motion: a robot at rest does not show them.")]
    if gravity.columns.invisible:
        lines.append(paragraph(f"No pose shows {', '.join(gravity.columns.invisible)}: they do not act on any joint."))
    hidden = [n for n, o in zip(gravity.columns.base_names, gravity.open, strict=True) if o]
    if hidden:
        lines.append(paragraph(f"These poses leave open: {'; '.join(hidden)}."))
    return join(*lines)


def _next(gravity: GravityModel) -> Html:
    q, bands = next_poses(gravity)
    names = gravity.robot.joint_names
    rows: list[Sequence[TableCell]] = [
        (str(k + 1), *(float(x) for x in row), float(np.max(bands[k]))) for k, row in enumerate(q)
    ]
    heads = ["", *names, "largest ± 95 % left"]
    source = shlex.quote(gravity.robot.source or "ROBOT")
    below = (
        "Each pose reduces the error of the gravity torque within the joint limits most. Check it for collisions, and "
        "approach it from both sides of every joint."
    )
    more = commands(("Poses with collision checks:", f"steelyard excite {source} --poses 30 --collision -o poses"))
    return join(table_html(heads, rows, "Poses to hold next, rad (m)"), paragraph(below), more)
