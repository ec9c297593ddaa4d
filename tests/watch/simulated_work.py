"""A simulated robot at work: motions and rests, with torques that differ slightly from those of the model."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics import Model
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.watch.batch import SampleBatch
from steelyard.watch.uncertain_model import UncertainModel, load_uncertain_model

RATE_HZ = 100.0


def truth() -> Model:
    """Built-in seven-axis arm."""
    return Model.nominal(builtin("arm7"))


def inexact_model(error: float = 0.01, seed: int = 0) -> UncertainModel:
    """Model with a relative error in every parameter."""
    true = truth()
    rng = np.random.default_rng(seed)
    return load_uncertain_model(
        Model(true.robot, true.terms, true.theta * (1.0 + error * rng.normal(size=len(true.theta))))
    )


def approximate_model(seed: int = 1) -> Model:
    """Built-in three-axis arm with typical identification errors: 0.3 % for links, 3 % for friction."""
    true = Model.nominal(builtin("rotradi"))
    errors = np.where(np.arange(len(true.theta)) < true.robot.inertial_count, 0.003, 0.03)
    return Model(
        true.robot, true.terms, true.theta * (1.0 + errors * np.random.default_rng(seed).normal(size=len(errors)))
    )


def work_motion(seconds: float, seed: int, noise: float = 0.3) -> SampleBatch:
    """Smooth motions to random postures with rests between them, and torques with heavy-tailed noise.

    Two seconds of motion alternate with one second of rest. The measured torque is the true torque plus noise.
    """
    true, rng = truth(), np.random.default_rng(seed)
    n = true.robot.dof
    count = int(seconds / 3.0) + 2
    postures = rng.uniform(-1.0, 1.0, (count, n))
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    k = (t / 3.0).astype(int)
    s = np.clip((t - 3.0 * k) / 2.0, 0.0, 1.0)[:, None]
    step = postures[k + 1] - postures[k]
    q = postures[k] + step * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)
    dq = step * (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / 2.0
    ddq = step * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / 4.0
    tau = true.torque(q, dq, ddq) + noise * rng.standard_t(5, size=q.shape)
    return SampleBatch(t, q, dq + 1e-4 * rng.normal(size=q.shape), tau, fresh=True)


def as_log(batch: SampleBatch) -> Log:
    return Log(truth().robot.joint_names, batch.t, batch.q, dq=batch.dq, tau=batch.tau)
