"""Scores of a matched robot: rollouts from measured states, and their residuals over frequency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.matching.command_stretch import CommandStretch
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import MatchPoint
from steelyard.matching.window_rollout import Physics, rollout

# A response error above this share (2 dB) at some frequency shows missing dynamics of the model.
MISSED = 0.25
# Chance of a false alarm of the coherence at one frequency.
_FALSE_ALARM = 1e-3
# Frequencies with less than this share of the largest density of the goal are not excited.
_EXCITED = 1e-4
_SEGMENTS = 8


@short_repr
@dataclass(frozen=True, eq=False)
class MotionScore:
    """Errors of simulated positions.

    Attributes:
        windows_rms: Root mean square over windows, by joint [rad, m].
        run_rms: The same over whole runs.
        size: Standard deviation of the positions, by joint [rad, m].
        by_window: Root mean square of each window, shape (windows, joints).
        window_s: Duration of the windows [s].
        diverged: Number of windows and runs that diverged.
    """

    windows_rms: Array
    run_rms: Array
    size: Array
    by_window: Array
    window_s: float
    diverged: int


@short_repr
@dataclass(frozen=True, eq=False)
class FrequencyResidual:
    """Residual of one joint over frequency.

    Attributes:
        joint: Name of the joint.
        hz: Frequencies [Hz].
        motion: Amplitude density of the position [rad/√Hz, m/√Hz].
        residual: Amplitude density of the residual.
        missed_hz: Frequency of the largest relative error of the response to the goal, if above `MISSED`; else None.
        missed: Largest relative error of the response at the excited frequencies.
    """

    joint: str
    hz: Array
    motion: Array
    residual: Array
    missed_hz: float | None
    missed: float


def simulate_stretch(physics: Physics, point: MatchPoint, windows: Windows) -> tuple[Array, int]:
    """Simulate windows from their measured states; return residuals, and the number of windows that diverged.

    Args:
        physics: Robot.
        point: Parameters.
        windows: Windows.
    """
    run = rollout(physics, windows, point, windows.past_q[-1].copy(), windows.past_dq[-1].copy())
    residuals = windows.q - run.at_samples(windows)
    lost = run.good < windows.samples
    # A diverged window counts like a prediction without motion.
    residuals[lost] = windows.q[lost] - windows.q[lost][:, :1]
    return residuals, int(lost.sum())


def score_rollouts(
    physics: Physics, point: MatchPoint, stretches: Sequence[CommandStretch], window: float, steps: int
) -> MotionScore:
    """Score a point on logs.

    Args:
        physics: Robot.
        point: Parameters.
        stretches: Pieces of the logs.
        window: Duration of the windows [s].
        steps: Steps of the simulation per sample.
    """
    windows = Windows.of(stretches, window, steps)
    residuals, lost = simulate_stretch(physics, point, windows)
    by_window = np.sqrt(np.mean(residuals**2, axis=1))
    squares, count = np.zeros(physics.robot.dof), 0
    for s in stretches:
        own, bad = simulate_stretch(physics, point, Windows.of([s], np.inf, steps))
        squares, count, lost = squares + np.sum(own[0] ** 2, axis=0), count + own.shape[1], lost + bad
    size = np.std(np.concatenate([s.q for s in stretches]), axis=0)
    rms = np.sqrt(np.mean(by_window**2, axis=0))
    return MotionScore(rms, np.sqrt(squares / count), size, by_window, windows.duration, lost)


def residual_by_frequency(
    physics: Physics, point: MatchPoint, stretches: Sequence[CommandStretch], steps: int
) -> tuple[FrequencyResidual, ...]:
    """Compare residual and motion over frequency, on whole runs.

    Args:
        physics: Robot.
        point: Parameters.
        stretches: Pieces of the logs.
        steps: Steps of the simulation per sample.
    """
    from scipy.signal import csd, welch

    longest = max(stretches, key=len)
    residuals, _ = simulate_stretch(physics, point, Windows.of([longest], np.inf, steps))
    r, q = residuals[0], longest.q[: residuals.shape[1]]
    g = longest.goal[: len(q)]
    length = max(32, 2 * len(q) // (_SEGMENTS + 1))
    length = min(length, len(q))
    options: dict[str, Any] = {"fs": 1.0 / longest.period, "nperseg": length, "axis": 0, "detrend": "constant"}
    hz, Srr = welch(r, **options)
    _, Sqq = welch(q, **options)
    _, Sgg = welch(g, **options)
    _, Srg = csd(g, r, **options)
    _, Sqg = csd(g, q, **options)
    segments = max(2, 2 * len(q) // length - 1)
    threshold = 1.0 - _FALSE_ALARM ** (1.0 / (segments - 1))
    out = []
    for j, name in enumerate(physics.robot.joint_names):
        scale = max(float(Sgg[:, j].max()), 1e-300)
        coherence = np.abs(Srg[:, j]) ** 2 / np.maximum(Srr[:, j] * Sgg[:, j], 1e-300)
        wrong = np.abs(Srg[:, j]) / np.maximum(np.abs(Sqg[:, j]), 1e-300)
        ok = (Sgg[:, j] > _EXCITED * scale) & (coherence > threshold) & (hz > 0.0)
        k = int(np.argmax(np.where(ok, wrong, 0.0)))
        shown = bool(ok.any() and wrong[k] > MISSED)
        where, size = float(hz[k]) if shown else None, float(wrong[k]) if ok.any() else 0.0
        out.append(FrequencyResidual(name, hz, np.sqrt(Sqq[:, j]), np.sqrt(Srr[:, j]), where, size))
    return tuple(out)
