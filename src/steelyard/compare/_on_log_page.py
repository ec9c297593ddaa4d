"""Shows comparisons on one log, of schemes and of estimators, on the terminal and as pages."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.compare.on_log import LogComparison, LogResult
from steelyard.compare.scheme_comparison import SchemeComparison, SchemeResult
from steelyard.estimation.estimate import Estimate
from steelyard.ground.numbers import NO_SIGN, number, percent, with_interval
from steelyard.ground.repeat import repeat_command
from steelyard.report.elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    commands,
    figure_html,
    join,
    paragraph,
    parameter_table,
    table_html,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.ranking import error_ranking
from steelyard.report.terminal import bold, say, table
from steelyard.robot.robot import Robot

# Difference in standard errors that has the strongest colour.
_FAR = 6.0
_NOTHING = "No numbers; the last two columns give the reason."


def print_schemes(comparison: SchemeComparison, out: Console, folder: str = "") -> None:
    """Print one row per scheme, then failures with their reasons."""
    rows = []
    for r in comparison.results:
        cells = ["–"] * 4
        if r.identification is not None:
            position = "diverged" if r.position_rmse is None else number(_milli(r), 3)
            possible = _yes_no(r.identification.possible)
            cells = [number(r.nrmse_percent, 3), position, number(_relative_error(r), 3), possible]
        rows.append([r.scheme, *cells, number(r.seconds, 2)])
    columns = ["scheme", "hold-out torque error, NRMSE [% of σ]",
               f"position after ≤ {comparison.horizon:g} s [mrad, mm]",
               "median standard error [%]", "possible", "time [s]"]  # fmt: skip
    out.print(table(f"Schemes on {comparison.robot.name}", columns, rows, right=columns[1:]))
    for r in comparison.results:
        if r.reason:
            say(out, f" • {r.scheme}: {r.reason}")
    best = comparison.best
    if best is not None:
        say(out, "\n", bold(best.scheme), " predicts the torque of the held-out data best.")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html")


def schemes_report(comparison: SchemeComparison) -> str:
    """Render the self-contained page of a comparison of schemes."""
    best = comparison.best
    summary = table_html(
        ["scheme", TableColumn("hold-out torque error, NRMSE", "% of σ", digits=3),
         TableColumn("position error", "mrad, mm", digits=3),
         TableColumn("median standard error", "%", digits=3), "possible", TableColumn("time", "s", digits=2), "remark"],
        [_summary(r) for r in comparison.results],
        f"All schemes on the same data; positions are replayed open loop for {comparison.horizon:g} s at a time",
        dash="See the remark.",
    )  # fmt: skip
    about = paragraph("All schemes use the same physics; they differ in their sensitivity to noise and friction.")
    errors = [(r.scheme, r.nrmse_percent) for r in comparison.results]
    sections = [Section("Schemes", join(about, *_bars(errors, best.scheme if best else ""), summary))]
    estimates = [(r.scheme, r.identification.estimate) for r in comparison.results if r.identification is not None]
    if estimates:
        sections.append(Section("Base parameters", _side_by_side(estimates, best.scheme if best else "")))
    if best is not None:
        sections.append(Section("What next", _next(comparison.robot, f"--scheme {best.scheme}")))
        verdict = Verdict("good", f"{best.scheme} predicts the torque of the held-out data best.", _lead(errors))
    else:
        verdict = Verdict("bad", "No scheme gives a result.")
    return render_report(f"{comparison.robot.name}: schemes compared", sections, verdict=verdict)


def _bars(errors: Sequence[tuple[str, float | None]], best: str) -> list[Html]:
    """Bars of the errors on hold-out data, the smallest on top; an empty list without errors."""
    finite = sorted(((n, v) for n, v in errors if v is not None and np.isfinite(v)), key=lambda pair: pair[1])
    if not finite:
        return []
    figure = error_ranking(
        [n for n, _ in finite], [v for _, v in finite], "torque error on held-out data [% of std]", best
    )
    return [figure_html(figure, "Prediction error", "Mean over joints of the NRMSE on hold-out data.")]


def _lead(errors: Sequence[tuple[str, float | None]]) -> tuple[str, ...]:
    """One sentence with the three smallest errors."""
    finite = sorted(((v, n) for n, v in errors if v is not None and np.isfinite(v)))[:3]
    return (
        (", ".join(f"{n}: {percent(v, 3)}" for v, n in finite) + " torque error on held-out data.",) if finite else ()
    )


def _side_by_side(estimates: Sequence[tuple[str, Estimate]], best: str) -> Html:
    """Table of the base parameters of all methods, coloured by their distance from the best method."""
    base = estimates[0][1].base
    leader = dict(estimates).get(best, estimates[0][1])
    columns: list[tuple[str, list[TableCell]]] = []
    for name, estimate in estimates:
        combined_error = np.hypot(estimate.standard_errors, leader.standard_errors)
        distance = np.abs(estimate.beta - leader.beta) / np.where(combined_error > 0.0, combined_error, np.inf)
        level = np.clip(distance / _FAR, 0.0, 1.0)
        texts = _with_intervals(estimate)
        columns.append((name, [Heat(text, float(x)) for text, x in zip(texts, level, strict=True)]))
    said = (
        f"Values with 95 % intervals. Coloured by their distance to {best or estimates[0][0]}, in standard errors of "
        f"the difference; full colour from {_FAR:g} on."
    )
    return join(paragraph(said), parameter_table(base.names, base.units, columns, "Base parameters, method by method"))


def _next(robot: Robot, how: str) -> Html:
    """Identification with the best method, in the words of the user's command."""
    texts = shlex.split(repeat_command())
    at = texts.index("compare") + 3 if "compare" in texts else len(texts)  # compare, subcommand, robot, log
    log = shlex.quote(texts[at]) if len(texts) > at else "LOG.csv"
    source = shlex.quote(robot.source or "ROBOT")
    return commands(("With the best one:", f"steelyard identify {source} {log} {how} --holdout 0.3 -o run"))


