"""The laboratory of Urrea & Pascal 2017: the robot, its eight λ, a motion for it, and noisy measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

import steelyard as sy
from steelyard.estimation import Estimate, Experiment, ExtendedKalman, Prior
from steelyard.papers.own_parameters import OwnParameters
from steelyard.papers.printed import printed
from steelyard.papers.prrrp.annexes import regressor
from steelyard.regression import RegressionData, Unknowns
from steelyard.robot.spatial import Array

TABLE4 = printed("prrrp", "table4")
METHODS = {"least_squares": "least squares", "adaline": "Adaline", "hopfield": "Hopfield", "kalman": "Kalman"}
PERIOD = 0.02  # s
LAMBDAS = tuple(f"λ{k}" for k in range(1, 9))
UNKNOWNS = Unknowns(LAMBDAS)
# Table 3 in our parameters, whose link frames stand at the far end of each link.
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
class Motion:
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


def stacked(Y: Array, tau: Array) -> RegressionData:
    """Rows over the eight λ, one group per joint."""
    names = ("d1", "theta2", "theta3", "theta4", "d5")
    return RegressionData.from_arrays(names, range(8), list(Y.transpose(1, 0, 2)), list(tau.T), 8, PERIOD)


class Lab:
    """The robot and what is measured on it."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.robot = sy.load_robot("prrrp")
        self.truth = sy.Model.nominal(self.robot)
        self.base = sy.base_parameters(self.robot)
        self.own = OwnParameters.of(FORMULAS, self.base)
        self.true = self.own.values(self.truth.theta)

    def log(self, segment: float = 1.0, noise: float = 0.0, seed: int = 0) -> sy.Log:
        """The motion with its exact torques; positions with noise are differentiated twice, as a reader must."""
        motion = Motion(segment)
        t = motion.times
        q, dq, ddq = motion.sample(t)
        tau = self.truth.torque(q, dq, ddq)
        if noise:
            q = q + noise * np.random.default_rng(seed).normal(size=q.shape)
            dq = np.gradient(q, t, axis=0)
            ddq = np.gradient(dq, t, axis=0)
        return sy.Log(self.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=tau)

    def rows(self, log: sy.Log) -> RegressionData:
        return stacked(regressor(log.q, np.asarray(log.dq), np.asarray(log.ddq)), np.asarray(log.tau))

    @cached_property
    def clean(self) -> RegressionData:
        return self.rows(self.log())

    @cached_property
    def noisy(self) -> RegressionData:
        return self.rows(self.log(noise=NOISE))

    def experiment(self, log: sy.Log) -> Experiment:
        """A log for estimators that simulate."""
        return Experiment.from_logs(self.robot, self.truth.terms, log, preparation=sy.Preparation(cutoff=8.0))

    @property
    def prior(self) -> Prior:
        """Where filters start: 1.3 times the truth."""
        return Prior(1.3 * self.truth.theta)

    @cached_property
    def filtered(self) -> Estimate:
        """Our extended Kalman filter on the noisy log, tuned from the data."""
        return ExtendedKalman().fit(self.experiment(self.log(noise=NOISE)), self.base, self.prior)

    def percent(self, values: Array) -> float:
        """Mean relative error of the eight."""
        return float(np.mean(100.0 * np.abs(values - self.true) / self.true))

    @cache  # noqa: B019  (a laboratory lives as long as its run)
    def model(self, method: str) -> sy.Model:
        """The model that Table 4 prints in a column."""
        return self.with_lambdas(TABLE4.numbers(method))

    def with_lambdas(self, values: Array) -> sy.Model:
        """A model with any eight λ.

        λ6 and λ7 are l2 and l3 times the same moment. Where they are not in that ratio no robot of the paper's lengths
        has them, but one with another l2 does: lengths enter the torques through the λ only.
        """
        robot = _with_upper_arm(self.robot, self.robot.lengths["l3"] * float(values[5] / values[6]))
        own = OwnParameters.of(FORMULAS, sy.base_parameters(robot))
        return own.model(values, sy.Model(robot, sy.terms(robot), self.truth.theta))


def _with_upper_arm(robot: sy.Robot, length: float) -> sy.Robot:
    one, upper, fore, *rest = robot.links
    far = np.array([length, 0.0, 0.0])
    links = (one, replace(upper, frame_translation=far), replace(fore, translation=far), *rest)
    return replace(robot, links=links, lengths={**robot.lengths, "l2": length})


def listed(values: Array, digits: int = 2) -> str:
    """Numbers in a sentence."""
    return ", ".join(f"{x:.{digits}g}" for x in values)
