"""Playing a log's torques to a model: a true model comes back to where the robot was, an impossible one does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from papers.rotradi_experiment import arm, clock, identification_torque, play_torque
from simulation.simulated_robots import double_pendulum, model_of

from steelyard.assessment.replay import possibility, replay
from steelyard.dynamics import Model
from steelyard.errors import LogError
from steelyard.signals.log import Log


@pytest.fixture(scope="module")
def log() -> Log:
    return play_torque(arm().truth, identification_torque(0), clock(0.5), method="rk45").log()


def test_the_truth_follows_its_own_log(log: Log) -> None:
    shown = replay(arm().truth, log)
    assert shown.finished
    assert shown.position_error is not None
    # Tolerances of 1e-6 per step, over half a second.
    assert shown.position_error.max() < 1e-3
    assert_allclose(shown.position_rmse, shown.position_error / np.sqrt(len(log)))
    # Joint 3 moves throughout; where the others hardly move, the bare sign of the prediction is not the plant's.
    assert shown.torque_rmse[2] < 1e-9
    assert np.all(shown.torque_rmse[:2] < (8.2, 6.3))
    assert shown.to_json()["finished"] is True


def test_fixed_steps_agree_with_adaptive_ones(log: Log) -> None:
    heavier = replace(arm().truth, theta=arm().truth.theta * 1.02)
    adaptive, fixed = (replay(heavier, log, method=m).position_error for m in ("rk45", "rk4"))
    assert_allclose(fixed, adaptive, rtol=1e-3)
    assert adaptive.max() > 0.01


def test_divergence_is_missing_with_a_reason() -> None:
    """Negative friction blows a pendulum up; a negative inertia cannot even start."""
    robot = double_pendulum()
    truth = model_of(robot, "viscous", values=(0.1, 0.1))
    t = 0.01 * np.arange(601)
    quiet = Log(robot.joint_names, t, np.full((601, 2), 0.3), tau=np.zeros((601, 2)))
    blown = replay(
        Model(robot, truth.terms, np.array([*truth.theta[:-2], -3.0, -3.0])), quiet, method="rk4", bound=50.0
    )
    assert not blown.finished
    assert blown.position_error is None
    assert "diverged at t =" in blown.reason
    assert np.isnan(blown.q[-1]).all()
    assert np.isfinite(blown.q[:10]).all()
    impossible = replay(Model(robot, truth.terms, -truth.theta), quiet)
    assert impossible.position_error is None
    assert "positive definite" in impossible.reason


def test_possibility_tells_simulable_from_possible() -> None:
    truth = arm().truth
    assert possibility(truth).possible
    theta = np.array(truth.theta)
    theta[20 + 6] -= 0.2  # Iyy of link 3, below what its other moments allow
    shown = possibility(Model(truth.robot, truth.terms, theta))
    assert shown.simulable
    assert not shown.possible
    theta[-1] = -1.0
    assert possibility(Model(truth.robot, truth.terms, theta)).negative == ("Fc3",)


def test_logs_without_torque_or_with_gaps_are_refused(log: Log) -> None:
    with pytest.raises(LogError, match="no torque"):
        replay(arm().truth, replace(log, tau=None))
    with pytest.raises(LogError, match="gaps"):
        replay(arm().truth, replace(log, segments=((0, 100), (100, len(log)))))
