"""Comparisons on one log, of schemes and of estimators, for the terminal and as pages."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from steelyard.compare.on_log import LogComparison, LogResult
from steelyard.compare.schemes import SchemeComparison, SchemeResult
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

# Standard errors of a difference from which on two answers are as far apart as can be shown.
_FAR = 6.0
_NOTHING = "It gave no numbers, or none that can be judged; the last two columns say why."


def print_schemes(found: SchemeComparison, out: Console, folder: str = "") -> None:
    """One row per scheme, then what failed and why."""
    rows = []
    for r in found.results:
        told = ["–"] * 4
        if r.found is not None:
            position = "diverged" if r.position_rmse is None else number(_milli(r), 3)
            possible = _word(r.found.possible)
            told = [number(r.nrmse_percent, 3), position, number(_relative_error(r), 3), possible]
        rows.append([r.scheme, *told, number(r.seconds, 2)])
    columns = ["scheme", "hold-out torque error, NRMSE [% of σ]", f"position after ≤ {found.horizon:g} s [mrad, mm]",
               "median standard error [%]", "possible", "time [s]"]  # fmt: skip
    out.print(table(f"Schemes on {found.robot.name}", columns, rows, right=columns[1:]))
    for r in found.results:
        if r.reason:
            say(out, f" • {r.scheme}: {r.reason}")
    best = found.best
    if best is not None:
        say(out, "\n", bold(best.scheme), " predicts the torque of the held-out data best.")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html")


def schemes_report(found: SchemeComparison) -> str:
    """The page, self-contained."""
    best = found.best
    summary = table_html(
        ["scheme", TableColumn("hold-out torque error, NRMSE", "% of σ", digits=3),
         TableColumn("position error", "mrad, mm", digits=3),
         TableColumn("median standard error", "%", digits=3), "possible", TableColumn("time", "s", digits=2), "remark"],
        [_summary(r) for r in found.results],
        f"All schemes on the same data; positions are replayed open loop for {found.horizon:g} s at a time",
        dash="The remark says why.",
    )  # fmt: skip
    about = paragraph("All schemes know the same physics; they differ in what noise and friction do to them.")
    judged = [(r.scheme, r.nrmse_percent) for r in found.results]
    sections = [Section("Schemes", join(about, *_bars(judged, best.scheme if best else ""), summary))]
    shown = [(r.scheme, r.found.estimate) for r in found.results if r.found is not None]
    if shown:
        sections.append(Section("Base parameters", _side_by_side(shown, best.scheme if best else "")))
    if best is not None:
        sections.append(Section("What next", _next(found.robot, f"--scheme {best.scheme}")))
        verdict = Verdict("good", f"{best.scheme} predicts the torque of the held-out data best.", _lead(judged))
    else:
        verdict = Verdict("bad", "No scheme could be judged.")
    return render_report(f"{found.robot.name}: schemes compared", sections, verdict=verdict)


def _bars(judged: Sequence[tuple[str, float | None]], best: str) -> list[Html]:
    """Errors on held-out data as bars, the smallest on top; nothing where there is none."""
    known = sorted(((n, v) for n, v in judged if v is not None and np.isfinite(v)), key=lambda pair: pair[1])
    if not known:
        return []
    figure = error_ranking(
        [n for n, _ in known], [v for _, v in known], "torque error on held-out data [% of std]", best
    )
    return [figure_html(figure, "Who predicts best", "Mean over joints of the NRMSE on data that was not used.")]


def _lead(judged: Sequence[tuple[str, float | None]]) -> tuple[str, ...]:
    """The three smallest errors, in words."""
    known = sorted(((v, n) for n, v in judged if v is not None and np.isfinite(v)))[:3]
    return (", ".join(f"{n}: {percent(v, 3)}" for v, n in known) + " torque error on held-out data.",) if known else ()


def _side_by_side(shown: Sequence[tuple[str, Estimate]], best: str) -> Html:
    """Base parameters of all methods, coloured by how far they are from the best one's."""
    base = shown[0][1].base
    leader = dict(shown).get(best, shown[0][1])
    columns: list[tuple[str, list[TableCell]]] = []
    for name, estimate in shown:
        apart = np.hypot(estimate.standard_errors, leader.standard_errors)
        away = np.abs(estimate.beta - leader.beta) / np.where(apart > 0.0, apart, np.inf)
        level = np.clip(away / _FAR, 0.0, 1.0)
        words = _with_intervals(estimate)
        columns.append((name, [Heat(word, float(x)) for word, x in zip(words, level, strict=True)]))
    said = (
        f"Values with 95 % intervals. Coloured by their distance to {best or shown[0][0]}, in standard errors of the "
        f"difference; full colour from {_FAR:g} on."
    )
    return join(paragraph(said), parameter_table(base.names, base.units, columns, "Base parameters, method by method"))


def _next(robot: Robot, how: str) -> Html:
    """Identify by what did best, with the words that were typed."""
    words = shlex.split(repeat_command())
    at = words.index("compare") + 3 if "compare" in words else len(words)  # compare, what, the robot, the log
    log = shlex.quote(words[at]) if len(words) > at else "LOG.csv"
    source = shlex.quote(robot.source or "ROBOT")
    return commands(("With what did best:", f"steelyard identify {source} {log} {how} --holdout 0.3 -o run"))


