"""Quantisation of positions by encoders: the size of a tick, and its effect on velocities and accelerations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.log import Log

# Number of rows to examine.
_MOST = 50_000
# Positions are quantised if this share is this near to a multiple of the smallest step [steps].
_NEAR, _SHARE = 0.05, 0.99
# Ticks below this fraction of the range are harmless rounding of decimals or floats.
_FINEST = 1e-7


def position_steps(log: Log) -> Array:
    """Find the quantisation step of each joint's position in `log` [rad or m]; zero without one.

    Ticks so fine that samples are never one tick apart are not found, and harmless.
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
    # The mean over all gaps of one step is more accurate than the smallest one.
    ones = gaps[gaps < 1.5 * step]
    step = float(ones.mean())
    counts = gaps / step
    near = np.abs(counts - np.rint(counts)) < _NEAR * np.maximum(1.0, np.rint(counts) ** 0.5)
    return step if np.mean(near) >= _SHARE and len(ones) > 1 else 0.0


def acceleration_noise(low_pass: LowPass) -> float:
    """Compute the standard deviation of the acceleration after `low_pass` for unit white noise of positions [1/s^2]."""
    length = 4 * low_pass.memory + 1
    pulse = np.zeros((length, 1))
    pulse[length // 2] = 1.0
    h = low_pass.period
    twice = derivative(low_pass(derivative(low_pass(pulse), h)), h)
    return float(np.linalg.norm(low_pass(low_pass(twice))))


def velocity_noise(x: Array, low_pass: LowPass, measured: bool) -> Array:
    """Compute the standard deviation of each joint's velocity noise after the filter.

    Args:
        x: Unfiltered velocities [rad/s or m/s] or positions [rad or m] on a uniform clock, shape (samples, joints).
        low_pass: Filter of the preparation.
        measured: `x` are velocities.
    """
    if len(x) < 8:
        return np.zeros(x.shape[1])
    # Third differences of a motion are negligible; those of unit white noise have a variance of 1 + 9 + 9 + 1.
    white = np.sqrt(np.mean(np.diff(x, 3, axis=0) ** 2, axis=0) / 20.0)
    length = 4 * low_pass.memory + 1
    pulse = np.zeros((length, 1))
    pulse[length // 2] = 1.0
    through = low_pass(pulse) if measured else low_pass(derivative(low_pass(pulse), low_pass.period))
    noise: Array = white * float(np.linalg.norm(through))
    return noise


def round_again(log: Log, steps: Array, cutoff_hz: float, rng: np.random.Generator) -> Log:
    """Add a second rounding error of the same kind: that of the smoothed positions after a random shift.

    Args:
        log: Log.
        steps: Quantisation step of each joint [rad or m]; zero for none.
        cutoff_hz: Cut-off for smoothing [Hz].
        rng: Random generator for the shifts.
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
