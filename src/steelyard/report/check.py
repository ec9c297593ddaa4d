"""The check of a log for the terminal: what was found, what the motion shows, and what to do."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from steelyard.check import Check, Excitation
from steelyard.report.terminal import number, table

_MARKS = {"ok": "ok", "note": "note", "warning": "[yellow]warning[/yellow]", "problem": "[red]problem[/red]"}


def print_check(found: Check, out: Console) -> None:
    """Write all of it, the verdict and the advice last, where the eye is."""
    where = f", {escape(found.source)}" if found.source else ""
    out.print(f"[bold]{escape(found.robot)}[/bold]{where}\n")
    if found.excitation is not None:
        _motion(found.excitation, out)
    ranked = sorted(found.entries, key=lambda e: -e.rank)
    rows = [[_MARKS[e.severity], escape(e.message)] for e in ranked]
    out.print(table("Findings", ["", "what was found"], rows))
    out.print(f"[bold]{escape(found.verdict)}[/bold]")
    for k, advice in enumerate(found.advice):
        out.print(f" {k + 1}. {escape(advice)}")


def _motion(seen: Excitation, out: Console) -> None:
    rows = [
        [
            escape(j.joint),
            f"{number(j.lowest, 3)} … {number(j.highest, 3)}",
            "–" if j.range_share is None else f"{100 * j.range_share:.0f} %",
            number(j.speed, 3),
            number(j.acceleration, 3),
            f"{100 * j.standing:.0f} %",
            f"{j.shown} / {j.small} / {len(j.hidden)}",
        ]
        for j in seen.joints
    ]
    columns = ["joint", "position", "of range", "speed", "acceleration", "standing", "shown / small / hidden"]
    out.print(table("Motion (SI), and the base parameters it shows", columns, rows, right=columns[1:]))
    condition = number(seen.condition_number, 3)
    out.print(
        f"{seen.rank} of {seen.count} base columns independent; cond₂ {condition} (rows weighted by 1/σ, columns of "
        f"unit length), {number(seen.unscaled_condition_number, 3)} (columns as they stand)\n"
    )
