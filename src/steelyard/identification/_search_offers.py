"""Candidates of a search for the structure: what may be offered to a joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.parameters.term import Term
from steelyard.regression.block_grams import Index, Mask

# The usual dry friction is also tried as a jump, and rounded off at this part of its usual speed. What looks rounder
# than usual is friction that remembers, and is offered as such.
ROUNDINGS = (0.0, 0.3)


@dataclass(frozen=True, eq=False)
class Offer:
    """A candidate of one joint: its term there, and its columns.

    `instead`: it takes the usual dry friction's place.
    """

    term: Term
    columns: Index
    instead: bool

    @property
    def bounded(self) -> Mask:
        """Which of its parameters cannot be negative: what takes energy, and springs."""
        return np.array([self.term.dissipative or c.lower == 0.0 for c in self.term.columns])


def term_text(term: Term) -> str:
    """A candidate for people: its name, and the options that tell it from others of its kind."""
    told = {k: v for k, v in term.options.items() if isinstance(v, float) and k != "load_limit"}
    options = ", ".join(f"{k} {v:.3g}" for k, v in told.items())
    return f"{term.kind} ({options})" if options else term.kind
