"""Summarises and ranks all runs by estimator and noise level, and derives advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steelyard.compare.methods import METHODS, NOT_CONVERGED, MethodRun
from steelyard.compare.protocol import Protocol
from steelyard.ground.outcome import OutcomeWithPage, Presentation
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr


@dataclass(frozen=True)
class Summary:
    """One estimator over several runs.

    A failed run counts as an infinite error in medians and percentiles: an estimator that fails in half of its runs has
    no median (None). All shares are shares of all runs.

    Attributes:
        estimator: Name of the estimator.
        runs: Number of runs.
        failed: Share of runs without numbers.
        unsettled: Share of runs that stopped before convergence.
        impossible: Share of results with a mass matrix that is not positive definite in select posture.
        possible: Share of physically possible results.
        distance_percent: Median distance in base parameters, percent of their norm.
        median_error_percent: Median of the median relative errors of the base parameters.
        torque_error_percent: Median torque error on other motions, percent of the torque's standard deviation.
        torque_error_90: 90th percentile of the torque error.
        position_error: Median position error of replays [rad, m].
        seconds: Median processor time of a fit.
    """

    why_null: ClassVar = {
        name: "Too many runs failed for this figure."
        for name in ("distance_percent", "median_error_percent", "torque_error_percent", "torque_error_90")
    } | {
        "position_error": "Too many replays failed for a median.",
        "seconds": "No run gave a result.",
    }
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
        """Whether at least 19 of 20 runs converged and all mass matrices were positive definite."""
        converged = self.failed + self.unsettled <= 0.05
        return converged and self.impossible == 0.0 and self.torque_error_percent is not None


@short_repr
@dataclass(frozen=True, eq=False)
class Comparison(OutcomeWithPage):
    """All runs of a protocol, in its order."""

    robot: str
    protocol: Protocol
    runs: tuple[MethodRun, ...]

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

    def select(self, estimator: str, **levels: str) -> list[MethodRun]:
        """Return the runs of one estimator.

        Args:
            estimator: Name of the estimator.
            levels: Levels of factors, such as noise="low"; without levels all runs are returned.
        """
        own = [run for run in self.runs if run.estimator == estimator]
        return [r for r in own if all(r.level(factor) == name for factor, name in levels.items())]

    def summary(self, estimator: str, **levels: str) -> Summary:
        """Summarise the runs of one estimator.

        Args:
            estimator: Name of the estimator.
            levels: Levels of factors, as for `select`.
        """
        return _summarise(estimator, self.select(estimator, **levels))

    @cached_property
    def ranking(self) -> tuple[Summary, ...]:
        """Summaries over all runs, by the 90th percentile of the torque error; the faster estimator first among equals.

        The median would only represent the middle noise level.
        """
        summaries = [self.summary(name) for name in self.protocol.estimators]
        return tuple(sorted(summaries, key=lambda s: _sort_key(s, s.torque_error_90)))

    def ranked(self, noise: str) -> tuple[Summary, ...]:
        """Return the summaries for one level of `noise`, by the median torque error."""
        summaries = [self.summary(name, noise=noise) for name in self.protocol.estimators]
        return tuple(sorted(summaries, key=lambda s: _sort_key(s, s.torque_error_percent)))

    @cached_property
    def reasons(self) -> tuple[tuple[str, str, str, int], ...]:
        """Rows (estimator, result, example of the reason, count), the most frequent first."""
        examples: dict[tuple[str, str], list[str]] = {}
        for run in self.runs:
            if run.reason:
                examples.setdefault((run.estimator, run.result), []).append(run.reason)
        rows = [(name, result, reasons[0], len(reasons)) for (name, result), reasons in examples.items()]
        return tuple(sorted(rows, key=lambda row: -row[3]))

    def to_json(self) -> dict[str, Any]:
        document = {
            "robot": self.robot,
            "protocol": self.protocol.to_json(),
            "ranking": self.ranking,
            "by_noise": {noise: self.ranked(noise) for noise in self.noises},
            "advice": advice(self),
            "runs": [explained(run, run.why_missing) for run in self.runs],
        }
        return explained(document)

    def view(self) -> Presentation:
        from steelyard.compare._estimators_page import estimators_report, print_estimators

        return estimators_report, print_estimators


def _summarise(estimator: str, runs: Sequence[MethodRun]) -> Summary:
    count = max(len(runs), 1)
    succeeded = [run for run in runs if run.has_estimate]
    return Summary(
        estimator,
        len(runs),
        sum(not run.has_estimate for run in runs) / count,
        sum(run.result in NOT_CONVERGED for run in runs) / count,
        sum(run.simulable is False for run in runs) / count,
        sum(run.possible is True for run in runs) / count,
        _quantile([run.distance_percent for run in runs]),
        _quantile([run.median_error_percent for run in runs]),
        _quantile([run.torque_error_percent for run in runs]),
        _quantile([run.torque_error_percent for run in runs], 0.9),
        _quantile([run.position_error for run in runs]),
        float(np.median([run.seconds for run in succeeded])) if succeeded else None,
    )


def _quantile(values: Sequence[float | None], share: float = 0.5) -> float | None:
    """Quantile of numbers; None counts as infinite, and an infinite quantile is returned as None."""
    if not values:
        return None
    ordered = np.sort([np.inf if value is None else value for value in values])
    # The higher of two neighbours: interpolation between a number and infinity has no meaning.
    value = float(ordered[min(len(ordered) - 1, int(np.ceil(share * (len(ordered) - 1))))])
    return value if np.isfinite(value) else None


def _sort_key(s: Summary, error: float | None) -> tuple[float, float]:
    return np.inf if error is None else error, np.inf if s.seconds is None else s.seconds


# Errors that differ by less than this share count as equal; then the faster estimator is recommended.
_EQUAL = 0.1
# An estimator with an error this many times that of the best one that needs only the log is not recommended.
_MUCH_WORSE = 3.0
_FREQUENT_SHARE = 0.2
RULES = (
    "Estimators are ranked by the torque error on motions that were not used in the fit: for one noise level by the "
    "median, over all levels by the 90th percentile. A failed run counts as an infinite error.",
    "Only reliable estimators are recommended: at least 19 of 20 runs converged, and all mass matrices were positive "
    "definite.",
    "Errors within 10 % of the smallest count as equal; the fastest of these estimators is recommended.",
    "Not recommended: no numbers or no convergence in more than a fifth of the runs, a mass matrix that is not "
    "positive definite in any run, or three times the error of the best estimator that needs only the log.",
)
NOT_RECOMMENDED = "Not recommended here"


@dataclass(frozen=True)
class Advice:
    """A recommendation: the situation, the estimator, and the reason with its numbers."""

    when: str
    use: str
    why: str


def advice(comparison: Comparison) -> tuple[Advice, ...]:
    """Derive the recommendations of a `comparison`.

    They cover all noise levels, each noise level, and physically possible models; the last ones list estimators to
    avoid.
    """
    out = [
        *_choice("No controller known", comparison.ranking, _from_log_alone),
        *_choice("Controller and reference known exactly", comparison.ranking, lambda name: True),
        *_choice("The model must be physically possible", comparison.ranking, lambda name: METHODS[name].physical),
    ]
    if len(comparison.noises) > 1:
        for noise in comparison.noises:
            ranked = comparison.ranked(noise)
            out += _choice(f"Noise '{noise}', no controller known", ranked, _from_log_alone, False)
            out += _choice(f"Noise '{noise}', controller known", ranked, lambda name: True, False)
    best = next((s for s in comparison.ranking if s.reliable and _from_log_alone(s.estimator)), None)
    against = [(s.estimator, _objection(s, best)) for s in comparison.ranking]
    return (*out, *(Advice(NOT_RECOMMENDED, name, why) for name, why in against if why))


def _from_log_alone(name: str) -> bool:
    return not METHODS[name].needs_controller


def _choice(
    when: str, ranked: Sequence[Summary], is_allowed: Callable[[str], bool], over_all: bool = True
) -> list[Advice]:
    candidates = [s for s in ranked if is_allowed(s.estimator)]
    usable = [s for s in candidates if s.reliable]
    if not usable:
        return [Advice(when, "–", "No estimator was reliable.")] if candidates else []
    best = _error(usable[0], over_all)
    equal = [s for s in usable if _error(s, over_all) <= (1.0 + _EQUAL) * best]
    choice = min(equal, key=lambda s: s.seconds or 0.0)
    others = [s.estimator for s in equal if s is not choice]
    below = " in nine of ten runs" if over_all else ""
    why = f"{_error(choice, over_all):.3g}\u00a0% torque error{below}, {choice.seconds or 0.0:.2g} s"
    if others:
        why += f"; equal within 10\u00a0%: {', '.join(others)}"
    plain = next((s for s in ranked if s.estimator == "wls"), None)
    if plain is not None and plain is not choice and np.isfinite(_error(plain, over_all)):
        why += f"; wls has {_error(plain, over_all):.3g}\u00a0%"
    return [Advice(when, choice.estimator, why + ".")]


def _objection(s: Summary, best: Summary | None) -> str:
    """The reason not to use an estimator, compared with the best that needs only the log; "": no reason."""
    if s.failed > _FREQUENT_SHARE:
        return f"No result in {100.0 * s.failed:.0f}\u00a0% of its runs."
    if s.impossible > 0.0:
        return f"A mass matrix that is not positive definite in {100.0 * s.impossible:.0f}\u00a0% of its runs."
    if s.unsettled > _FREQUENT_SHARE:
        return f"Stopped before it converged in {100.0 * s.unsettled:.0f}\u00a0% of its runs."
    if best is not None and _error(s, True) > _MUCH_WORSE * _error(best, True):
        return f"{_error(s, True):.3g}\u00a0% torque error against {_error(best, True):.3g}\u00a0% of {best.estimator}."
    return ""


def _error(s: Summary, over_all: bool) -> float:
    error = s.torque_error_90 if over_all else s.torque_error_percent
    return np.inf if error is None else error
