"""Runs of `identify` side by side: differences of parameters with their significance, of settings and of scores.

All values come from the runs' `result.json`. The difference d = b − a of two values with standard errors s_a and s_b
has the standard error √(s_a² + s_b²) if the runs are independent. Runs from the same logs share their noise, so an
insignificant difference between them may still come from the method.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import Known, with_error
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, callout, join, paragraph, table_html, tabs
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.summaries import moving_error

# Number of rows above which a table scrolls.
_TALL = 16
_ABSENT = "This run lacks the parameter."


@dataclass(frozen=True)
class RunDifference:
    """Difference of a parameter between a run and the first run.

    Attributes:
        value: The difference.
        error: Its standard error; None if unknown.
        same_sum: Whether both runs have the same formula for the base parameter.
    """

    value: float
    error: float | None
    same_sum: bool = True

    @property
    def standard_errors(self) -> float | None:
        """Size of the difference [standard errors]; None without an error."""
        return abs(self.value) / self.error if self.error else None

    @property
    def is_significant(self) -> bool:
        """Whether its 95 % interval excludes zero."""
        return self.same_sum and self.standard_errors is not None and self.standard_errors > HALF_WIDTH_95


@dataclass(frozen=True)
class ComparedParameter:
    """A parameter in several runs.

    Args:
        name: Name of the parameter.
        unit: Unit of the parameter.
        values: Value by run; None if a run lacks the parameter.
        errors: Standard error by run; None if unknown.
        formulas: Formula of the base parameter by run; "" if a run lacks the parameter.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    errors: tuple[float | None, ...]
    formulas: tuple[str, ...]

    def against_first(self, run: int) -> RunDifference | None:
        """Return the difference between a `run` (index from 0) and the first; None if one lacks the parameter."""
        first, other = self.values[0], self.values[run]
        if first is None or other is None:
            return None
        a, b = self.errors[0], self.errors[run]
        error = None if a is None or b is None else math.hypot(a, b)
        return RunDifference(other - first, error, self.formulas[0] == self.formulas[run])


def base_parameters_compared(results: Sequence[Mapping[str, Any]]) -> list[ComparedParameter]:
    """Match the base parameters of several `results` (result.json of runs of `identify`) by name."""
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
    """Match all parameters of the models in `results` by name.

    Only parameters that are base parameters by themselves have an error; the others are not unique.
    """
    rows = [{row["name"]: row for row in result["parameters"]} for result in results]
    errors_by_formula = [
        {row["formula"]: row["standard_error"] for row in result["base_parameters"]["list"] if row["formula"]}
        for result in results
    ]
    return [
        ComparedParameter(
            name,
            next(run[name]["unit"] for run in rows if name in run),
            tuple(_real(run.get(name, {}).get("value")) for run in rows),
            tuple(_real(errors.get(name)) for errors in errors_by_formula),
            tuple(name if name in run else "" for run in rows),
        )
        for name in dict.fromkeys(name for run in rows for name in run)
    ]


