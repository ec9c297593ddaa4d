"""Candidate terms of the structure search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.parameters.term import Term
from steelyard.regression.block_grams import Index, Mask

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
