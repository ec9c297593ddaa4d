"""The Monte-Carlo comparison of estimators for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.compare import RULES, Advice, Comparison, Summary, advice
from steelyard.compare.comparison import LEFT
from steelyard.ground.numbers import number
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, figure_html, join, paragraph, table_html, tabs
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.estimates import error_boxes
from steelyard.report.plots.ranking import error_ranking
from steelyard.report.terminal import bold, say, table

# Advice that stands in the headline: without regard to a level of noise.
_FAILED = "More runs failed than the figure may leave out: half of them, or a tenth for “90 % below”."
_HEADLINES = ("No controller known", "Controller and reference known exactly", "The model must be physically possible")


def print_estimators(found: Comparison, out: Console, folder: str = "") -> None:
    """The ranking, and what follows from it."""
    rows = [
        [s.estimator, number(s.torque_error_percent, 3), number(s.torque_error_90, 3), number(s.distance_percent, 3),
         number(_milli(s.position_error), 3), _percent(s.failed + s.unsettled), _percent(s.impossible),
         number(s.seconds, 2)]
        for s in found.ranking
    ]  # fmt: skip
    columns = ["estimator", "torque error [%]", "90 % below", "parameters [%]", "position [mrad, mm]",
               "failed, unsettled", "M not p.d.", "time [s]"]  # fmt: skip
    title = f"Estimators on {found.robot}: medians of {len(found.some(found.protocol.estimators[0]))} runs each"
    out.print(table(title, columns, rows, right=columns[1:]))
    for a in advice(found):
        if a.when in _HEADLINES:
            say(out, f" • {a.when}: ", bold(a.use), f". {a.why}")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html, runs.jsonl")


def estimators_report(found: Comparison) -> str:
    """The page, self-contained."""
    sections = [
        Section("What to use when", _advice(advice(found))),
        Section("Ranking", _ranking(found)),
        Section("Errors by noise", _figures(found)),
        Section("What went wrong", _failures(found)),
        Section("How it was done", _protocol(found)),
    ]
    return render_report(
        f"{found.robot}: estimators compared",
        sections,
        verdict=_verdict(found),
        subtitle=f"{len(found.runs)} runs of {len(found.protocol.estimators)} estimators on simulated experiments.",
    )


def _verdict(found: Comparison) -> Verdict:
    named = [a for a in advice(found) if a.when in _HEADLINES]
    good = [a for a in named if a.use != "–"]
    if not good:
        return Verdict("bad", "No estimator was reliable under this protocol.", tuple(a.why for a in named[:1]))
    points = tuple(f"{a.when}: {a.use}. {a.why}" for a in named)
    words = {_HEADLINES[0]: "from the log alone", _HEADLINES[1]: "with the controller known"}
    best = "; ".join(f"{words[a.when]}, {a.use}" for a in good if a.when in words) or f"possible, {good[0].use}"
    return Verdict("good" if len(good) == len(named) else "warning", f"Best {best}.", points)


def _advice(all_of_it: Sequence[Advice]) -> Html:
    use = [[a.when, a.use, a.why] for a in all_of_it if a.when != LEFT]
    leave = [[a.use, a.why] for a in all_of_it if a.when == LEFT]
    parts = [table_html(["when", "use", "because"], use, "For this robot, under this protocol")]
    if leave:
        parts.append(table_html(["estimator", "because"], leave, LEFT))
    rules = "".join(f"<li>{rule}</li>" for rule in RULES)
    return join(*parts, paragraph("These sentences follow from the figures by four rules:"), Html(f"<ol>{rules}</ol>"))


def _ranking(found: Comparison) -> Html:
    columns: list[TableColumn | str] = [
        "estimator", TableColumn("torque", "%", digits=3), TableColumn("90 % below", "%", digits=3),
        TableColumn("parameters", "%", digits=3), TableColumn("pos.", "10⁻³", digits=3),
        TableColumn("failed", "%", places=0), TableColumn("M not p.d.", "%", places=0),
        TableColumn("time", "s", digits=2),
    ]  # fmt: skip
    parts = [
        paragraph(
            "Medians over all runs; a run that failed counts as infinitely wrong. "
            "Torque and position errors are on motions that were not fitted, against the noise-free truth; "
            "parameters: distance in base parameters over their norm; positions in mrad and mm. Failed: no numbers, "
            "or stopped before it converged; M not p.d.: the mass matrix is not positive definite in some posture. "
            "Time is processor time of one fit."
        ),
        *_bars(found),
        tabs(
            ("all", table_html(columns, [_row(s) for s in found.ranking], "All noise levels", _FAILED)),
            *((f"by {factor}", _by_level(found, factor)) for factor in found.varied),
        ),
    ]
    return join(*parts)


def _bars(found: Comparison) -> list[Html]:
    """The error that nine of ten runs stay below, estimator by estimator; nothing where none has one."""
    known = [(s.estimator, s.torque_error_90) for s in found.ranking if s.torque_error_90 is not None]
    finite = [(n, v) for n, v in known if np.isfinite(v)]
    if not finite:
        return []
    figure = error_ranking(
        [n for n, _ in finite], [v for _, v in finite], "torque error, 90 % below [% of std]", finite[0][0]
    )
    return [figure_html(figure, "Who predicts best", "Those of which more than one run in ten failed are missing.")]


def _row(s: Summary) -> list[TableCell]:
    return [
        s.estimator, s.torque_error_percent, s.torque_error_90, s.distance_percent, _milli(s.position_error),
        100.0 * (s.failed + s.unsettled), 100.0 * s.impossible, s.seconds,
    ]  # fmt: skip


def _by_level(found: Comparison, factor: str) -> Html:
    """One column per level of what was varied."""
    words = {"noise": "noise level", "cutoff": "cut-off [Hz]", "rate": "sampling rate [Hz]", "controller": "controller"}
    levels = found.varied[factor]
    rows: list[list[TableCell]] = []
    for s in found.ranking:
        row: list[TableCell] = [s.estimator]
        errors = [found.summary(s.estimator, **{factor: level}).torque_error_percent for level in levels]
        row += [Heat(error, _level(error)) for error in errors]
        rows.append(row)
    columns: list[TableColumn | str] = ["estimator", *(TableColumn(level, "%", digits=3) for level in levels)]
    return table_html(columns, rows, f"Median torque error by {words[factor]}", _FAILED)


def _level(percent: float | None) -> float:
    """What an error, in `percent` of a torque's standard deviation, is coloured by: 0 at 1 %, 1 at all of it."""
    return 0.0 if percent is None else float(np.clip(0.5 * np.log10(max(percent, 1e-9)), 0.0, 1.0))


