"""The section of a report that says whether the logs were sound, what their motion shows, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.check import Check, Excitation
from steelyard.ground.arrays import Array
from steelyard.report.elements import Cell, Column, Html, Kind, callout, figure_html, join, paragraph, table_html, text
from steelyard.report.html import Section
from steelyard.report.plots.excitation import singular_values

_KINDS: dict[str, Kind] = {"problem": "bad", "warning": "warning", "note": "note", "ok": "good"}
_GRADES: dict[str, Kind] = {"good": "good", "usable": "warning", "mend": "bad", "unusable": "bad"}


def checked(checks: Sequence[tuple[str, Check]], values: Array) -> Section:
    """Findings log by log, the gravest first; then the singular values of the whole fit's base columns."""
    pieces = [piece for name, found in checks for piece in _log(name, found)]
    figure = figure_html(
        singular_values(values, "1"),
        "Excitation: singular values",
        "Of the base columns of all logs, rows weighted by 1/σ of their joint, columns of unit length. The first over "
        "the last is the condition number: how much less the motion shows its worst combination than its best.",
    )
    return Section("Data and excitation", join(*pieces, figure))


def _log(name: str, found: Check) -> list[Html]:
    pieces = [callout(_GRADES[found.grade], f"{name}: {found.verdict}")]
    said = sorted((e for e in found.entries if e.severity != "ok"), key=lambda e: -e.rank)
    for entry in said:
        what = Html(text(entry.message) + (f"<p>{text(entry.advice)}</p>" if entry.advice else ""))
        pieces.append(callout(_KINDS[entry.severity], what))
    fine = [e.message for e in found.entries if e.severity == "ok"]
    if fine:
        pieces.append(paragraph("Found in order: " + " ".join(fine)))
    return pieces if found.excitation is None else [*pieces, *_motion(name, found.excitation)]


def _motion(name: str, seen: Excitation) -> list[Html]:
    columns: list[Column | str] = ["joint", "position", Column("of its range", "%", places=0)]
    columns += [Column("speed", "1/s", 3), Column("acceleration", "1/s²", 3), Column("standing", "%", places=0)]
    columns += ["shown / small / hidden"]
    rows: list[Sequence[Cell]] = [
        (
            j.joint,
            f"{j.lowest:.3g} … {j.highest:.3g}",
            None if j.range_share is None else 100.0 * j.range_share,
            j.speed,
            j.acceleration,
            100.0 * j.standing,
            f"{j.shown} / {j.small} / {len(j.hidden)}",
        )
        for j in seen.joints
    ]
    hidden = [p for p in seen.parameters if p.shown == "not shown"]
    below = (
        "Shown, small and hidden count base parameters: known to better than 30 %; whatever they are, below 5 % of "
        "every torque; neither."
    )
    out = [table_html(columns, rows, f"The motion of {name} (rad or m), and what it shows"), paragraph(below)]
    if hidden:
        out.append(paragraph("Hidden: " + ", ".join(p.name for p in hidden) + "."))
    return out
