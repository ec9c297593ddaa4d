"""Runs of `identify` side by side: the parameters in which they differ, by how much, and whether that is more than
their error bars allow; settings and scores that differ.

Everything comes from the runs' `result.json`. A difference d = b − a of two values with standard errors s_a and s_b is
taken to have the error √(s_a² + s_b²), as if the runs knew nothing of each other. Runs from the same logs share their
noise: between those a difference inside its error bar may still be one of method.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.ground.numbers import Known, with_error
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, callout, join, paragraph, table_html, tabs
from steelyard.studio.place import StudioError
from steelyard.studio.summaries import moving_error

# Half of a 95 % interval, in standard errors.
WIDE = 1.96
# Rows from which on a table scrolls by itself.
_TALL = 16
_ABSENT = "The run does not have it."


@dataclass(frozen=True)
class RunDifference:
    """A parameter of one run against that of the first: `by` so much, ± `error` (one standard error; None: there is
    none); `same_sum`: whether both stand for the same sum of inertias."""

    by: float
    error: float | None
    same_sum: bool = True

    @property
    def standard_errors(self) -> float | None:
        """How many of its standard errors it is; None where it has none."""
        return abs(self.by) / self.error if self.error else None

    @property
    def beyond(self) -> bool:
        """Whether it is more than its 95 % interval allows."""
        return self.same_sum and self.standard_errors is not None and self.standard_errors > WIDE


@dataclass(frozen=True)
class ComparedParameter:
    """A parameter in several runs.

    Args:
        name: of the parameter.
        unit: of the parameter.
        values: run by run; None where a run does not have it.
        errors: their standard errors; None where there is none.
        formulas: the sum that it stands for, run by run; "" where a run does not have it.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    errors: tuple[float | None, ...]
    formulas: tuple[str, ...]

    def against_first(self, run: int) -> RunDifference | None:
        """The difference of `run` (from 0) and the first one; None where one of them does not have it."""
        first, other = self.values[0], self.values[run]
        if first is None or other is None:
            return None
        a, b = self.errors[0], self.errors[run]
        error = None if a is None or b is None else math.hypot(a, b)
        return RunDifference(other - first, error, self.formulas[0] == self.formulas[run])


def base_parameters_compared(results: Sequence[Mapping[str, Any]]) -> list[ComparedParameter]:
    """The base parameters of `results` (result.json of runs of `identify`), by their names."""
    rows = [{row["name"]: row for row in result["base_parameters"]["list"]} for result in results]
    return [
        ComparedParameter(
            name,
            next(run[name]["unit"] for run in rows if name in run),
            tuple(_real(run.get(name, {}).get("value")) for run in rows),
            tuple(_real(run.get(name, {}).get("standard_error")) for run in rows),
            tuple(str(run.get(name, {}).get("formula", "")) for run in rows),
        )
        for name in dict.fromkeys(name for run in rows for name in run)
    ]


def standard_parameters_compared(results: Sequence[Mapping[str, Any]]) -> list[ComparedParameter]:
    """All parameters of the models in `results`. Only those that a motion can show alone have an error: the others are
    one choice of many that move alike."""
    rows = [{row["name"]: row for row in result["parameters"]} for result in results]
    shown = [
        {row["formula"]: row["standard_error"] for row in result["base_parameters"]["list"] if row["formula"]}
        for result in results
    ]
    return [
        ComparedParameter(
            name,
            next(run[name]["unit"] for run in rows if name in run),
            tuple(_real(run.get(name, {}).get("value")) for run in rows),
            tuple(_real(errors.get(name)) for errors in shown),
            tuple(name if name in run else "" for run in rows),
        )
        for name in dict.fromkeys(name for run in rows for name in run)
    ]


