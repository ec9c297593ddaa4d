"""Break-away torques of simulated stiction, and friction that changes during a log."""

from __future__ import annotations

import re

import numpy as np
import pytest
from planted import RIGID, ROBOT, log_of, sweeps

from steelyard.check import check_log
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.friction import break_away, friction_drift
from steelyard.parameters.friction import AsymmetricCoulomb
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.simulation import simulate

# Section 5.2 of Kozłowski & Dutkiewicz 1996, N m.
STICTION = ((14.1, 14.1), (16.8, 10.6), (18.0, 14.1))
RATIO = 1.25  # static over sliding friction, arbitrary


@pytest.mark.parametrize(("joint", "way"), [(0, 1), (1, 1), (1, -1), (2, -1)])
def test_a_slow_ramp_finds_the_stiction(joint: int, way: int) -> None:
    sliding = np.array(STICTION).ravel() / RATIO
    plant = Model(ROBOT, terms(ROBOT, AsymmetricCoulomb()), np.concatenate([ROBOT.inertial_parameters, sliding]))
    hold = RIGID.gravity_torque(np.zeros((1, 3)))[0]
    truth = STICTION[joint][0 if way > 0 else 1]

    def ramp(t: float, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        torque = hold.copy()
        torque[joint] += way * truth * (0.8 + 0.4 * max(t - 0.25, 0.0))
        return torque

    run = simulate(plant, ramp, duration=1.0, step=4e-3, friction="stick", break_away=RATIO)
    found = break_away(run.log(), joint, RIGID)
    starts = found.forward if way > 0 else found.backward
    # The start is detected 0.2 mrad after the break-away, when the ramp is a few percent higher.
    np.testing.assert_allclose(np.abs(starts), truth, rtol=0.04)
    assert len(found.backward if way > 0 else found.forward) == 0


def test_a_joint_that_never_moves_has_no_break_away_torque() -> None:
    t = np.arange(0.0, 2.0, 0.01)
    log = Log(ROBOT.joint_names, t, np.zeros((200, 3)), tau=np.zeros((200, 3)))
    found = break_away(log, 0)
    assert np.isnan(found.means).all()
    with pytest.raises(SteelyardError, match="no torque"):
        break_away(Log(ROBOT.joint_names, t, np.zeros((200, 3))), 0)


def test_drift_of_friction_is_detected() -> None:
    plan = sweeps(0)
    steady = log_of(plan)
    assert not any(friction_drift(steady, _fitted(steady)).significant)
    share = (steady.t - steady.t[0]) / np.ptp(steady.t) - 0.5
    tau = steady.tau.copy()
    tau[:, 0] -= 3.0 * share * np.tanh(steady.dq[:, 0] / 0.01)
    warming = Log(steady.joints, steady.t, steady.q, dq=steady.dq, tau=tau)
    found = friction_drift(warming, _fitted(warming))
    assert found.significant == (True, False, False)
    assert found.change[0] == pytest.approx(-3.0, abs=4.0 * found.error[0])


def test_check_reports_the_drift() -> None:
    arm = load_robot("szabo3r")
    model = Model.nominal(arm)
    t = np.arange(0.0, 30.0, 0.01)
    w = 2 * np.pi * np.array([0.2, 0.5, 0.7])
    a, p = 0.3 / w[:, None] * np.ones((3, 3)), np.random.default_rng(0).uniform(0, 6, (3, 3))
    angle = t[:, None, None] * w[:, None] + p
    q, dq = (a * np.sin(angle)).sum(1), (a * w[:, None] * np.cos(angle)).sum(1)
    tau = model.torque(q, dq, -(a * w[:, None] ** 2 * np.sin(angle)).sum(1))
    tau = tau + 0.05 * np.random.default_rng(1).normal(size=q.shape) + 2.0 * np.tanh(dq / 0.01)
    quiet = check_log(arm, Log(arm.joint_names, t, q, dq=dq, tau=tau))
    assert quiet.of("warming") == ()
    tau[:, 1] -= (t / 30.0) * np.tanh(dq[:, 1] / 0.01)
    (entry,) = check_log(arm, Log(arm.joint_names, t, q, dq=dq, tau=tau)).of("warming")
    assert entry.joint == arm.joint_names[1]
    assert re.match(r"change of the friction of 'q2': -0\.[34]", entry.message)  # 1 N m of some 2.6 N m


def _fitted(log: Log) -> Model:
    """The simulated robot with fitted Coulomb and viscous friction, as an identification gives it."""
    bound = terms(ROBOT, "coulomb", "viscous")
    v = log.dq[:, 0]
    rest = log.tau[:, 0] - RIGID.torque(log.q, log.dq, np.gradient(log.dq, log.t, axis=0))[:, 0]
    dry, viscous = np.linalg.lstsq(np.column_stack([np.tanh(v / 0.01), v]), rest, rcond=None)[0]
    return Model(ROBOT, bound, np.concatenate([ROBOT.inertial_parameters, [dry, 0, 0, viscous, 0, 0]]))
