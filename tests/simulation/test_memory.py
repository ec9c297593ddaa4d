"""Simulated friction with memory: closed forms, a plain loop of tiny steps, and energy."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_robots import block, double_pendulum, model_of

from steelyard.assessment.replay import replay
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError
from steelyard.parameters import Coulomb, LoadedCoulomb, LoadedStop, Rotor, StopElement, Viscous, terms
from steelyard.signals.log import Log
from steelyard.simulation import PID, simulate

K, WIDTH, MASS = 3.0, 0.002, 2.0


def on_a_stop(mass: float = MASS) -> Model:
    return model_of(block(mass), StopElement(width=WIDTH), values=(K,))


def test_below_its_level_a_stop_is_a_spring() -> None:
    made = simulate(on_a_stop(), np.array([1.0]), duration=0.5, step=2e-4)
    stiffness = K / WIDTH
    wanted = (1.0 - np.cos(np.sqrt(stiffness / MASS) * made.t)) / stiffness
    # Two thirds of a milliradian, followed to (ωh)²/12 of the phase: 2e-5 after two turns.
    np.testing.assert_allclose(made.q[:, 0], wanted, rtol=0.0, atol=1e-4 / stiffness)


def test_beyond_it_a_stop_is_coulomb_friction() -> None:
    made = simulate(on_a_stop(), np.array([5.0]), duration=0.5, dq0=[0.3])
    np.testing.assert_allclose(made.q[:, 0], 0.3 * made.t + 0.5 * (5.0 - K) / MASS * made.t**2, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(made.history, np.ones((len(made.t), 1)))


@pytest.mark.parametrize("width", [1e-5, 1e-4, 1e-2])
def test_maxwell_slip_follows_a_plain_loop_of_tiny_steps(width: float) -> None:
    """Three stops under an alternating torque; stiffnesses from 200 to 2e5 N/m."""
    levels, widths = np.array([0.8, 1.1, 0.6]), width * np.array([1.0, 3.0, 10.0])
    made = model_of(block(MASS), *(StopElement(width=w) for w in widths), Viscous(), values=(*levels, 0.5))
    t = np.arange(0.0, 0.4, 1e-3)
    push = 4.0 * np.sin(25.0 * t[:-1])
    run = simulate(made, push[:, None], times=t, step=1e-3 / 4)
    h, u, v, stops = 2e-6, 0.0, 0.0, [0.0, 0.0, 0.0]
    seen, of_each = [], list(zip(levels.tolist(), (h / widths).tolist(), strict=True))
    for force in push.tolist():
        seen.append(u)
        for _ in range(round(1e-3 / h)):
            held = sum(level * s for (level, _), s in zip(of_each, stops, strict=True))
            v += h / MASS * (force - held - 0.5 * v)
            u += h * v
            stops = [min(max(s + rate * v, -1.0), 1.0) for (_, rate), s in zip(of_each, stops, strict=True)]
    # The block moves some cm; steps of 0.25 ms do not resolve the motion within a width of 10 µm.
    np.testing.assert_allclose(run.q[:-1, 0], seen, rtol=0.0, atol=5e-5)


@pytest.mark.parametrize("friction", ["smooth", "stick"])
def test_friction_never_gives_energy(friction: str) -> None:
    """A block, whose kinetic energy is exact: with the springs of its stops its energy can only fall."""
    widths = (1e-5, 1e-3, 2e-2)
    held = [StopElement(width=w) for w in widths]
    model = model_of(block(MASS), *held, LoadedCoulomb(), Coulomb(), values=(2, 1, 1, 0.1, 1))
    for speed in (0.01, 0.3, 2.0):
        made = simulate(model, None, duration=0.6, dq0=[speed], friction=friction, stops0=np.zeros(3))
        springs = 0.5 * np.array([2.0, 1.0, 1.0]) * widths * made.history[:, :3] ** 2
        energy = 0.5 * MASS * made.dq[:, 0] ** 2 + springs.sum(axis=1)
        # True stiction also has springs, of a nanometre.
        assert np.max(np.diff(energy)) < 1e-9
        assert energy[-1] < 0.5 * energy[0]


def test_a_joint_rests_under_gravity_below_its_level_and_falls_above_it() -> None:
    robot = double_pendulum()
    for level, stands in ((40.0, True), (5.0, False)):
        bound = terms(robot, StopElement(width=1e-3), Viscous())
        model = Model(robot, bound, np.r_[robot.inertial_parameters, level, level, 40.0, 40.0])
        weight = np.abs(model.gravity_torque(np.array([0.8, 0.3])))
        assert weight.max() < 0.7 * level if stands else weight.max() > 1.5 * level
        made = simulate(model, None, duration=1.0, q0=[0.8, 0.3])
        moved = np.max(np.abs(made.q - made.q[0]))
        assert moved < 1e-3 if stands else moved > 0.05
        if stands:  # 4e4 N m/rad, a thousandth of a radian: it has come to rest where the springs carry the weight
            assert np.max(np.abs(made.dq[-1])) < 1e-4
            np.testing.assert_allclose(level * made.history[-1], -model.gravity_torque(made.q[-1]), rtol=0.0, atol=1e-2)


def test_the_torque_of_a_simulated_motion_is_the_one_that_made_it() -> None:
    robot = double_pendulum()
    # Joints carry up to 33 and 10 N m here, so that both limits are passed on the way.
    loaded = (LoadedStop(width=0.05, load_limit=8.0), LoadedCoulomb(smooth=0.05, load_limit=4.0))
    every = terms(robot, Rotor(), Viscous(), StopElement(width=0.02), *loaded)
    values = [0.3, 0.2, 0.5, 0.4, 2.0, 1.0, 0.08, 0.06, 0.05, 0.07]
    model = Model(robot, every, np.r_[robot.inertial_parameters, values])
    t = np.arange(0.0, 2.0, 1e-3)
    push = np.column_stack([30.0 * np.sin(4.0 * t), 8.0 * np.sin(7.0 * t + 1.0)])[:-1]
    made = simulate(model, push, times=t, step=1e-3, friction="smooth", smoothing=0.05)
    torque = model.torque(made.q, made.dq, made.ddq)
    gone = np.minimum.accumulate(np.abs(made.q - made.q[0]) < 0.1, axis=0)
    later = ~np.any(gone, axis=1)
    assert np.mean(later) > 0.7
    # The dry part is a ramp in the simulation and a tanh in the formula: compare where it has risen.
    fast = later & np.all(np.abs(made.dq) > 0.3, axis=1)
    assert np.sum(fast) > 200
    np.testing.assert_allclose(torque[fast], made.tau[fast], rtol=0.0, atol=2e-3)


def test_a_replay_reproduces_the_motion() -> None:
    robot = double_pendulum()
    bound = terms(robot, Viscous(), StopElement(width=0.01), LoadedStop(width=0.03))
    model = Model(robot, bound, np.r_[robot.inertial_parameters, 0.5, 0.4, 2.0, 1.0, 0.05, 0.08])
    t = np.arange(0.0, 1.0, 2e-3)
    push = np.column_stack([20.0 * np.sin(4.0 * t), 5.0 * np.sin(7.0 * t + 1.0)])
    made = simulate(model, push[:-1], times=t, step=2.5e-4, dq0=[0.5, -0.5])
    again = replay(model, Log(robot.joint_names, t, made.q, dq=made.dq, tau=made.tau))
    assert again.finished
    assert np.max(np.abs(again.q - made.q)) < 1e-3


def test_a_batch_is_its_robots_one_by_one() -> None:
    model = on_a_stop()
    theta = np.array([model.theta, model.theta * np.r_[np.ones(len(model.theta) - 1), 0.5]])
    both = simulate(model, np.array([2.0]), duration=0.1, theta=theta)
    for k in range(2):
        one = simulate(Model(model.robot, model.terms, theta[k]), np.array([2.0]), duration=0.1)
        np.testing.assert_array_equal(both.q[k], one.q)


def test_impossible_requests_are_refused_with_a_reason() -> None:
    with pytest.raises(SimulationError, match="no term of the model has a stop"):
        simulate(model_of(block(MASS), Viscous(), values=(1.0,)), None, duration=0.1, stops0=[0.0])
    with pytest.raises(SimulationError, match="PID"):
        simulate(on_a_stop(), PID(10.0, 1.0, 1.0), duration=0.1, reference=[0.1])
