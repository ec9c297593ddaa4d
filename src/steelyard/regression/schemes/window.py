"""`Window`: integrals over windows that slide, follow one another, or grow."""

from __future__ import annotations

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array


class Window:
    """Means over sampling intervals in, integrals over the last `samples` of them out, a new one after every `every`.

    `growing` integrals all begin where the first one does.
    """

    def __init__(self, samples: int, every: int, growing: bool, period: float) -> None:
        self.samples, self.every, self.growing, self.period = samples, every, growing, period
        self.reset()

    def reset(self) -> None:
        self._kept: Array | None = None  # means that the next windows reach back to; when growing, their sum
        self._count = 0

    def add(self, means: Array) -> Array:
        """Means `(intervals, columns)` → one integral per window that has become complete."""
        kept = np.zeros((1 if self.growing else 0, means.shape[1])) if self._kept is None else self._kept
        sums = np.cumsum(np.vstack([np.zeros((1, means.shape[1])), kept, means]), axis=0)
        # The first end at or after this chunk's first interval that is `samples` plus a multiple of `every`.
        behind = self._count + 1 - self.samples
        first = self._count + 1 + (-behind % self.every) if behind > 0 else self.samples
        ends = np.arange(first, self._count + len(means) + 1, self.every) - self._count + len(kept)
        self._count += len(means)
        if self.growing:
            self._kept = sums[-1:]
            return np.asarray(self.period * sums[ends])
        self._kept = np.vstack([kept, means])[-(self.samples - 1) :] if self.samples > 1 else kept
        return np.asarray(self.period * (sums[ends] - sums[ends - self.samples]))


def window_samples(seconds: float | None, samples: int | None, default: float, period: float) -> int:
    """The length of a window in sampling intervals."""
    if samples is not None:
        return samples
    return max(1, round((default if seconds is None else seconds) / period))


def check_window(seconds: float | None, samples: int | None) -> None:
    if seconds is not None and samples is not None:
        raise SteelyardError("State a window in seconds (window) or in sampling intervals (samples), not both.")
    if seconds is not None and not (np.isfinite(seconds) and seconds > 0.0):
        raise SteelyardError(f"A window must be a positive number of seconds, not {seconds}.")
    if samples is not None and not (samples >= 1 and samples == int(samples)):
        raise SteelyardError(f"A window needs a whole number of sampling intervals from 1 on, not {samples}.")
