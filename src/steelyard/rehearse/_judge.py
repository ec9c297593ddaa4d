"""What is looked at in a rehearsal: limits, planted parameters, another motion; and the judgement of all trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.excitation.constraints import Limits
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent as as_percent
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.simulation.simulation import Simulation

Mask = NDArray[np.bool_]
# Designed motions go to their limits, and a controller that knows its robot badly overshoots: this share is allowed.
_OVERSHOOT = 0.05
# Of honest 95 % intervals as many hold the truth with all but this share of bad luck (binomial: 19 of 25, 49 of 58).
_LUCK = 1e-3
# Filters, clocks and held torques leave errors that no noise explains, and long logs have narrow error bars. An error
# shows if it moves some joint's torque by more than this share of its noise (RMS along the motion).
_SHOWS = 0.1
# What a good identification of a real arm reaches on data that it has not seen, as a share of the torque's std.
_GOOD = 0.05


@dataclass(frozen=True)
class Judgement:
    """One thing that was looked at: its name, whether it went well, and why; what does not decide is said beside."""

    name: str
    passed: bool
    text: str
    decides: bool = True


@dataclass(frozen=True, eq=False)
class Trial:
    """One robot that was planted, and what was found of it.

    Attributes:
        seed: of the robot and of its sensors' noise.
        z_scores: how far off each base parameter of the free fit is, in standard errors; honest ones are N(0, 1).
        shows: of which base parameters the error moves some torque by more than a tenth of its noise.
        limit_share: the largest share of a limit of position or velocity that was reached; 1 is the limit itself.
        limit_text: where that was.
        torque_share: the largest share of a torque limit.
        torque_joint: the joint where that was.
        error_share: the torque's error on another motion, of the joint where it is worst, over what is allowed.
        error_text: which joint that is, and how large the error is.
    """

    seed: int
    z_scores: Array
    shows: Mask
    limit_share: float
    limit_text: str
    torque_share: float
    torque_joint: str
    error_share: float
    error_text: str

    @property
    def outside(self) -> Mask:
        """Which base parameters lie outside their 95 % intervals."""
        return np.asarray(np.abs(self.z_scores) > 1.96)

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "outside": int(self.outside.sum()),
            "outside_and_showing": int(np.sum(self.outside & self.shows)),
            "share_of_limit": self.limit_share,
            "share_of_torque_limit": self.torque_share,
            "error_over_allowed": self.error_share,
        }


@dataclass(frozen=True, eq=False)
class Reached:
    """How far a robot went while it followed: the most of each joint, from the middle of its range (`position`, rad,
    m), of `velocity` and of `torque`; and how far `off` it was from where it should be, at most."""

    position: Array
    velocity: Array
    torque: Array
    off: float


@dataclass(frozen=True, eq=False)
class Judge:
    """What every planted robot is judged by; what is the same for all of them is worked out once.

    Attributes:
        robot: as described.
        base: its base parameters.
        motions: that are played.
        other: a motion that is not, to be predicted.
        limits: that the motions were designed for.
        noise: standard deviation of each measured torque, N m (N).
    """

    robot: Robot
    base: BaseParameters
    motions: Sequence[Trajectory]
    other: Trajectory
    limits: Limits
    noise: Array
    # Where each motion should be at the samples of its runs, of which all robots have the same.
    _wanted: dict[int, Array] = field(default_factory=dict)

    def trial(self, seed: int, free: Estimate, found: Model, truth: Model, reached: Reached) -> Trial:
        """What was found of a robot.

        Args:
            seed: of the robot.
            free: the free fit.
            found: the delivered model.
            truth: the robot as it is.
            reached: how far it went.
        """
        seen = *self.found_again(free, truth), *self.limits_kept(reached)
        return Trial(seed, *seen, *self.torque_predicted(found, truth))

    @property
    def middle(self) -> Array:
        """Of the range of each joint, rad (m)."""
        return 0.5 * (self.limits.upper + self.limits.lower)

    def reached(self, runs: Sequence[Simulation]) -> Reached:
        """How far a robot went in `runs`, one for each motion."""
        q = np.max([np.max(np.abs(run.q - self.middle), axis=0) for run in runs], axis=0)
        dq, tau = (np.max([np.max(np.abs(x), axis=0) for x in one], axis=0) for one in zip(
            *((run.dq, run.tau) for run in runs), strict=True))  # fmt: skip
        off = max(float(np.max(np.abs(run.q - self.wanted(k, run.t)))) for k, run in enumerate(runs))
        return Reached(q, dq, tau, off)

    def limits_kept(self, reached: Reached) -> tuple[float, str, float, str]:
        """How near a robot that `reached` so far came to its limits: of position and velocity, and of torque."""
        limits, names = self.limits, self.robot.joint_names
        with np.errstate(invalid="ignore"):
            of_all = {
                "position": reached.position / (0.5 * (limits.upper - limits.lower)),
                "velocity": reached.velocity / limits.dq,
                "torque": reached.torque / limits.tau,
            }
        shares = {name: np.nan_to_num(share, nan=0.0) for name, share in of_all.items()}
        torque = shares.pop("torque")
        worst, name = max((float(x.max()), name) for name, x in shares.items())
        text = (
            f"The {name} of joint '{names[int(np.argmax(shares[name]))]}' reached {100.0 * worst:.1f} % of its limit; "
            f"the tracking error stayed below {reached.off:.2g} rad (m)."
        )
        return worst, text, float(torque.max()), names[int(np.argmax(torque))]

    def wanted(self, number: int, t: Array) -> Array:
        """Where motion `number` (from 0) should be at the times `t` (s) of its samples, the same for all robots."""
        if number not in self._wanted:
            self._wanted[number] = self.motions[number].derivative(t, 0)
        return self._wanted[number]

    @cached_property
    def _sizes(self) -> Array:
        """Torque (RMS along the motions) that a unit of each base parameter asks of each joint."""
        sampled = [m.sample(m.times(50.0)) for m in self.motions]
        q, dq, ddq = (np.concatenate([s[i] for s in sampled]) for i in range(3))
        W = self.base.regressor_columns(self.base.structure.dynamics.torque_regressor(q, dq, ddq))
        return np.asarray(np.sqrt(np.mean(W**2, axis=0)))

    def found_again(self, free: Estimate, truth: Model) -> tuple[Array, Mask]:
        """How far off `truth` the base parameters of the `free` fit are, in standard errors, and of which the error
        shows."""
        error = free.beta - self.base.values(truth.theta)
        moved = np.max(self._sizes * np.abs(error) / self.noise[:, None], axis=0)
        return error / free.standard_errors, np.asarray(moved > _SHOWS)

    @cached_property
    def _unplayed(self) -> tuple[Array, Array, Array]:
        return self.other.sample(self.other.times(100.0))

    def torque_predicted(self, found: Model, truth: Model) -> tuple[float, str]:
        """How well the delivered model `found` predicts the torque, in `truth`, of a motion that it has not seen."""
        true, predicted = truth.torque(*self._unplayed), found.torque(*self._unplayed)
        rmse = np.sqrt(np.mean((predicted - true) ** 2, axis=0))
        std = np.std(true, axis=0)
        allowed = _GOOD * std
        used = np.array(self.robot.torque_used, dtype=bool)
        share = np.where(used, rmse / np.maximum(allowed, 1e-12), 0.0)
        k = int(np.argmax(share))
        percent = 100.0 * rmse[k] / max(float(std[k]), 1e-12)
        return float(share[k]), (
            f"On a motion that was not played the torque of joint '{self.robot.joint_names[k]}', the worst, is "
            f"predicted to {rmse[k]:.3g} {self.robot.joints[k].effort_unit} ({as_percent(percent)} of "
            f"its standard deviation, NRMSE); {allowed[k]:.3g} is asked for."
        )


def judged(trials: Sequence[Trial], names: Sequence[str]) -> tuple[Judgement, ...]:
    """Whether the motion keeps to its limits, whether the planted base parameters, called `names`, lie where the error
    bars say, of how many that do not the error shows, and whether another motion is predicted: all trials count.

    What decides is whether errors show. The plain count of intervals that hold the truth is told beside: error bars
    are of noise, and the longer the log, the more of them are narrower than what filters, clocks and held torques
    leave. Three `rotradi` on 10 s of motion have 70 of 75 within, on 30 s 65, where 64 are asked for: at the edge, by
    more data, though none of the errors moves a torque by a tenth of its noise.
    """
    from scipy.stats import binom  # slow to import

    z = np.array([t.z_scores for t in trials])
    outside = np.array([t.outside for t in trials])
    shows = int(np.sum(outside & np.array([t.shows for t in trials])))
    count, least = z.size, int(binom.ppf(_LUCK, z.size, 0.95))
    inside, (row, k) = int(np.sum(~outside)), divmod(int(np.argmax(np.abs(z))), z.shape[1])
    of_all = "" if len(trials) == 1 else f" of {len(trials)} robots"
    farthest = "" if len(trials) == 1 else f" of seed {trials[row].seed}"
    bars = (
        f"{inside} of {count} base parameters{of_all} lie within their 95 % intervals (expected: about "
        f"{round(0.95 * count)}; {least} are asked for). The farthest off is {names[k]}{farthest}, by "
        f"{abs(z[row, k]):.1f} standard errors."
    )
    seen = (
        f"Of {int(np.sum(outside))} base parameters{of_all} outside their intervals, {shows} have errors that move "
        f"some torque by more than a tenth of its noise; {count - least} may."
    )
    nearest, farthest_off = max(trials, key=lambda t: t.limit_share), max(trials, key=lambda t: t.error_share)
    worst = "" if len(trials) == 1 else f"Of {len(trials)} robots the worst: "
    good = farthest_off.error_share <= 1.0
    more = "" if good else " Quieter sensors, more passes or a motion that shows more would help."
    middle, strongest = float(np.median([t.torque_share for t in trials])), max(trials, key=lambda t: t.torque_share)
    keeps = max(nearest.limit_share, middle) <= 1.0 + _OVERSHOOT
    return (
        Judgement(
            "the motion keeps to its limits", keeps, _after(worst, nearest.limit_text) + _torque(strongest, middle)
        ),
        Judgement("the error bars hold what was planted", inside >= least, bars, decides=False),
        Judgement("the planted parameters are found", shows <= count - least, seen),
        Judgement("the found model predicts another motion", good, _after(worst, farthest_off.error_text) + more),
    )


def _torque(strongest: Trial, middle: float) -> str:
    """What the torques came to: a planted robot may be heavier than the one that the motion was designed for."""
    if strongest.torque_share <= 0.0:
        return ""
    said = (
        f" The torque of joint '{strongest.torque_joint}' reached {100.0 * strongest.torque_share:.1f} % of its limit"
    )
    if strongest.torque_share <= 1.0 + _OVERSHOOT:
        return f"{said}."
    return (
        f"{said} on the strongest-pulling robot, and torques {100.0 * middle:.1f} % on the middle one; "
        "--torque-margin leaves room for a robot that is heavier than its description."
    )


def _after(words: str, sentence: str) -> str:
    return words + sentence[:1].lower() + sentence[1:] if words else sentence
