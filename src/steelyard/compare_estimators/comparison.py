"""`Comparison`: all runs, summed up by estimator and noise level, and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.compare_estimators.fit import Run
from steelyard.compare_estimators.protocol import Protocol


@dataclass(frozen=True)
class Summary:
    """One estimator over some runs.

    Medians and the ninetieth percentile count a failed run as infinitely wrong: an estimator that fails in half of
    its runs has no median (None). `failed` are runs without numbers, `unsettled` those that stopped before they
    converged, `impossible` those whose mass matrix is not positive definite somewhere; shares of all runs.
    """

    estimator: str
    runs: int
    failed: float
    unsettled: float
    impossible: float
    possible: float
    distance_percent: float | None
    median_error_percent: float | None
    torque_error_percent: float | None
    torque_error_90: float | None
    position_error: float | None
    seconds: float | None

    @property
    def reliable(self) -> bool:
        """Converged in at least 19 of 20 runs, and never to a robot whose mass matrix is not positive definite."""
        settled = self.failed + self.unsettled <= 0.05
        return settled and self.impossible == 0.0 and self.torque_error_percent is not None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of a protocol, in its order."""

    robot: str
    protocol: Protocol
    runs: tuple[Run, ...]

    @property
    def noises(self) -> tuple[str, ...]:
        return tuple(noise.name for noise in self.protocol.noises)

    @property
    def varied(self) -> dict[str, tuple[str, ...]]:
        """Factors with more than one level: noise, cutoff, rate, controller."""
        p = self.protocol
        levels = {"noise": self.noises, "cutoff": p.cutoffs, "rate": tuple(f"{r:g}" for r in p.rates),
                  "controller": p.controllers}  # fmt: skip
        return {factor: names for factor, names in levels.items() if len(names) > 1}

    def some(self, estimator: str, **levels: str) -> list[Run]:
        """The runs of one estimator, all or those of some levels, such as noise="low"."""
        own = self._by_estimator.get(estimator, [])
        return [r for r in own if all(r.level(factor) == name for factor, name in levels.items())]

    @cached_property
    def _by_estimator(self) -> dict[str, list[Run]]:
        out: dict[str, list[Run]] = {}
        for run in self.runs:
            out.setdefault(run.estimator, []).append(run)
        return out

    def summary(self, estimator: str, **levels: str) -> Summary:
        return summed_up(estimator, self.some(estimator, **levels))

    @cached_property
    def ranking(self) -> tuple[Summary, ...]:
        """Over all runs, by the torque error on other motions that nine of ten stay below; the quicker among equals.

        The median would be that of the middle level of noise, whatever happens at the others.
        """
        made = [self.summary(name) for name in self.protocol.estimators]
        return tuple(sorted(made, key=lambda s: _place(s, s.torque_error_90)))

    def ranked(self, noise: str) -> tuple[Summary, ...]:
        """For one level of noise, by the median."""
        made = [self.summary(name, noise=noise) for name in self.protocol.estimators]
        return tuple(sorted(made, key=lambda s: _place(s, s.torque_error_percent)))

    @cached_property
    def reasons(self) -> tuple[tuple[str, str, str, int], ...]:
        """(estimator, result, an example of why, how often), the most frequent first."""
        seen: dict[tuple[str, str], list[str]] = {}
        for run in self.runs:
            if run.reason:
                seen.setdefault((run.estimator, run.result), []).append(run.reason)
        rows = [(name, result, reasons[0], len(reasons)) for (name, result), reasons in seen.items()]
        return tuple(sorted(rows, key=lambda row: -row[3]))

    def to_json(self) -> dict[str, Any]:
        from steelyard.compare_estimators.advice import advice

        return {
            "robot": self.robot,
            "protocol": self.protocol.to_json(),
            "ranking": [asdict(s) for s in self.ranking],
            "by_noise": {noise: [asdict(s) for s in self.ranked(noise)] for noise in self.noises},
            "advice": [asdict(a) for a in advice(self)],
            "runs": [run.to_json() for run in self.runs],
        }


def summed_up(estimator: str, runs: Sequence[Run]) -> Summary:
    count = max(len(runs), 1)
    found = [run for run in runs if run.found]
    return Summary(
        estimator,
        len(runs),
        sum(not run.found for run in runs) / count,
        sum(run.result == "not-converged" for run in runs) / count,
        sum(run.simulable is False for run in runs) / count,
        sum(run.possible is True for run in runs) / count,
        quantile([run.distance_percent for run in runs]),
        quantile([run.median_error_percent for run in runs]),
        quantile([run.torque_error_percent for run in runs]),
        quantile([run.torque_error_percent for run in runs], 0.9),
        quantile([run.position_error for run in runs]),
        float(np.median([run.seconds for run in found])) if found else None,
    )


def quantile(values: Sequence[float | None], share: float = 0.5) -> float | None:
    """Of numbers of which some are missing, and count as infinite; None where that many are."""
    if not values:
        return None
    ordered = np.sort([np.inf if value is None else value for value in values])
    # The higher of two neighbours, so that nothing is made up between a number and infinity.
    value = float(ordered[min(len(ordered) - 1, int(np.ceil(share * (len(ordered) - 1))))])
    return value if np.isfinite(value) else None


def _place(s: Summary, error: float | None) -> tuple[float, float]:
    return np.inf if error is None else error, np.inf if s.seconds is None else s.seconds
