"""The comparison of estimators on one log, for the terminal and as a page."""

from __future__ import annotations

from importlib.metadata import version

from rich.console import Console
from rich.markup import escape

from steelyard.compare.on_log import LogComparison, LogResult
from steelyard.report.elements import Cell, Column, Html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import number, table


def print_log_estimators(found: LogComparison, out: Console, folder: str = "") -> None:
    """One row per estimator, then what failed and why."""
    columns = ["estimator", "hold-out torque error [% of σ]", f"position after ≤ {found.horizon:g} s [mrad, mm]",
               "M pos. definite", "possible", "time [s]"]  # fmt: skip
    rows = [
        [r.run.estimator, number(r.nrmse_percent, 4), number(_milli(r), 3), _word(r.run.simulable),
         _word(r.run.possible), number(r.run.seconds, 2)]
        for r in found.ranking
        if r.run.found
    ]  # fmt: skip
    out.print(table(f"Estimators on {escape(found.robot.name)}", columns, rows, right=columns[1:]))
    for (result, reason), names in _reasons(found).items():
        out.print(f" • {', '.join(names)} ({result}): {escape(reason)}")
    if found.best is not None:
        out.print(f"\n[bold]{found.best.run.estimator}[/bold] predicts the torque of the held-out data best.")
    if folder:
        out.print(f"Written to {escape(folder)}: result.json, report.html")


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
    columns: list[Column | str] = [
        "estimator", Column("hold-out torque error", "% of σ"), Column("position error", "mrad, mm", digits=3),
        "M positive definite", "possible bodies", Column("time", "s", digits=2), "how it ended", "remark",
    ]  # fmt: skip
    rows = [_row(r) for r in found.ranking]
    about = paragraph(
        f"All on the same rows (low-pass {found.cutoff:.3g} Hz), judged on the same held-out data; positions are "
        f"replayed open loop for {found.horizon:g} s at a time. Time is processor time."
    )
    sections = [Section("Estimators", join(about, table_html(columns, rows)))]
    if any(r.estimate is not None for r in found.ranking):
        sections.append(Section("Base parameters", _parameters(found)))
    return render_report(
        f"{found.robot.name}: estimators compared on a log",
        sections,
        verdict=_verdict(found),
        footer=f"Made by steelyard {version('steelyard')}.",
    )


def _verdict(found: LogComparison) -> Verdict:
    best = found.best
    if best is None:
        return Verdict("bad", "No estimator gave a robot that can be simulated.")
    plain = next((r for r in found.results if r.run.estimator == "wls" and r.nrmse_percent is not None), None)
    points = [f"{best.run.estimator}: {best.nrmse_percent:.4g} % torque error on held-out data."]
    if plain is not None and plain is not best:
        points.append(f"wls, the default beneath the physically possible fit: {plain.nrmse_percent:.4g} %.")
    return Verdict("good", f"{best.run.estimator} predicts the torque of the held-out data best.", tuple(points))


def _row(r: LogResult) -> list[Cell]:
    return [
        r.run.estimator, r.nrmse_percent, _milli(r), _word(r.run.simulable), _word(r.run.possible),
        r.run.seconds if r.run.found else None, r.run.result, r.run.reason,
    ]  # fmt: skip


def _parameters(found: LogComparison) -> Html:
    shown = [r for r in found.ranking if r.estimate is not None]
    first = shown[0].estimate
    assert first is not None
    rows: list[list[Cell]] = []
    for k, name in enumerate(first.base.names):
        row: list[Cell] = [name, first.base.units[k]]
        row += [float(r.estimate.beta[k]) for r in shown if r.estimate is not None]
        rows.append(row)
    return table_html(["base parameter", "unit", *(r.run.estimator for r in shown)], rows, "Values, the best fit first")


def _milli(r: LogResult) -> float | None:
    return None if r.position is None else 1000.0 * r.position


def _word(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"
