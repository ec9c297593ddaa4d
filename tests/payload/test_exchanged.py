"""Logs that are taken for what they are not: with and without the load exchanged, or of another robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.payload import weigh
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot("ns16")
LOAD = 30.0 * np.array([1.0, 0.1, 0.0, 0.1, 0.02, 0.0, 0.03, -0.01, 0.0, 0.02])


def models() -> tuple[Model, Model]:
    """The bare arm, and the arm that carries thirty kilograms."""
    bare = Model.nominal(ROBOT)
    theta = np.array(bare.theta)
    theta[ROBOT.inertial_count - 10 : ROBOT.inertial_count] += LOAD
    return bare, Model(ROBOT, bare.terms, theta)


@pytest.fixture
def logged() -> Callable[[Model], Log]:
    """Logs of motions that are never twice the same, with torque noise of a hundredth."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 15.0, 0.01)
    w = 2.0 * np.pi / 15.0 * np.arange(1, 7)

    def log(model: Model) -> Log:
        a = rng.normal(size=(6, ROBOT.dof)) * 0.4
        q, dq, ddq = np.sin(np.outer(t, w)) @ a, np.cos(np.outer(t, w)) * w @ a, -np.sin(np.outer(t, w)) * w**2 @ a
        tau = model.torque(q, dq, ddq)
        return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau + 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape))

    return log


def test_exchanged_logs_are_refused_by_name(logged: Callable[[Model], Log]) -> None:
    bare, carrying = models()
    loaded, empty = logged(carrying), logged(bare)
    assert weigh(ROBOT, loaded, empty).load.mass == pytest.approx(30.0, rel=0.1)  # noise of a hundredth
    with pytest.raises(SteelyardError, match="exchanged"):
        weigh(ROBOT, empty, loaded)


def test_a_log_of_another_robot_is_refused_by_name(logged: Callable[[Model], Log]) -> None:
    bare, carrying = models()
    theta = np.array(bare.theta)
    theta[10:20] *= 1.5  # the upper arm is heavier: no load makes up for that
    stranger = replace(logged(Model(ROBOT, bare.terms, theta)), meta={"source": "/logs/stranger.csv"})
    loaded = replace(logged(carrying), meta={"source": "loaded.csv"})
    with pytest.raises(SteelyardError, match=r"'stranger.csv' and 'loaded.csv' are not of one robot"):
        weigh(ROBOT, loaded, stranger)
    with pytest.raises(SteelyardError, match=r"'stranger.csv' is not of the robot that made the others"):
        weigh(ROBOT, loaded, [logged(bare), stranger, logged(bare)])
    with pytest.raises(SteelyardError, match=r"'stranger.csv' is not of the arm whose model is given"):
        weigh(ROBOT, stranger, arm=bare)
    assert weigh(ROBOT, loaded, arm=bare).load.mass == pytest.approx(30.0, rel=0.1)


def test_less_than_nothing_that_is_no_body_either_is_not_called_exchanged(logged: Callable[[Model], Log]) -> None:
    bare, _ = models()
    theta = np.array(bare.theta)
    theta[ROBOT.inertial_count - 10 : ROBOT.inertial_count] -= LOAD * np.array(
        [1.0, 1.0, 1.0, 1.0, -4.0, 1.0, -4.0, 1.0, 1.0, -4.0]
    )
    with pytest.raises(SteelyardError, match="no body, put on or taken off"):
        weigh(ROBOT, logged(Model(ROBOT, bare.terms, theta)), logged(bare))
