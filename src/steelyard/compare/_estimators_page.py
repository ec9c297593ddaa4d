"""Shows the Monte-Carlo comparison of estimators on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.compare import RULES, Advice, Comparison, Summary, advice
from steelyard.compare.comparison import NOT_RECOMMENDED
from steelyard.ground.numbers import number
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, figure_html, join, paragraph, table_html, tabs
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.estimates import error_boxes
from steelyard.report.plots.ranking import error_ranking
from steelyard.report.terminal import bold, say, table

_FAILED = "Too many runs failed for this figure: half of them, or a tenth for “90 % below”."
# Situations whose advice is in the headline: all noise levels together.
_HEADLINES = (
    "No controller errors",
    "Controller and reference errors exactly",
    "The model must be physically possible",
)


def print_estimators(comparison: Comparison, out: Console, folder: str = "") -> None:
    """Print the ranking and the advice.

    Args:
        comparison: The comparison.
        out: The terminal.
        folder: Folder of the result; "": none.
    """
    rows = [
        [s.estimator, number(s.torque_error_percent, 3), number(s.torque_error_90, 3), number(s.distance_percent, 3),
         number(_milli(s.position_error), 3), _percent(s.failed + s.unsettled), _percent(s.impossible),
         number(s.seconds, 2)]
        for s in comparison.ranking
    ]  # fmt: skip
    columns = ["estimator", "torque error [%]", "90 % below", "parameters [%]", "position [mrad, mm]",
               "failed, unsettled", "M not p.d.", "time [s]"]  # fmt: skip
    count = len(comparison.select(comparison.protocol.estimators[0]))
    title = f"Estimators on {comparison.robot}: medians of {count} runs each"
    out.print(table(title, columns, rows, right=columns[1:]))
    for a in advice(comparison):
        if a.when in _HEADLINES:
            say(out, f" • {a.when}: ", bold(a.use), f". {a.why}")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html, runs.jsonl")


def estimators_report(comparison: Comparison) -> str:
    """Render the self-contained page of a comparison."""
    sections = [
        Section("Advice", _advice(advice(comparison))),
        Section("Ranking", _ranking(comparison)),
        Section("Errors by noise", _figures(comparison)),
        Section("Failures", _failures(comparison)),
        Section("Protocol", _protocol(comparison)),
    ]
    return render_report(
        f"{comparison.robot}: estimators compared",
        sections,
        verdict=_verdict(comparison),
        subtitle=f"{len(comparison.runs)} runs of {len(comparison.protocol.estimators)} estimators on simulations.",
    )


def _verdict(comparison: Comparison) -> Verdict:
    named = [a for a in advice(comparison) if a.when in _HEADLINES]
    good = [a for a in named if a.use != "–"]
    if not good:
        return Verdict("bad", "No estimator was reliable under this protocol.", tuple(a.why for a in named[:1]))
    points = tuple(f"{a.when}: {a.use}. {a.why}" for a in named)
    phrases = {_HEADLINES[0]: "from the log alone", _HEADLINES[1]: "with the controller known"}
    best = "; ".join(f"{phrases[a.when]}, {a.use}" for a in good if a.when in phrases) or f"possible, {good[0].use}"
    return Verdict("good" if len(good) == len(named) else "warning", f"Best {best}.", points)


def _advice(items: Sequence[Advice]) -> Html:
    use = [[a.when, a.use, a.why] for a in items if a.when != NOT_RECOMMENDED]
    avoid = [[a.use, a.why] for a in items if a.when == NOT_RECOMMENDED]
    parts = [table_html(["situation", "estimator", "reason"], use, "For this robot, under this protocol")]
    if avoid:
        parts.append(table_html(["estimator", "reason"], avoid, NOT_RECOMMENDED))
    rules = "".join(f"<li>{rule}</li>" for rule in RULES)
    return join(*parts, paragraph("This advice follows from the results by four rules:"), Html(f"<ol>{rules}</ol>"))


def _ranking(comparison: Comparison) -> Html:
    columns: list[TableColumn | str] = [
        "estimator", TableColumn("torque", "%", digits=3), TableColumn("90 % below", "%", digits=3),
        TableColumn("parameters", "%", digits=3), TableColumn("pos.", "10⁻³", digits=3),
        TableColumn("failed", "%", places=0), TableColumn("M not p.d.", "%", places=0),
        TableColumn("time", "s", digits=2),
    ]  # fmt: skip
    parts = [
        paragraph(
            "Medians over all runs; a failed run counts as an infinite error. "
            "Torque and position errors are on motions that were not used in the fit, against the noise-free truth; "
            "parameters: distance in base parameters over their norm; positions in mrad and mm. Failed: no result, "
            "or stopped before convergence; M not p.d.: the mass matrix is not positive definite in some posture. "
            "Time is processor time of one fit."
        ),
        *_bars(comparison),
        tabs(
            ("all", table_html(columns, [_row(s) for s in comparison.ranking], "All noise levels", _FAILED)),
            *((f"by {factor}", _by_level(comparison, factor)) for factor in comparison.varied),
        ),
    ]
    return join(*parts)


def _bars(comparison: Comparison) -> list[Html]:
    """Bars of the 90th percentile of the error by estimator; an empty list without errors."""
    errors = [(s.estimator, s.torque_error_90) for s in comparison.ranking if s.torque_error_90 is not None]
    finite = [(n, v) for n, v in errors if np.isfinite(v)]
    if not finite:
        return []
    figure = error_ranking(
        [n for n, _ in finite], [v for _, v in finite], "torque error, 90 % below [% of std]", finite[0][0]
    )
    return [figure_html(figure, "Prediction error", "Estimators with more than 10 % failed runs are omitted.")]


def _row(s: Summary) -> list[TableCell]:
    return [
        s.estimator, s.torque_error_percent, s.torque_error_90, s.distance_percent, _milli(s.position_error),
        100.0 * (s.failed + s.unsettled), 100.0 * s.impossible, s.seconds,
    ]  # fmt: skip


def _by_level(comparison: Comparison, factor: str) -> Html:
    """Table of median errors with one column per level of a factor."""
    phrases = {
        "noise": "noise level",
        "cutoff": "cut-off [Hz]",
        "rate": "sampling rate [Hz]",
        "controller": "controller",
    }
    levels = comparison.varied[factor]
    rows: list[list[TableCell]] = []
    for s in comparison.ranking:
        row: list[TableCell] = [s.estimator]
        level_errors = [comparison.summary(s.estimator, **{factor: level}).torque_error_percent for level in levels]
        row += [Heat(error, _level(error)) for error in level_errors]
        rows.append(row)
    columns: list[TableColumn | str] = ["estimator", *(TableColumn(level, "%", digits=3) for level in levels)]
    return table_html(columns, rows, f"Median torque error by {phrases[factor]}", _FAILED)


def _level(percent: float | None) -> float:
    """Colour level of an error in `percent` of a torque's standard deviation: 0 at 1 %, 1 at 100 %."""
    return 0.0 if percent is None else float(np.clip(0.5 * np.log10(max(percent, 1e-9)), 0.0, 1.0))


