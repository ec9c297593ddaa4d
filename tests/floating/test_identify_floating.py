"""A floating trunk with an arm, simulated by Pinocchio: planted inertias come back from every kind of base motion."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from floating_plants import DESCRIBED, NAMES, TRUE, columns_of, swimmer_log, swimmer_mapping
from log_files import real_logs

from steelyard.errors import SteelyardError
from steelyard.floating import identify_floating
from steelyard.floating.motion import Preparer
from steelyard.floating.setup import FloatingMapping
from steelyard.robot import load_robot

BASES = {
    "pose": None,
    "twist in world axes": {
        "position": list(NAMES["position"]), "orientation": list(NAMES["orientation"]),
        "linear_velocity": list(NAMES["twist"][:3]), "angular_velocity": list(NAMES["gyro"]), "twist": "mixed",
    },
    "imu": {"gyroscope": list(NAMES["gyro"]), "accelerometer": list(NAMES["force"])},
}  # fmt: skip


@pytest.fixture(scope="module")
def log() -> dict:
    return swimmer_log(pytest.importorskip("pinocchio"))


def write(log: dict, path: Path) -> Path:
    columns = columns_of(log)
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


@pytest.mark.parametrize("kind", BASES)
def test_planted_bodies_come_back_from_every_source_of_base_motion(kind: str, log: dict, tmp_path: Path) -> None:
    robot, true = load_robot(DESCRIBED, floating=True), load_robot(TRUE, floating=True)
    path = write(log, tmp_path / "log.csv")
    result = identify_floating(
        robot, path, mapping=swimmer_mapping(BASES[kind]), terms="viscous", cutoff_hz=8.0, holdout=0.3
    )
    assert result.model.possible
    mass, truth = result.bodies[:, 0], true.inertial_parameters.reshape(-1, 10)[:, 0]
    # The plant has a noise of 0.1 mm, 0.1 mrad and 0.05 N; the description is wrong by a fifth.
    assert mass.sum() == pytest.approx(truth.sum(), rel=2e-3)
    centre = result.bodies[0, 1:4] / mass[0]
    described = robot.inertial_parameters[1:4] / robot.inertial_parameters[0]
    assert abs(mass[0] / truth[0] - 1) < 0.02 < abs(5.0 / 6.0 - 1)
    assert np.all(np.abs(centre - [0.02, -0.01, 0.03]) < 4e-3), described
    assert result.verdict().kind == "good"
    assert result.scores[0].error < 0.2 * result.scores[0].described


def test_rows_of_the_base_alone_identify_the_arm_without_torques(log: dict, tmp_path: Path) -> None:
    """Ayusawa, Venture & Nakamura 2014: the six rows of the base show all base parameters."""
    robot = load_robot(DESCRIBED, floating=True)
    mapping = swimmer_mapping()
    mapping["torque"] = False
    path = write(log, tmp_path / "log.csv")
    result = identify_floating(robot, path, mapping=mapping, cutoff_hz=8.0)
    assert result.equations == robot.joint_names[:6]
    assert result.fit.base.rank == result.structural_rank == 10 + 2 * 7
    assert result.bodies[:, 0].sum() == pytest.approx(8.5, rel=2e-3)


def test_an_unknown_contact_is_projected_out(tmp_path: Path) -> None:
    """With the hand at rest and an unknown wrench, the robot is an arm whose base is the hand.

    Six of eight rows disappear, and two joints at a resting base show fewer combinations.
    """
    pin = pytest.importorskip("pinocchio")
    robot, true = load_robot(DESCRIBED, floating=True), load_robot(TRUE, floating=True)
    path = write(swimmer_log(pin, resting=True), tmp_path / "log.csv")
    mapping = swimmer_mapping(contact={"kind": "flat"})
    result = identify_floating(robot, path, mapping=mapping, terms="viscous", cutoff_hz=8.0)
    assert len(result.equations) == 2
    assert result.phases[0]["rank"] == result.fit.base.rank < result.structural_rank
    theta = np.concatenate([true.inertial_parameters, np.zeros(2)])
    estimate = result.fit.estimate
    z = (estimate.beta - estimate.base.matrix @ theta) / estimate.standard_errors
    # One log: few of these base parameters may miss their 95 % interval, none by far.
    assert np.sum(np.abs(z) > 2.0) <= 2
    assert np.abs(z).max() < 4.0


def test_contact_jacobians_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    robot = load_robot(TRUE, floating=True)
    model = pin.buildModelFromXML(TRUE, pin.JointModelFreeFlyer())
    preparer = Preparer(robot, FloatingMapping.of(swimmer_mapping(), robot))
    rng = np.random.default_rng(0)
    four = rng.standard_normal(4)
    four /= np.linalg.norm(four) * np.sign(four[0])
    q = np.concatenate([rng.standard_normal(3), four[1:], rng.standard_normal(2)])
    position = np.concatenate([q[:3], four[1:], four[:1], q[6:]])
    expected = pin.computeFrameJacobian(model, model.createData(), position, model.getFrameId("hand"), pin.LOCAL)
    found = preparer.contact_jacobian(preparer.known[0], q[None])[0]
    assert np.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": {"orientation": ["a", "b", "c", "d"]}}, ["orientation", "wxyz"]),
        ({"base": {"linear_velocity": ["vx", "vy", "vz"]}}, ["axes of the velocities", "twist"]),
        ({"base": {"gyroscope": ["gx", "gy", "gz"]}}, ["accelerometer"]),
        ({"base": {"position": ["px"]}}, ["position", "1 columns"]),
        ({"contacts": {"foot": {}}}, ["frame 'foot'", "hand"]),
        ({"contacts": {"hand": {"wrench": ["fx"]}}}, ["wrench", "three"]),
        ({"passive": {"x": "c"}}, ["joint 'x'"]),
    ],
)
def test_a_wrong_statement_is_refused_with_its_place(change: dict, words: list[str]) -> None:
    robot = load_robot(TRUE, floating=True)
    with pytest.raises(SteelyardError) as caught:
        FloatingMapping.of(swimmer_mapping() | change, robot)
    for word in words:
        assert word in str(caught.value)


def test_a_floating_base_without_its_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(TRUE)
    (tmp_path / "log.csv").write_text("t,q1,q2,tau1,tau2\n0,0,0,0,0\n1,0,0,0,0\n")
    with pytest.raises(SteelyardError, match=r"\[base\]"):
        identify_floating(load_robot(tmp_path / "robot.urdf", floating=True), tmp_path / "log.csv")


def test_one_jump_of_a_real_leg_is_not_called_a_model(tmp_path: Path) -> None:
    """A person carries part of its weight, and the second half contradicts the first."""
    folder = real_logs("floating/hopper_leg")
    mapping = {
        "time": "t_s", "joints": ["HFE", "KFE"], "position": ["q_HFE_rad", "q_KFE_rad"],
        "torque": ["tau_HFE_Nm", "tau_KFE_Nm"], "passive": {"joint_z": "height_m"},
        "contacts": {"contact": {"wrench": ["ati_Fx_N", "ati_Fy_N", "ati_Fz_N"]}},
    }  # fmt: skip
    result = identify_floating(folder / "robot.urdf", folder / "hop.parquet", mapping=mapping, holdout=0.5)
    assert result.verdict().kind == "bad"
    assert result.model.possible
    result.save(tmp_path / "run")
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    assert document["phases"][0]["contacts"] == "contact (measured)"
    assert (tmp_path / "run" / "hopper_leg.urdf").exists()