def _summary(r: SchemeResult) -> list[TableCell]:
    if r.identification is None:
        return [r.scheme, None, None, None, "–", r.seconds, r.reason]
    position, possible = _milli(r), _yes_no(r.identification.possible)
    remark = "a replay diverged" if position is None else ""
    return [r.scheme, r.nrmse_percent, position, _relative_error(r), possible, r.seconds, remark]


def _with_intervals(estimate: Estimate) -> list[str]:
    rows = zip(estimate.base.impossible_signs(estimate.beta), estimate.beta, estimate.standard_errors, strict=True)
    return [NO_SIGN if impossible else with_interval(value, error) for impossible, value, error in rows]


def _relative_error(r: SchemeResult) -> float:
    assert r.identification is not None
    estimate = r.identification.estimate
    size = np.maximum(np.abs(estimate.beta), 1e-12)
    return float(100.0 * np.median(estimate.standard_errors / size))


def print_log_estimators(comparison: LogComparison, out: Console, folder: str = "") -> None:
    """Print one row per estimator, then failures with their reasons."""
    columns = ["estimator", "hold-out torque error, NRMSE [% of σ]",
               f"position after ≤ {comparison.horizon:g} s [mrad, mm]",
               "M pos. definite", "possible", "time [s]"]  # fmt: skip
    rows = [
        [r.run.estimator, number(r.nrmse_percent, 4), number(_milli(r), 3), _yes_no(r.run.simulable),
         _yes_no(r.run.possible), number(r.run.seconds, 2)]
        for r in comparison.ranking
        if r.run.has_estimate
    ]  # fmt: skip
    out.print(table(f"Estimators on {comparison.robot.name}", columns, rows, right=columns[1:]))
    for (result, reason), names in _reasons(comparison).items():
        say(out, f" • {', '.join(names)} ({result}): {reason}")
    if comparison.best is not None:
        say(out, "\n", bold(comparison.best.run.estimator), " predicts the torque of the held-out data best.")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html")


def _reasons(comparison: LogComparison) -> dict[tuple[str, str], list[str]]:
    """Estimators by result and first sentence of the reason."""
    out: dict[tuple[str, str], list[str]] = {}
    for r in comparison.ranking:
        if r.run.reason:
            first = r.run.reason.split(". ")[0].rstrip(".") + "."
            out.setdefault((r.run.result, first), []).append(r.run.estimator)
    return out


def log_report(comparison: LogComparison) -> str:
    """Render the self-contained page of a comparison of estimators."""
    columns: list[TableColumn | str] = [
        "estimator", TableColumn("hold-out torque error, NRMSE", "% of σ"),
        TableColumn("position error", "mrad, mm", digits=3),
        "M positive definite", "possible bodies", TableColumn("time", "s", digits=2), "how it ended", "remark",
    ]  # fmt: skip
    rows = [_row(r) for r in comparison.ranking]
    about = paragraph(
        f"All estimators use the same rows (low-pass {number(comparison.cutoff_hz, 3)} Hz) and the same hold-out data. "
        f"Positions are replayed open loop for {comparison.horizon:g} s at a time. Time is processor time."
    )
    best = "" if comparison.best is None else comparison.best.run.estimator
    bars = _bars([(r.run.estimator, r.nrmse_percent) for r in comparison.ranking], best)
    sections = [
        Section("Estimators", join(about, *bars, table_html(columns, rows, dash=_NOTHING, tall=len(rows) > 16)))
    ]
    estimates = [(r.run.estimator, r.estimate) for r in comparison.ranking if r.estimate is not None]
    if estimates:
        sections.append(Section("Base parameters", _side_by_side(estimates, best)))
    if best:
        sections.append(Section("What next", _next(comparison.robot, f"--estimator {best}")))
    return render_report(
        f"{comparison.robot.name}: estimators compared on a log", sections, verdict=_verdict(comparison)
    )


def _verdict(comparison: LogComparison) -> Verdict:
    best = comparison.best
    if best is None:
        return Verdict("bad", "No estimate can be simulated.")
    plain = next((r for r in comparison.results if r.run.estimator == "wls" and r.nrmse_percent is not None), None)
    points = [f"{best.run.estimator}: {percent(best.nrmse_percent, 4)} torque error on held-out data."]
    if plain is not None and plain is not best:
        points.append(f"wls, the default before the physically possible fit: {percent(plain.nrmse_percent, 4)}.")
    return Verdict("good", f"{best.run.estimator} predicts the torque of the held-out data best.", tuple(points))


def _row(r: LogResult) -> list[TableCell]:
    return [
        r.run.estimator, r.nrmse_percent, _milli(r), _yes_no(r.run.simulable), _yes_no(r.run.possible),
        r.run.seconds if r.run.has_estimate else None, r.run.result, r.run.reason,
    ]  # fmt: skip


def _milli(r: SchemeResult | LogResult) -> float | None:
    """Position error of the replays over all joints [mrad, mm]."""
    return None if r.position_rmse is None else 1000.0 * float(np.sqrt(np.mean(r.position_rmse**2)))


def _yes_no(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"
