"""What a search for the structure of friction and drives tried, and chose."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.identification._doubt import Doubt
from steelyard.parameters.terms import Terms


@dataclass(frozen=True)
class StructureStep:
    """One joint's best offer of a round.

    Its error on left-out blocks (% of the torque's standard deviation) before and after, the standard error of the
    difference, and whether it was taken.
    """

    joint: str
    change: str
    before_percent: float
    after_percent: float
    doubt_percent: float
    taken: bool


@dataclass(frozen=True, eq=False)
class FoundStructure:
    """What the search tried and chose.

    Attributes:
        terms: the chosen terms, bound to the robot.
        doubt: how far parameters wander from block to block, and between structures as good.
        steps: what was offered, joint by joint and round by round.
        before_percent: of each joint, the error on left-out blocks with the usual terms, % of the torque's deviation.
        after_percent: the same with the chosen ones.
        tried: how many structures were compared.
        blocks: how many blocks were left out in turn.
    """

    terms: Terms
    doubt: Doubt
    steps: tuple[StructureStep, ...]
    before_percent: tuple[float, ...]
    after_percent: tuple[float, ...]
    tried: int
    blocks: int

    @property
    def sentence(self) -> str:
        """The search in one sentence."""
        head = f"{self.tried} structures of friction and drive tried, {self.blocks} blocks left out in turn"
        if not any(s.taken for s in self.steps):
            return f"{head}: the usual terms stand."
        return (
            f"{head}: on what was left out {np.mean(self.after_percent):.2f} % of the torques' standard deviations "
            f"instead of {np.mean(self.before_percent):.2f} % with the usual terms."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "blocks": self.blocks,
            "left_out_error_percent": {"usual": list(self.before_percent), "chosen": list(self.after_percent)},
            "steps": [asdict(s) for s in self.steps],
        }