def _figures(found: Comparison) -> Html:
    rows = [s.estimator for s in found.ranking if any(r.found for r in found.some(s.estimator))]
    parts = [paragraph("Failed runs have no errors and are missing here; the ranking counts them.")]
    for field, title, axis in (
        ("torque_error_percent", "Torque error on other motions", "% of the torque's standard deviation"),
        ("distance_percent", "Distance in base parameters", "% of their norm"),
    ):
        groups = {
            noise: {
                row: [v for r in found.some(row, noise=noise) if (v := getattr(r, field)) is not None] for row in rows
            }
            for noise in found.noises
        }
        parts.append(figure_html(error_boxes(rows, groups, axis), title))
    return join(*parts)


def _failures(found: Comparison) -> Html:
    if not found.reasons:
        return paragraph("Nothing: every run of every estimator converged.")
    words = {"refused": "refused", "too-slow": "too slow", "broken": "broken", "no-data": "no experiment",
             "not-converged": "not converged"}  # fmt: skip
    rows: list[list[TableCell]] = [
        [name, words.get(result, result), count, reason] for name, result, reason, count in found.reasons
    ]
    return table_html(["estimator", "how it ended", "runs", "for example"], rows)


def _protocol(found: Comparison) -> Html:
    p = found.protocol
    noises = "; ".join(f"{n.name} {n.position_deg:g}° and {n.torque:g} N m" for n in p.noises)
    rows: list[list[TableCell]] = [
        ["motions", f"{p.trajectories} random Fourier series, {p.harmonics} harmonics, {p.duration:g} s"],
        ["controllers", f"{', '.join(p.controllers)}; {p.bandwidth_rad_s:g} rad/s, {p.control_rate:g} Hz"],
        ["sampling", ", ".join(f"{rate:g} Hz" for rate in p.rates)],
        ["low-pass, zero-phase Butterworth of order 4", ", ".join(p.cutoffs) + " (Hz; auto: the rule of identify)"],
        ["noise, white", noises],
        [
            "repetitions",
            f"{p.starts}, each with other noise and another initial estimate ({100 * p.start_relative_std:g} % off)",
        ],
        ["judged on", f"{p.judged_on} other motions; positions over {p.horizon:g} s of open-loop replay"],
        ["seed", str(p.seed)],
    ]
    text = (
        "After the protocol of BIRDy (Leboutet, Roux, Janot, Guadarrama-Olvera and Cheng 2021). The description of the "
        "robot is the truth; plant and model know the same friction law, so that errors come from noise, filter and "
        "method alone. Sensors of sliding joints have 0.1 m to the radian."
    )
    return join(paragraph(text), table_html(["what", "how"], rows))


def _milli(value: float | None) -> float | None:
    return None if value is None else 1000.0 * value


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share else "0"
