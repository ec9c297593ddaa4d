"""The laboratory of Szabó & Szádeczky-Kardoss 2021: the arm, a motion for it, and noisy measurements."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property

import numpy as np

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.ground import Array
from steelyard.papers.own_parameters import OwnParameters
from steelyard.papers.paper import printed

TABLE2 = printed("szabo3r", "table2")
NOISE = np.array([0.5, 0.3, 0.7])  # N m
# The order in which the paper lists a link's parameters decides which one leads a combination.
ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m", "mx", "my", "mz")
# Not printed: five harmonics of 0.1 Hz, 10 s at 100 Hz, and these limits.
RATE = 100.0
LIMITS = {"q": (2.5, 1.2, 2.5), "dq": (3.0,) * 3, "ddq": (12.0,) * 3}
JOINTS = ("joint 1", "joint 2", "joint 3")
# Best of what a simplex search reached under the same limits, when the paper was first worked through.
SIMPLEX = 2.4e4
QUICK = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 4.0), repeats=1, iterations=30)
FULL = SearchSettings(starts=16, survivors=(4, 1), sharpness=(4.0, 4.0, 4.0), repeats=3)


def formula(expression: str) -> str:
    """An expression of Table 2 in our names: "m^(2) + 2 m^(2)s_x^(2)" is m2 + 2*mx2."""
    text = re.sub(r"m\^\((\d)\)s_(\w)\^\(\1\)", r"m\2\1", expression)
    text = re.sub(r"I_(\w\w)\^\((\d)\)|m\^\((\d)\)", lambda m: f"I{m[1]}{m[2]}" if m[1] else f"m{m[3]}", text)
    for theirs, ours in (("tau_sc", "Fsc"), ("tau_s", "Fs"), ("tau_v", "Fsv")):
        text = re.sub(rf"{theirs}\^\((\d)\)", rf"{ours}\1", text)
    return re.sub(r"(\d) m", r"\1*m", text)


class Lab:
    """The arm, a motion for it, and repeated measurements of that motion."""

    def __init__(self, fast: bool) -> None:
        self.fast, self.runs = fast, 30 if fast else 300
        self.robot = sy.load_robot("szabo3r")
        self.truth = sy.Model.nominal(self.robot)
        self.base = sy.base_parameters(self.robot, self.truth.terms, method="rref", order=ORDER)
        formulas = {
            key: formula(text) for key, text in zip(TABLE2.words("key"), TABLE2.words("expression"), strict=True)
        }
        self.own = OwnParameters.of(formulas, self.base)

    @cached_property
    def plan(self) -> sy.Plan:
        """The motion with the least Cond_F(LᵀL), the paper's criterion."""
        settings = QUICK if self.fast else FULL
        terms = self.truth.terms
        return sy.excite(
            self.robot, terms=terms, criterion="frobenius", harmonics=5, duration=10.0, rate=RATE, limits=LIMITS,
            search=settings,
        )  # fmt: skip

    @cached_property
    def clean(self) -> sy.Log:
        """The motion with its torques, without noise."""
        t = self.plan.trajectory.times(RATE)
        q, dq, ddq = self.plan.trajectory.sample(t)
        return sy.Log(self.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=self.truth.torque(q, dq, ddq))

    def noisy(self, seed: int) -> sy.Log:
        noise = np.random.default_rng(seed).normal(size=self.clean.q.shape) * NOISE
        return replace(self.clean, tau=np.asarray(self.clean.tau) + noise)

    @cached_property
    def L(self) -> Array:
        """The regressor's columns of the base parameters along the motion, `(samples, joints, 24)`."""
        signals = (self.clean.q, np.asarray(self.clean.dq), np.asarray(self.clean.ddq))
        return self.base.regressor_columns(self.truth.dynamics.torque_regressor(*signals))

    @cached_property
    def estimates(self) -> dict[str, Array]:
        """The paper's parameters by estimator, `(runs, 24)`."""
        logs = [self.noisy(seed) for seed in range(self.runs)]
        return {
            name: self.own.from_base([sy.fit_log(self.base, log, estimator=name).beta for log in logs])
            for name in ("ols", "wls")
        }

    @cached_property
    def covariances(self) -> dict[str, Array]:
        """Exact covariances of the paper's parameters by estimator, from the motion and the noise alone."""
        L, G = self.L, self.own.regrouping
        inverse = np.linalg.inv(np.einsum("tja,tjb->ab", L, L))
        ols = inverse @ np.einsum("tja,tjb,j->ab", L, L, NOISE**2) @ inverse
        wls = np.linalg.inv(np.einsum("tja,tjb,j->ab", L, L, NOISE**-2.0))
        return {"ols": G @ ols @ G.T, "wls": G @ wls @ G.T}
