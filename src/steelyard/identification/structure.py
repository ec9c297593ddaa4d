"""Result of a structure search: the selected terms of friction and drives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.identification._extra_variance import ExtraVariance
from steelyard.parameters.terms import Terms


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
