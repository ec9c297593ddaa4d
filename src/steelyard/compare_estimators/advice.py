"""`advice`: what to use when, in words that follow from the figures of a comparison by the rules that stand here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.compare_estimators.comparison import Comparison, Summary
from steelyard.compare_estimators.methods import METHODS

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
    """Over all noise levels, at each of them, for those who must not leave what is possible, and what to leave."""
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
    return (*out, *_to_be_left(comparison.ranking))


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


def _to_be_left(ranking: Sequence[Summary]) -> list[Advice]:
    best = next((p for p in ranking if p.reliable and _from_log_alone(p.estimator)), None)
    found = [(s.estimator, _against(s, best)) for s in ranking]
    return [Advice(LEFT, name, why) for name, why in found if why]


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
