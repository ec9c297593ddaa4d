"""`Suspect`: a number that a fit takes for granted, and what to do where the logs say otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Whose mistake it would be: then a log without it is predicted wrongly, or a log like it.
Owner = Literal["log", "description"]


@dataclass(frozen=True)
class Suspect:
    """A number that a fit assumes to be zero, and that the logs can estimate.

    Attributes:
        family: Kinds that are told together, in the plural: "zeros", "torque scales", …
        kind: What is assumed, one word or two: "zero", "torque scale", …
        joint: Joint that it is of; "": the whole robot.
        unit: Unit of the number; "": it is a ratio.
        assumption: The assumption in one line.
        fix: What to do if the logs refute it.
        test: What would test it where these logs do not.
        owner: Whether the log would be wrong, or the description.
        other: Second joint of a coupling; "": there is none.
        positive: Whether the number cannot be negative.
        ambiguous: Whether sound logs look the same, so that it is told and lowers no grade.
    """

    family: str
    kind: str
    joint: str
    unit: str
    assumption: str
    fix: str
    test: str
    owner: Owner = "log"
    other: str = ""
    positive: bool = False
    ambiguous: bool = False

    @property
    def whole(self) -> str:
        """What it is of, where it is not of one joint."""
        return "all" if self.family in ("torque scales", "delays", "smoothing") else self.kind

    @property
    def name(self) -> str:
        """Short name, such as "zero of 'elbow'"."""
        if self.other:
            return f"{self.kind} of '{self.joint}' by '{self.other}'"
        return f"{self.kind} of '{self.joint}'" if self.joint else self.kind
