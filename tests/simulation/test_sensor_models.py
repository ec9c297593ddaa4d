"""Sensors round, add noise and delay as specified."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_robots import double_pendulum, model_of

from steelyard.errors import SimulationError
from steelyard.signals.log import Log
from steelyard.simulation import Sensors, simulate


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    return simulate(model_of(double_pendulum()), rng.normal(size=(2000, 2)), duration=2.0, q0=[0.5, 0.2])


def test_perfect_sensors_give_the_truth(run):
    log = run.log()
    for name in ("t", "q", "dq", "ddq", "tau"):
        np.testing.assert_array_equal(getattr(log, name), getattr(run, name))
    perfect = run.log(sensors=Sensors())
    np.testing.assert_array_equal(perfect.q, run.q)
    np.testing.assert_array_equal(perfect.tau, run.tau)
    assert perfect.ddq is None


@given(st.floats(1e-7, 1e-2))
@settings(max_examples=30, deadline=None)
def test_encoders_give_whole_multiples_of_their_resolution(resolution):
    t = np.arange(50) * 0.01
    q = np.column_stack([np.sin(t), t**2])
    true = Log(("a", "b"), t, q, dq=q, tau=q)
    measured = Sensors(position_resolution=resolution).measure(true).q
    counts = measured / resolution
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert np.max(np.abs(measured - q)) <= resolution / 2.0 * (1.0 + 1e-9)


def test_resolution_may_differ_by_joint(run):
    log = run.log(sensors=Sensors(position_resolution=(0.0, 0.1), torque_resolution=0.5))
    np.testing.assert_array_equal(log.q[:, 0], run.q[:, 0])
    assert set(np.round(log.q[:, 1] / 0.1, 9) % 1.0) == {0.0}
    assert set(np.round(log.tau / 0.5, 9).ravel() % 1.0) == {0.0}


def test_noise_has_the_stated_strength(run):
    log = run.log(sensors=Sensors(position_noise=1e-3, velocity_noise=0.02, torque_noise=(0.5, 1.5)))
    # The standard deviation of a standard deviation from N samples is 1/√(2N): four of them here.
    slack = 4.0 / np.sqrt(2.0 * len(run.t))
    assert np.std(log.q - run.q, axis=0) == pytest.approx([1e-3, 1e-3], rel=slack)
    assert np.std(log.dq - run.dq, axis=0) == pytest.approx([0.02, 0.02], rel=slack)
    assert np.std(log.tau - run.tau, axis=0) == pytest.approx([0.5, 1.5], rel=slack)


def test_a_seed_repeats_and_another_does_not(run):
    noisy = Sensors(position_noise=1e-3, seed=3)
    np.testing.assert_array_equal(run.log(sensors=noisy).q, run.log(sensors=noisy).q)
    assert np.all(run.log(sensors=Sensors(position_noise=1e-3, seed=4)).q != run.log(sensors=noisy).q)
    more = Sensors(position_noise=1e-3, torque_noise=1.0, velocity_noise=1.0, seed=3)
    np.testing.assert_array_equal(run.log(sensors=more).q, run.log(sensors=noisy).q)


def test_robots_of_a_batch_have_independent_noise():
    model = model_of(double_pendulum())
    batch = simulate(model, duration=0.1, q0=[[0.5, 0.2]] * 2, sensors=Sensors(position_noise=1e-3))
    np.testing.assert_allclose(batch.q[0], batch.q[1], rtol=1e-12)
    assert np.all(batch.log(0).q != batch.log(1).q)


def test_delays_shift_the_signals(run):
    log = run.log(sensors=Sensors(position_delay=0.005, torque_delay=0.003, velocity_delay=0.0005))
    np.testing.assert_allclose(log.q[5:], run.q[:-5], atol=1e-12)
    np.testing.assert_array_equal(log.q[0], run.q[0])
    np.testing.assert_array_equal(log.tau[3:], run.tau[:-3])
    np.testing.assert_allclose(log.dq[1:], 0.5 * (run.dq[1:] + run.dq[:-1]), atol=1e-12)
    # Torque is piecewise constant: a delay of half a sample acts like a whole one.
    half = run.log(sensors=Sensors(torque_delay=0.0005))
    np.testing.assert_array_equal(half.tau[1:], run.tau[:-1])


def test_velocity_is_the_backward_difference_of_counts(run):
    resolution = 2.0 * np.pi / 1_024_000
    sensors = Sensors(position_resolution=resolution, velocity="backward", acceleration="backward", sample_period=2e-3)
    log = run.log(sensors=sensors)
    assert len(log) == 1001
    np.testing.assert_array_equal(log.dq[1:], np.diff(log.q, axis=0) / np.diff(log.t)[:, None])
    assert np.all(log.dq[0] == 0.0)
    steps = log.dq[1:] * np.diff(log.t)[:, None] / resolution
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    np.testing.assert_array_equal(log.ddq[1:], np.diff(log.dq, axis=0) / np.diff(log.t)[:, None])


def test_readings_are_held_between_samples(run):
    log = run.log(sensors=Sensors(sample_period=0.01, hold=True))
    assert len(log) == len(run.t)
    np.testing.assert_array_equal(log.q, run.q[np.arange(2001) // 10 * 10])


def test_impossible_sensors_are_refused(run):
    with pytest.raises(SimulationError, match="position_noise must be zero or positive"):
        Sensors(position_noise=-1.0)
    with pytest.raises(SimulationError, match="torque_delay"):
        Sensors(torque_delay=np.nan)
    with pytest.raises(SimulationError, match="whole number of simulated samples"):
        run.log(sensors=Sensors(sample_period=0.0015))
    with pytest.raises(SimulationError, match="has 3 entries; the robot has 2"):
        run.log(sensors=Sensors(position_noise=(1.0, 1.0, 1.0)))
    with pytest.raises(SimulationError, match='"measured" or "backward"'):
        Sensors(velocity="forward")
