"""Noise-free motions in closed form, for any robot with joint terms of every kind."""

from __future__ import annotations

from functools import cache

import numpy as np
from oracles import public_robot_path

from steelyard.dynamics import Dynamics
from steelyard.parameters import Coulomb, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Scheme, make_scheme, paper_motion
from steelyard.robot import Robot, load_robot
from steelyard.robot.library import builtin_names
from steelyard.signals.log import Log

PANDA_ARM = [f"panda_joint{k}" for k in range(1, 8)]
ROBOTS = (*builtin_names(), "ur10", "panda")


@cache
def robot_of(name: str) -> Robot:
    if name in builtin_names():
        return load_robot(name)
    return load_robot(public_robot_path(name), joints=PANDA_ARM if name == "panda" else None)


class Case:
    """A robot with smooth friction, springs, offsets and rotors, and random parameters."""

    def __init__(self, name: str) -> None:
        self.robot = robot_of(name)
        self.terms = terms(self.robot, "rotor", "viscous", Coulomb(smooth=1.0), "offset", "spring")
        self.base = base_parameters(self.robot, self.terms)
        self.dynamics = Dynamics(self.robot, self.terms)
        links = self.robot.inertial_parameters
        self.theta = np.concatenate([links, np.random.default_rng(1).uniform(0.5, 2.0, len(self.terms))])
        self.beta = self.base.values(self.theta)

    def log(self, period: float, seconds: float, seed: int = 0) -> Log:
        """Starts in motion, away from zero."""
        t = period * np.arange(round(seconds / period) + 1)
        rng = np.random.default_rng(seed)
        n = self.robot.dof
        size = np.array([0.6 if j.kind == "revolute" else 0.3 for j in self.robot.joints])
        rate = 2.0 * np.pi * rng.uniform(0.2, 1.6, (6, n))
        a = rng.normal(size=(6, n)) * size / np.sqrt(6.0)
        angle = t[:, None, None] * rate + rng.uniform(0.0, 2.0 * np.pi, (6, n))
        q, dq, ddq = a * np.sin(angle), a * rate * np.cos(angle), -a * rate**2 * np.sin(angle)
        q, dq, ddq = q.sum(axis=1), dq.sum(axis=1), ddq.sum(axis=1)
        tau = self.dynamics.inverse_dynamics(q, dq, ddq, self.theta)
        return Log(self.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=tau)

    def data(self, scheme: str | Scheme, log: Log, **options) -> RegressionData:
        motions = paper_motion(log)
        return make_scheme(scheme).data(self.dynamics, self.base, lambda: motions, **options)

    def rows(self, scheme: str | Scheme, log: Log, **options) -> tuple[np.ndarray, np.ndarray]:
        """All rows over the base columns, [A] and y."""
        return stacked(self.data(scheme, log, **options), self.base.independent)


def stacked(data: RegressionData, independent) -> tuple[np.ndarray, np.ndarray]:
    place = {c: k for k, c in enumerate(independent)}
    A, y = [], []
    for block in data.blocks():
        full = np.zeros((len(block.y), len(place)))
        full[:, [place[int(c)] for c in data.equations[block.equation].columns]] = block.A
        A.append(full)
        y.append(block.y)
    return np.vstack(A), np.concatenate(y)


def solved(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares with columns scaled, so that units do not cost digits."""
    scale = np.linalg.norm(A, axis=0)
    return np.linalg.lstsq(A / scale, y, rcond=None)[0] / scale


@cache
def case(name: str) -> Case:
    return Case(name)
