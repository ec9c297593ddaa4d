"""Inverse kinematics: postures bring the tip to the pose, as computed by Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import PinocchioOracle, public_robot_path

from steelyard.errors import ShapeError, UnknownNameError
from steelyard.robot import Joint, Link, Robot, load_robot
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose, ReachError
from steelyard.robot.spatial import rotation_from_rpy

QUARTER = np.pi / 2


def arm(axes, places, name="arm", limit=np.pi):
    """A six-axis arm from axes and places of its joints in the zero posture, all frames parallel to the base."""
    joints = tuple(Joint(f"j{k}", "revolute", -limit, limit) for k in range(6))
    steps = np.diff(np.vstack([np.zeros(3), places]), axis=0)
    links = tuple(
        Link(f"l{k}", f"j{k}", "revolute", k - 1, np.eye(3), steps[k], np.array(axes[k], float), k) for k in range(6)
    )
    return Robot(name, joints, links)


X, Y, Z = np.eye(3)
# Shoulder offset sideways as the Puma 560 has it; lengths of Corke & Armstrong-Hélouvry 1994.
PUMA = arm(
    [Z, Y, Y, X, Y, X],
    [(0, 0, 0), (0, 0.2435, 0.4), (0.4318, 0.15, 0.4), (0.8, 0.15, 0.38), (0.8636, 0.15, 0.38), (0.9, 0.15, 0.38)],
    "puma",
)
# Axes 1 and 2 meet, 2 and 3 are at right angles: no industrial arm, but the other class of the closed form.
CROSSED = arm(
    [Z, Y, X, X, Y, Z],
    [(0, 0, 0.3), (0, 0, 0.3), (0.1, 0.2, 0.6), (0.3, 0.4, 0.9), (0.5, 0.4, 0.9), (0.5, 0.4, 0.5)],
    "crossed",
)


def named(name):
    if name in ("puma", "crossed"):
        return {"puma": PUMA, "crossed": CROSSED}[name]
    if name in ("ns16", "arm7", "irp6-wrist"):
        return load_robot(name)
    robot = load_robot(public_robot_path(name))
    return robot.with_joints([j for j in robot.joint_names if "finger" not in j])


def random_posture(robot, rng):
    low = [max(joint.lower, -np.pi) for joint in robot.joints]
    high = [min(joint.upper, np.pi) for joint in robot.joints]
    return rng.uniform(low, high)


def pinocchio_pose(oracle, q):
    oracle.pin.forwardKinematics(oracle.model, oracle.data, *oracle.tree(q))
    place = oracle.data.oMi[len(oracle.robot.links)]
    return Pose(place.translation.copy(), place.rotation.copy())


def check_solution(robot, oracle, q, pose, tolerance):
    low, high = (np.array([getattr(j, side) for j in robot.joints]) for side in ("lower", "upper"))
    assert np.all(q >= low)
    assert np.all(q <= high)
    reached = pinocchio_pose(oracle, q)
    np.testing.assert_allclose(reached.position, pose.position, atol=tolerance)
    np.testing.assert_allclose(reached.rotation, pose.rotation, atol=tolerance)


@pytest.mark.parametrize("name", ["puma", "crossed", "ns16", "ur10"])
def test_every_branch_of_the_closed_form_reaches_the_pose(name):
    robot = named(name)
    solver, oracle = InverseKinematics.of(robot), PinocchioOracle(robot)
    assert solver.method == "closed form"
    rng = np.random.default_rng(4)
    most = 0
    for _ in range(15):
        q = random_posture(robot, rng)
        pose = pinocchio_pose(oracle, q)
        found = solver.branches(pose, near=q)
        most = max(most, len(found))
        # The posture the pose was made of is the nearest branch; angles lose a few digits near singular postures.
        np.testing.assert_allclose(found[0], q, atol=1e-6)
        for posture in found:
            check_solution(robot, oracle, posture, pose, 1e-8)
        for a in range(len(found)):
            for b in range(a):
                assert np.max(np.abs(found[a] - found[b])) > 1e-6
    assert most == 8


@pytest.mark.parametrize("name", ["panda", "arm7", "z1"])
def test_other_arms_are_solved_numerically(name):
    robot = named(name)
    solver, oracle = InverseKinematics.of(robot), PinocchioOracle(robot)
    assert solver.method == "numerical"
    rng = np.random.default_rng(5)
    for _ in range(3):
        q = random_posture(robot, rng)
        pose = pinocchio_pose(oracle, q)
        # 1e-10 is the solver's own stopping rule, in metres and radians together.
        check_solution(robot, oracle, solver.solve(pose), pose, 1e-9)
        near = solver.solve(pose, near=q + 0.01)
        check_solution(robot, oracle, near, pose, 1e-9)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_closed_form_and_numerical_agree_on_the_nearest_posture(seed):
    robot = named("puma")
    solver = InverseKinematics.of(robot)
    q = np.random.default_rng(seed).uniform(-1.2, 1.2, 6)
    q[4] = 0.3 + abs(q[4])  # off the wrist's singular posture, where q4 and q6 are not unique
    pose = solver.tip.pose(q)
    start = q + 1e-3
    closed = solver.solve(pose, near=start)
    assert min(np.abs(closed - q)) < 1e-6
    numerical = solver._numerical(pose, start, 0)
    reached = solver.tip.pose(numerical)
    np.testing.assert_allclose(reached.position, pose.position, atol=1e-9)


@pytest.mark.parametrize("name", ["puma", "ns16", "ur10"])
def test_in_singular_postures_the_free_angles_stay_near(name):
    """Stretched wrist: only the sum of q4 and q6 matters; the given q4 is kept."""
    robot = named(name)
    solver = InverseKinematics.of(robot)
    q = np.array([0.3, -0.2, 0.4, 0.5, 0.0, 0.7])
    found = solver.solve(solver.tip.pose(q), near=q)
    np.testing.assert_allclose(found, q, atol=1e-7)


def test_full_turns_follow_the_reference_posture():
    robot = named("ns16")  # joints 4 and 6 turn twice
    solver = InverseKinematics.of(robot)
    q = np.array([0.3, 0.2, 0.4, 4.5, 0.6, -5.0])
    np.testing.assert_allclose(solver.solve(solver.tip.pose(q), near=q + 0.1), q, atol=1e-8)


def test_tools_and_links_are_counted_in():
    robot = named("ns16")
    tool = Pose.from_rpy([0.1, 0.02, 0.2], [0.3, -0.5, 1.0])
    solver, oracle = InverseKinematics.of(robot, tool=tool), PinocchioOracle(robot)
    q = np.array([0.3, 0.2, 0.4, 0.5, 0.6, 0.7])
    flange = pinocchio_pose(oracle, q)
    pose = Pose(flange.position + flange.rotation @ tool.position, flange.rotation @ tool.rotation)
    np.testing.assert_allclose(solver.solve(pose, near=q), q, atol=1e-9)
    elbow = InverseKinematics.of(robot, link=robot.link_names[2])
    place = elbow.tip.pose(q).position
    assert elbow.method == "numerical"
    np.testing.assert_allclose(elbow.tip.pose(elbow.solve(Pose(place))).position, place, atol=1e-9)
    with pytest.raises(UnknownNameError):
        InverseKinematics.of(robot, link="nose").tip.pose(q)


@pytest.mark.parametrize("name", ["puma", "arm7"])
def test_the_jacobian_is_the_derivative_of_the_pose(name):
    robot = named(name)
    tip = InverseKinematics.of(robot).tip
    q, h = np.linspace(-0.5, 0.7, robot.dof), 1e-6
    J, rotation, _ = tip.jacobian(q)
    for k, step in enumerate(h * np.eye(robot.dof)):
        (r1, p1), (r0, p0) = tip.forward(q + step), tip.forward(q - step)
        np.testing.assert_allclose((p1 - p0) / (2 * h), J[:3, k], atol=1e-9)
        spin = (r1 - r0) / (2 * h) @ rotation.T
        np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], J[3:, k], atol=1e-9)


def test_limits_are_respected_by_both_ways():
    narrow = replace(PUMA, joints=tuple(replace(j, lower=-0.5, upper=0.9) for j in PUMA.joints))
    q = np.array([0.1, -0.2, 0.8, 0.3, 0.4, -0.3])
    solver = InverseKinematics.of(narrow)
    pose = solver.tip.pose(q)
    assert all(np.all((b >= -0.5) & (b <= 0.9)) for b in solver.branches(pose))
    numerical = solver._numerical(pose, None, 0)
    assert np.all((numerical >= -0.5) & (numerical <= 0.9))
    outside = solver.tip.pose(np.array([2.0, -0.2, 0.8, 0.3, 0.4, -0.3]))
    with pytest.raises(ReachError, match="joint limits"):
        solver.solve(outside)


@pytest.mark.parametrize("name", ["puma", "arm7"])
def test_poses_out_of_reach_are_refused(name):
    with pytest.raises(ReachError, match=r"cannot reach the pose at \(5, 0, 0\)"):
        InverseKinematics.of(named(name)).solve(Pose(np.array([5.0, 0, 0]), np.eye(3)))


def test_almost_spherical_wrists_are_not_called_spherical():
    """A wrist whose axes miss each other by 0.1 mm would be solved wrongly in closed form."""
    bent = list(PUMA.links)
    bent[4] = replace(bent[4], translation=bent[4].translation + 1e-4 * Z)
    almost = replace(PUMA, links=tuple(bent))
    solver = InverseKinematics.of(almost)
    assert solver.method == "numerical"
    pose = solver.tip.pose(np.full(6, 0.3))
    np.testing.assert_allclose(solver.tip.pose(solver.solve(pose)).position, pose.position, atol=1e-9)
    with pytest.raises(ReachError, match="spherical wrist"):
        solver.branches(pose)


def test_five_axes_reach_places():
    robot = named("irp6-wrist")
    solver = InverseKinematics.of(robot)
    place = solver.tip.pose(np.full(robot.dof, 0.2)).position
    np.testing.assert_allclose(solver.tip.pose(solver.solve(Pose(place))).position, place, atol=1e-9)


def test_invalid_poses_are_refused():
    with pytest.raises(ShapeError):
        Pose(np.zeros(2))
    with pytest.raises(ShapeError):
        Pose(np.zeros(3), np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ShapeError):
        InverseKinematics.of(PUMA).solve(Pose(np.zeros(3), np.eye(3)), near=[0.0])
    np.testing.assert_array_equal(Pose.from_rpy([0, 0, 1], [0, 0, QUARTER]).rotation, rotation_from_rpy(0, 0, QUARTER))


@pytest.mark.parametrize("name", ["puma", "crossed", "ns16", "ur10", "arm7"])
def test_many_poses_are_solved_as_one_at_a_time(name):
    """Every posture reaches its pose, by Pinocchio; with a closed form it is the branch nearest to where one was."""
    robot = named(name)
    solver, oracle = InverseKinematics.of(robot), PinocchioOracle(robot)
    rng = np.random.default_rng(4)
    near = np.array([random_posture(robot, rng) for _ in range(12)])
    poses = [pinocchio_pose(oracle, np.clip(q + rng.uniform(-0.4, 0.4, robot.dof), -3.0, 3.0)) for q in near]
    far = Pose(np.array([9.0, 9.0, 9.0]), np.eye(3))
    rotation, position = (np.array([getattr(p, x) for p in [*poses, far]]) for x in ("rotation", "position"))
    q, found = solver.nearest(rotation, position, np.vstack([near, near[:1]]))
    assert not found[-1]
    assert found[:-1].sum() >= (12 if name in ("puma", "crossed") else 8)
    for k in np.flatnonzero(found):
        check_solution(robot, oracle, q[k], poses[k], 1e-9)
        if solver.arm is not None:
            np.testing.assert_allclose(q[k], solver.branches(poses[k], near[k])[0], rtol=0.0, atol=1e-9)
