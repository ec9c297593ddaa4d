"""Compares the identification logs: spread of the parameters, and logs that disagree with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import percent
from steelyard.ground.reasons import explained
from steelyard.identification.log_differences import LogDifferences, LogShift
from steelyard.regression.base_parameters import BaseParameters
from steelyard.study import Study

# Probability of a false alarm for logs of an unchanged robot, over all logs and tests.
FALSE_ALARMS = 0.01
# Among causes that explain at least this share of the best gain, the one with the fewest unknowns is reported.
_NEARLY = 0.9
# A difference is reported only if it reduces the squared error of a joint in that log by this share. Missing friction
# terms also differ between motions: they reach 37 % on simulated arms with such friction.
LEAST_GAIN = 0.4
# Maximum number of reported differences.
_MOST = 6


@dataclass(frozen=True)
class ParameterSpread:
    """A base parameter estimated from each log separately.

    Attributes:
        name: Name of its leading parameter.
        unit: Unit of its value.
        value: Value of the free fit to all logs.
        standard_error: Standard error of `value`.
        values: Value of each log alone; None if it is not identifiable from the log.
        standard_errors: Standard errors of `values`, from noise and from the variation between stretches of the log.
        between_std: Weighted standard deviation of `values`; None for a single value.
        excess_std: Part of `between_std` that the standard errors do not explain (DerSimonian & Laird 1986).
        worst: Log that is farthest from the mean of the others; of two logs, the second.
        away: Its distance, in standard errors of the difference.
    """

    why_null: ClassVar = {
        "values/*": "It is not identifiable from this log.",
        "standard_errors/*": "It is not identifiable from this log.",
        "between_std": "It is identifiable from fewer than two logs.",
        "excess_std": "It is identifiable from fewer than two logs.",
        "away": "It is identifiable from fewer than two logs.",
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
    """A significant difference of one log from the others.

    Attributes:
        log: Name of the log.
        sentence: Description of the difference.
        parameters: Names of the parameters that differ; "scale" for a torque scale.
        changes: Differences: value of this log minus value of the others.
        standard_errors: Standard errors of `changes`.
        statistic: χ² of the difference.
        p: p-value of this test.
        gain_percent: Largest reduction of a joint's squared error in this log if the difference is fitted.
    """

    why_null: ClassVar = {"standard_errors/*": "It is not identifiable from this log alone."}
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
    """Agreement of several identification logs of one robot.

    Attributes:
        logs: Names of the logs.
        parameters: Base parameters, log by log.
        disagreements: Significant differences, the clearest first.
        asked: Number of tests. A difference is reported if p is below `FALSE_ALARMS` / `asked` and it reduces the
            squared error of a joint by `LEAST_GAIN`.
    """

    logs: tuple[str, ...]
    parameters: tuple[ParameterSpread, ...]
    disagreements: tuple[Disagreement, ...]
    asked: int

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each log that disagrees."""
        out = []
        for log in dict.fromkeys(d.log for d in self.disagreements):
            differences = "; ".join(d.sentence for d in self.disagreements if d.log == log)
            others = f"'{self.logs[0]}'" if len(self.logs) == 2 else "the other logs"
            out.append(f"The log '{log}' disagrees with {others}: {differences}.")
        return tuple(out)

    @property
    def width(self) -> str:
        """Number of parameters that differ between logs by more than the error bars, as a sentence."""
        count = sum(1 for p in self.parameters if p.excess_std is not None and p.excess_std > p.standard_error)
        return (
            f"{count} of {len(self.parameters)} base parameters differ between logs by more than their standard error."
        )

    @property
    def sentence(self) -> str:
        """Summary of the comparison."""
        reasons = " ".join(self.reasons) or "No log disagrees with the others beyond noise and friction."
        return f"{reasons} {self.width}"

    def to_json(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return explained(
            {"level": FALSE_ALARMS, "least_gain_percent": 100.0 * LEAST_GAIN, "sentence": self.sentence, **own}
        )


@dataclass(frozen=True, eq=False)
class _Cause:
    """A possible difference of one log: library columns, parameter names and units, and its description."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    about: str
    kind: str


def agreement_of(study: Study, names: Sequence[str], free: Estimate) -> Agreement | None:
    """Compare the logs of a study; None if there is only one.

    Args:
        study: Study with reduced rows.
        names: Names of its logs.
        free: Free fit to all of them.
    """
    parts = study.parts
    if len(parts) < 2:
        return None
    with one_blas_thread():
        named = [names[k] for k in parts]
        sums = LogDifferences(tuple(parts.values()), study.base, free.beta, free.residual_std)
        library, causes = _library(study.base, [e.name for e in study.rows.equations], free.beta)
        test_count = len(causes) * (1 if len(parts) == 2 else len(parts))
        disagreements = _disagreements(sums, library, causes, test_count, named)
        return Agreement(tuple(named), _parameter_spreads(sums, free, named), tuple(disagreements), test_count)


def _library(base: BaseParameters, equations: Sequence[str], beta: Array) -> tuple[Array, list[_Cause]]:
    """Build all changes and their groups: single parameters, friction of a joint, payloads and torque scales."""
    robot, links = base.robot, base.robot.inertial_count
    columns: list[Array] = []
    causes: list[_Cause] = []

    def add(change: Array) -> int:
        columns.append(np.broadcast_to(change, (len(equations), base.rank)))
        return len(columns) - 1

    def named(ks: Sequence[int], about: str, kind: str, places: Sequence[int]) -> None:
        own = [base.parameters[k] for k in ks]
        causes.append(_Cause(tuple(places), tuple(p.name for p in own), tuple(p.unit for p in own), about, kind))

    position = {k: add(np.eye(base.rank)[row]) for row, k in enumerate(base.independent)}
    for row, k in enumerate(base.independent):
        if k < links:
            named([k], f"the base parameter {base.names[row]}", "parameter", [position[k]])
    by_joint: dict[str, list[int]] = {}
    k = links
    for term, c in base.terms.with_coordinates:
        where = f"'{c.name or robot.joint_names[c.index]}'"
        for _ in term.columns:
            if np.any(base.matrix[:, k]):
                position.setdefault(k, len(columns))
                if position[k] == len(columns):
                    add(base.matrix[:, k])
                kind = f"{term.kind.replace('-', ' ')}{' friction' if term.dissipative else ''}"
                named([k], f"the {kind} {base.parameters[k].name} of {where}", "parameter", [position[k]])
                if term.dissipative:
                    by_joint.setdefault(where, []).append(k)
            k += 1
    for where, ks in by_joint.items():
        if len(ks) > 1:
            named(ks, f"friction of {where}", "friction", [position[k] for k in ks])
    parents = {link.parent for link in robot.links}
    for n, link in enumerate(robot.links):
        own = [10 * n + k for k in range(10) if np.any(base.matrix[:, 10 * n + k])]
        if n not in parents and own:
            named(own, f"the payload of '{link.name}'", "load", [add(base.matrix[:, k]) for k in own])
    for e, name in enumerate(equations):
        if name in robot.joint_names:
            change = np.zeros((len(equations), base.rank))
            change[e] = beta
            causes.append(_Cause((add(change),), ("scale",), ("1",), f"the torque of '{name}'", "scale"))
    return np.stack(columns, axis=-1), causes


def _disagreements(
    sums: LogDifferences, library: Array, causes: Sequence[_Cause], test_count: int, names: Sequence[str]
) -> list[Disagreement]:
    """Find the clearest difference, add it to the fit, and repeat while differences are significant."""
    nuisance = [np.broadcast_to(np.eye(sums.base.rank), (library.shape[0], *2 * (sums.base.rank,)))] * sums.logs
    groups = [c.columns for c in causes]
    out: list[Disagreement] = []
    # Of two logs either may be the odd one; the second is reported relative to the first.
    tested_logs = range(1, 2) if sums.logs == 2 else range(sums.logs)
    while len(out) < _MOST:
        tests = sums.tests(library, nuisance, groups)
        pairs = [(t, c) for i in tested_logs for t, c in zip(tests[i], causes, strict=True) if t.columns]
        clear = [(t, c) for t, c in pairs if t.p * test_count < FALSE_ALARMS]
        if not clear:
            break
        enough = _NEARLY * max(t.gain for t, _ in clear)
        few = min(t.columns for t, _ in clear if t.gain >= enough)
        test, cause = max((pair for pair in clear if pair[0].columns == few), key=lambda pair: pair[0].gain)
        i, more = test.log, library[:, :, list(cause.columns)]
        before = sums.squared_errors(nuisance)[i]
        nuisance = [np.concatenate([d, more if k == i else np.zeros_like(more)], axis=-1)
                    for k, d in enumerate(nuisance)]  # fmt: skip
        gain = float(np.max(1.0 - sums.squared_errors(nuisance)[i] / np.maximum(before, 1e-300)))
        if gain < LEAST_GAIN:
            break
        out.append(_disagreement(test, cause, names, 100.0 * gain))
    return out


def _disagreement(test: LogShift, cause: _Cause, names: Sequence[str], gain_percent: float) -> Disagreement:
    return Disagreement(
        log=names[test.log],
        sentence=_sentence(test, cause, f"in '{names[0]}'" if len(names) == 2 else "in the others"),
        parameters=cause.names,
        changes=tuple(float(c) for c in test.change),
        standard_errors=tuple(float(e) if np.isfinite(e) else None for e in test.error),
        statistic=test.statistic,
        p=test.p,
        gain_percent=gain_percent,
    )


def _sentence(test: LogShift, cause: _Cause, other: str) -> str:
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
    by_parameter = ""
    if cause.kind == "friction" and np.all(np.isfinite(test.error)):
        changes = zip(cause.names, test.change, cause.units, strict=True)
        by_parameter = ", " + ", ".join(f"{name} by {change:+.3g} {unit}" for name, change, unit in changes)
    return (
        f"{cause.about} differs from that {other}{by_parameter} (χ² {test.statistic:.0f} with {test.columns} unknowns)"
    )


def _more(change: float, more: str, less: str) -> str:
    return more if change > 0.0 else less


def _parameter_spreads(sums: LogDifferences, free: Estimate, names: Sequence[str]) -> tuple[ParameterSpread, ...]:
    values, errors = sums.separate_estimates()
    counts = np.where(np.isfinite(values) & (errors > 0.0), 1.0 / errors**2, 0.0)
    # Compare with the mean of the other logs' values: a joint fit would spread a difference over all parameters.
    rest = counts.sum(axis=0) - counts
    others = (np.nansum(counts * values, axis=0) - np.nan_to_num(counts * values)) / np.where(rest > 0.0, rest, np.nan)
    away = np.abs(values - others) / np.sqrt(errors**2 + 1.0 / np.where(rest > 0.0, rest, np.nan))
    out = []
    for k, (name, unit) in enumerate(zip(free.base.names, free.base.units, strict=True)):
        valid = np.isfinite(values[:, k]) & (errors[:, k] > 0.0)
        deviation, excess = _between(values[valid, k], errors[valid, k])
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
    """Return the standard deviation of values with error bars, and the part that the bars do not explain."""
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
