"""Positions are whole ticks of an encoder: how large a tick is, and what its rounding makes of accelerations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.log import Log

# Rows that the ticks are looked for in; more would not make them plainer.
_MOST = 50_000
# Positions are ticks if all but one in a hundred stand this near to a multiple of the smallest step, in steps.
_NEAR, _SHARE = 0.05, 0.99
# Ticks finer than this part of the range are rounding of decimals or of the processor, and do no harm.
_FINEST = 1e-7


def position_steps(log: Log) -> Array:
    """The smallest step of each joint's position (rad, m) in `log`; zero where it is not made of steps.

    Ticks so fine that no two samples are one apart are not seen, and do no harm either.
    """
    return np.array([_step(column) for column in log.q[:_MOST].T])


def _step(x: Array) -> float:
    levels = np.unique(x)
    if len(levels) < 3:
        return 0.0
    gaps = np.diff(levels)
    gaps = gaps[gaps > _FINEST * (levels[-1] - levels[0])]
    if len(gaps) < 2:
        return 0.0
    step = float(gaps.min())
    # The mean over all gaps of one step is surer than the smallest one.
    ones = gaps[gaps < 1.5 * step]
    step = float(ones.mean())
    counts = gaps / step
    near = np.abs(counts - np.rint(counts)) < _NEAR * np.maximum(1.0, np.rint(counts) ** 0.5)
    return step if np.mean(near) >= _SHARE and len(ones) > 1 else 0.0


def acceleration_noise(low_pass: LowPass) -> float:
    """Standard deviation of the acceleration (1/s²) prepared by `low_pass` for white noise of one on the positions."""
    length = 4 * low_pass.memory + 1
    pulse = np.zeros((length, 1))
    pulse[length // 2] = 1.0
    h = low_pass.period
    twice = derivative(low_pass(derivative(low_pass(pulse), h)), h)
    return float(np.linalg.norm(low_pass(low_pass(twice))))


def velocity_noise(x: Array, low_pass: LowPass, measured: bool) -> Array:
    """Standard deviation, per joint, of the noise that is left in velocities prepared by `low_pass`.

    Args:
        x: velocities (rad/s, m/s) where they are `measured`, else positions (rad, m), on a uniform clock, unfiltered.
        low_pass: that they go through.
        measured: whether x are velocities.
    """
    if len(x) < 8:
        return np.zeros(x.shape[1])
    # Third differences of a motion are next to nothing; those of white noise of one have a variance of 1 + 9 + 9 + 1.
    white = np.sqrt(np.mean(np.diff(x, 3, axis=0) ** 2, axis=0) / 20.0)
    length = 4 * low_pass.memory + 1
    pulse = np.zeros((length, 1))
    pulse[length // 2] = 1.0
    through = low_pass(pulse) if measured else low_pass(derivative(low_pass(pulse), low_pass.period))
    found: Array = white * float(np.linalg.norm(through))
    return found


def rounded_again(log: Log, steps: Array, cutoff_hz: float, rng: np.random.Generator) -> Log:
    """`log` with a second rounding error of the same kind: that of its smoothed positions, moved off the ticks.

    Ticks are `steps` (rad, m; zero: none) per joint; a low-pass at `cutoff_hz` smooths, and `rng` draws the moves.
    """
    q = log.q.copy()
    safe = np.where(steps > 0.0, steps, 1.0)
    for first, last in log.segments or ((0, len(log)),):
        period = float(np.median(np.diff(log.t[first:last]))) if last - first > 1 else 1.0
        if last - first < 32:
            continue
        low_pass = LowPass(min(cutoff_hz, 0.45 / period), period)
        smooth = low_pass(log.q[first:last]) + steps * rng.uniform(size=len(steps))
        q[first:last] += np.where(steps > 0.0, np.rint(smooth / safe) * safe - smooth, 0.0)
    return replace(log, q=q)
