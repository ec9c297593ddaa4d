"""A designed motion played on a simulated robot, before anyone moves hardware."""

from .rehearse import Rehearsal, rehearse

__all__ = [
    "Rehearsal", "rehearse",
]  # fmt: skip
