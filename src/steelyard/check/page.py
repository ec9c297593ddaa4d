"""The check of a log, for the terminal and as a section of a report: is it sound, what does it show, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from steelyard.check import Check, Checks, Excitation
from steelyard.check.check import MOST_ADVICES
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
from steelyard.report.elements import (
    CalloutKind,
    Html,
    TableCell,
    TableColumn,
    callout,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
    text,
)
from steelyard.report.html import Section
from steelyard.report.plots.estimates import singular_values
from steelyard.report.terminal import bold, say, table

_COLOURS = {"warning": "yellow", "problem": "red"}
_KINDS: dict[str, CalloutKind] = {"problem": "bad", "warning": "warning", "note": "note", "ok": "good"}
_GRADES: dict[str, CalloutKind] = {"good": "good", "usable": "warning", "mend": "bad", "unusable": "bad"}


def print_check(found: Check, out: Console) -> None:
    """Write all that was `found` to `out`, the verdict and the advice last, where the eye is."""
    where = f", {found.source}" if found.source else ""
    say(out, bold(found.robot), f"{where}\n")
    if found.excitation is not None:
        _print_motion(found.excitation, out)
    ranked = sorted(found.entries, key=lambda e: -e.rank)
    rows: list[list[str | Text]] = [[Text(e.severity, _COLOURS.get(e.severity, "")), e.message] for e in ranked]
    out.print(table("Findings", ["", "what was found"], rows))
    say(out, bold(found.verdict))
    for k, advice in enumerate(found.advice):
        say(out, f" {k + 1}. {advice}")


def print_checks(found: Checks, out: Console) -> None:
    """Write what was `found` in several logs to `out`: one row for each, then what is wrong, then the verdict."""
    rows: list[list[str | Text]] = []
    wrong: list[list[str | Text]] = []
    for name, check in zip(found.names, found.checks, strict=True):
        counts = [sum(e.severity == s for e in check.entries) for s in ("problem", "warning", "note")]
        ranked = sorted(check.complaints, key=lambda e: -e.rank)
        worst = ranked[0].kind.replace("_", " ") if ranked else "–"
        seen = check.excitation
        shown = "–" if seen is None else f"{seen.rank} of {seen.count}"
        grade = Text(check.grade, {"warning": "yellow", "bad": "red"}.get(_GRADES[check.grade], ""))
        rows.append([name, grade, *(str(n) for n in counts), worst, shown])
        wrong += [[name, Text(e.severity, _COLOURS.get(e.severity, "")), e.message] for e in ranked]
    columns = ["log", "verdict", "problems", "warnings", "notes", "worst", "base columns seen"]
    out.print(table(f"{found.checks[0].robot}: {len(rows)} logs", columns, rows, right=columns[2:5]))
    if wrong:
        out.print(table("Findings", ["log", "", "what was found"], wrong))
    say(out, bold(found.verdict))
    advice = dict.fromkeys(text for check in found.checks for text in check.advice)
    for k, words in enumerate(list(advice)[:MOST_ADVICES]):
        say(out, f" {k + 1}. {words}")


def _print_motion(seen: Excitation, out: Console) -> None:
    rows = [
        [
            j.joint,
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
    say(
        out,
        f"{seen.rank} of {seen.count} base columns independent; cond₂ {condition} (rows weighted by 1/σ, columns of "
        f"unit length), {number(seen.unscaled_condition_number, 3)} (columns as they stand)\n",
    )


def checked(checks: Sequence[tuple[str, Check]], values: Array) -> Section:
    """Findings of `checks`, (name, check) by log, the gravest first; then singular `values` of the base columns."""
    logs = [(name, join(*_log(name, found))) for name, found in checks]
    pieces = [tabs(*logs)] if logs else []
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
    columns: list[TableColumn | str] = ["joint", "position", TableColumn("of its range", "%", places=0)]
    columns += [
        TableColumn("speed", "1/s", 3),
        TableColumn("acceleration", "1/s²", 3),
        TableColumn("standing", "%", places=0),
    ]
    columns += ["shown / small / hidden"]
    rows: list[Sequence[TableCell]] = [
        (
            j.joint,
            f"{number(j.lowest, 3)} … {number(j.highest, 3)}",
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
    title = f"The motion of {name} (rad or m), and what it shows"
    out = [table_html(columns, rows, title, dash="The joint has no limits."), paragraph(below)]
    if hidden:
        out.append(paragraph("Hidden: " + ", ".join(p.name for p in hidden) + "."))
    return out
