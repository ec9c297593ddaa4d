"""The comparison of schemes for the terminal and as a page."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from rich.console import Console
from rich.markup import escape

from steelyard.compare.schemes import SchemeComparison, SchemeResult
from steelyard.report.elements import Cell, Column, Html, callout, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.terminal import number, table


def print_schemes(found: SchemeComparison, out: Console, folder: str = "") -> None:
    """One row per scheme, then what failed and why."""
    rows = []
    for r in found.results:
        if r.found is None:
            rows.append([r.scheme, "–", "–", "–", "–", number(r.seconds, 2)])
            continue
        rows.append(
            [r.scheme, number(r.nrmse_percent, 3), _position(r), number(_relative_error(r), 3),
             "yes" if r.found.physically_consistent else "no", number(r.seconds, 2)]
        )  # fmt: skip
    columns = ["scheme", "hold-out torque error [% of σ]", f"position after ≤ {found.horizon:g} s [mrad, mm]",
               "median standard error [%]", "possible", "time [s]"]  # fmt: skip
    out.print(table(f"Schemes on {escape(found.robot.name)}", columns, rows, right=columns[1:]))
    for r in found.results:
        if r.reason:
            out.print(f" • {r.scheme}: {escape(r.reason)}")
    best = found.best
    if best is not None:
        out.print(f"\n[bold]{best.scheme}[/bold] predicts the torque of the held-out data best.")
    if folder:
        out.print(f"Written to {escape(folder)}: result.json, report.html")


def schemes_report(found: SchemeComparison) -> str:
    """The page, self-contained."""
    best = found.best
    summary = table_html(
        ["scheme", Column("hold-out torque error", "% of σ", digits=3), Column("position error", "mrad, mm", digits=3),
         Column("median standard error", "%", digits=3), "possible", Column("time", "s", digits=2), "remark"],
        [_summary(r) for r in found.results],
        f"All schemes on the same data; positions are replayed open loop for {found.horizon:g} s at a time",
    )  # fmt: skip
    sections = [Section("Schemes", join(*_best(best.scheme if best else None), summary))]
    shown = [r for r in found.results if r.found is not None]
    if shown:
        sections.append(Section("Base parameters", _parameters(shown)))
    return render_report(
        f"{found.robot.name}: schemes compared", sections, footer=f"Made by steelyard {version('steelyard')}."
    )


def _best(name: str | None) -> list[Html]:
    if name is None:
        return [callout("bad", "No scheme could be judged.")]
    return [
        callout("good", f"{name} predicts the torque of the held-out data best."),
        paragraph("All schemes know the same physics; they differ in what noise and friction do to them."),
    ]


def _summary(r: SchemeResult) -> list[Cell]:
    if r.found is None:
        return [r.scheme, None, None, None, "–", r.seconds, r.reason]
    position = None if r.position_rmse is None else 1000.0 * float(np.sqrt(np.mean(r.position_rmse**2)))
    remark = "a replay diverged" if r.position_rmse is None else ""
    possible = "yes" if r.found.physically_consistent else "no"
    return [r.scheme, r.nrmse_percent, position, _relative_error(r), possible, r.seconds, remark]


def _parameters(shown: list[SchemeResult]) -> Html:
    first = shown[0].found
    assert first is not None
    rows: list[list[Cell]] = []
    for k, name in enumerate(first.base.names):
        row: list[Cell] = [name, first.base.units[k]]
        for r in shown:
            assert r.found is not None
            error = 1.96 * r.found.estimate.standard_errors[k]
            row.append(f"{number(float(r.found.estimate.beta[k]))} ± {number(float(error), 2)}")
        rows.append(row)
    return table_html(["base parameter", "unit", *(r.scheme for r in shown)], rows, "Values with 95 % intervals")


def _position(r: SchemeResult) -> str:
    if r.position_rmse is None:
        return "diverged"
    return number(1000.0 * float(np.sqrt(np.mean(r.position_rmse**2))), 3)


def _relative_error(r: SchemeResult) -> float:
    assert r.found is not None
    estimate = r.found.estimate
    size = np.maximum(np.abs(estimate.beta), 1e-12)
    return float(100.0 * np.median(estimate.standard_errors / size))
