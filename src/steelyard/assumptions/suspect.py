"""`Suspect`: a number that a fit assumes to be zero, with the remedy if it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steelyard.ground.short_repr import short_repr

# Source of the mistake, which determines the logs with wrong predictions.
Owner = Literal["log", "description"]


@short_repr
@dataclass(frozen=True)
class Suspect:
    """A number that a fit assumes to be zero and that the logs can estimate.

    Attributes:
        family: Group of kinds for lists, in the plural: "zeros", "torque scales", …
        kind: Kind of number: "zero", "torque scale", …
        joint: Joint; "" for the whole robot.
        unit: Unit of the number; "" for a ratio.
        assumption: The assumption in one line.
        fix: Remedy if the logs refute it.
        test: Experiment that tests it.
        owner: Source of the mistake.
        other: Second joint of a coupling, or "".
        positive: Whether the number cannot be negative.
        ambiguous: Whether correct logs can look the same; it is then reported without effect on the grade.
        change: Suspect of a change of this number during the logs, or None.
        changes_only: Whether only its change is tested, since the number itself is a parameter.
        of_time: Whether it is a change during the logs, which other logs do not repeat.
        only_harm: Whether it only gives the harm of the suspect of the same name, including its effect on friction.
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
    change: Suspect | None = None
    changes_only: bool = False
    of_time: bool = False
    only_harm: bool = False

    @property
    def whole(self) -> str:
        """Text in place of the joint for suspects of the whole robot."""
        return "all" if self.family in ("torque scales", "delays", "smoothing") else self.kind

    @property
    def name(self) -> str:
        """Short name, such as "zero of 'elbow'"."""
        if self.other:
            return f"{self.kind} of '{self.joint}' by '{self.other}'"
        return f"{self.kind} of '{self.joint}'" if self.joint else self.kind


def change_of(kind: str, family: str, joint: str, unit: str, what: str, fix: str) -> Suspect:
    """Return the suspect of a number that changes during the logs.

    Args:
        kind: Kind of number: "zero", "payload", …
        family: Group of kinds, for the group of their changes.
        joint: Joint; "" for the whole robot.
        unit: Unit of the number.
        what: The number, as the subject of a sentence.
        fix: Remedy.
    """
    fix = f"{fix} Or identify from the rows before or after."
    assumption = f"{what} does not change during the logs."
    return Suspect(
        f"changes of {family}", f"change of the {kind}", joint, unit, assumption, fix, "log longer", of_time=True
    )
