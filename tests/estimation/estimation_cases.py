"""Moving robots with known noise, for the tests of estimators."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import lfilter

from steelyard.dynamics import Dynamics
from steelyard.parameters import nominal_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.data import Block, RegressionData
from steelyard.robot.library import builtin


class Case:
    """A built-in robot with a periodic motion of five harmonics of 0.1 Hz, by default 10 s at 100 Hz."""

    def __init__(self, name: str, seconds: float = 10.0, seed: int = 0) -> None:
        self.robot = builtin(name)
        self.terms, values = nominal_terms(self.robot)
        self.theta = np.concatenate([self.robot.inertial_parameters, values])
        self.base = base_parameters(self.robot, self.terms)
        self.beta = self.base.values(self.theta)
        self.dynamics = Dynamics(self.robot, self.terms)
        self.Y = self.dynamics.torque_regressor(*motion(self.robot, seconds, seed))
        self.clean = self.Y @ self.theta
        self.sigma = 0.02 * np.std(self.clean, axis=0) * np.linspace(0.5, 2.0, self.robot.dof)

    @property
    def A(self) -> np.ndarray:
        """(samples, joints, base parameters)."""
        return self.Y[:, :, list(self.base.independent)]

    def noise(self, rng: np.random.Generator, rho: float = 0.0) -> np.ndarray:
        """Noise, white or of first order with correlation rho between samples, with the same variance."""
        return coloured(rng, self.clean.shape, rho) * self.sigma

    def data(self, noise: np.ndarray | float = 0.0, scale: float = 1.0) -> RegressionData:
        y = scale * (self.clean + noise)
        A = self.A
        joints = range(self.robot.dof)
        return RegressionData.from_arrays(
            self.robot.joint_names, self.base.independent, [A[:, j] for j in joints], [y[:, j] for j in joints],
            len(self.base.parameters), 0.01,
        )  # fmt: skip


def coloured(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> np.ndarray:
    """Noise of variance one, (samples, joints), of first order with correlation rho between samples."""
    n, joints = shape
    if rho == 0.0:
        return rng.normal(size=(n, joints))
    e = rng.normal(size=(n + 500, joints)) * np.sqrt(1.0 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], e, axis=0)[500:])


def motion(robot, seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(round(seconds * 100)) / 100.0
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)[:, None]
    unit = np.array([1.0 if joint.kind == "revolute" else 0.2 for joint in robot.joints])
    a = rng.normal(size=(5, robot.dof)) / np.sqrt(np.arange(1, 6))[:, None] * unit
    phase = t[:, None, None] * w + rng.uniform(0.0, 2.0 * np.pi, (5, robot.dof))
    q, dq, ddq = a * np.sin(phase), a * w * np.cos(phase), -a * w**2 * np.sin(phase)
    return q.sum(axis=1), dq.sum(axis=1), ddq.sum(axis=1)


def in_blocks(data: RegressionData, cuts: int, rng: np.random.Generator | None) -> RegressionData:
    """Cut the rows into blocks, shuffled if a generator is given."""
    blocks = [
        Block(b.equation, A, y)
        for b in data.blocks()
        for A, y in zip(np.array_split(b.A, cuts), np.array_split(b.y, cuts), strict=True)
    ]
    if rng is not None:
        blocks = [blocks[k] for k in rng.permutation(len(blocks))]
    return RegressionData(data.equations, data.parameters, lambda: blocks, data.period)


def without_columns(data: RegressionData, dropped: int) -> RegressionData:
    """Make one column a multiple of another, as for a motion with insufficient excitation."""
    blocks = []
    for b in data.blocks():
        A = b.A.copy()
        A[:, dropped] = 2.0 * A[:, dropped - 1]
        blocks.append(Block(b.equation, A, b.y))
    return RegressionData(data.equations, data.parameters, lambda: blocks, data.period)


def nothing(data: RegressionData) -> RegressionData:
    return RegressionData(data.equations, data.parameters, lambda: [], data.period)


@cache
def case(name: str) -> Case:
    return Case(name)
