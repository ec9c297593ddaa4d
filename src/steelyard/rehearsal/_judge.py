"""Rehearsal checks: limits, identified parameters, and prediction of another motion, for each trial and for all."""

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
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import percent as as_percent
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.simulation.simulation import Simulation

Mask = NDArray[np.bool_]
# Allowed relative overshoot of a limit: designed motions use their limits, and the controller's model is inexact.
_OVERSHOOT = 0.05
# Probability that calibrated 95 % intervals fail the check by chance (binomial: 19 of 25, 49 of 58 must hold).
_CHANCE = 1e-3
# Long logs have narrow error bars, while filters, clocks and sample-and-hold torques cause errors besides the noise.
# An error is significant if it changes a joint's torque by more than this share of its noise (RMS along the motion).
_SIGNIFICANT = 0.1
# Hold-out error that a good identification of a real arm reaches, relative to the standard deviation of the torque.
_GOOD = 0.05


@dataclass(frozen=True)
class Judgement:
    """Result of one check.

    Attributes:
        name: The statement that is checked.
        passed: Whether the statement is true.
        text: Reason.
        decides: Whether the check decides the verdict; others are only reported.
    """

    name: str
    passed: bool
    text: str
    decides: bool = True


@dataclass(frozen=True, eq=False)
class Trial:
    """Result for one simulated robot.

    Attributes:
        seed: Seed of the robot and of the noise of its sensors.
        z_scores: Error of each base parameter of the free fit in standard errors; N(0, 1) if calibrated.
        significant: Whether the error of each base parameter changes a torque by more than a tenth of its noise.
        limit_share: Largest position or velocity relative to its limit.
        limit_text: Joint and value of it.
        torque_share: Largest torque relative to its limit.
        torque_joint: Joint of it.
        error_share: Largest error of a joint's torque on another motion, relative to the allowed error.
        error_text: Joint and value of it.
    """

    seed: int
    z_scores: Array
    significant: Mask
    limit_share: float
    limit_text: str
    torque_share: float
    torque_joint: str
    error_share: float
    error_text: str

    @property
    def outside(self) -> Mask:
        """Whether each base parameter is outside its 95 % interval."""
        return np.asarray(np.abs(self.z_scores) > HALF_WIDTH_95)

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "outside": int(self.outside.sum()),
            "outside_and_showing": int(np.sum(self.outside & self.significant)),
            "share_of_limit": self.limit_share,
            "share_of_torque_limit": self.torque_share,
            "error_over_allowed": self.error_share,
        }


@dataclass(frozen=True, eq=False)
class Extremes:
    """Largest values of each joint while the robot followed its motions.

    Attributes:
        position: Distance from the middle of the range [rad or m].
        velocity: Speed [rad/s or m/s].
        torque: Torque [N m or N].
        tracking_error: Distance from the reference, over all joints [rad or m].
    """

    position: Array
    velocity: Array
    torque: Array
    tracking_error: float


@dataclass(frozen=True, eq=False)
class Judge:
    """Checks of simulated robots, with cached values that all robots share.

    Attributes:
        robot: Robot as described.
        base: Base parameters of the robot.
        motions: Motions that the robots play.
        other: Another motion, whose torques are to be predicted.
        limits: Limits of the design.
        noise: Standard deviation of each measured torque [N m or N].
    """

    robot: Robot
    base: BaseParameters
    motions: Sequence[Trajectory]
    other: Trajectory
    limits: Limits
    noise: Array
    # Reference of each motion at the sample times, which are the same for all robots.
    _references: dict[int, Array] = field(default_factory=dict)

    def trial(self, seed: int, free: Estimate, model: Model, truth: Model, extremes: Extremes) -> Trial:
        """Check the result of one robot.

        Args:
            seed: Seed of the robot.
            free: Free fit.
            model: Identified model.
            truth: True model.
            extremes: Largest values during the motions.
        """
        results = *self.parameter_errors(free, truth), *self.limit_shares(extremes)
        return Trial(seed, *results, *self.prediction_error(model, truth))

    @property
    def middle(self) -> Array:
        """Middle of the range of each joint [rad or m]."""
        return 0.5 * (self.limits.upper + self.limits.lower)

    def extremes(self, runs: Sequence[Simulation]) -> Extremes:
        """Compute the largest values in `runs`, one for each motion."""
        q = np.max([np.max(np.abs(run.q - self.middle), axis=0) for run in runs], axis=0)
        dq, tau = (np.max([np.max(np.abs(x), axis=0) for x in one], axis=0) for one in zip(
            *((run.dq, run.tau) for run in runs), strict=True))  # fmt: skip
        error = max(float(np.max(np.abs(run.q - self.reference(k, run.t)))) for k, run in enumerate(runs))
        return Extremes(q, dq, tau, error)

    def limit_shares(self, extremes: Extremes) -> tuple[float, str, float, str]:
        """Compare `extremes` with the limits: share and text of position or velocity, share and joint of torque."""
        limits, names = self.limits, self.robot.joint_names
        with np.errstate(invalid="ignore"):
            ratios = {
                "position": extremes.position / (0.5 * (limits.upper - limits.lower)),
                "velocity": extremes.velocity / limits.dq,
                "torque": extremes.torque / limits.tau,
            }
        shares = {name: np.nan_to_num(share, nan=0.0) for name, share in ratios.items()}
        torque = shares.pop("torque")
        worst, name = max((float(x.max()), name) for name, x in shares.items())
        text = (
            f"The {name} of joint '{names[int(np.argmax(shares[name]))]}' reached {100.0 * worst:.1f} % of its limit; "
            f"the tracking error stayed below {extremes.tracking_error:.2g} rad (m)."
        )
        return worst, text, float(torque.max()), names[int(np.argmax(torque))]

    def reference(self, number: int, t: Array) -> Array:
        """Return the reference positions of a motion.

        Args:
            number: Index of the motion.
            t: Sample times [s], the same for all robots.
        """
        if number not in self._references:
            self._references[number] = self.motions[number].derivative(t, 0)
        return self._references[number]

    @cached_property
    def _sizes(self) -> Array:
        """Torque of each joint (RMS along the motions) per unit of each base parameter."""
        sampled = [m.sample(m.times(50.0)) for m in self.motions]
        q, dq, ddq = (np.concatenate([s[i] for s in sampled]) for i in range(3))
        W = self.base.regressor_columns(self.base.structure.dynamics.torque_regressor(q, dq, ddq))
        return np.asarray(np.sqrt(np.mean(W**2, axis=0)))

    def parameter_errors(self, free: Estimate, truth: Model) -> tuple[Array, Mask]:
        """Compute errors of base parameters in standard errors, and whether each is significant.

        Args:
            free: Free fit.
            truth: True model.
        """
        error = free.beta - self.base.values(truth.theta)
        change = np.max(self._sizes * np.abs(error) / self.noise[:, None], axis=0)
        return error / free.standard_errors, np.asarray(change > _SIGNIFICANT)

    @cached_property
    def _other_samples(self) -> tuple[Array, Array, Array]:
        return self.other.sample(self.other.times(100.0))

    def prediction_error(self, model: Model, truth: Model) -> tuple[float, str]:
        """Compute the error of predicted torques on another motion, relative to the allowed error, and its text.

        Args:
            model: Identified model.
            truth: True model.
        """
        true, predicted = truth.torque(*self._other_samples), model.torque(*self._other_samples)
        rmse = np.sqrt(np.mean((predicted - true) ** 2, axis=0))
        std = np.std(true, axis=0)
        allowed = _GOOD * std
        used = np.array(self.robot.torque_used, dtype=bool)
        share = np.where(used, rmse / np.maximum(allowed, 1e-12), 0.0)
        k = int(np.argmax(share))
        percent = 100.0 * rmse[k] / max(float(std[k]), 1e-12)
        return float(share[k]), (
            f"On another motion, the largest torque error is that of joint '{self.robot.joint_names[k]}': "
            f"{rmse[k]:.3g} {self.robot.joints[k].effort_unit} ({as_percent(percent)} of "
            f"its standard deviation, NRMSE); at most {allowed[k]:.3g} is allowed."
        )


