"""Robots in a batch move as each would alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_robots import block, double_pendulum, model_of

from steelyard.dynamics.model import Model
from steelyard.robot import load_robot
from steelyard.simulation import PD, ComputedTorque, simulate

# One robot and a batch run the same formulas with the same step; their machine code may differ in where a
# multiplication and an addition are fused, which is rounding.
SAME = 1e-12


def _scattered(model: Model, robots: int, seed: int = 0) -> np.ndarray:
    return model.theta * np.random.default_rng(seed).uniform(0.9, 1.1, (robots, 1))


@pytest.mark.parametrize("robots", [2, 7, 8, 33, 70])
def test_a_batch_equals_its_robots_one_by_one(robots):
    model = Model.nominal(load_robot("irp6"))
    theta = _scattered(model, robots)
    controller = PD.for_model(model, bandwidth_rad_s=20.0)
    options = {"reference": [0.3, 0.2, -0.2], "duration": 0.1, "record_every": 10, "step": 1e-3}
    batch = simulate(model, controller, theta=theta, **options)
    assert batch.q.shape == (robots, 11, 3)
    for robot in {0, robots // 2, robots - 1}:
        single = simulate(model, controller, theta=theta[robot], **options)
        assert single.q.shape == (11, 3)
        for name in ("q", "dq", "tau"):
            np.testing.assert_allclose(getattr(batch, name)[robot], getattr(single, name), rtol=SAME, atol=SAME)
        np.testing.assert_allclose(batch.ddq[robot], single.ddq, rtol=1e-9, atol=1e-9)


def test_the_number_of_threads_and_repetition_change_nothing():
    model = Model.nominal(load_robot("rotradi"))
    options = {"theta": _scattered(model, 300), "duration": 0.1, "record_every": 50, "smoothing": 0.05}
    torque = np.array([1.0, 2.0, 0.1])
    one = simulate(model, torque, threads=1, **options)
    for threads in (2, 3):
        assert np.array_equal(simulate(model, torque, threads=threads, **options).q, one.q)


def test_simulations_may_run_side_by_side():
    model = Model.nominal(load_robot("rotradi"))
    rows = np.random.default_rng(0).normal(size=(8, 3))

    def run(row):
        return simulate(model, row, duration=0.05, smoothing=0.1).q

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, rows))
    for row, q in zip(rows, together, strict=True):
        np.testing.assert_array_equal(q, run(row))


def test_each_robot_has_its_own_torques_and_start():
    model = model_of(block(mass=2.0))
    torque = np.arange(12.0)[:, None, None] * np.ones((12, 10, 1))
    run = simulate(model, torque, duration=1.0, step=0.1, q0=np.linspace(0.0, 1.0, 12)[:, None])
    expected = np.linspace(0.0, 1.0, 12) + 0.5 * np.arange(12.0) / 2.0
    np.testing.assert_allclose(run.q[:, -1, 0], expected, rtol=1e-13)


@pytest.mark.parametrize("friction", ["smooth", "stick"])
@pytest.mark.parametrize("method", ["rk4", "rk45"])
def test_every_method_accepts_a_batch(method, friction):
    model = model_of(double_pendulum(), "coulomb", values=(0.5, 0.2))
    theta = _scattered(model, 3)
    options = {"duration": 0.1, "step": 1e-3, "q0": [0.5, 0.2], "method": method, "friction": friction}
    drive = ComputedTorque.for_model(model, 10.0)
    batch = simulate(model, drive, reference=[0.0, 0.0], theta=theta, **options)
    single = simulate(model, drive, reference=[0.0, 0.0], theta=theta[2], **options)
    np.testing.assert_allclose(batch.q[2], single.q, rtol=SAME, atol=SAME)


def test_a_function_drives_every_robot_of_a_batch():
    model = model_of(block(mass=1.0))
    run = simulate(model, lambda t, q, dq: -4.0 * q, duration=0.5, q0=[[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(run.q[1] / run.q[0], 2.0, rtol=1e-12)
    np.testing.assert_allclose(run.q[2] / run.q[0], 3.0, rtol=1e-12)


@given(steps=st.integers(0, 23), hold=st.integers(1, 7), every=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_samples_and_torques_follow_the_schedule(steps, hold, every):
    model = model_of(block(mass=1.0))
    rows = -(-steps // hold)
    torque = np.arange(1.0, rows + 1.0)[:, None]
    options = {"duration": steps * 0.01, "step": 0.01, "control_period": hold * 0.01}
    full = simulate(model, torque, **options) if rows else simulate(model, [0.0], **options)
    some = simulate(model, torque, record_every=every, **options) if rows else full
    assert len(full.t) == steps + 1
    if rows:
        held = np.minimum(np.arange(steps + 1) // hold, rows - 1)
        np.testing.assert_array_equal(full.tau[:, 0], torque[held, 0])
        np.testing.assert_array_equal(some.q, full.q[::every])
        np.testing.assert_array_equal(some.t, full.t[::every])
        # A mass of 1 kg under piecewise constant forces: speeds are the sums of the forces.
        np.testing.assert_allclose(np.diff(full.dq[:, 0]), 0.01 * full.tau[:-1, 0], rtol=1e-9)
