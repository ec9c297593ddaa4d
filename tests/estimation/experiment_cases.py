"""Robots simulated with their controllers, for the tests of estimators that simulate."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.estimation import Experiment
from steelyard.parameters import Coulomb, Viscous, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import load_robot
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation import PD, Controller, Sensors, Simulation, simulate

PENDULUM = Path(__file__).parents[1] / "compare" / "pendulum.yaml"


class Sines:
    """A reference of five harmonics."""

    def __init__(self, robot, frequency: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        unit = np.array([1.0 if joint.kind == "revolute" else 0.2 for joint in robot.joints])
        self.w = 2.0 * np.pi * frequency * np.arange(1, 6)[:, None]
        self.a = rng.normal(size=(5, robot.dof)) / np.arange(1, 6)[:, None] * unit
        self.phase = rng.uniform(0.0, 2.0 * np.pi, (5, robot.dof))

    def sample(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p = np.asarray(t)[:, None, None] * self.w + self.phase
        a, w = self.a, self.w
        q, dq, ddq = a * np.sin(p), a * w * np.cos(p), -a * w**2 * np.sin(p)
        return q.sum(axis=1), dq.sum(axis=1), ddq.sum(axis=1)


class LoopCase:
    """A built-in robot, or a pendulum, that follows sines with PD (or another controller) at `rate` Hz."""

    def __init__(
        self, name: str, seconds: float = 6.0, rate: float = 500.0, bandwidth_rad_s: float = 40.0, controller=PD,
        seed: int = 0, step: float = 1e-3, frequency: float = 0.2,
    ) -> None:  # fmt: skip
        self.robot = load_robot(PENDULUM) if name == "pendulum" else builtin(name)
        self.model = _szabo(self.robot) if name == "szabo3r" else Model.nominal(self.robot)
        self.terms, self.theta = self.model.terms, self.model.theta
        self.base = base_parameters(self.robot, self.terms)
        self.beta = self.base.values(self.theta)
        made = (
            controller.for_model(self.model, bandwidth_rad_s=bandwidth_rad_s)
            if isinstance(controller, type)
            else controller
        )
        self.controller: Controller = made
        self.reference = Sines(self.robot, frequency, seed)
        self.t = np.arange(round(seconds * rate)) / rate
        self.step = min(step, 1.0 / rate)
        self.run = self.simulate(self.reference)

    def simulate(self, reference: Sines) -> Simulation:
        q, dq, _ = reference.sample(self.t[:1])
        return simulate(
            self.model, self.controller, times=self.t, step=self.step, q0=q[0], dq0=dq[0], reference=reference
        )

    def log(self, position: float = 0.0, torque: float = 0.0, seed: int = 1, scale: float = 1.0) -> Log:
        """Log with sensor noise; `torque` is relative to each joint's torque, in units of 1/scale N m."""
        levels = tuple((torque * np.std(self.run.tau, axis=0)).tolist())
        log = self.run.log(sensors=Sensors(position_noise=position, torque_noise=levels, seed=seed))
        assert log.tau is not None
        return replace(log, dq=None, tau=scale * log.tau)

    def experiment(self, log: Log | None = None, scale: float = 1.0, **options) -> Experiment:
        """Create the experiment with the true controller and reference, except for `options`."""
        c = self.controller
        gains = {k: scale * getattr(c, k) for k in ("kp", "kd", "ki") if hasattr(c, k)}
        settings = {
            "controller": replace(c, **gains) if scale != 1.0 else c,
            "references": self.reference,
            "preparation": Preparation(cutoff_hz=20.0, decimation=5),
            **options,
        }
        return Experiment.from_logs(self.robot, self.terms, log or self.log(), **settings)


def _szabo(robot) -> Model:
    """Smoother friction than the paper's, whose arctangents of 500 s/rad need steps of 0.1 ms."""
    bound = terms(robot, Viscous(), Coulomb(smooth=0.05))
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, [0.5, 0.3, 0.2], [0.3, 0.2, 0.2]]))


@cache
def loop_case(name: str, **options) -> LoopCase:
    return LoopCase(name, **options)