def _figures(comparison: Comparison) -> Html:
    rows = [s.estimator for s in comparison.ranking if any(r.has_estimate for r in comparison.select(s.estimator))]
    parts = [paragraph("Failed runs have no errors and are omitted here; the ranking includes them.")]
    for field, title, axis in (
        ("torque_error_percent", "Torque error on other motions", "% of the torque's standard deviation"),
        ("distance_percent", "Distance in base parameters", "% of their norm"),
    ):
        groups = {
            noise: {
                row: [v for r in comparison.select(row, noise=noise) if (v := getattr(r, field)) is not None]
                for row in rows
            }
            for noise in comparison.noises
        }
        parts.append(figure_html(error_boxes(rows, groups, axis), title))
    return join(*parts)


def _failures(comparison: Comparison) -> Html:
    if not comparison.reasons:
        return paragraph("Every run of every estimator converged.")
    phrases = {"refused": "refused", "too-slow": "too slow", "broken": "broken", "no-data": "no experiment",
             "not-converged": "not converged"}  # fmt: skip
    rows: list[list[TableCell]] = [
        [name, phrases.get(result, result), count, reason] for name, result, reason, count in comparison.reasons
    ]
    return table_html(["estimator", "result", "runs", "for example"], rows)


def _protocol(comparison: Comparison) -> Html:
    p = comparison.protocol
    noises = "; ".join(f"{n.name} {n.position_deg:g}° and {n.torque:g} N m" for n in p.noises)
    rows: list[list[TableCell]] = [
        ["motions", f"{p.trajectories} random Fourier series, {p.harmonics} harmonics, {p.duration:g} s"],
        ["controllers", f"{', '.join(p.controllers)}; {p.bandwidth_rad_s:g} rad/s, {p.control_rate:g} Hz"],
        ["sampling", ", ".join(f"{rate:g} Hz" for rate in p.rates)],
        ["low-pass, zero-phase Butterworth of order 4", ", ".join(p.cutoffs) + " (Hz; auto: the rule of identify)"],
        ["noise, white", noises],
        [
            "repetitions",
            f"{p.starts}, each with other noise and another initial estimate ({100 * p.start_relative_std:g} % "
            "relative error)",
        ],
        ["judged on", f"{p.evaluation_motions} other motions; positions over {p.horizon:g} s of open-loop replay"],
        ["seed", str(p.seed)],
    ]
    text = (
        "The protocol follows BIRDy (Leboutet, Roux, Janot, Guadarrama-Olvera and Cheng 2021). The description of the "
        "robot is the truth. Plant and model have the same friction law, so that errors come only from noise, filter "
        "and method. Sensors of prismatic joints have 0.1 m per radian."
    )
    return join(paragraph(text), table_html(["setting", "value"], rows))


def _milli(value: float | None) -> float | None:
    return None if value is None else 1000.0 * value


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share else "0"
