"""Wrong logs are refused: with and without the payload exchanged, or of another robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.payload import identify_payload
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot("ns16")
LOAD = 30.0 * np.array([1.0, 0.1, 0.0, 0.1, 0.02, 0.0, 0.03, -0.01, 0.0, 0.02])


def models() -> tuple[Model, Model]:
    """The bare arm, and the arm with a payload of 30 kg."""
    bare = Model.nominal(ROBOT)
    theta = np.array(bare.theta)
    theta[ROBOT.inertial_count - 10 : ROBOT.inertial_count] += LOAD
    return bare, Model(ROBOT, bare.terms, theta)


@pytest.fixture
def logged() -> Callable[[Model], Log]:
    """Returns a function that logs a random motion with 1 % of torque noise."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 15.0, 0.01)
    w = 2.0 * np.pi / 15.0 * np.arange(1, 7)

    def log(model: Model) -> Log:
        a = rng.normal(size=(6, ROBOT.dof)) * 0.4
        q, dq, ddq = np.sin(np.outer(t, w)) @ a, np.cos(np.outer(t, w)) * w @ a, -np.sin(np.outer(t, w)) * w**2 @ a
        tau = model.torque(q, dq, ddq)
        return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau + 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape))

    return log


def test_exchanged_logs_are_refused(logged: Callable[[Model], Log]) -> None:
    bare, carrying = models()
    loaded, empty = logged(carrying), logged(bare)
    assert identify_payload(ROBOT, loaded, empty).load.mass == pytest.approx(30.0, rel=0.1)  # 1 % of noise
    with pytest.raises(SteelyardError, match="exchanged"):
        identify_payload(ROBOT, empty, loaded)


def test_the_log_of_another_robot_is_named(logged: Callable[[Model], Log]) -> None:
    bare, carrying = models()
    theta = np.array(bare.theta)
    theta[10:20] *= 1.5  # a heavier upper arm, which no payload can explain
    stranger = replace(logged(Model(ROBOT, bare.terms, theta)), meta={"source": "/logs/stranger.csv"})
    loaded = replace(logged(carrying), meta={"source": "loaded.csv"})
    with pytest.raises(SteelyardError, match=r"'stranger.csv' and 'loaded.csv' are not of one robot"):
        identify_payload(ROBOT, loaded, stranger)
    with pytest.raises(SteelyardError, match=r"'stranger.csv' is not of the robot of the other logs"):
        identify_payload(ROBOT, loaded, [logged(bare), stranger, logged(bare)])
    with pytest.raises(SteelyardError, match=r"'stranger.csv' is not of the arm of the model"):
        identify_payload(ROBOT, stranger, arm=bare)
    assert identify_payload(ROBOT, loaded, arm=bare).load.mass == pytest.approx(30.0, rel=0.1)


def test_a_negative_mass_that_is_no_removed_body_is_not_called_exchanged(logged: Callable[[Model], Log]) -> None:
    bare, _ = models()
    theta = np.array(bare.theta)
    theta[ROBOT.inertial_count - 10 : ROBOT.inertial_count] -= LOAD * np.array(
        [1.0, 1.0, 1.0, 1.0, -4.0, 1.0, -4.0, 1.0, 1.0, -4.0]
    )
    with pytest.raises(SteelyardError, match="neither adding nor removing a body"):
        identify_payload(ROBOT, logged(Model(ROBOT, bare.terms, theta)), logged(bare))