def _summary(r: SchemeResult) -> list[TableCell]:
    if r.found is None:
        return [r.scheme, None, None, None, "–", r.seconds, r.reason]
    position, possible = _milli(r), _word(r.found.possible)
    remark = "a replay diverged" if position is None else ""
    return [r.scheme, r.nrmse_percent, position, _relative_error(r), possible, r.seconds, remark]


def _with_intervals(found: Estimate) -> list[str]:
    rows = zip(found.base.impossible_signs(found.beta), found.beta, found.standard_errors, strict=True)
    return [NO_SIGN if impossible else with_interval(value, error) for impossible, value, error in rows]


def _relative_error(r: SchemeResult) -> float:
    assert r.found is not None
    estimate = r.found.estimate
    size = np.maximum(np.abs(estimate.beta), 1e-12)
    return float(100.0 * np.median(estimate.standard_errors / size))


def print_log_estimators(found: LogComparison, out: Console, folder: str = "") -> None:
    """One row per estimator, then what failed and why."""
    columns = ["estimator", "hold-out torque error, NRMSE [% of σ]", f"position after ≤ {found.horizon:g} s [mrad, mm]",
               "M pos. definite", "possible", "time [s]"]  # fmt: skip
    rows = [
        [r.run.estimator, number(r.nrmse_percent, 4), number(_milli(r), 3), _word(r.run.simulable),
         _word(r.run.possible), number(r.run.seconds, 2)]
        for r in found.ranking
        if r.run.found
    ]  # fmt: skip
    out.print(table(f"Estimators on {found.robot.name}", columns, rows, right=columns[1:]))
    for (result, reason), names in _reasons(found).items():
        say(out, f" • {', '.join(names)} ({result}): {reason}")
    if found.best is not None:
        say(out, "\n", bold(found.best.run.estimator), " predicts the torque of the held-out data best.")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html")


def _reasons(found: LogComparison) -> dict[tuple[str, str], list[str]]:
    """Estimators by how they ended and why; the first sentence says it."""
    out: dict[tuple[str, str], list[str]] = {}
    for r in found.ranking:
        if r.run.reason:
            first = r.run.reason.split(". ")[0].rstrip(".") + "."
            out.setdefault((r.run.result, first), []).append(r.run.estimator)
    return out


def log_report(found: LogComparison) -> str:
    """The page, self-contained."""
    columns: list[TableColumn | str] = [
        "estimator", TableColumn("hold-out torque error, NRMSE", "% of σ"),
        TableColumn("position error", "mrad, mm", digits=3),
        "M positive definite", "possible bodies", TableColumn("time", "s", digits=2), "how it ended", "remark",
    ]  # fmt: skip
    rows = [_row(r) for r in found.ranking]
    about = paragraph(
        f"All on the same rows (low-pass {number(found.cutoff_hz, 3)} Hz), judged on the same held-out data; positions "
        f"are replayed open loop for {found.horizon:g} s at a time. Time is processor time."
    )
    best = "" if found.best is None else found.best.run.estimator
    bars = _bars([(r.run.estimator, r.nrmse_percent) for r in found.ranking], best)
    sections = [
        Section("Estimators", join(about, *bars, table_html(columns, rows, dash=_NOTHING, tall=len(rows) > 16)))
    ]
    shown = [(r.run.estimator, r.estimate) for r in found.ranking if r.estimate is not None]
    if shown:
        sections.append(Section("Base parameters", _side_by_side(shown, best)))
    if best:
        sections.append(Section("What next", _next(found.robot, f"--estimator {best}")))
    return render_report(f"{found.robot.name}: estimators compared on a log", sections, verdict=_verdict(found))


def _verdict(found: LogComparison) -> Verdict:
    best = found.best
    if best is None:
        return Verdict("bad", "No estimator gave a robot that can be simulated.")
    plain = next((r for r in found.results if r.run.estimator == "wls" and r.nrmse_percent is not None), None)
    points = [f"{best.run.estimator}: {percent(best.nrmse_percent, 4)} torque error on held-out data."]
    if plain is not None and plain is not best:
        points.append(f"wls, the default beneath the physically possible fit: {percent(plain.nrmse_percent, 4)}.")
    return Verdict("good", f"{best.run.estimator} predicts the torque of the held-out data best.", tuple(points))


def _row(r: LogResult) -> list[TableCell]:
    return [
        r.run.estimator, r.nrmse_percent, _milli(r), _word(r.run.simulable), _word(r.run.possible),
        r.run.seconds if r.run.found else None, r.run.result, r.run.reason,
    ]  # fmt: skip


def _milli(r: SchemeResult | LogResult) -> float | None:
    """Position error of the replays over all joints, mrad (mm)."""
    return None if r.position_rmse is None else 1000.0 * float(np.sqrt(np.mean(r.position_rmse**2)))


def _word(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"
