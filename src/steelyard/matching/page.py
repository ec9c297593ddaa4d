"""Report page and terminal text of a matched robot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.ground.numbers import number
from steelyard.matching.log_windows import Windows
from steelyard.matching.rollout_score import error_shares, match_verdict, simulate_stretch
from steelyard.report import (
    Figure,
    Html,
    Line,
    Panel,
    Section,
    TableCell,
    figure_html,
    join,
    line_panels,
    paragraph,
    render_report,
    table_html,
    whisker,
)

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.matching.match_result import Match, MatchedNumber

_NUMBERS = ("number", "joint", "unit", "interval", "value", "± 95 %", "description", "")
_ERRORS = ("joint", "windows", "whole run", "% of motion", "description", "fit")


def match_report(match: Match) -> str:
    """Render the page of a `match`."""
    sections = [
        Section("Rollouts", join(*_rollouts(match))),
        Section("Joints and drives", join(*_joints(match))),
        Section("Links", join(*_links(match))),
        Section("Frequency", join(*_frequency(match))),
        Section("Files", _about_files()),
    ]
    return render_report(f"{match.robot.name}: match", sections, verdict=match_verdict(match))


def _error_rows(match: Match) -> list[list[str]]:
    """Return the rows of the table of errors of a `match`: joint, errors in milli-units, shares."""
    own, before, fit = (match.scores[x] for x in ("hold-out", "description", "fit"))
    shares = error_shares(match)
    return [
        [name, *(number(1e3 * float(x), 3) for x in (own.windows_rms[j], own.run_rms[j])),
         number(100 * shares[j], 2), *(number(1e3 * float(s.windows_rms[j]), 3) for s in (before, fit))]
        for j, name in enumerate(match.robot.joint_names)
    ]  # fmt: skip


def _rollouts(match: Match) -> list[Html]:
    score = match.scores["hold-out"]
    where = "the left-out motion" if match.test else "the motion of the fit (none was left out)"
    text = (
        f"Root mean square of measured minus simulated positions in mrad or mm, on {where}: in windows of "
        f"{number(score.window_s, 3)} s and over whole runs, which start from measured states and see only the goals."
    )
    return [
        table_html(_ERRORS, _error_rows(match), "Errors of rollouts"),
        paragraph(text),
        figure_html(_positions(match), "Longest run", "Goal, measured position, and simulation of the whole run."),
    ]


def _positions(match: Match) -> Figure:
    longest = max(match.test or match.train, key=len)
    windows = Windows.of([longest], np.inf, match.steps)
    residuals, _ = simulate_stretch(match.physics, match.point, windows)
    t = longest.motion.t[: windows.samples]
    panels = []
    for j, joint in enumerate(match.robot.joints):
        q = windows.q[0, :, j]
        lines = (
            Line.of("measured", t, q),
            Line.of("simulated", t, q - residuals[0, :, j]),
            Line.of("goal", t, longest.goal[: len(t), j], dashed=True),
        )
        panels.append(Panel(joint.name, lines, y="[rad]" if joint.kind == "revolute" else "[m]"))
    return line_panels(panels)


def number_rows(numbers: tuple[MatchedNumber, ...]) -> list[list[TableCell]]:
    """Return the rows of a table of `numbers`."""
    return [
        [n.name, n.on, n.unit, whisker(n.value, n.half_width, n.before), n.value, n.half_width, n.before,
         "" if n.from_logs else "stays at the description"]
        for n in numbers
    ]  # fmt: skip


def _joints(match: Match) -> list[Html]:
    d = match.drives
    late = "the whole torque" if d.delayed == "torque" else "the goal"
    text = f"Drives: τ = sat(kp (goal − q) − kd dq), with {late} {number(1e3 * d.delay, 3)} ms late."
    return [paragraph(text), table_html(_NUMBERS, number_rows(match.joint_numbers), "Joints and drives", tall=True)]


def _links(match: Match) -> list[Html]:
    stays = [n.name for n in match.base_numbers if not n.from_logs]
    weight = number(100 * match.fit.coordinates.link_std, 2)
    text = (
        f"According to the logs, the described links are right to {weight} % (the most probable standard deviation of "
        f"the relative coordinates of their inertia). {len(match.base_numbers) - len(stays)} of "
        f"{len(match.base_numbers)} base "
        "parameters are determined by the logs; the others stay near the description."
    )
    return [
        paragraph(text),
        table_html(_NUMBERS, number_rows(match.base_numbers), "Base parameters of the links", tall=True),
    ]


def _frequency(match: Match) -> list[Html]:
    panels = []
    for s in match.spectra:
        shown = s.hz > 0.0
        lines = (
            Line.of("position", s.hz[shown], 20.0 * np.log10(np.maximum(s.motion[shown], 1e-12))),
            Line.of("residual", s.hz[shown], 20.0 * np.log10(np.maximum(s.residual[shown], 1e-12))),
        )
        panels.append(Panel(s.joint, lines, y="dB"))
    missed = [
        paragraph(
            f"{s.joint}: the response is wrong by {number(100 * s.missed, 2)} % at {number(s.missed_hz or 0, 3)} Hz."
        )
        for s in match.missed
    ]
    text = (
        "Density of the position and of the residual of the whole run. A residual that is coherent with the goal "
        "shows missing dynamics of the model; noise is not coherent with the goal."
    )
    return [paragraph(text), *missed, figure_html(line_panels(panels), "Residual over frequency", "Frequency in Hz.")]


def _about_files() -> Html:
    return paragraph(
        "The MJCF contains rotor inertias, damping, friction and one drive per joint; ctrl is the logged goal. "
        "The URDF contains links, damping and friction. parameters.csv contains all numbers with 95 % intervals, "
        "draws.csv their correlated draws for domain randomisation."
    )


def print_match(match: Match, out: Console, folder: str = "") -> None:
    """Print a match.

    Args:
        match: Matched robot.
        out: Console.
        folder: Run folder; "" if none was written.
    """
    from steelyard.report import bold, say, table

    verdict = match_verdict(match)
    say(out, bold(verdict.headline))
    for point in verdict.points:
        say(out, f" • {point}")
    out.print(table("Errors of rollouts, mrad or mm", list(_ERRORS), _error_rows(match), right=_ERRORS[1:]))
    rows = [
        [n.name, n.on, n.unit, number(n.value, 4), number(n.half_width, 2), "" if n.from_logs else "description"]
        for n in match.joint_numbers
    ]
    heads = ["number", "joint", "unit", "value", "± 95 %", ""]
    out.print(table("Joints and drives", heads, rows, right=heads[3:5]))
    if folder:
        say(out, f"\nWritten to {folder}: {', '.join(['result.json', 'report.html', *match.files()])}.")
