"""`Windows`: equally long windows of command logs, simulated in parallel from their own initial states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.matching.command_stretch import CommandStretch

# Shortest window [samples]: initial states have two numbers per joint, and friction needs a motion.
_SHORTEST = 20
# History before the first sample [s]; the delay must be shorter.
PAST = 0.1


@dataclass(frozen=True, eq=False)
class Windows:
    """Equally long windows.

    Attributes:
        stretches: Pieces of the logs.
        places: Index of the stretch and first sample of each window.
        samples: Number of samples of each window.
        steps: Steps of the simulation per sample.
        q: Measured positions, shape (windows, samples, joints) [rad, m].
        past_q: Smooth positions at the steps before and at the first sample, shape (past + 1, windows, joints).
        past_dq: Smooth velocities half a step before these positions.
    """

    stretches: tuple[CommandStretch, ...]
    places: tuple[tuple[int, int], ...]
    samples: int
    steps: int
    q: Array
    past_q: Array
    past_dq: Array

    @classmethod
    def of(cls, stretches: Sequence[CommandStretch], duration: float, steps: int) -> Windows:
        """Divide stretches into windows.

        Args:
            stretches: Pieces of the logs, on clocks of one period.
            duration: Duration of a window [s]; infinite: each stretch is one window.
            steps: Steps of the simulation per sample.
        """
        period = stretches[0].period
        counts = [max(1, round(s.duration / duration)) for s in stretches]
        samples = min(len(s) // c for s, c in zip(stretches, counts, strict=True))
        if samples < _SHORTEST:
            raise LogError(
                f"{stretches[0].name}: a window would have {samples} samples; choose windows of at least "
                f"{_SHORTEST * period:.3g} s."
            )
        places = [
            (k, start)
            for k, s in enumerate(stretches)
            for start in range(0, len(s) - samples + 1, samples)
        ]  # fmt: skip
        h = period / steps
        past = int(np.ceil(PAST / h)) + 3
        q = np.stack([stretches[k].q[a : a + samples] for k, a in places])
        before_q = np.stack([_at(stretches[k], stretches[k].motion.q, a, h, past, 0.0) for k, a in places], axis=1)
        before_dq = np.stack([_at(stretches[k], stretches[k].motion.dq, a, h, past, 0.5) for k, a in places], axis=1)
        return cls(tuple(stretches), tuple(places), samples, steps, q, before_q, before_dq)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def period(self) -> float:
        return self.stretches[0].period

    @property
    def step(self) -> float:
        """Step of the simulation [s]."""
        return self.period / self.steps

    @property
    def count(self) -> int:
        """Number of steps of each window."""
        return (self.samples - 1) * self.steps

    @property
    def duration(self) -> float:
        """Duration of a window [s]."""
        return self.samples * self.period

    def goals(self, delay: float) -> tuple[Array, Array, Array]:
        """Return goals and feed-forward torques of each step, and the derivative of the goals by the delay.

        Args:
            delay: Delay of the commands [s].

        Returns:
            Goals, their derivative by the delay, and feed-forward torques; each (steps, windows, joints).
        """
        h = self.step
        values, slopes, feeds = [], [], []
        for k, first in self.places:
            s = self.stretches[k]
            centres = np.asarray(first * s.period + h * np.arange(self.count) - delay, dtype=np.float64)
            values.append(s.held_average(s.goal, centres, h))
            eps = 1e-6 * h  # the average is piecewise linear in time, so its slope is exact
            later, earlier = (s.held_average(s.goal, centres + sign * eps, h) for sign in (1.0, -1.0))
            slopes.append(-(later - earlier) / (2.0 * eps))
            has = bool(s.feed_forward.any())
            feeds.append(s.held_average(s.feed_forward, centres, h) if has else np.zeros_like(values[-1]))
        return tuple(np.ascontiguousarray(np.stack(x, axis=1)) for x in (values, slopes, feeds))  # type: ignore[return-value]


def _at(stretch: CommandStretch, signal: Array, first: int, h: float, past: int, back: float) -> Array:
    """Values of a signal at the steps up to a sample, `back` steps earlier; its first value before the log."""
    t = stretch.period * np.arange(len(signal))
    at = first * stretch.period + h * (np.arange(-past, 1) - back)
    return np.column_stack([np.interp(at, t, column) for column in signal.T])
