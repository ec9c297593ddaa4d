"""Projection of unknown forces, and statements about the base that the log contradicts."""

from __future__ import annotations

import numpy as np
import pytest
from floating_plants import TRUE, swimmer_log

from steelyard.dynamics.frame_motion import FrameJacobian, StackedJacobian
from steelyard.dynamics.projected_regressor import ProjectedRegressor
from steelyard.floating.base_motion import body_motion, look_at_base, rotations_of
from steelyard.floating.null_space import null_space
from steelyard.floating.setup import BaseColumns
from steelyard.robot import load_robot
from steelyard.robot.free import whole_quaternion
from steelyard.signals.filters import LowPass

GRAVITY = np.array([0.0, 0.0, -9.81])


def smooth_jacobians(rng: np.random.Generator, repeats: bool) -> np.ndarray:
    t = np.linspace(0.0, 1.0, 50)[:, None, None]
    U = rng.standard_normal((6, 12)) + np.sin(2 * t) * rng.standard_normal((6, 12))
    return np.concatenate([U, 2.0 * U[:, :2] + U[:, 2:4]], axis=1) if repeats else U


@pytest.mark.parametrize("repeats", [False, True])
def test_the_projection_is_that_of_the_pseudo_inverse_with_an_orthonormal_basis(repeats: bool) -> None:
    """N spans what I − J⁺J leaves, for contacts that repeat each other too, and turns smoothly."""
    rng = np.random.default_rng(1)
    scale = rng.uniform(0.5, 2.0, 12)
    U = smooth_jacobians(rng, repeats)
    N, usual = null_space(U, scale)
    assert usual.all()
    assert N.shape == (50, 12, 6)
    for k in range(50):
        J = U[k] * scale
        assert np.allclose(N[k] @ N[k].T, np.eye(12) - np.linalg.pinv(J) @ J, atol=1e-10)
        assert np.allclose(N[k].T @ N[k], np.eye(6), atol=1e-10)
    assert np.abs(np.diff(N, axis=0)).max() < 0.1


def test_white_noise_stays_white() -> None:
    """The classical projection I − J⁺J gives as many rows as joints, with correlated noise; N does not."""
    rng = np.random.default_rng(2)
    N, _ = null_space(smooth_jacobians(rng, False), np.ones(12))
    noise = rng.standard_normal((400, 12))
    projected = np.concatenate([noise @ N[k] for k in range(0, 50, 10)])
    assert np.abs(np.cov(projected.T) - np.eye(6)).max() < 0.2  # 2000 samples: ± 0.03 at 1 σ


def test_compiled_rows_are_those_of_pinocchio_projected_by_the_pseudo_inverse() -> None:
    """Any orthonormal basis gives the same AᵀA = Yᵀ D (I − J⁺J) D Y; the force is one more column."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(TRUE, pin.JointModelFreeFlyer())
    data, hand = model.createData(), model.getFrameId("hand")
    robot = load_robot(TRUE, floating=True)
    contact = StackedJacobian([FrameJacobian(robot, robot.frame("hand"))], [(0, 1, 2)])
    rows = ProjectedRegressor(robot.dynamics, contact)
    rng = np.random.default_rng(3)
    q, dq, ddq, f = rng.uniform(-0.4, 0.4, (4, 70, 8))
    scale, columns = rng.uniform(0.5, 2.0, 8), [0, *range(5, 30)]
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    for closed, missing in (([0, 1, 2], []), ([0, 2], [7]), ([], [6, 7])):
        free = 8 - len(closed) - len(missing)
        made = rows(q, dq, ddq, f, columns, closed, missing, basis[:, :free], scale)
        assert made is not None
        for k in range(len(q)):
            four = whole_quaternion(q[k, 3:6])
            at = np.concatenate([q[k, :3], np.roll(four, -1), q[k, 6:]])
            Y = pin.computeJointTorqueRegressor(model, data, at, dq[k], ddq[k])
            J = pin.computeFrameJacobian(model, data, at, hand, pin.LOCAL)[closed]
            J = np.vstack([J, np.eye(8)[missing]]) * scale
            W = scale[:, None] * np.column_stack([Y[:, columns], f[k]])
            wanted = W.T @ (np.eye(8) - np.linalg.pinv(J) @ J) @ W
            own = made[0][k].T @ made[0][k]
            if made[1][k] > 1e-2 and made[2][k] < 1e3:
                assert np.allclose(own, wanted, atol=1e-9 * np.abs(wanted).max())
        assert np.mean((made[1] > 1e-2) & (made[2] < 1e3)) > 0.5


@pytest.fixture(scope="module")
def log() -> dict:
    return swimmer_log(pytest.importorskip("pinocchio"), seconds=6.0, noise=0.0)


def test_imu_with_lever_arm_and_pose_give_the_same_motion(log: dict) -> None:
    """Rigid-body kinematics: an IMU at r reads f + ω̇ × r + ω × (ω × r)."""
    low_pass = LowPass(40.0, 1.0 / 200.0)
    pose = {"position": log["position"], "orientation": log["orientation"]}
    by_pose = body_motion(pose, BaseColumns(quaternion="wxyz"), GRAVITY, low_pass)
    r = np.array([0.1, -0.05, 0.2])
    turn = np.gradient(log["gyro"], 1.0 / 200.0, axis=0)
    force = log["force"] + np.cross(turn, r) + np.cross(log["gyro"], np.cross(log["gyro"], r))
    signals = {"gyroscope": log["gyro"], "accelerometer": force, "orientation": log["orientation"]}
    columns = BaseColumns(quaternion="wxyz", imu_position=tuple(r))
    by_imu = body_motion(signals, columns, GRAVITY, low_pass)
    inner = slice(100, -100)

    def pull(m) -> np.ndarray:
        down = np.einsum("tji,j->ti", m.rotation, GRAVITY)
        return (m.ddq[:, :3] + np.cross(m.dq[:, 3:], m.dq[:, :3]) - down)[inner]

    assert np.abs(pull(by_pose) - pull(by_imu)).max() < 0.05  # differences at 200 Hz of motions up to 1.2 Hz
    assert np.abs(by_pose.dq[inner, 3:] - by_imu.dq[inner, 3:]).max() < 0.01


def test_statements_that_the_log_contradicts_are_named_with_their_fix(log: dict) -> None:
    low_pass = LowPass(20.0, 1.0 / 200.0)
    signals = {"orientation": log["orientation"], "position": log["position"], "angular_velocity": log["gyro"]}
    right = BaseColumns(quaternion="wxyz", twist="body")
    assert look_at_base(signals, right, GRAVITY, low_pass) == []
    swapped = {**signals, "orientation": np.roll(log["orientation"], -1, axis=1)}
    (found,) = look_at_base(swapped, right, GRAVITY, low_pass)
    assert (found.kind, 'quaternion = "xyzw"' in found.advice) == ("quaternion", True)
    (found,) = look_at_base(signals, BaseColumns(quaternion="wxyz", twist="world"), GRAVITY, low_pass)
    assert (found.kind, 'twist = "body"' in found.advice) == ("twist", True)
    up = rotations_of(log["orientation"])[:, 2] * 9.81
    without = {"orientation": log["orientation"], "gyroscope": log["gyro"], "accelerometer": log["force"] - up}
    (found,) = look_at_base(without, right, GRAVITY, low_pass)
    assert found.kind == "gravity"
