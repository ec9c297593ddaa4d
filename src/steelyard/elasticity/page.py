"""Report page and terminal text of an `Elasticity`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.elasticity.elasticity import Elasticity
from steelyard.elasticity.joint_elasticity import Interval, JointElasticity
from steelyard.ground.numbers import DASH, Known, number, percent
from steelyard.report.elements import Html, TableCell, TableColumn, join, paragraph, table_html, whisker
from steelyard.report.html import Section, Verdict, render_report

if TYPE_CHECKING:
    from rich.console import Console


def print_elasticity(result: Elasticity, out: Console, folder: str = "") -> None:
    """Print a result.

    Args:
        result: Result to print.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    from steelyard.report.terminal import say, say_headline, table

    glance = result.headline()
    rows = [
        [x.joint, _stiffness(x), _range(x), x.stiffness_unit, _known(x.damping), _known(x.rotor or x.link),
         _known(x.skew, 1e3), percent(100.0 * x.explained, 5) if np.isfinite(x.explained) else DASH,
         percent(100.0 * min(x.held_out.values()), 5) if x.held_out else DASH]
        for x in result.joints
    ]  # fmt: skip
    head = ["joint", "stiffness", "95 %", "unit", "damping", "rotor", "skew ms", "explained %", "validation %"]
    out.print(table(f"Elastic joints of {result.robot.name}", head, rows, right=[*head[1:3], *head[4:]]))
    say_headline(out, glance)
    if folder:
        say(out, f"\nWritten to {folder}: result.json, report.html, {', '.join(result.files())}.")


def elasticity_report(result: Elasticity) -> str:
    """Render the page of a `result`."""
    glance = result.headline()
    sections = [Section("Stiffness", _joints(result))]
    if any(x.by_log for x in result.joints):
        sections.append(Section("Repetition", _repetition(result)))
    if any(x.skew is not None for x in result.joints):
        sections.append(Section("Encoders and friction", _encoders(result)))
    if any(x.frequencies for x in result.joints):
        sections.append(Section("Resonances", _frequencies(result)))
    return render_report(
        f"{result.robot.name}: elastic joints", sections, verdict=Verdict(glance.kind, glance.sentence, glance.points)
    )


def _stiffness(x: JointElasticity) -> str:
    return number(x.stiffness, 3) if x.known else "not known"


def _range(x: JointElasticity) -> str:
    if not x.known:
        return DASH
    low, high = x.stiffness_interval
    return f"{number(low, 3)} to {number(high, 3) if np.isfinite(high) else '∞'}"


def _known(x: Interval | None, scale: float = 1.0) -> str:
    return DASH if x is None else f"{number(scale * x.value, 3)} ± {number(scale * x.half_width, 2)}"


def _cell(x: Interval | None, scale: float = 1.0) -> list[TableCell]:
    return [None, None] if x is None else [Known(scale * x.value, scale * x.half_width), scale * x.half_width]


def _joints(result: Elasticity) -> Html:
    rows: list[list[TableCell]] = []
    for x in result.joints:
        low, high = x.stiffness_interval
        own: list[TableCell] = [x.stiffness, low, high if np.isfinite(high) else None] if x.known else [None] * 3
        rows.append([x.joint, *own, x.stiffness_unit, *_cell(x.damping), *_cell(x.rotor), x.unknown])
    heads: list[TableColumn | str] = [
        "joint", "stiffness", "from", "to", "unit", "damping", TableColumn("± 95 %", digits=2), "rotor",
        TableColumn("± 95 %", digits=2), "not known because",
    ]  # fmt: skip
    below = (
        "The interval of the stiffness is the reciprocal of the compliance interval, so it is not symmetric. Rotor: "
        "inertia of the rotor over the gear."
    )
    return join(table_html(heads, rows, "Stiffness of the joints", dash="Not known."), paragraph(below))


def _repetition(result: Elasticity) -> Html:
    rows: list[list[TableCell]] = []
    for x in result.joints:
        for name, own in (("all logs", x.compliance), *x.by_log.items()):
            rows.append([x.joint, name, whisker(own.value, own.half_width, None), *_cell(own, 1e6)])
    heads: list[TableColumn | str] = [
        "joint", "log", "compliance", "µrad/(N m)", TableColumn("± 95 %", digits=2),
    ]  # fmt: skip
    return table_html(heads, rows, "Compliance of each log alone", dash="Not available.")


def _encoders(result: Elasticity) -> Html:
    rows: list[list[TableCell]] = [
        [x.joint, *_cell(x.skew, 1e3), 100.0 * x.explained, 100.0 * x.without_skew,
         100.0 * min(x.held_out.values()) if x.held_out else None, *x.friction, *_cell(x.hysteresis, 1e3)]
        for x in result.joints
    ]  # fmt: skip
    heads: list[TableColumn | str] = [
        "joint", TableColumn("skew", "ms"), TableColumn("± 95 %", "ms", digits=2),
        TableColumn("explained", "%", digits=4), TableColumn("without skew", "%", digits=4),
        TableColumn("validation", "%", digits=4), "Coulomb", "viscous", TableColumn("hysteresis", "mrad"),
        TableColumn("± 95 %", "mrad", digits=2),
    ]  # fmt: skip
    below = (
        "Skew: lag of the link encoder. Explained: share of the variance of the deflection about the mean of each log, "
        "while the joint moves and away from reversals; 'without skew' after the removal of the skew. Coulomb and "
        "viscous friction act on the motor; the hysteresis of the deflection excludes this friction."
    )
    return join(table_html(heads, rows, "Encoders and friction", dash="Not available."), paragraph(below))


def _frequencies(result: Elasticity) -> Html:
    rows: list[list[TableCell]] = [
        [x.joint, *_cell(x.frequencies[0]), *_cell(x.frequencies[1]), *_cell(x.rotor), *_cell(x.link)]
        for x in result.joints
        if x.frequencies
    ]
    plus = TableColumn("± 95 %", digits=2)
    heads: list[TableColumn | str] = [
        "joint", TableColumn("antiresonance", "Hz"), plus, TableColumn("resonance", "Hz"), plus, "rotor", plus, "link",
        plus,
    ]  # fmt: skip
    return table_html(heads, rows, "Antiresonance and resonance", dash="Not available.")
