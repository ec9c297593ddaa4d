"""Logs like those of drives: rounded positions, no velocity, noisy torque; with known true parameters."""

from __future__ import annotations

from functools import cache

import numpy as np
from estimation_cases import coloured

from steelyard.dynamics import Dynamics
from steelyard.dynamics.model import Model
from steelyard.estimation import Estimate, make_estimator
from steelyard.estimation.linear.rounding_bias import Change, include_bias, rounding_shift
from steelyard.parameters import nominal_terms
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.observe import observe
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff, prepare

RATE = 500.0  # Hz
SECONDS = 20.0
# A prismatic joint has an encoder before a spindle of 10 mm per turn; a revolute one has it on the joint [m].
LEAD = 0.01
FRICTION = ("rotor", "viscous", "coulomb")


class LoggedCase:
    """A built-in robot with rotors and friction of its description, on a motion of five harmonics of 0.1 Hz.

    Dry friction is smoothed as in `identify`. Without described values, rotor, viscous and dry friction take a tenth
    of the torque each. The noise of the torque is 1 to 4 % of its standard deviation, by joint.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        self.robot = builtin(name)
        stated = [f"{t.kind}@{t.on}" + "".join(f":{k}={v}" for k, v in t.options) for t in self.robot.nominal_terms]
        self.terms = identification_terms(self.robot, stated or FRICTION)
        self.base = base_parameters(self.robot, self.terms)
        self.dynamics = Dynamics(self.robot, self.terms)
        self.t = np.arange(round(SECONDS * RATE)) / RATE
        self.motion = _motion(self.robot, self.t, seed)
        values = nominal_terms(self.robot)[1] if stated else self._term_values()
        self.theta = np.concatenate([self.robot.inertial_parameters, values])
        self.beta = self.base.values(self.theta)
        self.model = Model(self.robot, self.terms, self.theta)
        self.sigma = 0.02 * np.std(self.model.torque(*self.motion), axis=0) * np.linspace(0.5, 2.0, self.robot.dof)

    def _term_values(self) -> np.ndarray:
        """A tenth of each joint's torque for every term."""
        _, dq, ddq = self.motion
        inertias = np.concatenate([self.robot.inertial_parameters, np.zeros(len(self.terms))])
        bare = np.std(self.dynamics.inverse_dynamics(*self.motion, inertias), axis=0)
        sizes = {"Ia": np.std(ddq, axis=0), "Fv": np.std(dq, axis=0), "Fc": np.ones(self.robot.dof)}
        values = []
        for term, place in self.terms.with_coordinates:
            for column in term.columns:
                values.append(0.1 * bare[place.index] / sizes[column.symbol][place.index])
        return np.array(values)

    def log(self, rng: np.random.Generator, bits: int | None, rho: float) -> Log:
        """One run with `bits` per turn of the encoder (None: exact), with random positions between ticks."""
        q, dq, ddq = self.motion
        q = q + rng.uniform(-1e-3, 1e-3, self.robot.dof)
        tau = self.model.torque(q, dq, ddq) + self.sigma * coloured(rng, q.shape, rho)
        if bits is not None:
            step = self.steps(bits)
            q = np.rint(q / step) * step
        return Log(self.robot.joint_names, self.t, q, tau=tau)

    def steps(self, bits: int) -> np.ndarray:
        """Ticks in rad or m."""
        turn = np.array([2.0 * np.pi if j.kind == "revolute" else LEAD for j in self.robot.joints])
        return turn / 2.0**bits

    def fit(self, log: Log, estimator: str = "wls", widen: bool = True) -> Estimate:
        """Fit as in `identify`, before any constraint; `widen` includes the effect of rounding in the error bars."""
        settings = Preparation()
        cutoff_hz = chosen_cutoff([log], settings)

        def fit(change: Change = lambda one: one) -> Estimate:
            motions = tuple(prepare(change(log), settings, cutoff_hz))
            return make_estimator(estimator).fit(observe(self.dynamics, self.base, lambda: motions), self.base)

        estimate = fit()
        shift = rounding_shift([log], cutoff_hz, estimate.beta, lambda change: fit(change).beta) if widen else None
        return estimate if shift is None else include_bias(estimate, shift)


def _motion(robot, t: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)[:, None]
    unit = np.array([1.0 if joint.kind == "revolute" else 0.2 for joint in robot.joints])
    a = rng.normal(size=(5, robot.dof)) / np.sqrt(np.arange(1, 6))[:, None] * unit
    phase = t[:, None, None] * w + rng.uniform(0.0, 2.0 * np.pi, (5, robot.dof))
    q, dq, ddq = a * np.sin(phase), a * w * np.cos(phase), -a * w**2 * np.sin(phase)
    return q.sum(axis=1), dq.sum(axis=1), ddq.sum(axis=1)


@cache
def logged_case(name: str) -> LoggedCase:
    return LoggedCase(name)
