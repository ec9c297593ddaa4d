"""Print checks of logs to the terminal and render them as pages."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from steelyard.assumptions.page import assumptions_section, lines
from steelyard.check import Check, Checks, Excitation
from steelyard.check.pictures import FindingPicture
from steelyard.check.severity import MOST_ADVICES, by_severity
from steelyard.ground.arrays import Array
from steelyard.ground.grades import TERMINAL_COLOURS, tone
from steelyard.ground.numbers import number
from steelyard.ground.repeat import repeat_command
from steelyard.report.elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    callout,
    commands,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
    text,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.estimates import singular_values
from steelyard.report.plots.figure import MEASURED, PREDICTED, SKY, Figure
from steelyard.report.plots.ranking import counts
from steelyard.report.terminal import bold, say, table
from steelyard.signals.log import Finding


def print_check(check: Check, out: Console) -> None:
    """Print a check; the verdict and the advice come last.

    Args:
        check: Check of the log.
        out: Console.
    """
    where = f", {check.source}" if check.source else ""
    say(out, bold(check.robot), f"{where}\n")
    if check.excitation is not None:
        _print_motion(check.excitation, out)
    ranked = by_severity(check.entries)
    rows: list[list[str | Text]] = [[Text(e.severity, TERMINAL_COLOURS[tone(e.severity)]), e.message] for e in ranked]
    out.print(table("Findings", ["", "finding"], rows))
    for line in lines(check.assumptions, [e.message for e in ranked]):
        say(out, line)
    say(out, bold(check.verdict))
    for k, advice in enumerate(check.advice):
        say(out, f" {k + 1}. {advice}")


def print_checks(checks: Checks, out: Console) -> None:
    """Print checks of several logs: one row for each log, then the complaints, then the verdict.

    Args:
        checks: Checks of the logs.
        out: Console.
    """
    rows: list[list[str | Text]] = []
    wrong: list[list[str | Text]] = []
    for name, check in zip(checks.names, checks.checks, strict=True):
        counts = [sum(e.severity == s for e in check.entries) for s in ("problem", "warning", "note")]
        ranked = by_severity(check.complaints)
        worst = ranked[0].kind.replace("_", " ") if ranked else "–"
        excitation = check.excitation
        shown = "–" if excitation is None else f"{excitation.rank} of {excitation.count}"
        grade = Text(check.grade, TERMINAL_COLOURS[tone(check.grade)])
        rows.append([name, grade, *(str(n) for n in counts), worst, shown])
        wrong += [[name, Text(e.severity, TERMINAL_COLOURS[tone(e.severity)]), e.message] for e in ranked]
    columns = ["log", "verdict", "problems", "warnings", "notes", "worst", "base columns seen"]
    out.print(table(f"{checks.checks[0].robot}: {len(rows)} logs", columns, rows, right=columns[2:5]))
    if wrong:
        out.print(table("Findings", ["log", "", "finding"], wrong))
    say(out, bold(checks.verdict))
    advice = dict.fromkeys(text for check in checks.checks for text in check.advice)
    for k, words in enumerate(list(advice)[:MOST_ADVICES]):
        say(out, f" {k + 1}. {words}")


def _print_motion(excitation: Excitation, out: Console) -> None:
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
        for j in excitation.joints
    ]
    columns = ["joint", "position", "of range", "speed", "acceleration", "standing", "shown / small / hidden"]
    out.print(table("Motion (SI), and the base parameters it shows", columns, rows, right=columns[1:]))
    condition = number(excitation.condition_number, 3)
    say(
        out,
        f"{excitation.rank} of {excitation.count} base columns independent (identifiable parameters); cond₂ "
        f"{condition} (rows weighted by 1/σ, columns of unit length), "
        f"{number(excitation.unscaled_condition_number, 3)} (unscaled columns)\n",
    )


def checked(checks: Sequence[tuple[str, Check]], values: Array) -> Section:
    """Render the section on data and excitation: findings by log, most severe first, and singular values.

    Args:
        checks: Name and check of each log.
        values: Singular values of the base columns of all logs.
    """
    logs = [(name, join(*_log(name, found))) for name, found in checks]
    pieces = [tabs(*logs)] if logs else []
    figure = figure_html(
        singular_values(values, "1"),
        "Excitation: singular values",
        "Of the base columns of all logs, rows weighted by 1/σ of their joint, columns of unit length. The first over "
        "the last is the condition number: how much less the motion shows its worst combination than its best.",
    )
    return Section("Data and excitation", join(*pieces, figure))


def check_report(checks: Sequence[tuple[str, Check]], robot: str) -> str:
    """Render the page of checks; the worst log decides the verdict.

    Args:
        checks: Name and check of each log.
        robot: Name of the robot.
    """
    logs = [(Path(name).name, join(*_log(Path(name).name, check))) for name, check in checks]
    excitations = [(Path(name).name, check.excitation) for name, check in checks if check.excitation is not None]
    sections = [Section("Findings", tabs(*logs))]
    if excitations:
        sections.append(Section("What the motion shows", tabs(*((name, _shown_by(one)) for name, one in excitations))))
    sections.append(Section("What next", _next([name for name, _ in checks], _worst(checks))))
    title = f"{robot}: logs checked" if len(checks) > 1 else f"{robot}: a log checked"
    return render_report(title, sections, verdict=check_verdict(checks))


def check_verdict(checks: Sequence[tuple[str, Check]]) -> Verdict:
    """Give the verdict on all `checks`, (name, check) by log: that of the worst log."""
    worst = _worst(checks)
    headline = worst.verdict if len(checks) == 1 else _summary([check for _, check in checks])
    return Verdict(tone(worst.grade), headline, tuple(worst.advice))


def _worst(checks: Sequence[tuple[str, Check]]) -> Check:
    return max((check for _, check in checks), key=lambda check: (check.exit_code, check.grade == "usable"))


def _summary(checks: Sequence[Check]) -> str:
    good = sum(not check.exit_code for check in checks)
    return f"{good} of {len(checks)} logs can be identified from."


def _shown_by(excitation: Excitation) -> Html:
    """Draw the counts by joint, and list every base parameter with its relative error."""
    parts = {
        "shown": [j.shown for j in excitation.joints],
        "small": [j.small for j in excitation.joints],
        "hidden": [len(j.hidden) for j in excitation.joints],
    }
    figure = counts([j.joint for j in excitation.joints], parts, "base parameters [1]")
    about = "Shown: known to better than 30 %; small: surely below 5 % of every torque; hidden: neither."
    ranked = sorted(excitation.parameters, key=lambda p: -(p.relative_error or np.inf))
    rows: list[Sequence[TableCell]] = [
        (
            p.name,
            p.joint,
            p.value,
            p.standard_error,
            Heat(None if p.relative_error is None else 100.0 * p.relative_error, _level(p.relative_error)),
            p.shown,
        )
        for p in ranked
    ]
    columns: list[TableColumn | str] = ["base parameter", "joint", TableColumn("value"), TableColumn("standard error")]
    columns += [TableColumn("of its value", "%", digits=3), ""]
    title = "Identifiable (base) parameters by this log alone, the largest relative error first"
    dash = "The motion does not show it, or it is zero."
    listed = table_html(columns, rows, title, dash=dash, tall=len(rows) > 16)
    return join(figure_html(figure, "Base parameters that the motion shows", about), listed)


def _level(relative: float | None) -> float:
    """Scale a relative error: 0 at 1 %, 1 at 100 % or if it is unknown."""
    return 1.0 if relative is None else float(np.clip(1.0 + 0.5 * np.log10(max(relative, 1e-9)), 0.0, 1.0))


def _next(logs: Sequence[str], worst: Check) -> Html:
    """Suggest the next commands, with the robot and the mapping of the present command."""
    words = shlex.split(repeat_command())
    words = words[2:] if words[1:2] == ["--project"] else words
    robot = shlex.quote(words[2]) if len(words) > 2 else "ROBOT"
    named = " ".join(shlex.quote(log) for log in logs)
    mapped = f" --map {shlex.quote(words[words.index('--map') + 1])}" if "--map" in words[:-1] else ""
    pairs = []
    if worst.exit_code:
        pairs.append(
            ("Fix the faults that a mapping can fix:", f"steelyard check {robot} {named}{mapped} --fix mended.toml")
        )
    else:
        pairs.append(("Identify from it:", f"steelyard identify {robot} {named}{mapped} --holdout 0.3 -o run"))
    given = " ".join(f"--given {shlex.quote(log)}" for log in logs)
    pairs.append(("Plan a motion for the hidden parameters:", f"steelyard excite {robot} {given}{mapped} -o motion"))
    return commands(*pairs)


def _log(name: str, check: Check) -> list[Html]:
    pieces = [callout(tone(check.grade), f"{name}: {check.verdict}")]
    section = assumptions_section(check.assumptions)
    assumed = [] if section is None else [section.body]
    return [*pieces, *findings_html(check), in_order(check), *motion_html(name, check), *assumed]


def findings_html(check: Check, more: Callable[[Finding], str] = lambda _: "") -> list[Html]:
    """Render the findings with their pictures, most severe first.

    Args:
        check: Check of the log.
        more: Gives further HTML for a finding.
    """
    said = [e for e in by_severity(check.entries) if e.severity != "ok"]
    return [_finding(e, check.pictures.get(e.key), more(e)) for e in said]


def _finding(entry: Finding, picture: FindingPicture | None, more: str) -> Html:
    what = Html(text(entry.message) + (f"<p>{text(entry.advice)}</p>" if entry.advice else "") + more)
    said = callout(tone(entry.severity), what)
    return said if picture is None else join(said, figure_html(finding_figure(picture), picture.title, picture.about))


def in_order(check: Check) -> Html:
    """Render the entries of `check` without a fault."""
    fine = [e.message for e in check.entries if e.severity == "ok"]
    return paragraph("No fault: " + " ".join(fine)) if fine else Html("")


_LOOKS = {"measured": (MEASURED, 1.0), "expected": (PREDICTED, 2.2), "other": (SKY, 1.4)}


def finding_figure(picture: FindingPicture) -> Figure:
    """Draw the `picture` of a finding."""
    figure = Figure(260)
    for line in picture.lines:
        if line.role == "points":
            marker = {"color": MEASURED, "size": 3, "opacity": 0.5}
            figure.add("scatter", x=list(line.x), y=list(line.y), mode="markers", name=line.name, marker=marker)
            continue
        colour, width = _LOOKS[line.role]
        figure.line(1, line.x, line.y, line.name, colour, width)
    for bound in picture.bounds:
        figure.bound(1, bound)
    figure.x_axis(1, picture.across)
    figure.y_axis(1, picture.up)
    return figure


def motion_html(name: str, check: Check) -> list[Html]:
    """Render the motion of a log; nothing if the log is too broken.

    Args:
        name: Name of the log.
        check: Check of the log.
    """
    if check.excitation is None:
        return []
    excitation = check.excitation
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
        for j in excitation.joints
    ]
    hidden = [p for p in excitation.parameters if p.shown == "not shown"]
    below = (
        "Shown, small and hidden count base parameters: known to better than 30 %; surely below 5 % of "
        "every torque; neither."
    )
    title = f"The motion of {name} (rad or m), and what it shows"
    out = [table_html(columns, rows, title, dash="The joint has no limits."), paragraph(below)]
    if hidden:
        out.append(paragraph("Hidden: " + ", ".join(p.name for p in hidden) + "."))
    return out
