"""Motion under torques obeys physics: conserved energy, order of the method, agreement with other simulators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulated_robots import block, double_pendulum, model_of

from steelyard.dynamics.model import Model
from steelyard.parameters import terms
from steelyard.robot import load_robot
from steelyard.simulation import simulate
from steelyard.simulation.plant import _lump


def test_a_frictionless_pendulum_keeps_its_energy():
    model = model_of(double_pendulum())
    run = simulate(model, duration=5.0, q0=[1.0, 0.5])
    energy = model.energy(run.q, run.dq)
    # Runge–Kutta 4 at 1 ms on motions of some 5 rad/s: (ωh)⁴ ≈ 1e-9 per period at most.
    assert np.ptp(energy) < 1e-8 * abs(energy[0])
    assert np.max(np.abs(run.dq)) > 3.0  # it did swing


@pytest.mark.parametrize("name", ["prrrp", "szabo3r", "rotradi"])
def test_a_frictionless_robot_keeps_its_energy(name):
    robot = load_robot(name)
    model = Model(robot, terms(robot), robot.inertial_parameters)
    rng = np.random.default_rng(1)
    run = simulate(model, duration=0.5, step=2e-4, q0=0.1 * rng.normal(size=robot.dof), dq0=rng.normal(size=robot.dof))
    energy = model.energy(run.q, run.dq)
    kinetic = energy - model.energy(run.q, 0.0 * run.dq)
    assert np.ptp(energy) < 1e-7 * np.max(kinetic)


def test_the_fixed_step_method_is_of_order_four():
    model = model_of(double_pendulum())
    ends = {}
    for step in (0.02, 0.01, 0.005, 5e-4):
        run = simulate(model, duration=0.8, step=step, q0=[1.0, 0.5])
        ends[step] = np.concatenate([run.q[-1], run.dq[-1]])
    error = [np.linalg.norm(ends[step] - ends[5e-4]) for step in (0.02, 0.01, 0.005)]
    # Halving the step divides the error by 2⁴ = 16, up to terms of higher order.
    assert 11.0 < error[0] / error[1] < 24.0
    assert 13.0 < error[1] / error[2] < 19.0


def test_a_falling_block_obeys_galilei():
    run = simulate(model_of(block(gravity=9.81)), duration=1.0, step=0.01)
    # A parabola is within the method's order: exact up to rounding.
    np.testing.assert_allclose(run.q[:, 0], 0.5 * 9.81 * run.t**2, atol=1e-13)
    np.testing.assert_allclose(run.ddq, 9.81, rtol=1e-14)


def test_the_adaptive_method_agrees_with_fixed_steps():
    model = model_of(double_pendulum(), "viscous", "coulomb", values=(0.1, 0.05, 0.3, 0.1))
    tau = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 10, axis=0)  # equal rows are joined
    options = {"duration": 1.0, "control_period": 0.01, "q0": [0.3, -0.2], "smoothing": 0.1}
    fixed = simulate(model, tau, step=1e-3, **options)
    adaptive = simulate(model, tau, step=1e-3, method="rk45", rtol=1e-10, atol=1e-12, **options)
    # The smooth sign is C²: beyond its band the fixed steps lose some order, errors stay below (h/band)³.
    np.testing.assert_allclose(fixed.q, adaptive.q, atol=1e-7)
    np.testing.assert_array_equal(fixed.tau, adaptive.tau)
    np.testing.assert_allclose(fixed.ddq, adaptive.ddq, atol=1e-4)


def test_inverse_dynamics_returns_the_torques():
    robot = load_robot("arm7")
    nominal = Model.nominal(robot)
    plain = terms(robot, "rotor", "viscous")
    keep = [k for k, p in enumerate(nominal.terms.parameters) if not p.name.startswith("Fc")]
    values = nominal.theta[10 * robot.dof :][keep]
    model = Model(robot, plain, np.concatenate([robot.inertial_parameters, values]))
    tau = np.random.default_rng(2).uniform(-20.0, 20.0, (50, 7))
    run = simulate(model, tau, duration=0.05)
    back = model.torque(run.q, run.dq, run.ddq)
    np.testing.assert_allclose(back, run.tau, atol=1e-9 * np.max(np.abs(tau)))


@pytest.mark.parametrize("name", ["arm7", "irp6-wrist", "prrrp", "ns16"])
def test_lumped_parameters_move_the_robot_alike(name):
    robot = load_robot(name)
    lumps = _lump(robot)
    theta = np.random.default_rng(0).normal(size=robot.inertial_count)
    lumped = np.zeros_like(theta)
    lumped[list(lumps.indices)] = lumps.matrix @ theta
    Y = robot.torque_regressor(*np.random.default_rng(1).normal(size=(3, 20, robot.dof)))
    np.testing.assert_allclose(Y @ lumped, Y @ theta, atol=1e-11 * np.abs(Y).max() * np.abs(theta).sum())
    assert len(lumps.indices) < len(theta)


def _ur10() -> Path:
    pin = pytest.importorskip("pinocchio")
    root = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    path = root / "ur_description" / "urdf" / "ur10_robot.urdf"
    if not path.exists():
        pytest.skip("example-robot-data is not installed")
    return path


def test_pinocchio_and_scipy_find_the_same_motion():
    import pinocchio as pin

    path = _ur10()
    reference = pin.buildModelFromUrdf(str(path))
    data = reference.createData()
    robot = load_robot(path)
    viscous = np.array([5.0, 5.0, 2.0, 0.1, 0.1, 0.01])
    model = model_of(robot, "viscous", values=tuple(viscous))
    tau = np.array([10.0, -40.0, -10.0, 0.5, 0.1, 0.001])

    def rates(_, x):
        return np.concatenate([x[6:], pin.aba(reference, data, x[:6], x[6:], tau - viscous * x[6:])])

    times = np.linspace(0.0, 0.5, 26)
    truth = solve_ivp(rates, (0.0, 0.5), np.zeros(12), t_eval=times, rtol=1e-11, atol=1e-12, method="DOP853").y.T
    run = simulate(model, tau, times=times, step=5e-4)
    np.testing.assert_allclose(run.q, truth[:, :6], atol=2e-7)
    np.testing.assert_allclose(run.dq, truth[:, 6:], atol=2e-6)


def test_mujoco_takes_the_same_steps():
    mujoco = pytest.importorskip("mujoco")
    body = "<inertial pos='0 0 {z}' mass='{m}' diaginertia='{i} {i} {i}'/><joint axis='0 1 0' damping='{d}'/>"
    first = body.format(z=-0.4, m=2.0, i=0.02, d=0.1)
    second = body.format(z=-0.3, m=1.0, i=0.01, d=0.05)
    text = f"""<mujoco><option timestep="0.001" integrator="RK4" gravity="0 0 -9.81"/><worldbody>
      <body>{first}<body pos="0 0 -0.5">{second}</body></body></worldbody></mujoco>"""
    engine = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(engine)
    state.qpos[:] = [1.0, 0.5]
    other = []
    for _ in range(1000):
        mujoco.mj_step(engine, state)
        other.append(state.qpos.copy())
    model = model_of(double_pendulum(), "viscous", values=(0.1, 0.05))
    run = simulate(model, duration=1.0, q0=[1.0, 0.5])
    # The same method with the same step: only rounding differs.
    np.testing.assert_allclose(run.q[1:], np.array(other), atol=1e-10)
