"""The physics of public robots and of random trees agrees with Pinocchio to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import PUBLIC, PinocchioOracle, public_robot_path, relative, states
from random_robots import make_tree, trees

from steelyard.robot import load_robot
from steelyard.robot.robot import Robot

# Both sides compute in double precision along chains of up to 40 bodies; rotations of a URDF are snapped to
# exact zeros within 1e-11, which the tolerance allows for.
TOLERANCE = 1e-10


def check_against_pinocchio(robot: Robot, oracle: PinocchioOracle, samples: int = 5, seed: int = 0) -> None:
    s, d, theta = states(robot, samples, seed), robot.dynamics, robot.inertial_parameters
    tau = oracle.over("torque", s.q, s.dq, s.ddq)
    assert relative(d.inverse_dynamics(s.q, s.dq, s.ddq, theta), tau) < TOLERANCE
    assert relative(d.mass_matrix(s.q, theta), oracle.over("mass", s.q)) < TOLERANCE
    assert relative(d.kinetic_energy_regressor(s.q, s.dq) @ theta, oracle.over("kinetic", s.q, s.dq)) < TOLERANCE
    # Energies may differ by the constant of the base's own mass and of offsets: compare differences.
    potential = d.potential_energy_regressor(s.q) @ theta - oracle.over("potential", s.q)
    assert np.ptp(potential) < TOLERANCE * max(1.0, np.max(np.abs(oracle.over("potential", s.q))))
    if not any(link.own_frame for link in robot.links):
        assert (
            relative(robot.torque_regressor(s.q, s.dq, s.ddq), oracle.over("regressor", s.q, s.dq, s.ddq)) < TOLERANCE
        )
    else:
        assert relative(robot.torque_regressor(s.q, s.dq, s.ddq) @ theta, tau) < TOLERANCE


def check_forward_dynamics(robot: Robot, oracle: PinocchioOracle, samples: int = 5) -> None:
    s, theta = states(robot, samples, seed=3), robot.inertial_parameters
    tau = oracle.over("torque", s.q, s.dq, s.ddq)
    ours = robot.dynamics.forward_dynamics(s.q, s.dq, tau, theta)
    # Solving with M loses cond(M) of the digits; compare both results by their torque.
    error = np.einsum("sij,sj->si", oracle.over("mass", s.q), ours - s.ddq)
    assert np.max(np.abs(error)) < TOLERANCE * max(1.0, np.max(np.abs(tau)))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_robots_move_as_in_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")

    path = public_robot_path(name)
    robot = load_robot(path)
    if not robot.has_inertia:
        given = [np.zeros(10) if link.inertia is None else link.inertia for link in robot.links]
        robot = robot.with_inertial_parameters(np.concatenate(given))
    model = pin.buildModelFromUrdf(str(path))
    assert [link.joint for link in robot.links] == list(model.names)[1:]
    check_against_pinocchio(robot, PinocchioOracle(robot, model))
    if np.all(np.linalg.eigvalsh(robot.dynamics.mass_matrix(np.zeros(robot.dof), robot.inertial_parameters)) > 1e-9):
        check_forward_dynamics(robot, PinocchioOracle(robot, model))


@pytest.mark.parametrize("gravity", [(0.0, 9.81, 0.0), (-3.0, 4.0, 8.0), (0.0, 0.0, 0.0)])
def test_an_arm_mounted_sideways_moves_as_in_pinocchio(gravity: tuple[float, float, float]) -> None:
    robot = load_robot(public_robot_path("ur10"), gravity=gravity)
    check_against_pinocchio(robot, PinocchioOracle(robot))


@settings(max_examples=25, deadline=None)
@given(trees())
def test_random_trees_move_as_in_pinocchio(robot: Robot) -> None:
    oracle = PinocchioOracle(robot)
    check_against_pinocchio(robot, oracle, samples=3)
    check_forward_dynamics(robot, oracle, samples=3)


@settings(max_examples=15, deadline=None)
@given(trees(mimic=True))
def test_mimic_joints_follow_their_leader(robot: Robot) -> None:
    oracle = PinocchioOracle(robot)
    check_against_pinocchio(robot, oracle, samples=3)
    check_forward_dynamics(robot, oracle, samples=3)


@settings(max_examples=15, deadline=None)
@given(trees(own_frames=True))
def test_parameters_may_refer_to_a_separate_frame(robot: Robot) -> None:
    check_against_pinocchio(robot, PinocchioOracle(robot), samples=3)


@settings(max_examples=25, deadline=None)
@given(trees(mimic=True, own_frames=True))
def test_torque_is_the_rate_of_momentum_plus_the_remainder(robot: Robot) -> None:
    """τ = d/dt(P θ) + D θ, differentiated exactly along the motion."""
    s, d = states(robot, 3), robot.dynamics
    rate = d.tangent("momentum_regressor", {"q": s.dq, "dq": s.ddq}, q=s.q, dq=s.dq)
    rest = d.remainder_regressor(s.q, s.dq)
    assert relative(rate + rest, robot.torque_regressor(s.q, s.dq, s.ddq)) < 1e-12


@settings(max_examples=25, deadline=None)
@given(trees(mimic=True))
def test_power_is_the_rate_of_energy(robot: Robot) -> None:
    s, d = states(robot, 3), robot.dynamics
    rate = d.tangent("kinetic_energy_regressor", {"q": s.dq, "dq": s.ddq}, q=s.q, dq=s.dq)
    rate = rate + d.tangent("potential_energy_regressor", {"q": s.dq}, q=s.q)
    power = np.einsum("sj,sjp->sp", s.dq, robot.torque_regressor(s.q, s.dq, s.ddq))
    assert relative(rate, power) < 1e-12


@settings(max_examples=15, deadline=None)
@given(trees())
def test_momentum_is_the_mass_matrix_times_velocity(robot: Robot) -> None:
    s, d, theta = states(robot, 3), robot.dynamics, robot.inertial_parameters
    p = d.momentum_regressor(s.q, s.dq) @ theta
    assert relative(p, np.einsum("sij,sj->si", d.mass_matrix(s.q, theta), s.dq)) < 1e-12


def test_forward_dynamics_agrees_with_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the second oracle")
    robot = make_tree(5, 6, chain=True)
    model = mujoco.MjModel.from_xml_string(_mjcf(robot))
    data = mujoco.MjData(model)
    s, theta = states(robot, 20), robot.inertial_parameters
    tau = np.random.default_rng(1).normal(size=s.q.shape)
    ours = robot.dynamics.forward_dynamics(s.q, s.dq, tau, theta)
    for k in range(len(s.q)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = s.q[k], s.dq[k], tau[k]
        mujoco.mj_forward(model, data)
        # MuJoCo diagonalises inertias, and its text carries 17 digits: rounding only.
        assert relative(ours[k], data.qacc) < 1e-9


def _mjcf(robot: Robot) -> str:
    from steelyard.robot.spatial import inertia_matrix, skew

    children: dict[int, list[int]] = {}
    for i, link in enumerate(robot.links):
        children.setdefault(link.parent, []).append(i)

    def numbers(values) -> str:
        return " ".join(repr(float(v)) for v in np.ravel(values))

    def body(i: int) -> str:
        link = robot.links[i]
        p = link.inertia
        com = p[1:4] / p[0]
        about = inertia_matrix(p) + p[0] * skew(com) @ skew(com)
        full = [about[0, 0], about[1, 1], about[2, 2], about[0, 1], about[0, 2], about[1, 2]]
        kind = "hinge" if link.kind == "revolute" else "slide"
        axes = numbers(link.rotation[:, :2].T)
        inside = "".join(body(c) for c in children.get(i, []))
        return (
            f'<body pos="{numbers(link.translation)}" xyaxes="{axes}">'
            f'<joint type="{kind}" axis="{numbers(link.axis)}"/>'
            f'<inertial mass="{numbers(p[0])}" pos="{numbers(com)}" fullinertia="{numbers(full)}"/>{inside}</body>'
        )

    bodies = "".join(body(c) for c in children[-1])
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{numbers(robot.gravity)}"/>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
