"""The laboratory of Urrea & Pascal 2017: the robot, its eight λ, a motion for it, and noisy measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np

import steelyard as sy
from steelyard.estimation import Estimate, Experiment, ExtendedKalman, Prior, Tuning
from steelyard.ground import Array
from steelyard.papers.paper import printed_table
from steelyard.papers.paper_parameters import PaperParameters
from steelyard.regression import RegressionData, Unknowns

# Annexes A and B: the inertia matrix from the eight λ, and torques as a regressor times λ.
G = 9.81


def regressor(q: Array, dq: Array, ddq: Array, *, as_printed: bool = False) -> Array:
    """Compute the regressor of Annex B, shape (samples, 5, 8).

    Args:
        q: Positions [rad, m], shape (samples, 5).
        dq: Velocities.
        ddq: Accelerations.
        as_printed: Use 2(θ̇4 + θ̇3θ̇4) in row 3 of (B.9) as printed, instead of 2(θ̇2θ̇4 + θ̇3θ̇4).
    """
    _, _, q3, q4, _ = q.T
    _, v2, v3, v4, _ = dq.T
    d1, a2, a3, a4, d5 = ddq.T
    c3, s3, c4, s4, c34, s34 = np.cos(q3), np.sin(q3), np.cos(q4), np.sin(q4), np.cos(q3 + q4), np.sin(q3 + q4)
    a23, a234 = a2 + a3, a2 + a3 + a4
    wrist = (2.0 * a23 + a4) * c4 - (2.0 * (v2 + v3) * v4 + v4**2) * s4
    swing, elbow = a2 * c34 + v2**2 * s34, a2 * c3 + v2**2 * s3
    Y = np.zeros((len(q), 5, 8))
    Y[:, 0, 0], Y[:, 0, 7], Y[:, 4, 7] = d1 + G, d1 - d5 + G, d5 - d1 - G
    Y[:, 1, 1], Y[:, 1, 2], Y[:, 1, 4], Y[:, 1, 6] = a2, a23, a234, wrist
    Y[:, 1, 3] = (2.0 * a2 + a3) * c3 - (2.0 * v2 * v3 + v3**2) * s3
    Y[:, 1, 5] = (2.0 * a2 + a3 + a4) * c34 - ((v2 + v3 + v4) ** 2 - v2**2) * s34
    Y[:, 2, 2], Y[:, 2, 3], Y[:, 2, 4], Y[:, 2, 5], Y[:, 2, 6] = a23, elbow, a234, swing, wrist
    Y[:, 3, 4], Y[:, 3, 5], Y[:, 3, 6] = a234, swing, a23 * c4 + (v2 + v3) ** 2 * s4
    if as_printed:
        Y[:, 2, 6] += 2.0 * (v2 - 1.0) * v4 * s4
    return Y


def inertia(q: Array, values: Array) -> Array:
    """Compute M(q) of (A.1)–(A.10), shape (n, 5, 5).

    Args:
        q: Positions [rad, m], shape (n, 5).
        values: λ, shape (n, 8).
    """
    l1, l2, l3, l4, l5, l6, l7, l8 = values.T
    _, _, q3, q4, _ = q.T
    elbow, swing, wrist = l4 * np.cos(q3), l6 * np.cos(q3 + q4), l7 * np.cos(q4)
    M = np.zeros((len(q), 5, 5))
    M[:, 0, 0], M[:, 4, 4] = l1 + l8, l8
    M[:, 0, 4] = M[:, 4, 0] = -l8
    M[:, 1, 1] = l2 + l3 + l5 + 2.0 * (elbow + swing + wrist)
    M[:, 1, 2] = M[:, 2, 1] = l3 + l5 + elbow + swing + 2.0 * wrist
    M[:, 1, 3] = M[:, 3, 1] = l5 + swing + wrist
    M[:, 2, 2], M[:, 3, 3] = l3 + l5 + 2.0 * wrist, l5
    M[:, 2, 3] = M[:, 3, 2] = l5 + wrist
    return M


TABLE4 = printed_table("prrrp", "table4")
METHOD_NAMES = {"least_squares": "least squares", "adaline": "Adaline", "hopfield": "Hopfield", "kalman": "Kalman"}
PERIOD = 0.02  # s
LAMBDAS = tuple(f"λ{k}" for k in range(1, 9))
UNKNOWNS = Unknowns(LAMBDAS)
# Table 3 in our parameters, whose link frames are at the far end of each link.
FORMULAS = dict(
    zip(
        LAMBDAS,
        (
            "m1 + m2 + m3 + m4",
            "Izz2 + 2*l2*mx2 + l2**2*(m2 + m3 + m4 + m5)",
            "Izz3 + 2*l3*mx3 + l3**2*(m3 + m4 + m5)",
            "l2*(mx3 + l3*(m3 + m4 + m5))",
            "Izz4 + Izz5 + 2*l4*(mx4 + mx5) + l4**2*(m4 + m5)",
            "l2*(mx4 + mx5 + l4*(m4 + m5))",
            "l3*(mx4 + mx5 + l4*(m4 + m5))",
            "m5",
        ),
        strict=True,
    )
)
# Not printed: the noise of the encoders (m, rad), the motion, and all settings of the four methods.
NOISE = 1e-4
KNOTS = (
    (0, 1.2, -0.8, 0.9, -1.1, 0.6, -0.4, 1.0, -0.7, 0.5, 0),
    (0, -1.0, 1.3, -0.6, 0.8, -1.2, 1.1, -0.5, 0.9, -0.8, 0),
    (0, 0.8, 0.9, -1.3, 0.5, 1.2, -1.0, 0.7, -1.2, 0.6, 0),
)  # rad


@dataclass(frozen=True)
class MixedMotion:
    """Sinusoids on the prismatic joints; on the others quintics of `segment` seconds, at rest at every knot."""

    segment: float = 1.0

    @property
    def times(self) -> Array:
        return np.arange(0.0, 10.0 * self.segment, PERIOD)

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        joints = [_sine(t, 0.1, 0.3), *(self._quintics(t, knots) for knots in KNOTS), _sine(t, 0.06, 0.5)]
        q, dq, ddq = (np.column_stack(parts) for parts in zip(*joints, strict=True))
        return q, dq, ddq

    def _quintics(self, t: Array, knots: tuple[float, ...]) -> tuple[Array, Array, Array]:
        k, T = np.array(knots), self.segment
        i = np.minimum((t // T).astype(int), len(k) - 2)
        s, d = (t - i * T) / T, k[i + 1] - k[i]
        q = k[i] + d * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)
        return q, d * (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / T, d * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / T**2


def _sine(t: Array, amplitude: float, hertz: float) -> tuple[Array, Array, Array]:
    w = 2.0 * np.pi * hertz
    return amplitude * np.sin(w * t), amplitude * w * np.cos(w * t), -amplitude * w**2 * np.sin(w * t)


def stack_rows(Y: Array, tau: Array) -> RegressionData:
    """Return rows over the eight λ, one group per joint.

    Args:
        Y: Regressor, shape (samples, 5, 8).
        tau: Torques [N m, N], shape (samples, 5).
    """
    names = ("d1", "theta2", "theta3", "theta4", "d5")
    return RegressionData.from_arrays(names, range(8), list(Y.transpose(1, 0, 2)), list(tau.T), 8, PERIOD)


class Lab:
    """The robot and its measurements."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.robot = sy.load_robot("prrrp")
        self.truth = sy.Model.nominal(self.robot)
        self.base = sy.base_parameters(self.robot)
        self.own = PaperParameters.of(FORMULAS, self.base)
        self.true = self.own.values(self.truth.theta)

    def log(self, segment: float = 1.0, noise: float = 0.0, seed: int = 0) -> sy.Log:
        """Return the motion with exact torques; noisy positions are differentiated twice.

        Args:
            segment: Duration of a quintic [s].
            noise: Standard deviation of the positions [rad, m].
            seed: Seed of the noise.
        """
        motion = MixedMotion(segment)
        t = motion.times
        q, dq, ddq = motion.sample(t)
        tau = self.truth.torque(q, dq, ddq)
        if noise:
            q = q + noise * np.random.default_rng(seed).normal(size=q.shape)
            dq = np.gradient(q, t, axis=0)
            ddq = np.gradient(dq, t, axis=0)
        return sy.Log(self.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=tau)

    def rows(self, log: sy.Log) -> RegressionData:
        return stack_rows(regressor(log.q, np.asarray(log.dq), np.asarray(log.ddq)), np.asarray(log.tau))

    @cached_property
    def clean(self) -> RegressionData:
        return self.rows(self.log())

    @cached_property
    def noisy(self) -> RegressionData:
        return self.rows(self.log(noise=NOISE))

    def experiment(self, log: sy.Log) -> Experiment:
        """Return a `log` for estimators that simulate."""
        return Experiment.from_logs(self.robot, self.truth.terms, log, preparation=sy.Preparation(cutoff_hz=8.0))

    @property
    def prior(self) -> Prior:
        """Start of the filters: 1.3 times the truth, with an uncertainty of 30 %."""
        return Prior(1.3 * self.truth.theta)

    @cache  # noqa: B019  (a laboratory lives as long as its run)
    def run_filter(self, start: Literal["prior", "least-squares"] = "prior") -> Estimate:
        """Run our extended Kalman filter on the noisy log, with this `start`."""
        experiment = self.experiment(self.log(noise=NOISE))
        return ExtendedKalman(tuning=Tuning(start=start)).fit(experiment, self.base, self.prior)

    def percent(self, values: Array) -> float:
        """Return the mean relative error of the eight `values` [%]."""
        return float(np.mean(100.0 * np.abs(values - self.true) / self.true))

    @cache  # noqa: B019  (a laboratory lives as long as its run)
    def model(self, method: str) -> sy.Model:
        """Return the model of a column of Table 4, by its `method`."""
        return self.with_lambdas(TABLE4.numbers(method))

    def with_lambdas(self, values: Array) -> sy.Model:
        """Return a model with any eight λ, the `values`.

        λ6 and λ7 are l2 and l3 times the same moment. If they are not in that ratio no robot with the paper's lengths
        has them,
        but one with another l2 does: lengths enter the torques only through the λ.
        """
        robot = _with_upper_arm(self.robot, self.robot.lengths["l3"] * float(values[5] / values[6]))
        own = PaperParameters.of(FORMULAS, sy.base_parameters(robot))
        return own.model(values, sy.Model(robot, sy.terms(robot), self.truth.theta))


def _with_upper_arm(robot: sy.Robot, length: float) -> sy.Robot:
    one, upper, fore, *rest = robot.links
    far = np.array([length, 0.0, 0.0])
    links = (one, replace(upper, frame_translation=far), replace(fore, translation=far), *rest)
    return replace(robot, links=links, lengths={**robot.lengths, "l2": length})
