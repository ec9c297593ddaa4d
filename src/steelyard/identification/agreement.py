"""Several logs, several answers: how parameters spread between logs, which log disagrees, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import percent
from steelyard.ground.reasons import explained
from steelyard.identification.between import LogShift, LogSums
from steelyard.regression.base_parameters import BaseParameters
from steelyard.study import Study

# How often logs of one robot that did not change are said to disagree, all logs and all questions together.
FALSE_ALARMS = 0.01
# Of causes that explain nearly as much as the best one, to this part, the one with the fewest unknowns is told.
_NEARLY = 0.9
# And only where the squared error of a joint in that log falls by more than this part if it may differ: friction that
# the model lacks is another in every motion, and reaches 37 % on simulated arms whose friction the library has not.
LEAST_GAIN = 0.4
# What is told at most.
_MOST = 6


@dataclass(frozen=True)
class ParameterSpread:
    """A base parameter in every log by itself.

    Attributes:
        name: of its leading parameter.
        unit: of its value.
        value: of the free fit to all logs.
        standard_error: of that.
        values: of each log by itself, free of the others; None where a log does not show it.
        standard_errors: of those, from the log's own noise and what varies from stretch to stretch.
        between_std: the standard deviation of the logs' values, each counted by its error bar; None of one.
        excess_std: what of it the error bars do not explain (DerSimonian & Laird 1986).
        worst: the log that is farthest from the mean of the others; of two, the second.
        away: how far that is, in standard errors of the difference.
    """

    why_null: ClassVar = {
        "values/*": "The log does not show it.",
        "standard_errors/*": "The log does not show it.",
        "between_std": "Fewer than two logs show it.",
        "excess_std": "Fewer than two logs show it.",
        "away": "Fewer than two logs show it.",
    }
    name: str
    unit: str
    value: float
    standard_error: float
    values: tuple[float | None, ...]
    standard_errors: tuple[float | None, ...]
    between_std: float | None
    excess_std: float | None
    worst: str
    away: float | None


@dataclass(frozen=True)
class Disagreement:
    """What differs in one log from the others, beyond chance.

    Attributes:
        log: its name.
        sentence: what differs, in words.
        parameters: the names of the parameters that differ, and "scale" for a torque's scale.
        changes: by how much, the log's less that of the others.
        standard_errors: of that.
        statistic: χ² of it, over the unknowns.
        p: how often chance alone would do as much on this question.
        gain_percent: what the squared error of the joint that gains most loses in this log if it may differ by this.
    """

    why_null: ClassVar = {"standard_errors/*": "The log does not show it by itself."}
    log: str
    sentence: str
    parameters: tuple[str, ...]
    changes: tuple[float, ...]
    standard_errors: tuple[float | None, ...]
    statistic: float
    p: float
    gain_percent: float


@dataclass(frozen=True)
class Agreement:
    """How several identification logs of one robot agree.

    Attributes:
        logs: their names.
        parameters: every base parameter, log by log.
        disagreements: what differs, the clearest first; empty where nothing does.
        asked: how many questions were asked; a difference is told where p is below `FALSE_ALARMS` / asked and the log's
            squared error on some joint falls by `LEAST_GAIN`.
    """

    logs: tuple[str, ...]
    parameters: tuple[ParameterSpread, ...]
    disagreements: tuple[Disagreement, ...]
    asked: int

    @property
    def reasons(self) -> tuple[str, ...]:
        """Of every log that disagrees, by what: a sentence each."""
        out = []
        for log in dict.fromkeys(d.log for d in self.disagreements):
            told = "; ".join(d.sentence for d in self.disagreements if d.log == log)
            with_whom = f"'{self.logs[0]}'" if len(self.logs) == 2 else "the other logs"
            out.append(f"The log '{log}' disagrees with {with_whom}: {told}.")
        return tuple(out)

    @property
    def width(self) -> str:
        """How many parameters differ between logs by more than the fit's error bars say, in a sentence."""
        count = sum(1 for p in self.parameters if p.excess_std is not None and p.excess_std > p.standard_error)
        return (
            f"{count} of {len(self.parameters)} base parameters differ between logs by more than their standard error."
        )

    @property
    def sentence(self) -> str:
        """The comparison in few words."""
        told = " ".join(self.reasons) or "No log disagrees with the others by what chance and friction do not explain."
        return f"{told} {self.width}"

    def to_json(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return explained(
            {"level": FALSE_ALARMS, "least_gain_percent": 100.0 * LEAST_GAIN, "sentence": self.sentence, **own}
        )


@dataclass(frozen=True, eq=False)
class _Cause:
    """A way in which one log may differ: columns of the library, their names and units, and how to say it."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    about: str
    kind: str


def agreement_of(study: Study, names: Sequence[str], free: Estimate) -> Agreement | None:
    """How the logs of `study`, called `names`, agree; None where there is but one.

    Args:
        study: whose rows have been reduced.
        names: of its logs.
        free: the free fit to all of them.
    """
    parts = study.parts
    if len(parts) < 2:
        return None
    with one_blas_thread():
        named = [names[k] for k in parts]
        sums = LogSums(tuple(parts.values()), study.base, free.beta, free.residual_std)
        library, causes = _library(study.base, [e.name for e in study.rows.equations], free.beta)
        asked = len(causes) * (1 if len(parts) == 2 else len(parts))
        found = _disagreements(sums, library, causes, asked, named)
        return Agreement(tuple(named), _by_parameter(sums, free, named), tuple(found), asked)


def _library(base: BaseParameters, equations: Sequence[str], beta: Array) -> tuple[Array, list[_Cause]]:
    """All changes, and the ways in which they make sense: single parameters, friction of a joint, loads, scales."""
    robot, links = base.robot, base.robot.inertial_count
    columns: list[Array] = []
    causes: list[_Cause] = []

    def add(change: Array) -> int:
        columns.append(np.broadcast_to(change, (len(equations), base.rank)))
        return len(columns) - 1

    def named(ks: Sequence[int], about: str, kind: str, places: Sequence[int]) -> None:
        own = [base.parameters[k] for k in ks]
        causes.append(_Cause(tuple(places), tuple(p.name for p in own), tuple(p.unit for p in own), about, kind))

    place = {k: add(np.eye(base.rank)[row]) for row, k in enumerate(base.independent)}
    for row, k in enumerate(base.independent):
        if k < links:
            named([k], f"the base parameter {base.names[row]}", "parameter", [place[k]])
    by_joint: dict[str, list[int]] = {}
    k = links
    for term, c in base.terms.placed:
        where = f"'{c.name or robot.joint_names[c.index]}'"
        for _ in term.columns:
            if np.any(base.matrix[:, k]):
                place.setdefault(k, len(columns))
                if place[k] == len(columns):
                    add(base.matrix[:, k])
                kind = f"{term.kind.replace('-', ' ')}{' friction' if term.dissipative else ''}"
                named([k], f"the {kind} {base.parameters[k].name} of {where}", "parameter", [place[k]])
                if term.dissipative:
                    by_joint.setdefault(where, []).append(k)
            k += 1
    for where, ks in by_joint.items():
        if len(ks) > 1:
            named(ks, f"friction of {where}", "friction", [place[k] for k in ks])
    parents = {link.parent for link in robot.links}
    for n, link in enumerate(robot.links):
        own = [10 * n + k for k in range(10) if np.any(base.matrix[:, 10 * n + k])]
        if n not in parents and own:
            named(own, f"what '{link.name}' carries", "load", [add(base.matrix[:, k]) for k in own])
    for e, name in enumerate(equations):
        if name in robot.joint_names:
            change = np.zeros((len(equations), base.rank))
            change[e] = beta
            causes.append(_Cause((add(change),), ("scale",), ("1",), f"the torque of '{name}'", "scale"))
    return np.stack(columns, axis=-1), causes


def _disagreements(
    sums: LogSums, library: Array, causes: Sequence[_Cause], asked: int, names: Sequence[str]
) -> list[Disagreement]:
    """The clearest difference of any log, then with it fitted along the next one, while chance does not explain it."""
    nuisance = [np.broadcast_to(np.eye(sums.base.rank), (library.shape[0], *2 * (sums.base.rank,)))] * sums.logs
    groups = [c.columns for c in causes]
    out: list[Disagreement] = []
    # Of two logs nobody can say which is right; the second is told beside the first.
    asking = range(1, 2) if sums.logs == 2 else range(sums.logs)
    while len(out) < _MOST:
        tests = sums.tests(library, nuisance, groups)
        pairs = [(t, c) for i in asking for t, c in zip(tests[i], causes, strict=True) if t.columns]
        clear = [(t, c) for t, c in pairs if t.p * asked < FALSE_ALARMS]
        if not clear:
            break
        enough = _NEARLY * max(t.gain for t, _ in clear)
        few = min(t.columns for t, _ in clear if t.gain >= enough)
        test, cause = max((pair for pair in clear if pair[0].columns == few), key=lambda pair: pair[0].gain)
        i, more = test.log, library[:, :, list(cause.columns)]
        before = sums.left(nuisance)[i]
        nuisance = [np.concatenate([d, more if k == i else np.zeros_like(more)], axis=-1)
                    for k, d in enumerate(nuisance)]  # fmt: skip
        gain = float(np.max(1.0 - sums.left(nuisance)[i] / np.maximum(before, 1e-300)))
        if gain < LEAST_GAIN:
            break
        out.append(_told(test, cause, names, 100.0 * gain))
    return out


def _told(test: LogShift, cause: _Cause, names: Sequence[str], gain_percent: float) -> Disagreement:
    return Disagreement(
        log=names[test.log],
        sentence=_words(test, cause, f"in '{names[0]}'" if len(names) == 2 else "in the others"),
        parameters=cause.names,
        changes=tuple(float(c) for c in test.change),
        standard_errors=tuple(float(e) if np.isfinite(e) else None for e in test.error),
        statistic=test.statistic,
        p=test.p,
        gain_percent=gain_percent,
    )


def _words(test: LogShift, cause: _Cause, other: str) -> str:
    change, error, unit = float(test.change[0]), float(test.error[0]), cause.units[0]
    sure = f"{abs(change) / error:.1f} standard errors" if 0.0 < error < np.inf else f"χ² {test.statistic:.0f}"
    if cause.kind == "scale":
        return (
            f"{cause.about} is {percent(abs(100 * change))} {_more(change, 'larger', 'smaller')} than {other} ({sure})"
        )
    if cause.kind == "parameter":
        return f"{cause.about} is {abs(change):.3g} {unit} {_more(change, 'higher', 'lower')} than {other} ({sure})"
    if cause.kind == "load" and cause.names[0].startswith("m") and np.isfinite(error):
        return f"{cause.about} is {abs(change):.3g} kg {_more(change, 'heavier', 'lighter')} than {other} ({sure})"
    told = ""
    if cause.kind == "friction" and np.all(np.isfinite(test.error)):
        changes = zip(cause.names, test.change, cause.units, strict=True)
        told = ", " + ", ".join(f"{name} by {change:+.3g} {unit}" for name, change, unit in changes)
    return f"{cause.about} is another than {other}{told} (χ² {test.statistic:.0f} with {test.columns} unknowns)"


def _more(change: float, more: str, less: str) -> str:
    return more if change > 0.0 else less


def _by_parameter(sums: LogSums, free: Estimate, names: Sequence[str]) -> tuple[ParameterSpread, ...]:
    values, errors = sums.own_answers()
    counts = np.where(np.isfinite(values) & (errors > 0.0), 1.0 / errors**2, 0.0)
    # Beside the mean of the other logs' own answers: a fit to them together would spread what differs over all.
    rest = counts.sum(axis=0) - counts
    others = (np.nansum(counts * values, axis=0) - np.nan_to_num(counts * values)) / np.where(rest > 0.0, rest, np.nan)
    away = np.abs(values - others) / np.sqrt(errors**2 + 1.0 / np.where(rest > 0.0, rest, np.nan))
    out = []
    for k, (name, unit) in enumerate(zip(free.base.names, free.base.units, strict=True)):
        seen = np.isfinite(values[:, k]) & (errors[:, k] > 0.0)
        deviation, excess = _between(values[seen, k], errors[seen, k])
        far = np.where(np.isfinite(away[:, k]), away[:, k], -1.0)
        worst = 1 if sums.logs == 2 else int(np.argmax(far))
        out.append(
            ParameterSpread(
                name,
                unit,
                float(free.beta[k]),
                float(free.standard_errors[k]),
                tuple(_numbers(values[:, k])),
                tuple(_numbers(errors[:, k])),
                deviation,
                excess,
                names[worst] if far[worst] >= 0.0 else "",
                float(far[worst]) if far[worst] >= 0.0 else None,
            )
        )
    return tuple(out)


def _between(x: Array, errors: Array) -> tuple[float | None, float | None]:
    """The standard deviation between values with error bars, and what of it the bars do not explain."""
    if len(x) < 2:
        return None, None
    w = 1.0 / errors**2
    mean = float(w @ x / w.sum())
    deviation = np.sqrt(float(w @ (x - mean) ** 2 / w.sum()) * len(x) / (len(x) - 1))
    excess = float(w @ (x - mean) ** 2) - (len(x) - 1)
    scale = float(w.sum() - w @ w / w.sum())
    return float(deviation), float(np.sqrt(max(excess, 0.0) / scale)) if scale > 0.0 else 0.0


def _numbers(x: Array) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in x]
