"""What a search for the structure says on its way, for whoever draws it as a table that grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.files import plain
from steelyard.ground.progress import has_progress_callback, tell_progress
from steelyard.identification._search_offers import Offer, term_text
from steelyard.identification.structure import FoundStructure, StructureStep
from steelyard.parameters.term import Term

if TYPE_CHECKING:
    from steelyard.identification._search import Search

STAGE = "Searching for the structure"


def tell_step(search: Search, step: StructureStep, why: str, candidates: Sequence[dict[str, Any]] = ()) -> None:
    """Say that a `step` was offered to a joint in a `search`, `why` it was taken or not, and what else was tried there
    (`candidates`, as `tried` makes them)."""
    seen = {"event": "step", **asdict(step), "why": why, "candidates": list(candidates)}
    _tell(search, step.change + ("" if step.taken else " is not taken"), seen)


def tell_chosen(search: Search, found: FoundStructure) -> None:
    """Say what a `search` has `found`: the steps of the way that was kept, and all terms, with their joints."""
    joints = search.robot.joint_names

    def placed(term: Term) -> dict[str, Any]:
        return {"term": term_text(term), "joints": list(joints if term.where is None else term.where)}

    steps = [asdict(step) for step in found.steps]
    errors = {"before_percent": found.before_percent, "after_percent": found.after_percent}
    terms = [placed(term) for term in found.terms.terms]
    seen = {"event": "chosen", "steps": steps, "joints": search.names, **errors, "terms": terms, "blocks": found.blocks}
    _tell(search, f"{found.tried} structures tried", seen)


def tried(search: Search, equation: int, offers: Sequence[Offer], before: Array, trials: Array) -> list[dict[str, Any]]:
    """What each of the `offers` to an equation would bring: its squared errors on each block in `trials`, `before`
    without it; none where nobody listens."""
    if not has_progress_callback():
        return []
    rows = []
    for offer, errors in zip(offers, trials, strict=True):
        possible = bool(np.all(np.isfinite(errors)))
        _, after, doubt = search.compare(equation, before, errors) if possible else (0.0, np.nan, np.nan)
        why = "" if possible else "its sign would be impossible"
        few = {"after_percent": _few(after), "doubt_percent": _few(doubt)}
        rows.append({"change": term_text(offer.term), **few, "why": why})
    return rows


def _few(value: float) -> float:
    """A number to five digits: there are hundreds of candidates, and nobody reads more."""
    return float(f"{value:.5g}")


def why(step: StructureStep, least: float, doubts: float) -> str:
    """Why a `step` that adds or replaces something was taken or not: it must gain more than a share `least` of the
    error, and than so many `doubts`."""
    gain = step.before_percent - step.after_percent
    if step.taken:
        return f"gains more than its doubt{f' and {least:.0%} of the error' if least else ''}"
    if gain <= 0.0:
        return "gains nothing"
    return "gains no more than its doubt" if gain <= doubts * step.doubt_percent else f"gains less than {least:.0%}"


def _tell(search: Search, message: str, seen: dict[str, Any]) -> None:
    shown = {"of": "structure", **seen, "way": search.way, "round": search.round, "tried": search.tried}
    tell_progress(STAGE, search.share, message, plain(shown))
