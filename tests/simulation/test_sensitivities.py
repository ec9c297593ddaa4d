"""Derivatives of closed loops against finite differences, and controllers with states against an explicit loop."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_robots import block, double_pendulum, model_of

from steelyard.errors import SimulationError
from steelyard.parameters import Coulomb
from steelyard.simulation import PD, PID, ComputedTorque, Controller, simulate
from steelyard.simulation.command import command_of, schedule_of
from steelyard.simulation.plant import plant_of
from steelyard.simulation.sensitivities import Start, run_loop

T = np.arange(400) * 2e-3


def pendulum():
    return model_of(double_pendulum(), "viscous", Coulomb(smooth=0.1), values=(0.3, 0.2, 0.5, 0.4))


def wave(t):
    q = np.stack([np.sin(3.0 * t), np.cos(2.0 * t)], axis=1)
    dq = np.stack([3.0 * np.cos(3.0 * t), -2.0 * np.sin(2.0 * t)], axis=1)
    return q, dq, np.zeros_like(q)


class Wave:
    sample = staticmethod(wave)


def controllers(model) -> dict[str, Controller]:
    gains = np.array([60.0, 25.0]), np.array([6.0, 3.0])
    return {
        "pd": PD(*gains),
        "saturated": PD(*gains, limit=8.0),
        "pid": PID(*gains, ki=np.array([80.0, 40.0])),
        "lag": PID(*gains, ki=np.array([80.0, 40.0]), lag=6e-3),
        "computed torque": ComputedTorque(np.full(2, 100.0), np.full(2, 20.0), model=model),
    }


@pytest.mark.parametrize("name", ["pd", "saturated", "pid", "lag", "computed torque"])
def test_sensitivities_are_the_limit_of_differences(name: str) -> None:
    model = pendulum()
    controller = controllers(model)[name]
    plant = plant_of(model.robot, model.terms, 1e-2)
    schedule = schedule_of(None, T, 1e-3, 2e-3, 1)
    table = command_of(controller, Wave(), schedule, 2).table
    q0, dq0 = np.array([0.1, 0.9]), np.array([2.0, 0.1])
    chosen = [1, 3, 6, 10, 13, 16, 20, 21, 22, 23]  # moments, inertias, a mass, friction
    directions = plant.lumped(np.eye(len(model.theta))[chosen])
    states = controller.first_states(dq0[None])[0]
    start = Start.along(q0, dq0, states, plant.lumped(model.theta[None])[0], directions)
    exact = run_loop(plant, controller, schedule, table, start)
    h = 1e-5
    theta = np.vstack([model.theta + s * h * np.eye(len(model.theta))[chosen] for s in (1.0, -1.0)])
    sim = simulate(model, controller, times=T, step=1e-3, q0=q0, dq0=dq0, reference=Wave(), theta=theta)
    for signal in ("q", "dq", "ddq", "tau"):
        runs = getattr(sim, signal)
        differences = (runs[: len(chosen)] - runs[len(chosen) :]) / (2.0 * h)
        slopes = exact[signal][..., 2:]
        # Central differences: rounding 1e-16 · |x|/h ~ 1e-10 and a cubic term of h² times the third derivative. Some
        # steps of the integrator contain the kink of the torque at saturation.
        scale = np.abs(differences).max(axis=(1, 2), keepdims=True)
        close = np.abs(slopes - differences) < 2e-4 * scale
        assert close.mean() > (0.97 if name == "saturated" else 0.9999), signal
        assert np.allclose(exact[signal][0, :, :2], runs[0], rtol=0.0, atol=1e-2)


def test_one_direction_and_many_agree() -> None:
    model = pendulum()
    controller = controllers(model)["pid"]
    plant = plant_of(model.robot, model.terms, 1e-2)
    schedule = schedule_of(None, T, 2e-3, 2e-3, 1)
    table = command_of(controller, Wave(), schedule, 2).table
    lumped = plant.lumped(model.theta[None])[0]
    directions = np.random.default_rng(0).normal(size=(70, len(lumped)))  # more than a block of lanes
    many, one = (
        run_loop(plant, controller, schedule, table, Start.along(np.zeros(2), np.zeros(2), np.zeros(2), lumped, d))["q"]
        for d in (directions, directions[66:67])
    )
    assert np.allclose(many[66], one[0], rtol=1e-9, atol=1e-12)


def test_a_pid_agrees_with_an_explicit_loop() -> None:
    """A sled of mass m, the torque held: exact parabolas between the instants, rectangles for the integral."""
    mass, h, kp, kd, ki = 2.0, 1e-2, 50.0, 12.0, 30.0
    model = model_of(block(mass))
    reference = (np.ones((299, 1)), np.zeros((299, 1)), np.zeros((299, 1)))
    sim = simulate(model, PID(kp, kd, ki=ki), times=np.arange(300) * h, step=h, reference=reference)
    q, v, integral, expected = 0.0, 0.0, 0.0, []
    for _ in range(300):
        expected.append(q)
        e = 1.0 - q
        a = (kp * e - kd * v + ki * integral) / mass
        integral += h * e
        q, v = q + h * v + 0.5 * h * h * a, v + h * a
    assert np.allclose(sim.q[:, 0], expected, atol=1e-10)


def test_a_lag_of_one_period_is_a_delay_by_one() -> None:
    mass, h, kp, kd = 2.0, 1e-2, 50.0, 12.0
    times = np.arange(200) * h
    reference = (np.ones((199, 1)), np.zeros((199, 1)), np.zeros((199, 1)))
    sim = simulate(model_of(block(mass)), PID(kp, kd, lag=h), times=times, step=h, reference=reference)
    q, v, before, expected = 0.0, 0.0, 0.0, []
    for _ in range(200):
        expected.append(q)
        a = (kp * (1.0 - q) - kd * before) / mass
        q, v, before = q + h * v + 0.5 * h * h * a, v + h * a, v
    assert np.allclose(sim.q[:, 0], expected, atol=1e-10)


def test_a_pid_removes_the_sag_of_a_pd() -> None:
    model = pendulum()
    posture = np.array([0.8, -0.5])
    pd, pid = (
        simulate(model, c, duration=8.0, step=2e-3, q0=posture, reference=posture).q[-1]
        for c in (controllers(model)["pd"], controllers(model)["pid"])
    )
    assert np.abs(pd - posture).max() > 0.05
    assert np.abs(pid - posture).max() < 2e-3  # friction smoothed over 0.1 rad/s still creeps


def test_unsupported_uses_of_a_pid_are_refused() -> None:
    model = pendulum()
    with pytest.raises(SimulationError, match="ki must not be negative"):
        PID(1.0, 1.0, ki=-1.0)
    with pytest.raises(SimulationError, match="lag"):
        PID(1.0, 1.0, lag=np.nan)
    with pytest.raises(SimulationError, match="with states"):
        simulate(model, controllers(model)["pid"], duration=0.1, reference=np.zeros(2), friction="stick")
