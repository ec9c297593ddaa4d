"""The experiment of Chávez-Olivares et al. 2012 for the tests: the package's laboratory under short names."""

from __future__ import annotations

from functools import cache

import numpy as np
import papers.closed_forms as forms

from steelyard.dynamics import Dynamics
from steelyard.papers.paper import printed_table
from steelyard.papers.rotradi import lab
from steelyard.papers.rotradi.lab import CUTOFF as RATE
from steelyard.papers.rotradi.lab import (
    LIMITS,
    PERIOD,
    clock,
    encode,
    identification_torque,
    play_torque,
    validation_torque,
)
from steelyard.parameters import Term

__all__ = [
    "LIMITS",
    "PERIOD",
    "RATE",
    "arm",
    "clock",
    "encode",
    "identification_torque",
    "play_torque",
    "table3",
    "validation_torque",
]  # fmt: skip

# Our names for the schemes, in the order of the columns of Table 3.
SCHEMES = ("dynamic", "filtered-dynamic", "energy", "power", "filtered-power")


def table3() -> dict[str, np.ndarray]:
    table = printed_table("rotradi", "table3")
    return {ours: table.numbers(theirs) for ours, theirs in zip(SCHEMES, lab.PAPER_SCHEMES, strict=True)}


class Arm(lab.Arm):
    """The laboratory's arm, with θ1…θ21 from the formulas of the closed forms."""

    def __init__(self, *friction: str | Term) -> None:
        super().__init__(*friction)
        self.terms = self.truth.terms
        self.dynamics = Dynamics(self.robot, self.terms)
        self.map = forms.map_of(forms.ROTRADI + forms.ROTRADI_FRICTION, self.robot, self.terms.names)

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Return the errors of θ1…θ21 [%]."""
        return self.percent(theta)


@cache
def arm(*friction: str | Term) -> Arm:
    return Arm(*friction)
