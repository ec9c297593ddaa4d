"""`CommandStretch`: a gap-free piece of a command log on an even clock, with its measured and its smooth motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.signals import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare

# Channels of a log for its commands.
GOAL, FEED_FORWARD = "goal", "feed_forward"


@short_repr
@dataclass(frozen=True, eq=False)
class CommandStretch:
    """A gap-free piece of a command log.

    Attributes:
        name: Name of the log.
        motion: Smooth motion; its torque is the measured torque, or zero.
        q: Measured positions [rad, m], shape (samples, joints).
        goal: Goal positions [rad, m], constant until the next sample.
        feed_forward: Feed-forward torque of the command [N m, N].
        torque: Measured torques [N m, N]; None without a measurement.
    """

    name: str
    motion: Motion
    q: Array
    goal: Array
    feed_forward: Array
    torque: Array | None

    def __len__(self) -> int:
        return len(self.q)

    @property
    def period(self) -> float:
        return self.motion.filter.period

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return len(self) * self.period

    def part(self, start: int, stop: int) -> CommandStretch:
        """Return the samples from `start` to `stop`.

        Args:
            start: First sample.
            stop: Sample after the last one.
        """
        cut = slice(start, stop)
        old = self.motion
        begin, end, step = old.keep.indices(len(old.t))
        keep = slice(max(begin - start, 0), max(min(end, stop) - start, 0), step)
        motion = replace(
            old, t=old.t[cut], q=old.q[cut], dq=old.dq[cut], ddq=old.ddq[cut], tau=old.tau[cut], keep=keep,
            standing=None if old.standing is None else old.standing[cut],
        )  # fmt: skip
        torque = None if self.torque is None else self.torque[cut]
        return CommandStretch(self.name, motion, self.q[cut], self.goal[cut], self.feed_forward[cut], torque)

    def held_average(self, signal: Array, centres: Array, width: float) -> Array:
        """Average a piecewise constant signal over intervals; before the first sample it has its first value.

        Args:
            signal: Values at the samples, shape (samples, joints).
            centres: Centres of the intervals, after the first sample [s].
            width: Width of the intervals [s].
        """
        h, n = self.period, len(signal)
        total = np.vstack([np.zeros((1, signal.shape[1])), np.cumsum(signal, axis=0) * h])

        def integral(t: Array) -> Array:
            inside = np.clip(t, 0.0, n * h)
            k = np.minimum((inside / h).astype(np.int64), n - 1)
            value = total[k] + (inside - k * h)[..., None] * signal[k]
            return np.asarray(value + np.minimum(t, 0.0)[..., None] * signal[0])

        return (integral(centres + 0.5 * width) - integral(centres - 0.5 * width)) / width


def command_stretches(logs: Sequence[Log], cutoff_hz: float | None = None) -> list[CommandStretch]:
    """Prepare command logs.

    Args:
        logs: Logs with the channel "goal" [rad, m].
        cutoff_hz: Cut-off of the low-pass for the smooth motion [Hz]; None: chosen from the motion.
    """
    settings = Preparation(cutoff_hz=cutoff_hz)
    band_hz = chosen_cutoff(logs, settings)
    out = [stretch for log in logs for stretch in _stretches(log, settings, band_hz)]
    if not out:
        raise LogError("All gap-free pieces of the logs are too short; log some seconds of motion without gaps.")
    return out


def _stretches(log: Log, settings: Preparation, cutoff_hz: float) -> Iterator[CommandStretch]:
    name = str(log.meta.get("source", "log"))
    still = replace(log, tau=np.zeros_like(log.q) if log.tau is None else log.tau)
    for motion in prepare(still, settings, cutoff_hz):
        t, h = motion.t, motion.filter.period
        q = np.column_stack([np.interp(t, log.t, column) for column in log.q.T])
        # The goal at an instant is that of the last row at or before it.
        rows = np.clip(np.searchsorted(log.t, t + 0.25 * h, side="right") - 1, 0, len(log.t) - 1)
        goal = log.channels[GOAL][rows]
        feed = log.channels[FEED_FORWARD][rows] if FEED_FORWARD in log.channels else np.zeros_like(goal)
        yield CommandStretch(name, motion, q, goal, feed, None if log.tau is None else motion.tau)
