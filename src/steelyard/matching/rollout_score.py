"""Scores and verdict of a matched robot: rollouts from measured states, and their residuals over frequency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
from steelyard.ground.short_repr import short_repr
from steelyard.matching.command_stretch import CommandStretch
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import MatchPoint
from steelyard.matching.window_rollout import Physics, rollout
from steelyard.report import Verdict

if TYPE_CHECKING:
    from steelyard.matching.match_result import Match


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


# Largest rollout errors, as shares of the motion: a tenth is a usual tracking error of drives; with a third, the
# simulated motion differs clearly from the logs.
_GOOD, _FAIR = 0.1, 0.3


def error_shares(match: Match) -> list[float]:
    """Return the error of hold-out windows of each joint of a `match`, relative to its motion."""
    s = match.scores["hold-out"]
    return [float(x) for x in s.windows_rms / np.maximum(s.size, 1e-12)]


def match_verdict(match: Match) -> Verdict:
    """Judge a `match` by rollouts on the left-out motion."""
    names = match.robot.joint_names
    shares = error_shares(match)
    worst = int(np.argmax(shares))
    after, before = match.scores["hold-out"], match.scores["description"]
    total, stated = (float(np.sqrt(np.mean(s.windows_rms**2))) for s in (after, before))
    where = "Left-out motion" if match.test else "The motion of the fit itself (no motion was left out)"
    points = [
        f"{where}: rollouts of {number(after.window_s, 3)} s miss the positions by {number(1e3 * total, 3)} mrad or mm "
        f"(RMS), those of the description by {number(1e3 * stated, 3)}.",
        f"Joint '{names[worst]}' has the largest error, {number(100 * shares[worst], 2)} % of its motion.",
    ]
    for s in match.missed:
        assert s.missed_hz is not None
        points.append(
            f"The response of joint '{s.joint}' to its goal is wrong by {number(100 * s.missed, 2)} % at "
            f"{number(s.missed_hz, 3)} Hz: the model lacks an effect there, such as a resonance, play or a filter."
        )
    fit_worst = float(np.sqrt(np.mean(match.scores["fit"].windows_rms ** 2)))
    if match.test and total > 2.0 * fit_worst:
        points.append(
            f"The error is {number(total / fit_worst, 2)} times that of the fit: the left-out motion differs from the "
            "fitted one, for instance by its speed."
        )
    if match.fit.diverged[1]:
        points.append(f"{match.fit.diverged[1]} of {len(match.fit.windows)} windows diverge in simulation.")
    stays = match.at_description
    if stays:
        points.append(f"{len(stays)} numbers stay near the description, because the logs do not determine them.")
    points += list(match.remarks)
    if not match.fit.converged or shares[worst] > _FAIR or total > stated:
        headline = (
            "The search did not converge."
            if not match.fit.converged
            else "The matched robot does not move like the logs."
        )
        return Verdict("bad", headline, tuple(points))
    if shares[worst] > _GOOD or match.missed or match.fit.diverged[1]:
        return Verdict("warning", "The matched robot moves like the logs, with exceptions.", tuple(points))
    return Verdict("good", "The matched robot moves like the logs.", tuple(points))
