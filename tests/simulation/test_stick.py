"""True stiction: bodies at rest stay there exactly, and stop at the time and place of the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_robots import block, double_pendulum, model_of, rails

from steelyard.dynamics.model import Model
from steelyard.parameters import AsymmetricCoulomb, Coulomb, terms
from steelyard.robot import load_robot
from steelyard.simulation import simulate
from steelyard.simulation._stick import _relax, solve_box

METHODS = ("rk4", "rk45")


@pytest.mark.parametrize("method", METHODS)
def test_a_block_on_an_incline_never_moves(method):
    model = model_of(block(mass=2.0, gravity=3.0), "coulomb", values=(6.5,))  # 6 N pull, 6.5 N hold
    run = simulate(model, duration=5.0, step=0.01, friction="stick", method=method, q0=[0.3])
    assert np.all(run.q == 0.3)
    assert np.all(run.dq == 0.0)
    assert np.all(run.ddq == 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_an_overloaded_block_slides_with_the_rest(method):
    model = model_of(block(mass=2.0, gravity=3.0), "coulomb", values=(5.0,))
    run = simulate(model, duration=1.0, step=0.01, friction="stick", method=method)
    np.testing.assert_allclose(run.q[:, 0], 0.5 * (6.0 - 5.0) / 2.0 * run.t**2, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15, deadline=None)
@given(speed=st.floats(-3.0, 3.0).filter(lambda v: abs(v) > 1e-3), friction=st.floats(1.0, 20.0))
def test_a_sliding_mass_stops_in_time_and_place(method, speed, friction):
    mass = 2.0
    model = model_of(block(mass=mass), "coulomb", values=(friction,))
    run = simulate(model, duration=8.0, step=0.1, friction="stick", method=method, dq0=[speed])
    stop = mass * abs(speed) / friction
    place = np.sign(speed) * mass * speed**2 / (2.0 * friction)
    after = run.t > stop + 1e-9
    assert after.any()
    # Parabolas are integrated exactly; the rest is rounding and the location of the stop (1e-15 of a step).
    np.testing.assert_allclose(run.q[after, 0], place, rtol=1e-7 if method == "rk45" else 1e-11)
    assert np.all(run.dq[after] == 0.0)
    assert np.all(run.q[after] == run.q[after][0])
    assert np.all(run.dq[run.t < stop - 1e-9] != 0.0)


def test_levels_differ_between_directions():
    model = model_of(block(mass=1.0), AsymmetricCoulomb(), values=(2.0, 5.0))
    up = simulate(model, duration=2.0, step=0.05, friction="stick", dq0=[1.0])
    down = simulate(model, duration=2.0, step=0.05, friction="stick", dq0=[-1.0])
    assert up.q[-1, 0] == pytest.approx(0.25, rel=1e-12)
    assert down.q[-1, 0] == pytest.approx(-0.1, rel=1e-12)
    for force, moves in ((1.9, False), (2.1, True), (-4.9, False), (-5.1, True)):
        run = simulate(model, [force], duration=0.5, step=0.05, friction="stick")
        assert bool(run.q[-1, 0] != 0.0) == moves


def test_break_away_torque_exceeds_sliding_friction():
    model = model_of(block(mass=1.0), "coulomb", values=(2.0,))
    ramp = np.arange(100)[:, None] * 0.05  # N, one step each
    run = simulate(model, ramp, duration=1.0, step=0.01, friction="stick", break_away=1.5)
    moving = np.flatnonzero(run.ddq[:, 0] != 0.0)
    assert run.tau[moving[0] - 1, 0] <= 3.0 < run.tau[moving[0], 0]
    # After break-away, sliding friction is 2 N immediately.
    assert run.ddq[moving[0], 0] == pytest.approx(run.tau[moving[0], 0] - 2.0, rel=1e-12)


def test_a_joint_breaks_away_inside_a_step():
    # The second rod is carried along, stuck, by the first; on the way up it needs more than its friction gives.
    model = model_of(double_pendulum(), AsymmetricCoulomb(), values=(0.0, 0.0, 1.2, 0.5))
    options = {"duration": 0.8, "friction": "stick", "q0": [1.2, 0.0]}
    coarse = simulate(model, step=0.02, **options)
    fine = simulate(model, step=0.001, record_every=20, **options)
    adaptive = simulate(model, step=0.02, method="rk45", **options)
    held = coarse.dq[:, 1] == 0.0
    assert held[:20].all()
    assert not held[-1]
    # 20 ms steps: (ωh)⁴ with ω near 5 rad/s is 1e-4 per period of the whole motion's 1 rad; located events keep it.
    np.testing.assert_allclose(coarse.q, fine.q, atol=2e-5)
    np.testing.assert_allclose(adaptive.q, fine.q, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_a_double_pendulum_comes_to_rest_and_loses_energy_all_the_way(method):
    model = model_of(double_pendulum(), "coulomb", values=(2.0, 0.8))
    run = simulate(model, duration=6.0, step=0.01, friction="stick", method=method, q0=[1.5, 1.0])
    energy = model.energy(run.q, run.dq)
    # The method's own error: rtol 1e-8, or (ωh)⁵ of 10 ms steps.
    assert np.max(np.diff(energy)) < 2e-6 * np.ptp(energy)
    assert np.all(run.dq[-1] == 0.0)
    rest = np.flatnonzero(np.all(run.dq == 0.0, axis=1) & (run.t > 0.0))[0]
    assert np.all(run.q[rest:] == run.q[rest])
    weight = model.dynamics.gravity_torque(run.q[-1], model.theta)
    assert np.all(np.abs(weight) <= [2.0, 0.8])


@pytest.mark.parametrize("name", ["irp6", "arm7", "rotradi"])
def test_friction_is_coulombs_at_every_sample_of_a_wild_motion(name):
    robot = load_robot(name)
    model = Model.nominal(robot)
    first = [k for k, p in enumerate(model.terms.parameters) if p.name.startswith("Fc")]
    level = model.theta[robot.inertial_count :][first]
    rng = np.random.default_rng(0)
    hold = model.dynamics.gravity_torque(np.zeros(robot.dof), model.theta)
    push = np.repeat(rng.uniform(-3.0, 3.0, (15, robot.dof)) * level * (rng.random((15, robot.dof)) < 0.6), 20, axis=0)
    G = np.eye(robot.dof) if robot.transmission is None else robot.transmission.matrix
    run = simulate(model, hold + push @ G, duration=0.3, step=1e-3, friction="stick")
    without = model.theta.copy()
    without[robot.inertial_count + np.array(first)] = 0.0
    rest = run.tau - model.dynamics.inverse_dynamics(run.q, run.dq, run.ddq, without)
    rub = rest @ np.linalg.inv(G)
    speed = run.dq @ G.T
    still = speed == 0.0
    assert still[1:].any()
    assert (~still).any()
    slack = 1e-8 * np.max(np.abs(run.tau))  # inverse of forward dynamics
    assert np.all(np.abs(rub) <= level + slack)
    np.testing.assert_allclose(rub[~still], (np.sign(speed) * level)[~still], atol=slack)


def test_smooth_friction_converges_to_true_stick():
    model = model_of(double_pendulum(), "coulomb", values=(1.0, 0.4))
    options = {"duration": 1.0, "q0": [1.5, 1.0]}
    true = simulate(model, friction="stick", step=1e-3, **options)
    distance = []
    for width in (0.2, 0.05, 0.0125):
        run = simulate(model, smoothing=width, step=5e-5, record_every=20, **options)
        distance.append(np.max(np.abs(run.q - true.q)))
    assert distance[0] > 2.0 * distance[1] > 4.0 * distance[2]
    assert distance[2] < 5e-3


def test_modes_of_coupled_sleds_are_determined_together():
    # A motor on the lower sled pushes the upper one: its reaction less the friction between them acts on the lower.
    model = model_of(rails(), "coulomb", values=(3.0, 2.0))
    for push, lower, upper in ((1.9, False, False), (2.5, False, True), (4.9, False, True), (5.1, True, True)):
        run = simulate(model, [0.0, push], duration=0.1, step=0.01, friction="stick")
        assert (bool(run.dq[-1, 0] != 0.0), bool(run.dq[-1, 1] != 0.0)) == (lower, upper)
    model = model_of(rails(), "coulomb", values=(1.0, 2.0))
    run = simulate(model, [0.0, 0.0], duration=0.1, step=0.01, friction="stick", dq0=[0.0, 1.0])
    # 2 N between them, 1 N below: the lower starts to move, and in the direction of the upper.
    assert run.ddq[0] == pytest.approx([(2.0 - 1.0) / 2.0, -2.0 - 0.5], rel=1e-12)


def test_a_drive_moves_alone_through_a_parallelogram():
    # IRp-6: motor 2 moves u2 = −q2, motor 3 moves u3 = q2 + q3. With motor 3 stuck, q3 follows as −q2.
    model = Model.nominal(load_robot("irp6").with_gravity((0.0, 0.0, 0.0)))
    push = model.robot.transmission.joint_torque([0.0, 40.0, 0.0])
    run = simulate(model, push, duration=0.2, step=1e-3, friction="stick")
    assert abs(run.dq[-1, 1]) > 0.01
    assert np.all(run.dq[:, 0] == 0.0)
    assert np.all(run.dq[:, 2] == -run.dq[:, 1])
    np.testing.assert_allclose(run.q[:, 1] + run.q[:, 2], 0.0, atol=1e-16)


def test_friction_behind_a_ball_screw_depends_on_posture():
    robot = load_robot("irp6-screws").with_gravity((0.0, 0.0, 0.0))
    plain = terms(robot, Coulomb(on="motor"))
    level = 0.05
    model = Model(robot, plain, np.concatenate([robot.inertial_parameters, [level] * 3]))
    q = np.array([0.0, 0.3, -0.2])
    hold = np.abs(robot.transmission.slopes(q)) * level  # on the drives
    for factor, moves in ((0.99, False), (1.01, True)):
        push = robot.transmission.joint_torque([0.0, factor * hold[1], 0.0])
        run = simulate(model, push, duration=0.01, step=1e-3, friction="stick", q0=q)
        assert bool(np.any(run.dq[-1] != 0.0)) == moves


def test_friction_of_a_joint_and_of_its_drive_add_up():
    robot = load_robot("irp6").with_gravity((0.0, 0.0, 0.0))
    both = terms(robot, Coulomb(), Coulomb(on="drive"))
    model = Model(robot, both, np.concatenate([robot.inertial_parameters, [3.0] * 6]))
    still = simulate(model, [5.9, 0.0, 0.0], duration=0.01, friction="stick")
    assert np.all(still.dq == 0.0)
    loose = simulate(model, [6.1, 0.0, 0.0], duration=0.01, friction="stick")
    assert loose.dq[-1, 0] > 0.0
    # Six contacts on three joints; joint 3 is held by its own and by motor 3, which also moves with q2.
    shared = simulate(model, [0.0, 0.0, 5.9], duration=0.01, friction="stick")
    assert np.all(shared.dq == 0.0)


matrices = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-1.0, 1.0), min_size=m * m, max_size=m * m),
        st.lists(st.floats(-5.0, 5.0), min_size=m, max_size=m),
        st.lists(st.floats(0.0, 2.0), min_size=m, max_size=m),
        st.lists(st.floats(0.0, 2.0), min_size=m, max_size=m),
    )
)


@given(matrices)
@settings(max_examples=200, deadline=None)
def test_contacts_at_rest_have_one_consistent_solution(numbers):
    flat, c, low, high = (np.array(x) for x in numbers)
    A = flat.reshape(len(c), len(c))
    W = A @ A.T + 0.1 * np.eye(len(c))
    x = solve_box(W, c, -low, high)
    w = c - W @ x
    assert np.all((x >= -low) & (x <= high))
    tolerance = 1e-11 * (1.0 + np.abs(c).max())
    assert np.all((w <= tolerance) | (x == high))
    assert np.all((w >= -tolerance) | (x == -low))
    np.testing.assert_allclose(_relax(W, c, -low, high), x, atol=1e-10)


def test_a_stop_at_the_end_of_a_step_is_located():
    """Stops at t = 2 s, the end of a control period, where SciPy's root search fails by rounding."""
    speed = friction = 2.825926123860871
    model = model_of(block(mass=2.0), "coulomb", values=(friction,))
    run = simulate(model, duration=4.0, step=0.1, friction="stick", method="rk45", dq0=[speed])
    np.testing.assert_allclose(run.q[run.t > 2.1, 0], speed, rtol=1e-7)  # m v²/(2 F) with m = 2, v = F
    assert np.all(run.dq[run.t > 2.1] == 0.0)
