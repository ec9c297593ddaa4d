"""Progress events of the structure search, for live tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.files import plain
from steelyard.ground.progress import has_progress_callback, report_progress
from steelyard.identification._search_offers import Offer, term_text
from steelyard.identification.structure import StructureChoice, StructureStep
from steelyard.parameters.term import Term

if TYPE_CHECKING:
    from steelyard.identification._search import Search

STAGE = "Searching for the structure"


def report_step(search: Search, step: StructureStep, why: str, candidates: Sequence[dict[str, Any]] = ()) -> None:
    """Report a step of a search with its reason (`why`) and all candidates of the joint."""
    event = {"event": "step", **asdict(step), "why": why, "candidates": list(candidates)}
    _report(search, step.change + ("" if step.taken else " is rejected"), event)


def report_choice(search: Search, choice: StructureChoice) -> None:
    """Report the result of a `search`: the steps and all terms with their joints."""
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

    `before` and `trials` have the squared errors on each block without and with the candidate.
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
    """State why a `step` that adds or replaces a term was accepted or rejected.

    It must gain more than a share `least` of the error and more than `min_errors` standard errors.
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
