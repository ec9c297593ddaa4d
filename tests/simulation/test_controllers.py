"""Controllers agree with their closed forms, with torques held between control instants."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_robots import block, double_pendulum, model_of

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SimulationError
from steelyard.robot import load_robot
from steelyard.simulation import PD, ComputedTorque, PDGravity, effective_inertia, simulate


class Sines:
    """A smooth motion of all joints."""

    def __init__(self, joints: int, amplitude: float = 0.4) -> None:
        self.w, self.a = 1.0 + 0.3 * np.arange(joints), amplitude

    def sample(self, t):
        x = self.w * np.asarray(t)[:, None]
        return self.a * np.sin(x), self.a * self.w * np.cos(x), -self.a * self.w**2 * np.sin(x)


def test_pd_on_a_block_is_a_damped_spring():
    model = model_of(block(mass=2.0))
    w = 10.0
    run = simulate(model, PD.for_model(model, bandwidth_rad_s=w), reference=[1.0], duration=1.0, step=1e-4)
    closed = 1.0 - (1.0 + w * run.t) * np.exp(-w * run.t)
    # The held torque is late by half a period on average: an error of order w·h.
    np.testing.assert_allclose(run.q[:, 0], closed, atol=w * 1e-4)


def test_pd_tracking_converges_with_gravity_compensated():
    model = model_of(double_pendulum(), "viscous", values=(0.2, 0.1))
    run = simulate(model, PDGravity.for_model(model, bandwidth_rad_s=30.0), reference=[0.7, -0.4], duration=5.0)
    np.testing.assert_allclose(run.q[-1], [0.7, -0.4], atol=1e-9)
    sagging = simulate(model, PD.for_model(model, bandwidth_rad_s=30.0), reference=[0.7, -0.4], duration=5.0)
    stiffness = PD.for_model(model, bandwidth_rad_s=30.0).kp
    weight = model.dynamics.gravity_torque(sagging.q[-1], model.theta)
    np.testing.assert_allclose(stiffness * ([0.7, -0.4] - sagging.q[-1]), weight, atol=1e-6)


def test_computed_torque_with_the_true_model_makes_the_error_linear():
    model = model_of(double_pendulum(), "viscous", values=(0.2, 0.1))
    controller, reference = ComputedTorque.for_model(model, bandwidth_rad_s=10.0, damping=0.5), Sines(2)
    first, w, zeta = np.array([0.3, -0.2]), 10.0, 0.5
    wd = w * np.sqrt(1.0 - zeta**2)
    worst = []
    for period in (2e-3, 1e-3):
        q0, dq0, _ = (x[0] for x in reference.sample([0.0]))
        run = simulate(
            model,
            controller,
            reference=reference,
            duration=1.0,
            step=5e-4,
            control_period=period,
            q0=q0 + first,
            dq0=dq0,
        )
        decay = np.exp(-zeta * w * run.t) * (np.cos(wd * run.t) + zeta * w / wd * np.sin(wd * run.t))
        error = run.q - reference.sample(run.t)[0]
        worst.append(np.max(np.abs(error - first * decay[:, None])))
    assert worst[1] < 0.01 * np.max(np.abs(first))
    # The remaining error comes from holding the torque: it is of first order in the period.
    assert worst[0] / worst[1] == pytest.approx(2.0, abs=0.3)


def test_a_robot_with_friction_follows_a_motion():
    model = Model.nominal(load_robot("arm7"))
    reference = Sines(7)
    dq0 = reference.sample([0.0])[1][0]
    run = simulate(model, ComputedTorque.for_model(model, 20.0), reference=reference, duration=1.0, step=5e-4, dq0=dq0)
    error = np.abs(run.q - reference.sample(run.t)[0])
    assert np.max(error) < 2e-3


def test_torques_saturate():
    model = model_of(block(mass=1.0))
    run = simulate(model, PD([1e4], [10.0], limit=[2.0]), reference=[10.0], duration=0.5)
    np.testing.assert_array_equal(run.tau, 2.0)
    np.testing.assert_allclose(run.q[-1], 0.5 * 2.0 * 0.5**2, rtol=1e-12)


def test_a_python_function_is_called_once_per_control_period():
    model = model_of(double_pendulum())
    asked = []

    def torque(t, q, dq):
        asked.append(t)
        return -5.0 * q - 1.0 * dq

    options = {"duration": 0.1, "control_period": 5e-3, "q0": [0.4, 0.1]}
    run = simulate(model, torque, **options)
    np.testing.assert_allclose(asked, np.arange(21) * 5e-3, atol=1e-12)
    same = simulate(model, PD([5.0, 5.0], [1.0, 1.0]), reference=[0.0, 0.0], **options)
    np.testing.assert_allclose(run.q, same.q, atol=1e-13)
    held = run.tau[:-1].reshape(20, 5, 2)
    np.testing.assert_array_equal(held, held[:, :1] + np.zeros((1, 5, 1)))


def test_laws_run_on_plain_numbers_too():
    model = Model.nominal(load_robot("irp6"))
    controller = ComputedTorque.for_model(model, 10.0)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 3))
    torque = controller.law(list(q), list(dq), list(q), list(dq), list(ddq))
    np.testing.assert_allclose(np.array(torque, dtype=float), model.torque(q, dq, ddq), rtol=1e-12)


def test_effective_inertia_is_that_with_the_other_joints_free():
    model = model_of(double_pendulum((0.0, 0.0, 0.0)))
    for joint in range(2):
        tau = np.eye(2)[joint]
        acceleration = model.acceleration(np.zeros(2), np.zeros(2), tau)
        assert 1.0 / acceleration[joint] == pytest.approx(effective_inertia(model)[joint], rel=1e-12)


def test_controllers_refuse_wrong_arguments():
    model = model_of(double_pendulum())
    with pytest.raises(ShapeError, match="gains for 1 joints"):
        simulate(model, PD([1.0], [1.0]), reference=[0.0, 0.0], duration=0.1)
    with pytest.raises(SimulationError, match="needs a `reference`"):
        simulate(model, PD([1.0, 1.0], [1.0, 1.0]), duration=0.1)
    with pytest.raises(SimulationError, match="kp must not be negative"):
        PD([-1.0], [1.0])
    with pytest.raises(ShapeError, match="kd has shape"):
        PD([1.0, 1.0], [1.0, 1.0, 1.0])
    with pytest.raises(ShapeError, match="returned torques of shape"):
        simulate(model, lambda t, q, dq: [1.0], duration=0.1)
