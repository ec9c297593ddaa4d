"""A designed motion played on a simulated robot, before anyone moves hardware."""

from steelyard.rehearse.rehearse import Rehearsal, rehearse

__all__ = ["Rehearsal", "rehearse"]
