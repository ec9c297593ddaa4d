"""Whether a rehearsal went well: the motion, the parameters, and what they are good for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.excitation.constraints import Limits
from steelyard.excitation.trajectories import Trajectory
from steelyard.identification import Identification
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.simulation import Simulation

# Designed motions go to their limits, and a controller that knows its robot badly overshoots: this share is allowed.
_OVERSHOOT = 0.05
# Of honest 95 % intervals, 85 % hold the truth with all but 0.1 % of the luck for 50 parameters (binomial).
_COVERED = 0.85
# Filters, clocks and held torques leave errors that no noise explains. They matter where they are seen: a parameter
# whose error moves no joint's torque by more than this share of its noise (RMS along the motion) is found.
_UNSEEN = 0.1
# What a good identification of a real arm reaches on data that it has not seen, as a share of the torque's spread.
_GOOD = 0.05


@dataclass(frozen=True)
class Judgement:
    """One thing that was looked at: its name, whether it went well, and why."""

    name: str
    passed: bool
    text: str


def judge_motion(robot: Robot, runs: Sequence[Simulation], motions: Sequence[Trajectory], limits: Limits) -> Judgement:
    """Whether the simulated robot kept near its limits while it followed."""
    worst, what = -np.inf, ""
    for run in runs:
        half = 0.5 * (limits.upper - limits.lower)
        middle = 0.5 * (limits.upper + limits.lower)
        with np.errstate(invalid="ignore"):
            shares = {
                "position": np.max(np.abs(run.q - middle), axis=0) / half,
                "velocity": np.max(np.abs(run.dq), axis=0) / limits.dq,
                "torque": np.max(np.abs(run.tau), axis=0) / limits.tau,
            }
        for name, share in shares.items():
            filled = np.nan_to_num(share, nan=0.0)
            k = int(np.argmax(filled))
            if filled[k] > worst:
                worst, what = float(filled[k]), f"{name} of joint '{robot.joint_names[k]}'"
    off = max(
        float(np.max(np.abs(r.q - m.derivative(r.t, 0)))) for r, m in zip(runs, _again(motions, runs), strict=True)
    )
    text = f"The {what} reached {100.0 * worst:.1f} % of its limit; the tracking error stayed below {off:.2g} rad (m)."
    return Judgement("the motion keeps to its limits", worst <= 1.0 + _OVERSHOOT, text)


def _again(motions: Sequence[Trajectory], runs: Sequence[Simulation]) -> list[Trajectory]:
    passes = len(runs) // len(motions)
    return [m for m in motions for _ in range(passes)]


def judge_parameters(found: Identification, truth: Model, motions: Sequence[Trajectory], noise: Array) -> Judgement:
    """Whether the planted base parameters lie where the error bars of the free fit say, or nobody could see it."""
    estimate, base = found.free, found.base
    error = np.abs(estimate.beta - base.values(truth.theta))
    off = error / estimate.standard_errors
    sampled = [m.sample(m.times(50.0)) for m in motions]
    q, dq, ddq = (np.concatenate([s[k] for s in sampled]) for k in range(3))
    W = base.regressor_columns(truth.dynamics.torque_regressor(q, dq, ddq))
    seen = np.sqrt(np.mean(W**2, axis=0)) * error / noise[:, None]
    good = (off <= 1.96) | (np.max(seen, axis=0) <= _UNSEEN)
    inside, k = (
        int(np.sum(off <= 1.96)),
        int(np.argmax(np.where(good, 0.0, off))) if not good.all() else int(np.argmax(off)),
    )
    text = (
        f"{inside} of {len(off)} base parameters lie within their 95 % intervals (expected: about "
        f"{round(0.95 * len(off))}); of {int(np.sum(~good))} the error is also larger than a tenth of the noise. "
        f"The farthest off is {base.names[k]}, by {off[k]:.1f} standard errors."
    )
    return Judgement("the planted parameters are found", float(np.mean(good)) >= _COVERED, text)


def judge_prediction(found: Identification, truth: Model, motion: Trajectory) -> Judgement:
    """Whether the delivered model predicts the true torque of a motion that it has not seen."""
    signals = motion.sample(motion.times(100.0))
    true, predicted = truth.torque(*signals), found.model.torque(*signals)
    rmse = np.sqrt(np.mean((predicted - true) ** 2, axis=0))
    spread = np.std(true, axis=0)
    allowed = _GOOD * spread
    used = np.array(found.robot.torque_used, dtype=bool)
    share = np.where(used, rmse / np.maximum(allowed, 1e-12), 0.0)
    k = int(np.argmax(share))
    percent = 100.0 * rmse[k] / max(float(spread[k]), 1e-12)
    text = (
        f"On a motion that was not played the torque of joint '{found.robot.joint_names[k]}', the worst, is predicted "
        f"to {rmse[k]:.3g} {found.robot.joints[k].effort_unit} ({percent:.2g} % of "
        f"its spread); {allowed[k]:.3g} is asked for."
    )
    good = bool(share[k] <= 1.0)
    text += "" if good else " Quieter sensors, more passes or a motion that shows more would help."
    return Judgement("the found model predicts another motion", good, text)
