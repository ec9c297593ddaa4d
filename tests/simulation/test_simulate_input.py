"""Invalid input is refused with a reason; divergence is detected and marked."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_robots import block, double_pendulum, model_of

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SimulationError
from steelyard.simulation import Ending, SimulationWarning, simulate


@pytest.fixture
def model() -> Model:
    return model_of(double_pendulum(), "viscous", values=(0.1, 0.1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": 1.0, "step": -1e-3}, "step must be a positive"),
        ({"duration": 1.0, "step": np.nan}, "step must be a positive"),
        ({"duration": -1.0}, "duration must be"),
        ({"duration": np.inf}, "duration must be"),
        ({"duration": 0.0015}, "not a whole number of steps"),
        ({}, "either `duration`"),
        ({"duration": 1.0, "times": [0.0, 1.0]}, "either `duration`"),
        ({"times": [0.0, 0.1, 0.3]}, "equal steps"),
        ({"times": [0.0, np.nan]}, "finite"),
        ({"duration": 1.0, "control_period": 0.0005}, "control_period 0.0005 s is not a whole"),
        ({"duration": 1.0, "control_period": 0.0}, "control_period must be a positive"),
        ({"duration": 1.0, "record_every": 0}, "record_every"),
        ({"duration": 1.0, "q0": [0.0, np.nan]}, "q0 must be finite; entry 1"),
        ({"duration": 1.0, "friction": "sticky"}, '"smooth" or "stick"'),
        ({"duration": 1.0, "method": "euler"}, '"rk4" or "rk45"'),
        ({"duration": 1.0, "break_away": 0.5}, "at least 1"),
        ({"duration": 1.0, "smoothing": 0.0}, "smoothing must be a positive"),
        ({"duration": 1.0, "reference": [0.0, 0.0]}, "needs a controller"),
    ],
)
def test_settings_are_checked(model, options, message):
    with pytest.raises(SimulationError, match=message):
        simulate(model, **options)


@pytest.mark.parametrize(
    ("drive", "options", "message"),
    [
        (np.zeros((10, 3)), {}, r"shape \(10, 3\); expected \(2,\) or \(100, 2\)"),
        (np.zeros((99, 2)), {}, r"shape \(99, 2\)"),
        (np.zeros(3), {}, "expected"),
        (None, {"q0": np.zeros(3)}, r"q0 has shape \(3,\); expected \(2,\)"),
        (None, {"theta": np.zeros((2, 5))}, "theta has shape"),
        (None, {"q0": np.zeros((3, 2)), "dq0": np.zeros((4, 2))}, "sizes differ: q0 3, dq0 4"),
    ],
)
def test_shapes_are_checked(model, drive, options, message):
    with pytest.raises(ShapeError, match=message):
        simulate(model, drive, duration=0.1, **options)


def test_a_missing_torque_is_named(model):
    torque = np.zeros((100, 2))
    torque[17, 1] = np.nan
    with pytest.raises(SimulationError, match="row 17, joint 2"):
        simulate(model, torque, duration=0.1)


@pytest.mark.parametrize("friction", ["smooth", "stick"])
def test_impossible_inertia_is_refused(model, friction):
    theta = np.stack([model.theta, model.theta])
    theta[1, 10:20] *= -1.0
    with pytest.raises(SimulationError, match="mass matrix of robot 1 is not positive definite"):
        simulate(model, duration=0.1, theta=theta, friction=friction)


def test_inertia_that_becomes_impossible_during_the_run_is_named():
    # The determinant of M is (I1 + m2 l²) I2 − (l h2 cos q2)²: with too large a first moment h2 it is positive only
    # while the pendulum is bent.
    model = model_of(double_pendulum((0.0, 0.0, 0.0)))
    theta = np.array([model.theta, model.theta])
    theta[1, 13] *= 2.0
    options = {"duration": 0.5, "theta": theta, "q0": [0.0, 1.5], "dq0": [0.0, -2.0]}
    with pytest.raises(
        SimulationError, match=r"Robot 1 diverged by t = 0\.\d+ s: its mass matrix is no longer positive"
    ):
        simulate(model, **options)
    run = simulate(model, throw=False, **options)
    assert list(run.outcome) == [Ending.COMPLETED, Ending.IMPOSSIBLE]


@pytest.mark.parametrize("method", ["rk4", "rk45"])
@pytest.mark.parametrize("friction", ["smooth", "stick"])
def test_divergence_is_found_and_named(method, friction):
    model = model_of(block(mass=1.0))
    theta = np.array([model.theta, model.theta / 100.0])  # 100 times lighter: leaves the bound first
    options = {"duration": 1.0, "step": 0.01, "theta": theta, "bound": 10.0, "method": method, "friction": friction}
    with pytest.raises(SimulationError, match=r"Robot 1 diverged by t = 0\.4[56] s.*±10"):
        simulate(model, [1.0], **options)
    run = simulate(model, [1.0], throw=False, **options)
    assert list(run.outcome) == [Ending.COMPLETED, Ending.DIVERGED]
    assert not run.ok
    assert run.stopped[1] == pytest.approx(0.45, abs=0.011)
    assert np.all(np.isfinite(run.q[0]))
    assert np.all(np.isfinite(run.q[1, run.t < run.stopped[1]]))
    assert np.all(np.isnan(run.q[1, run.t >= run.stopped[1]]))
    assert len(run.log(1)) == np.sum(run.t < run.stopped[1])
    assert len(run.log(0)) == len(run.t)


def test_negative_dry_friction_cannot_stick():
    model = model_of(block(), "coulomb", values=(-1.0,))
    with pytest.raises(SimulationError, match="Dry friction of robot 0 is negative"):
        simulate(model, duration=0.1, friction="stick")


@pytest.mark.parametrize("friction", ["smooth", "stick"])
def test_a_drive_that_fails_is_named(model, friction):
    with pytest.raises(SimulationError, match=r"returned \[nan +0\. *\] at t = 0\.05 s"):
        simulate(model, lambda t, q, dq: [np.nan if t > 0.0495 else 0.0, 0.0], duration=0.1, friction=friction)


def test_steps_too_long_for_the_friction_cause_a_warning():
    model = model_of(block(mass=0.1), "coulomb", values=(10.0,))
    with pytest.warns(SimulationWarning, match=r"shorten them to .* \(--rate\)"):
        simulate(model, duration=0.01)


def test_times_give_samples_and_hold(model):
    times = 5.0 + np.arange(11) * 0.02
    torque = np.random.default_rng(0).normal(size=(11, 2))
    run = simulate(model, torque, times=times, step=3e-3)
    np.testing.assert_allclose(run.t, times, rtol=1e-14)
    np.testing.assert_array_equal(run.tau, torque)
    same = simulate(model, torque, duration=0.2, step=0.02 / 7.0, control_period=0.02, record_every=7)
    np.testing.assert_allclose(run.q, same.q, rtol=1e-13)


def test_an_unknown_robot_of_the_batch_is_refused(model):
    with pytest.raises(SimulationError, match="no robot 1; the batch has 1"):
        simulate(model, duration=0.01).log(1)
