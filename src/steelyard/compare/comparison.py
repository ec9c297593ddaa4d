"""`Comparison`: all runs, summed up by estimator and noise level, and ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steelyard.compare.methods import METHODS, UNSETTLED, MethodRun
from steelyard.compare.protocol import Protocol
from steelyard.ground.outcome import Presentation, Viewed
from steelyard.ground.reasons import explained


@dataclass(frozen=True)
class Summary:
    """One estimator over some runs.

    Medians and the ninetieth percentile count a failed run as infinitely wrong: an estimator that fails in half of
    its runs has no median (None). `failed` are runs without numbers, `unsettled` those that stopped before they
    converged, `impossible` those whose mass matrix is not positive definite somewhere; shares of all runs.
    """

    why_null: ClassVar = {
        name: "More runs failed than this figure may leave out."
        for name in ("distance_percent", "median_error_percent", "torque_error_percent", "torque_error_90")
    } | {
        "position_error": "More replays failed than a median may leave out.",
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
        """Converged in at least 19 of 20 runs, and never to a robot whose mass matrix is not positive definite."""
        settled = self.failed + self.unsettled <= 0.05
        return settled and self.impossible == 0.0 and self.torque_error_percent is not None


@dataclass(frozen=True, eq=False)
class Comparison(Viewed):
    """The runs of a protocol, in its order."""

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

    def some(self, estimator: str, **levels: str) -> list[MethodRun]:
        """The runs of one `estimator`, all or those of some `levels`, such as noise="low"."""
        own = [run for run in self.runs if run.estimator == estimator]
        return [r for r in own if all(r.level(factor) == name for factor, name in levels.items())]

    def summary(self, estimator: str, **levels: str) -> Summary:
        """The runs of one `estimator`, all or those of some `levels`, summed up."""
        return _summed_up(estimator, self.some(estimator, **levels))

    @cached_property
    def ranking(self) -> tuple[Summary, ...]:
        """Over all runs, by the torque error on other motions that nine of ten stay below; the quicker among equals.

        The median would be that of the middle level of noise, whatever happens at the others.
        """
        made = [self.summary(name) for name in self.protocol.estimators]
        return tuple(sorted(made, key=lambda s: _place(s, s.torque_error_90)))

    def ranked(self, noise: str) -> tuple[Summary, ...]:
        """For one level of `noise`, by the median."""
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


def _summed_up(estimator: str, runs: Sequence[MethodRun]) -> Summary:
    count = max(len(runs), 1)
    found = [run for run in runs if run.found]
    return Summary(
        estimator,
        len(runs),
        sum(not run.found for run in runs) / count,
        sum(run.result in UNSETTLED for run in runs) / count,
        sum(run.simulable is False for run in runs) / count,
        sum(run.possible is True for run in runs) / count,
        _quantile([run.distance_percent for run in runs]),
        _quantile([run.median_error_percent for run in runs]),
        _quantile([run.torque_error_percent for run in runs]),
        _quantile([run.torque_error_percent for run in runs], 0.9),
        _quantile([run.position_error for run in runs]),
        float(np.median([run.seconds for run in found])) if found else None,
    )


def _quantile(values: Sequence[float | None], share: float = 0.5) -> float | None:
    """Of numbers of which some are missing, and count as infinite; None where that many are."""
    if not values:
        return None
    ordered = np.sort([np.inf if value is None else value for value in values])
    # The higher of two neighbours, so that nothing is made up between a number and infinity.
    value = float(ordered[min(len(ordered) - 1, int(np.ceil(share * (len(ordered) - 1))))])
    return value if np.isfinite(value) else None


def _place(s: Summary, error: float | None) -> tuple[float, float]:
    return np.inf if error is None else error, np.inf if s.seconds is None else s.seconds


# Errors that differ by less than this share are called equal; then the quicker one is named.
_EQUAL = 0.1
# An estimator this many times worse than the best that needs only the log is not to be used.
_FAR = 3.0
_OFTEN = 0.2
RULES = (
    "Estimators are ranked by the error of torque on motions that were not fitted: at one level of noise by the "
    "median, over all levels by what nine of ten runs stay below. A failed run counts as infinitely wrong.",
    "Only reliable ones are named: converged in at least 19 of 20 runs, and never to a mass matrix that is not "
    "positive definite.",
    "Errors within 10 % of the smallest are called equal, and the quickest of them is named.",
    "Not to be used: no numbers, or no convergence, in more than a fifth of the runs, a mass matrix that is not "
    "positive definite in any, or three times the error of the best that needs nothing but the log.",
)
LEFT = "Not to be used here"


@dataclass(frozen=True)
class Advice:
    """When, what, and the figures it follows from."""

    when: str
    use: str
    why: str


def advice(comparison: Comparison) -> tuple[Advice, ...]:
    """What a `comparison` says to use: over all noise levels, at each, where it must be possible; and what to leave."""
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
    against = [(s.estimator, _against(s, best)) for s in comparison.ranking]
    return (*out, *(Advice(LEFT, name, why) for name, why in against if why))


def _from_log_alone(name: str) -> bool:
    return not METHODS[name].needs_controller


def _choice(when: str, ranked: Sequence[Summary], fits: Callable[[str], bool], over_all: bool = True) -> list[Advice]:
    there = [s for s in ranked if fits(s.estimator)]
    usable = [s for s in there if s.reliable]
    if not usable:
        return [Advice(when, "–", "No estimator was reliable.")] if there else []
    best = _error(usable[0], over_all)
    equal = [s for s in usable if _error(s, over_all) <= (1.0 + _EQUAL) * best]
    named = min(equal, key=lambda s: s.seconds or 0.0)
    others = [s.estimator for s in equal if s is not named]
    below = " in nine of ten runs" if over_all else ""
    why = f"{_error(named, over_all):.3g}\u00a0% torque error{below}, {named.seconds or 0.0:.2g} s"
    if others:
        why += f"; equal within 10\u00a0%: {', '.join(others)}"
    plain = next((s for s in ranked if s.estimator == "wls"), None)
    if plain is not None and plain is not named and np.isfinite(_error(plain, over_all)):
        why += f"; wls has {_error(plain, over_all):.3g}\u00a0%"
    return [Advice(when, named.estimator, why + ".")]


def _against(s: Summary, best: Summary | None) -> str:
    """What speaks against an estimator, beside the best that needs only the log; nothing: an empty text."""
    if s.failed > _OFTEN:
        return f"No numbers in {100.0 * s.failed:.0f}\u00a0% of its runs."
    if s.impossible > 0.0:
        return f"A mass matrix that is not positive definite in {100.0 * s.impossible:.0f}\u00a0% of its runs."
    if s.unsettled > _OFTEN:
        return f"Stopped before it converged in {100.0 * s.unsettled:.0f}\u00a0% of its runs."
    if best is not None and _error(s, True) > _FAR * _error(best, True):
        return f"{_error(s, True):.3g}\u00a0% torque error against {_error(best, True):.3g}\u00a0% of {best.estimator}."
    return ""


def _error(s: Summary, over_all: bool) -> float:
    error = s.torque_error_90 if over_all else s.torque_error_percent
    return np.inf if error is None else error