def settings_that_differ(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """What `results` were not found alike with: settings, terms, logs, versions; name, and value by run."""
    told = [dict(_settings(result)) for result in results]
    names = dict.fromkeys(name for one in told for name in one)
    rows = [(name, tuple(one.get(name, "–") for one in told)) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def scores_compared(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, tuple[float | None, ...]]]:
    """The torque errors of `results`, in percent of a torque's standard deviation, on each log that judged: log, joint,
    and error by run. Where a run was judged by nothing, those on the logs that it was fitted to."""
    tables: list[dict[tuple[str, str], float | None]] = []
    for result in results:
        kind = "validation" if result["validation"] else "identification"
        word = "" if result["validation"] else " (fitted)"
        tables.append({
            (f"{score['log']}{word}", joint["joint"]): _real(moving_error(joint))
            for score in result[kind]
            for joint in score["joints"]
        })  # fmt: skip
    return [
        (*key, tuple(one.get(key) for one in tables)) for key in dict.fromkeys(key for one in tables for key in one)
    ]


# ---------------------------------------------------------------- as HTML


def differences_html(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Html:
    """Two or more `runs` of `identify`, names with their result.json, beside each other."""
    names, results = [name for name, _ in runs], [result for _, result in runs]
    if len(runs) < 2:
        raise StudioError("Choose two runs, or more.")
    try:
        base, standard = base_parameters_compared(results), standard_parameters_compared(results)
        settings, scores = settings_that_differ(results), scores_compared(results)
        verdicts = [(name, str(r["verdict"]["grade"]), str(r["verdict"]["sentence"])) for name, r in runs]
    except (LookupError, TypeError, AttributeError):
        raise StudioError("One of these runs is none of `identify`, or of another version; choose others.") from None
    marks = [f"{chr(ord('A') + k)}: {name}" for k, name in enumerate(names)]
    letters = [mark.partition(":")[0] for mark in marks]
    pieces: list[str] = [_sentence(base, names)]
    rows: list[Sequence[TableCell]] = [(mark, *row[1:]) for mark, row in zip(marks, verdicts, strict=True)]
    pieces.append(table_html(["run", "grade", "verdict"], rows, "Verdicts"))
    if settings:
        listed: list[Sequence[TableCell]] = [(name, *values) for name, values in settings]
        pieces.append(table_html(["setting", *letters], listed, "Settings that differ", tall=len(listed) > _TALL))
    else:
        pieces.append(callout("note", "They were made with the same settings from the same files.", "Settings"))
    pieces.append(_scores(scores, letters))
    about = paragraph(
        "A difference is that to A, ± half its 95 % interval, from both error bars as if the runs knew nothing of each "
        "other; those beyond it are coloured, and their number of standard errors stands beside them. Runs from the "
        "same logs share their noise, and differ less than this by chance."
    )
    shown = tabs(
        ("base parameters", _parameters(base, letters, "Base parameters")),
        ("all parameters", _parameters(standard, letters, "All parameters of the models")),
    )
    return join(*pieces, about, shown)


def _sentence(base: Sequence[ComparedParameter], names: Sequence[str]) -> Html:
    """How many of the base parameters differ beyond their error bars."""
    found = [[p.against_first(k) for k in range(1, len(names))] for p in base]
    both = sum(any(one is not None and one.same_sum for one in row) for row in found)
    beyond = [p.name for p, row in zip(base, found, strict=True) if any(one is not None and one.beyond for one in row)]
    if not both:
        return callout("note", "They have no base parameter in common: their terms, or their robots, are others.")
    # One of twenty is beyond 95 % by chance.
    kind = "good" if len(beyond) <= 0.05 * both else "warning"
    listed = f": {', '.join(beyond[:8])}{', …' if len(beyond) > 8 else ''}" if beyond else ""
    words = f"{len(beyond)} of {both} base parameters differ by more than their 95 % intervals{listed}."
    return callout(kind, words, "Parameters")  # type: ignore[arg-type]


def _parameters(compared: Sequence[ComparedParameter], letters: Sequence[str], title: str) -> Html:
    rows: list[Sequence[TableCell]] = []
    for p in compared:
        cells: list[TableCell] = [
            None if value is None else Known(value, error or 0.0)
            for value, error in zip(p.values, p.errors, strict=True)
        ]
        for k in range(1, len(letters)):
            cells += _difference(p.against_first(k))
        rows.append((p.name, p.unit, *cells))
    columns: list[TableColumn | str] = ["parameter", "unit", *letters]
    for letter in letters[1:]:
        columns += [f"{letter} − A", TableColumn("σ", places=1)]
    return table_html(columns, rows, title, dash=_ABSENT, tall=len(rows) > _TALL)


def _difference(found: RunDifference | None) -> tuple[TableCell, TableCell]:
    if found is None:
        return None, None
    if not found.same_sum:
        return "another sum", None
    if found.error is None:
        return Known(found.by, 0.0), None
    level = 1.0 if found.beyond else 0.0
    return Heat(with_error(found.by, WIDE * found.error), level), Heat(found.standard_errors, level)


def _scores(scores: Sequence[tuple[str, str, tuple[float | None, ...]]], letters: Sequence[str]) -> Html:
    rows: list[Sequence[TableCell]] = [
        (log, joint, *values, None if None in (values[0], values[-1]) else values[-1] - values[0])  # type: ignore[operator]
        for log, joint, values in scores
    ]
    heads: list[TableColumn | str] = ["log", "joint", *(TableColumn(letter, "%", 3) for letter in letters)]
    heads.append(TableColumn(f"{letters[-1]} − A", "%", 2))
    title = "Torque errors, % of a torque's standard deviation (NRMSE)"
    return table_html(heads, rows, title, dash="The run was not judged by that log.", tall=len(rows) > _TALL)


# ---------------------------------------------------------------- from a result


def _settings(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings as text, flat; terms by kind with where they are, inputs by what is in them."""
    settings = dict(result["settings"])
    terms: dict[str, list[str]] = {}
    for term in settings.pop("terms", []):
        where = ", ".join(term["where"]) if term.get("where") else "all joints"
        options = [f"{key} {value}" for key, value in term.items() if key not in ("kind", "on", "where")]
        terms.setdefault(term["kind"], []).append(f"{where} ({', '.join(options)})" if options else where)
    yield from ((f"term {kind}", "; ".join(each)) for kind, each in terms.items())
    for name, value in settings.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            yield f"{name} {key}".strip(), inner if isinstance(inner, str) else json.dumps(inner)
    for kind, word in (("identification", "fitted to"), ("validation", "judged by")):
        yield word, ", ".join(str(score["log"]) for score in result[kind]) or "–"
    for one in result.get("inputs", []):
        yield f"file {one['file']}", str(one["sha256"])[:12]
    for name, value in result.get("versions", {}).items():
        yield f"version of {name}", str(value)
    yield "structure", "searched" if result.get("structure") else "as given"


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
