"""Candidates of a structure search, its result (the selected terms of friction and drives), and its progress events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.files import plain
from steelyard.ground.progress import has_progress_callback, report_progress
from steelyard.identification._extra_variance import ExtraVariance
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.regression.block_grams import Index, Mask

if TYPE_CHECKING:
    from steelyard.identification._search import Search


# Factors on the default rounding speed of dry friction that the search also tries; 0 is a jump. Rounder friction has
# hysteresis and is covered by separate candidates.
ROUNDINGS = (0.0, 0.3)


@dataclass(frozen=True, eq=False)
class Offer:
    """A candidate of one joint.

    Attributes:
        term: Term of this joint.
        columns: Its columns.
        instead: Whether it replaces the default dry friction.
    """

    term: Term
    columns: Index
    instead: bool

    @property
    def bounded(self) -> Mask:
        """Mark parameters that cannot be negative: those of dissipative terms and springs."""
        return np.array([self.term.dissipative or c.lower == 0.0 for c in self.term.columns])


def term_text(term: Term) -> str:
    """Describe a candidate `term` by its name and the options that distinguish it from others of its kind."""
    shown = {k: v for k, v in term.options.items() if isinstance(v, float) and k != "load_limit"}
    options = ", ".join(f"{k} {v:.3g}" for k, v in shown.items())
    return f"{term.kind} ({options})" if options else term.kind


@dataclass(frozen=True)
class StructureStep:
    """The best candidate of one joint in one round.

    Attributes:
        joint: Name of the joint.
        change: Change of the terms.
        before_percent: Cross-validation error before it [% of the torque's standard deviation].
        after_percent: Cross-validation error after it.
        doubt_percent: Standard error of the difference.
        taken: Whether the change was accepted.
    """

    joint: str
    change: str
    before_percent: float
    after_percent: float
    doubt_percent: float
    taken: bool


@dataclass(frozen=True, eq=False)
class StructureChoice:
    """The terms that a structure search selected, with its steps.

    Attributes:
        terms: Selected terms, bound to the robot.
        variance: Variances of the parameters between blocks and between similar structures.
        steps: Best candidates, round by round.
        before_percent: Cross-validation error of each joint with the default terms [% of the torque's standard
            deviation].
        after_percent: The same with the selected terms.
        tried: Number of structures compared.
        blocks: Number of cross-validation blocks.
    """

    terms: Terms
    variance: ExtraVariance
    steps: tuple[StructureStep, ...]
    before_percent: tuple[float, ...]
    after_percent: tuple[float, ...]
    tried: int
    blocks: int

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        head = f"{self.tried} structures of friction and drive compared by cross-validation on {self.blocks} blocks"
        if not any(s.taken for s in self.steps):
            return f"{head}: the default terms remain."
        return (
            f"{head}: the error is {np.mean(self.after_percent):.2f} % of the torques' standard deviations instead of "
            f"{np.mean(self.before_percent):.2f} % with the default terms."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "blocks": self.blocks,
            "left_out_error_percent": {"usual": list(self.before_percent), "chosen": list(self.after_percent)},
            "steps": [asdict(s) for s in self.steps],
        }


STAGE = "Searching for the structure"


def report_step(search: Search, step: StructureStep, why: str, candidates: Sequence[dict[str, Any]] = ()) -> None:
    """Report a step of a search, its reason, and all candidates of the joint.

    Args:
        search: The running search.
        step: Accepted or rejected step.
        why: Reason, in words.
        candidates: Rows of `candidate_rows`.
    """
    event = {"event": "step", **asdict(step), "why": why, "candidates": list(candidates)}
    _report(search, step.change + ("" if step.taken else " is rejected"), event)


def report_choice(search: Search, choice: StructureChoice) -> None:
    """Report the result: the steps, and all terms with their joints.

    Args:
        search: The finished search.
        choice: Its result.
    """
    joints = search.robot.joint_names

    def placed(term: Term) -> dict[str, Any]:
        return {"term": term_text(term), "joints": list(joints if term.where is None else term.where)}

    steps = [asdict(step) for step in choice.steps]
    errors = {"before_percent": choice.before_percent, "after_percent": choice.after_percent}
    terms = [placed(term) for term in choice.terms.terms]
    event = {
        "event": "chosen",
        "steps": steps,
        "joints": search.names,
        **errors,
        "terms": terms,
        "blocks": choice.blocks,
    }
    _report(search, f"{choice.tried} structures tried", event)


def candidate_rows(
    search: Search, equation: int, offers: Sequence[Offer], before: Array, trials: Array
) -> list[dict[str, Any]]:
    """List the gain of each candidate of an equation; empty without a progress callback.

    Args:
        search: The running search.
        equation: Index of the equation.
        offers: The candidates.
        before: Squared error on each block without a candidate [(N m)^2].
        trials: The same with each candidate, shape (candidates, blocks).
    """
    if not has_progress_callback():
        return []
    rows = []
    for offer, errors in zip(offers, trials, strict=True):
        possible = bool(np.all(np.isfinite(errors)))
        _, after, doubt = search.compare(equation, before, errors) if possible else (0.0, np.nan, np.nan)
        why = "" if possible else "its sign is impossible"
        errors_percent = {"after_percent": _rounded(after), "doubt_percent": _rounded(doubt)}
        rows.append({"change": term_text(offer.term), **errors_percent, "why": why})
    return rows


def _rounded(value: float) -> float:
    """Round to five digits to keep events small."""
    return float(f"{value:.5g}")


def reason(step: StructureStep, least: float, min_errors: float) -> str:
    """State why a step that adds or replaces a term was accepted or rejected.

    Args:
        step: The step.
        least: Required gain, as a share of the error.
        min_errors: Required gain, in its standard errors.
    """
    gain = step.before_percent - step.after_percent
    if step.taken:
        return f"gains more than its standard error{f' and {least:.0%} of the error' if least else ''}"
    if gain <= 0.0:
        return "gains nothing"
    return (
        "gains no more than its standard error"
        if gain <= min_errors * step.doubt_percent
        else f"gains less than {least:.0%}"
    )


def _report(search: Search, message: str, event: dict[str, Any]) -> None:
    details = {"of": "structure", **event, "way": search.way, "round": search.round, "tried": search.tried}
    report_progress(STAGE, search.share, message, plain(details))
