"""Logs with and without the load, taken for one another: the load would weigh less than nothing."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.payload import weigh
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log


def test_exchanged_logs_are_refused_by_name() -> None:
    robot = load_robot("rotradi")
    bare = Model.nominal(robot)
    theta = np.array(bare.theta)
    last = robot.inertial_count - 10
    theta[last : last + 10] += 3.0 * np.array([1.0, 0.1, 0.0, 0.1, 0.02, 0.0, 0.03, -0.01, 0.0, 0.02])
    carrying = Model(robot, bare.terms, theta)
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 15.0, 0.01)
    w = 2.0 * np.pi / 15.0 * np.arange(1, 7)

    def log(model: Model) -> Log:
        a = rng.normal(size=(6, robot.dof)) * 0.4
        q, dq, ddq = np.sin(np.outer(t, w)) @ a, np.cos(np.outer(t, w)) * w @ a, -np.sin(np.outer(t, w)) * w**2 @ a
        tau = model.torque(q, dq, ddq)
        return Log(robot.joint_names, t, q, dq=dq, tau=tau + 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape))

    loaded, empty = log(carrying), log(bare)
    assert weigh(robot, loaded, empty).load.mass == pytest.approx(3.0, rel=0.1)  # noise of a hundredth
    with pytest.raises(SteelyardError, match="exchanged"):
        weigh(robot, empty, loaded)
