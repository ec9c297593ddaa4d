"""Payloads and scales of torque channels from poses at rest: torques of Pinocchio, known weights on a real arm."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import real_logs
from oracles import PinocchioOracle, public_robot_path

import steelyard as sy
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.gravity.servo import servo_log
from steelyard.payload import Payload, drive_gains, payload_at_rest, scale_from_model
from steelyard.payload.payload import cuboid
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot(public_robot_path("ur10"))
BODY = cuboid(2.0, np.array([0.1, 0.1, 0.1]), np.array([0.02, -0.03, 0.08]))
LOAD = Payload("", BODY, np.zeros((10, 10)))
BARE, LOADED = PinocchioOracle(ROBOT), PinocchioOracle(LOAD.attach_to(ROBOT))


def poses(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (count, ROBOT.dof))


def table(
    q: np.ndarray, plant: PinocchioOracle, seed: int, noise: float = 0.05, scale: np.ndarray | float = 1.0
) -> Log:
    """A pose in a row, with noise of 0.05 N m; the channel is the torque over its scale."""
    rng, still = np.random.default_rng(seed), np.zeros_like(q)
    tau = plant.over("torque", q, still, still) + 0.3 + noise * rng.normal(size=q.shape)
    return Log(ROBOT.joint_names, np.arange(float(len(q))), q, dq=still, tau=tau / scale)


@pytest.mark.parametrize("same", [True, False], ids=["same poses", "other poses"])
def test_the_payload_comes_back_within_its_error_bars(same: bool) -> None:
    bare = table(poses(25, 1), BARE, 1)
    loaded = table(bare.q if same else poses(25, 2), LOADED, 2)
    found = sy.identify_payload(ROBOT, loaded, bare).load
    assert found.mass == pytest.approx(2.0, abs=4.0 * found.mass_error)
    assert found.mass_error < 0.02
    assert np.all(np.abs(found.center_of_gravity - BODY[1:4] / 2.0) < 4.0 * found.center_of_gravity_error)
    assert found.identifiable == (True,) * 4 + (False,) * 6
    assert found.possible
    assert "same mass" in found.notes[0]


def test_a_known_arm_needs_three_poses_and_no_others() -> None:
    found, _ = payload_at_rest(ROBOT, [table(poses(3, 5), LOADED, 5, 0.01)], (), Model.nominal(ROBOT))
    assert found.mass == pytest.approx(2.0, rel=0.02)
    with pytest.raises(LogError, match="at least 3"):
        payload_at_rest(ROBOT, [table(poses(2, 5), LOADED, 5)], (), Model.nominal(ROBOT))


def test_a_torque_channel_of_the_wrong_scale_widens_the_interval() -> None:
    """Left-out poses do not show it: the scale is the same at all of them."""
    scale = np.array([1.0, 1.05, 0.96, 1.0, 1.0, 1.0])
    q = poses(60, 7)
    found = sy.identify_payload(ROBOT, table(q, LOADED, 8, scale=scale), table(q, BARE, 9, scale=scale)).load
    low, high = found.interval()
    assert low < 2.0 < high


def test_exchanged_logs_and_upright_arms_are_refused() -> None:
    q = poses(25, 1)
    with pytest.raises(EstimationError, match="exchanged"):
        sy.identify_payload(ROBOT, table(q, BARE, 1), table(q, LOADED, 2))
    upright = np.tile([0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0], (6, 1))
    upright[:, 0] = np.linspace(-1.0, 1.0, 6)  # turns about the vertical: the torques never change
    with pytest.raises(EstimationError, match="not identifiable"):
        sy.identify_payload(ROBOT, table(upright, LOADED, 1), table(upright, BARE, 2))


@pytest.mark.parametrize("same", [True, False], ids=["same poses", "other poses"])
def test_a_known_weight_gives_the_scale_of_currents(same: bool) -> None:
    scale = np.array([10.0, 12.0, 9.0, 8.0, 11.0, 7.0])
    bare = table(poses(40, 1), BARE, 1, scale=scale)
    loaded = table(bare.q if same else poses(40, 2), LOADED, 2, scale=scale)
    found = drive_gains(ROBOT, loaded, bare, LOAD)
    assert ROBOT.joint_names[0] not in found.joints  # its axis is vertical
    expected = dict(zip(ROBOT.joint_names, scale, strict=True))
    for joint, value, error in zip(found.joints, found.values, found.standard_errors, strict=True):
        assert value == pytest.approx(expected[joint], abs=4.5 * error)
    assert found.joints[0] == ROBOT.joint_names[1]
    assert found.values[0] == pytest.approx(12.0, rel=0.02)
    assert found.files()["gains.toml"].count("torque_scale = [1, ") == 1  # type: ignore[union-attr]


def test_goal_and_position_of_servos_give_their_stiffness_and_then_gravity() -> None:
    K = np.array([200.0, 400.0, 300.0, 100.0, 80.0, 50.0])
    q = poses(40, 3)
    still = np.zeros_like(q)
    goal = q + BARE.over("torque", q, still, still) / K
    log = Log(ROBOT.joint_names, np.arange(40.0), q, dq=still)
    found = scale_from_model(Model.nominal(ROBOT), [servo_log(log, goal)])
    for joint, value in zip(found.joints, found.values, strict=True):
        assert value == pytest.approx(K[ROBOT.joint_names.index(joint)], rel=1e-6)
    gravity = sy.identify_gravity(ROBOT, servo_log(log, goal, K))
    expected = BARE.over("torque", q, still, still)
    assert np.abs(gravity.torque(q) - expected).max() < 1e-4 * np.abs(expected).max()
    with pytest.raises(SteelyardError, match="are the same"):
        servo_log(log, q)


def test_known_weights_on_a_real_arm() -> None:
    """A weight of nominally 2.5 kg within 2 %. That of 1.25 kg appears as 1.20 kg at each pair of joints alike."""
    folder = real_logs("kuka_iiwa7_static")
    robot = load_robot(folder / "robot.urdf")
    bare, loaded = (sy.read_log(folder / f"load_{x}.parquet", robot) for x in ("0kg", "2500g"))
    found = sy.identify_payload(robot, loaded, bare).load
    assert found.mass == pytest.approx(2.5, rel=0.02)
    low, high = found.interval()
    assert low < 2.5 < high


def test_standing_phases_near_the_vertical_say_that_they_show_no_mass() -> None:
    """UR10e: all stops with the payload are within 4° of the upright arm, where friction hides 2.805 kg."""
    folder = real_logs("ur10e")
    robot = load_robot(folder / "robot.urdf")
    mapping = {"torque_constants": [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]}
    logs = [
        [sy.read_log(folder / f"ident__20_02_19_{n}harm50sec{load}.parquet", robot, mapping) for n in (14, 15)]
        for load in ("", "Load")
    ]
    with pytest.raises(EstimationError, match="not identifiable"):
        sy.identify_payload(robot, logs[1], logs[0], at_rest=True)