def settings_that_differ(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """List the settings, terms, logs and versions that differ between `results`: name and value by run."""
    settings = [dict(_settings(result)) for result in results]
    names = dict.fromkeys(name for one in settings for name in one)
    rows = [(name, tuple(one.get(name, "–") for one in settings)) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def scores_compared(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, tuple[float | None, ...]]]:
    """List the torque errors of `results`: hold-out log, joint, and error by run [% of a torque's standard deviation].

    For a run without a hold-out log, these are the errors on the logs of the fit.
    """
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
    """Render two or more `runs` of `identify` (name and result.json) side by side."""
    names, results = [name for name, _ in runs], [result for _, result in runs]
    if len(runs) < 2:
        raise StudioError("Choose at least two runs.")
    try:
        base, standard = base_parameters_compared(results), standard_parameters_compared(results)
        settings, scores = settings_that_differ(results), scores_compared(results)
        verdicts = [(name, str(r["verdict"]["grade"]), str(r["verdict"]["sentence"])) for name, r in runs]
    except (LookupError, TypeError, AttributeError):
        raise StudioError(
            "One of these runs is not from `identify`, or from another version; choose other runs."
        ) from None
    marks = [f"{chr(ord('A') + k)}: {name}" for k, name in enumerate(names)]
    letters = [mark.partition(":")[0] for mark in marks]
    pieces: list[str] = [_sentence(base, names)]
    rows: list[Sequence[TableCell]] = [(mark, *row[1:]) for mark, row in zip(marks, verdicts, strict=True)]
    pieces.append(table_html(["run", "grade", "verdict"], rows, "Verdicts"))
    if settings:
        listed: list[Sequence[TableCell]] = [(name, *values) for name, values in settings]
        pieces.append(table_html(["setting", *letters], listed, "Settings that differ", tall=len(listed) > _TALL))
    else:
        pieces.append(callout("note", "All runs have the same settings and files.", "Settings"))
    pieces.append(_scores(scores, letters))
    about = paragraph(
        "Differences from A with 95 % intervals, for independent runs. Significant differences are coloured; σ is the "
        "difference in standard errors. Runs from the same logs share their noise, so that they differ less by chance."
    )
    tables = tabs(
        ("base parameters", _parameters(base, letters, "Base parameters")),
        ("all parameters", _parameters(standard, letters, "All parameters of the models")),
    )
    return join(*pieces, about, tables)


def _sentence(base: Sequence[ComparedParameter], names: Sequence[str]) -> Html:
    """Count the base parameters that differ significantly."""
    rows = [[p.against_first(k) for k in range(1, len(names))] for p in base]
    shared = sum(any(d is not None and d.same_sum for d in row) for row in rows)
    differing = [
        p.name for p, row in zip(base, rows, strict=True) if any(d is not None and d.is_significant for d in row)
    ]
    if not shared:
        return callout("note", "The runs share no base parameter: they have different terms or robots.")
    # One of twenty is outside its 95 % interval by chance.
    kind = "good" if len(differing) <= 0.05 * shared else "warning"
    listed = f": {', '.join(differing[:8])}{', …' if len(differing) > 8 else ''}" if differing else ""
    words = f"{len(differing)} of {shared} base parameters differ by more than their 95 % intervals{listed}."
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


def _difference(difference: RunDifference | None) -> tuple[TableCell, TableCell]:
    if difference is None:
        return None, None
    if not difference.same_sum:
        return "other formula", None
    if difference.error is None:
        return Known(difference.value, 0.0), None
    level = 1.0 if difference.is_significant else 0.0
    interval = with_error(difference.value, HALF_WIDTH_95 * difference.error)
    return Heat(interval, level), Heat(difference.standard_errors, level)


def _scores(scores: Sequence[tuple[str, str, tuple[float | None, ...]]], letters: Sequence[str]) -> Html:
    rows: list[Sequence[TableCell]] = [
        (log, joint, *values, None if None in (values[0], values[-1]) else values[-1] - values[0])  # type: ignore[operator]
        for log, joint, values in scores
    ]
    heads: list[TableColumn | str] = ["log", "joint", *(TableColumn(letter, "%", 3) for letter in letters)]
    heads.append(TableColumn(f"{letters[-1]} − A", "%", 2))
    title = "Torque errors, % of a torque's standard deviation (NRMSE)"
    return table_html(heads, rows, title, dash="This run was not validated on that log.", tall=len(rows) > _TALL)


# ---------------------------------------------------------------- from a result


def _settings(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings as flat text: terms by kind with their joints, files by their checksum."""
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
    for kind, word in (("identification", "fitted to"), ("validation", "validated on")):
        yield word, ", ".join(str(score["log"]) for score in result[kind]) or "–"
    for file in result.get("inputs", []):
        yield f"file {file['file']}", str(file["sha256"])[:12]
    for name, value in result.get("versions", {}).items():
        yield f"version of {name}", str(value)
    yield "structure", "from the search" if result.get("structure") else "fixed"


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
