"""The report of a fleet as a page, and its summary on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from steelyard.fleet.drift import FALSE_DRIFTS
from steelyard.fleet.outliers import FALSE_OUTLIERS
from steelyard.fleet.sections import (
    differences_section,
    drift_section,
    findings_section,
    fleet_scores_section,
    map_section,
    outliers_section,
    unused_section,
)
from steelyard.ground.numbers import number
from steelyard.report.elements import Html, TableCell, callout, commands, join, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.fleet.fleet import FleetOutcome

# Largest number of unusable logs and of outliers in the summary.
_MAX_UNUSED, _MAX_OUTLIERS = 10, 5
# Smallest reduction of error bars that is mentioned.
_MIN_REDUCTION = 1.1


def fleet_report(outcome: FleetOutcome) -> str:
    """Make the self-contained page of the results `outcome`."""
    tables = outcome.tables
    sections: list[Section | None] = [
        map_section(tables),
        outliers_section(tables, FALSE_OUTLIERS),
        drift_section(tables, FALSE_DRIFTS),
        differences_section(tables),
        fleet_scores_section(tables),
        unused_section(tables),
        findings_section(tables),
        _next_steps(outcome),
        _statistics(outcome),
    ]
    return render_report(
        f"Fleet: {', '.join(outcome.robot_types)}",
        [s for s in sections if s is not None],
        verdict=_verdict(outcome),
        subtitle=_summary(outcome),
    )


def _summary(outcome: FleetOutcome) -> str:
    own = outcome.factors
    used = len(own.logs) - len(outcome.skipped)
    samples = sum(log.samples for log in own.logs)
    return (
        f"{_count(len(own.robots), 'robot')} of {_count(len(own.fleet.robot_types), 'robot type')}, {used:,} of "
        f"{len(own.logs):,} logs used, {samples:,} samples"
    )


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _points(outcome: FleetOutcome) -> list[str]:
    """List the main points, one sentence each."""
    judged = [model.judged for model in outcome.robot_types.values()]
    ranked = sorted((o for one in judged for o in one.outliers), key=lambda o: -o.score)
    points = [o.sentence for o in ranked][:_MAX_OUTLIERS]
    points += [note for model in outcome.robot_types.values() for note in model.pooled.notes]
    points += [
        *outcome.failures.values(),
        *(why for m in outcome.robot_types.values() for why in m.fit_errors.values()),
    ]
    return points


def _verdict(outcome: FleetOutcome) -> Verdict:
    changed = sum(len(model.drift.drifts) for model in outcome.robot_types.values())
    skipped = len(outcome.skipped)
    gained = [model.pooled.sharper() for model in outcome.robot_types.values()]
    finite = [x for x in gained if np.isfinite(x)]
    odd = sum(len(model.judged.outliers) for model in outcome.robot_types.values())
    words = _count(odd, "outlier") if odd else "No outliers"
    words += f"; {_count(changed, 'change')} over time" if changed else ""
    words += f"; {_count(skipped, 'log')} not used" if skipped else ""
    if finite and np.median(finite) > _MIN_REDUCTION:
        words += f"; error bars are {number(float(np.median(finite)), 2)} times smaller than from each robot's own logs"
    return Verdict(
        "warning" if odd or changed or skipped or outcome.failures else "good", f"{words}.", tuple(_points(outcome))
    )


def _next_steps(outcome: FleetOutcome) -> Section:
    odd = (o.robot for m in outcome.robot_types.values() for o in m.judged.outliers)
    robot = next(odd, next(iter(outcome.factors.robots)))
    return Section(
        "Next steps",
        commands(
            ("A page for one robot: its parameters compared with other robots, its logs, days and findings.",
             f"steelyard fleet RUN --robot {shlex.quote(robot)} -o ROBOT"),
            ("All numbers as tables, for DuckDB, Polars or pandas.",
             "duckdb -c \"select * from 'RUN/parameters.parquet' limit 10\""),
        ),
    )  # fmt: skip


def _statistics(outcome: FleetOutcome) -> Section:
    tally = outcome.factors.tally
    seconds = tally.seconds.get("mapping", 0.0)
    pace = tally.samples / max(seconds * tally.cores, 1e-9)
    peaks = sorted(tally.peak_bytes.items(), key=lambda p: -p[1])
    rows: list[Sequence[TableCell]] = [
        ("logs processed", f"{tally.mapped:,}, {tally.samples:,} samples"),
        ("logs taken from the store", f"{tally.kept:,}"),
        *([("samples per second and core", f"{pace:,.0f} on {_count(tally.cores, 'core')}")] if tally.mapped else []),
        *((f"seconds: {step}", number(spent, 3)) for step, spent in tally.seconds.items()),
        *((f"largest memory of {name}", f"{size / 1e6:,.0f} MB") for name, size in peaks[:4]),
        ("workers", "of Dask" if tally.engine == "dask" else "this process"),
        *((f"robot type {name}", f"cut-off {number(chosen.cutoff_hz, 3)} Hz; terms "
           f"{', '.join(t.kind for t in chosen.terms)}; chosen from {len(chosen.chosen_from)} logs")
          for name, chosen in outcome.factors.settings.items()),
    ]  # fmt: skip
    notes: list[Html] = []
    if tally.trouble:
        notes.append(callout("warning", f"{tally.trouble}: {tally.unkept} entries are not stored."))
    if tally.mended:
        notes.append(callout("note", _repaired(tally.mended)))
    return Section("Run statistics", join(*notes, table_html(["quantity", "value"], rows)))


def _repaired(count: int) -> str:
    entries = "1 entry" if count == 1 else f"{count:,} entries"
    return f"{entries} of the store: damaged, or not written by you; computed again."


def print_fleet(outcome: FleetOutcome, out: Console, folder: str = "") -> None:
    """Print a summary of a fleet's results.

    Args:
        outcome: The results.
        out: Console.
        folder: The run folder that was written; "" if none was.
    """
    tally, skipped = outcome.factors.tally, outcome.skipped
    say(out, f"{_summary(outcome)}.")
    seconds = tally.seconds.get("mapping", 0.0)
    if tally.mapped:
        pace = tally.samples / max(seconds * tally.cores, 1e-9)
        say(out, f"{tally.mapped:,} logs processed ({tally.samples:,} samples, {pace:,.0f} per second and core), "
                 f"{tally.kept:,} taken from the store.")  # fmt: skip
    else:
        say(out, f"No new logs: {tally.kept:,} logs taken from the store.")
    peak = max(tally.peak_bytes.values(), default=0)
    say(out, f"Largest process: {peak / 1e6:,.0f} MB.")
    if tally.mended:
        say(out, _repaired(tally.mended))
    if tally.trouble:
        say(out, f"{tally.trouble}: {tally.unkept} entries are not stored; the next run computes them again.")
    for point in _points(outcome):
        say(out, f" · {point}")
    for reason in list(skipped.values())[:_MAX_UNUSED]:
        say(out, f"Not used: {reason}")
    if len(skipped) > _MAX_UNUSED:
        say(out, f"… and {len(skipped) - _MAX_UNUSED} more logs; see result.json.")
    if folder:
        say(out, f"\nOpen {folder}/report.html; tables and models are in {folder}.")
