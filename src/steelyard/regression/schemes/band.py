"""Time constants that are chosen where none are given: by the band of the motion."""

from __future__ import annotations

import numpy as np

from steelyard.errors import LogError, SteelyardError
from steelyard.signals.filters import motion_band
from steelyard.signals.prepare import Motion


def band_rate(motion: Motion) -> float:
    """2π times the frequency below which 99 % of the velocity's power lies (rad/s)."""
    band = motion_band(motion.q, motion.filter.period)
    if band <= 0.0:
        raise LogError("Nothing moves in the log; a motion is needed, or a cut-off or window by hand.")
    return 2.0 * np.pi * band


def check_filter(cutoff: float | None, order: int) -> None:
    if cutoff is not None and not (np.isfinite(cutoff) and cutoff > 0.0):
        raise SteelyardError(f"The filter's cut-off must be a positive number of rad/s, not {cutoff}.")
    if not (order == int(order) and 1 <= order <= 8):
        raise SteelyardError(f"The filter's order must be a whole number from 1 to 8, not {order}.")
