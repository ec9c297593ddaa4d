"""A fleet as a page, a list of sections, and in a few lines on a terminal."""

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

# Of logs that could not be used, so many are named; so many of what changed.
_NAMED, _FIRST = 10, 5
# Error bars that shrink by less than this factor are not worth a word.
_WORTH_TELLING = 1.1


def fleet_report(found: FleetOutcome) -> str:
    """The page of what was `found`, self-contained."""
    tables, models = found.tables, found.models
    sections: list[Section | None] = [
        map_section(tables),
        outliers_section(tables, FALSE_OUTLIERS),
        drift_section(tables, FALSE_DRIFTS),
        differences_section(tables),
        fleet_scores_section(tables),
        unused_section(tables),
        findings_section(tables),
        _next(found),
        _how(found),
    ]
    names = ", ".join(models)
    return render_report(
        f"Fleet: {names}",
        [s for s in sections if s is not None],
        verdict=_verdict(found),
        subtitle=_counted(found),
    )


def _counted(found: FleetOutcome) -> str:
    own = found.factors
    used = len(own.logs) - len(found.skipped)
    samples = sum(log.samples for log in own.logs)
    return (
        f"{_many(len(own.robots), 'robot')} of {_many(len(own.fleet.models), 'model')}, {used:,} of "
        f"{len(own.logs):,} logs used, {samples:,} samples"
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _points(found: FleetOutcome) -> list[str]:
    """What should be known, one sentence each."""
    judged = [model.judged for model in found.models.values()]
    ranked = sorted((o for one in judged for o in one.outliers), key=lambda o: -o.score)
    points = [o.sentence for o in ranked][:_FIRST]
    points += [note for model in found.models.values() for note in model.pooled.notes]
    points += [*found.silent.values(), *(why for m in found.models.values() for why in m.unmade.values())]
    return points


def _verdict(found: FleetOutcome) -> Verdict:
    changed = sum(len(model.drift.drifts) for model in found.models.values())
    skipped = len(found.skipped)
    gained = [model.pooled.sharper() for model in found.models.values()]
    finite = [x for x in gained if np.isfinite(x)]
    odd = sum(len(model.judged.outliers) for model in found.models.values())
    words = f"{_many(odd, 'thing')} that do{'es' if odd == 1 else ''} not belong" if odd else "Nothing stands out"
    words += f"; {_many(changed, 'change')} over time" if changed else ""
    words += f"; {_many(skipped, 'log')} not used" if skipped else ""
    if finite and np.median(finite) > _WORTH_TELLING:
        words += f"; error bars are {number(float(np.median(finite)), 2)} times smaller than by each robot's own logs"
    return Verdict(
        "warning" if odd or changed or skipped or found.silent else "good", f"{words}.", tuple(_points(found))
    )


def _next(found: FleetOutcome) -> Section:
    odd = (o.robot for m in found.models.values() for o in m.judged.outliers)
    robot = next(odd, next(iter(found.factors.robots)))
    return Section(
        "What next",
        commands(
            ("One robot on a page of its own: its parameters beside those of its kin, its logs and days, its findings.",
             f"steelyard fleet RUN --robot {shlex.quote(robot)} -o ROBOT"),
            ("All numbers as tables, for DuckDB, Polars or pandas.",
             "duckdb -c \"select * from 'RUN/parameters.parquet' limit 10\""),
        ),
    )  # fmt: skip


def _how(found: FleetOutcome) -> Section:
    tally = found.factors.tally
    seconds = tally.seconds.get("mapping", 0.0)
    pace = tally.samples / max(seconds * tally.cores, 1e-9)
    peaks = [(name, size) for name, size in sorted(tally.peak_bytes.items(), key=lambda p: -p[1])]
    rows: list[Sequence[TableCell]] = [
        ("logs gone through", f"{tally.mapped:,}, {tally.samples:,} samples"),
        ("logs taken from the store", f"{tally.kept:,}"),
        *([("samples a second and core", f"{pace:,.0f} on {_many(tally.cores, 'core')}")] if tally.mapped else []),
        *((f"seconds: {what}", number(spent, 3)) for what, spent in tally.seconds.items()),
        *((f"largest size of {name}", f"{size / 1e6:,.0f} MB") for name, size in peaks[:4]),
        ("workers", "of Dask" if tally.engine == "dask" else "this process"),
        *((f"model {name}", f"cut-off {number(made.cutoff_hz, 3)} Hz; terms {', '.join(t.kind for t in made.terms)}; "
           f"chosen from {len(made.chosen_from)} logs") for name, made in found.factors.settings.items()),
    ]  # fmt: skip
    notes: list[Html] = []
    if tally.trouble:
        notes.append(callout("warning", f"{tally.trouble}: {tally.unkept} entries are not kept."))
    if tally.mended:
        notes.append(callout("note", _mended(tally.mended)))
    return Section("How it was done", join(*notes, table_html(["what", "value"], rows)))


def _mended(count: int) -> str:
    """How many entries of the store were not believed: `count`."""
    entries = "1 entry" if count == 1 else f"{count:,} entries"
    return f"{entries} of the store: damaged, or not made by you; computed anew."


def print_fleet(found: FleetOutcome, out: Console, folder: str = "") -> None:
    """Print in few lines what a fleet's logs told.

    Args:
        found: the result.
        out: where to.
        folder: the run folder that was written; "" if none was.
    """
    tally, skipped = found.factors.tally, found.skipped
    say(out, f"{_counted(found)}.")
    seconds = tally.seconds.get("mapping", 0.0)
    if tally.mapped:
        pace = tally.samples / max(seconds * tally.cores, 1e-9)
        say(out, f"{tally.mapped:,} logs gone through ({tally.samples:,} samples, {pace:,.0f} a second and core), "
                 f"{tally.kept:,} taken from the store.")  # fmt: skip
    else:
        say(out, f"Nothing is new: {tally.kept:,} logs taken from the store.")
    peak = max(tally.peak_bytes.values(), default=0)
    say(out, f"Largest process: {peak / 1e6:,.0f} MB.")
    if tally.mended:
        say(out, _mended(tally.mended))
    if tally.trouble:
        say(out, f"{tally.trouble}: {tally.unkept} entries are not kept, and will be made anew by the next run.")
    for point in _points(found):
        say(out, f" · {point}")
    for reason in list(skipped.values())[:_NAMED]:
        say(out, f"Not used: {reason}")
    if len(skipped) > _NAMED:
        say(out, f"… and {len(skipped) - _NAMED} more logs, which result.json lists.")
    if folder:
        say(out, f"\nLook at {folder}/report.html; tables and models are in {folder}.")
