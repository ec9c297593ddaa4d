"""Rehearsal: plays a designed motion on simulated robots before it is played on hardware."""

from .rehearse import Rehearsal, rehearse
from .rehearse_options import RehearseOptions

__all__ = [
    "Rehearsal", "RehearseOptions", "rehearse",
]  # fmt: skip