def judge_trials(trials: Sequence[Trial], names: Sequence[str]) -> tuple[Judgement, ...]:
    """Check limits, calibration of error bars, significance of errors, and prediction of another motion.

    The calibration is reported but does not decide: error bars describe the noise, and on long logs they are narrower
    than the errors of filters, clocks and sample-and-hold torques. Three `rotradi` have 70 of 75 base parameters
    within their intervals after 10 s and 65 after 30 s (64 required), although no error is significant.

    Args:
        trials: Results of all robots.
        names: Names of the base parameters.
    """
    from scipy.stats import binom  # slow to import

    z = np.array([t.z_scores for t in trials])
    outside = np.array([t.outside for t in trials])
    significant = int(np.sum(outside & np.array([t.significant for t in trials])))
    count, least = z.size, int(binom.ppf(_CHANCE, z.size, 0.95))
    inside, (row, k) = int(np.sum(~outside)), divmod(int(np.argmax(np.abs(z))), z.shape[1])
    of_all = "" if len(trials) == 1 else f" of {len(trials)} robots"
    farthest = "" if len(trials) == 1 else f" of seed {trials[row].seed}"
    bars = (
        f"{inside} of {count} base parameters{of_all} are within their 95 % intervals (expected: about "
        f"{round(0.95 * count)}; at least {least} required). The largest error is that of {names[k]}{farthest}: "
        f"{abs(z[row, k]):.1f} standard errors."
    )
    errors = (
        f"Of {int(np.sum(outside))} base parameters{of_all} outside their intervals, {significant} have errors that "
        f"change a torque by more than a tenth of its noise; at most {count - least} are allowed."
    )
    nearest, least_exact = max(trials, key=lambda t: t.limit_share), max(trials, key=lambda t: t.error_share)
    worst = "" if len(trials) == 1 else f"Of {len(trials)} robots the worst: "
    good = least_exact.error_share <= 1.0
    more = "" if good else " Use quieter sensors, more passes or a more exciting motion."
    middle, strongest = float(np.median([t.torque_share for t in trials])), max(trials, key=lambda t: t.torque_share)
    keeps = max(nearest.limit_share, middle) <= 1.0 + _OVERSHOOT
    return (
        Judgement(
            "the motion stays within its limits", keeps, _after(worst, nearest.limit_text) + _torque(strongest, middle)
        ),
        Judgement("the error bars are calibrated", inside >= least, bars, decides=False),
        Judgement("the true parameters are identified", significant <= count - least, errors),
        Judgement("the identified model predicts another motion", good, _after(worst, least_exact.error_text) + more),
    )


def _torque(strongest: Trial, middle: float) -> str:
    """Describe the largest torque: a simulated robot may be heavier than the description."""
    if strongest.torque_share <= 0.0:
        return ""
    text = (
        f" The torque of joint '{strongest.torque_joint}' reached {100.0 * strongest.torque_share:.1f} % of its limit"
    )
    if strongest.torque_share <= 1.0 + _OVERSHOOT:
        return f"{text}."
    return (
        f"{text} on the robot with the largest torques, and {100.0 * middle:.1f} % on the median one; "
        "--torque-margin reserves torque for a robot that is heavier than its description."
    )


def _after(words: str, sentence: str) -> str:
    return words + sentence[:1].lower() + sentence[1:] if words else sentence
