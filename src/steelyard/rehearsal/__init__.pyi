"""Rehearsal: plays a designed motion on simulated robots before it is played on hardware."""

from .rehearse import Rehearsal, rehearse

__all__ = [
    "Rehearsal", "rehearse",
]  # fmt: skip
