"""What is written has our kinematics when other programs, and this one, read it again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from pin_arms import SPOTS, Floats, TrueArm, drawn_values, point_table, urdf

import steelyard as sy
from steelyard.robot.kinematics.poses import link_poses

TABLE = """\
name: bench arm
convention: standard
units: deg
lengths: {a2: 0.3}
base: {rpy: [0, 0, 30], xyz: [0, 0, 0.1]}
rows:
  - {joint: waist, dh: [q, 0.2, 0.05, -90], limits: [-170, 170], link: {name: one, mass: 4, com: [0, 0.1, 0], inertia_com: {xx: 0.1, yy: 0.1, zz: 0.1}}}
  - {joint: shoulder, dh: [q - 90, 0, a2, 0], link: {name: two, mass: 3, com: [-0.1, 0, 0.02], inertia_com: {xx: 0.1, yy: 0.1, zz: 0.1}}}
  - {joint: elbow, dh: [-q, 0, 0.25, 0], link: {name: three, mass: 2, com: [-0.1, 0, 0], inertia_com: {xx: 0.1, yy: 0.1, zz: 0.1}}}
  - {joint: roll, dh: [q, 0.1, 0, 90], link: {name: four, mass: 1, com: [0, 0, 0], inertia_com: {xx: 0.01, yy: 0.01, zz: 0.01}}}
  - {joint: slide, dh: [0, q, 0, 0], limits: [0, 0.4], link: {name: five, mass: 1, com: [0, 0, 0], inertia_com: {xx: 0.01, yy: 0.01, zz: 0.01}}}
"""  # noqa: E501


def _calibrated(source: Path, tmp_path: Path) -> tuple[sy.Calibration, Path]:
    """Readings of a robot that differs from its description: every joint frame is displaced a little."""
    robot = sy.load_robot(source, snap=0.0)
    rng = np.random.default_rng(3)
    model = pin.Model()
    for k, link in enumerate(robot.links):
        small = pin.SE3(pin.exp3(1e-3 * rng.normal(size=3)), 5e-4 * rng.normal(size=3))
        kind = pin.JointModelRevoluteUnaligned if link.kind == "revolute" else pin.JointModelPrismaticUnaligned
        model.addJoint(k, kind(np.array(link.axis)), pin.SE3(link.rotation, link.translation) * small, f"j{k}")
    data, q = model.createData(), rng.uniform(-1.5, 1.5, (60, robot.dof))
    seen = []
    for row in q:
        pin.forwardKinematics(model, data, row)
        seen.append([data.oMi[-1].act(s) for s in SPOTS])
    points = np.array(seen) + 2e-5 * rng.normal(size=(60, 3, 3))
    table = {name: q[:, k] for k, name in enumerate(robot.joint_names)}
    table |= {f"p{i + 1}{x}_m": points[:, i, c] for i in range(3) for c, x in enumerate("xyz")}
    found = sy.calibrate(source, table)
    found.save(tmp_path / "run")
    return found, tmp_path / "run"


def _tips(robot: sy.Robot, q: Floats) -> tuple[Floats, Floats]:
    rotations, origins = link_poses(robot, q)
    return rotations[:, -1], origins[:, -1]


def test_a_dh_table_has_the_same_kinematics_and_the_same_dynamics(tmp_path: Path) -> None:
    source = tmp_path / "bench.yaml"
    source.write_text(TABLE, encoding="utf-8")
    found, folder = _calibrated(source, tmp_path)
    assert "axes" in found.effects
    again = sy.load_robot(folder / "bench_arm_calibrated.yaml", snap=0.0)
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (50, 5))
    for ours, theirs in zip(_tips(found.robot, q), _tips(again, q), strict=True):
        assert theirs == pytest.approx(ours, abs=1e-9)
    assert again.joints[0].upper == pytest.approx(np.deg2rad(170.0))
    assert again.joint_names == found.robot.joint_names
    # Inertias moved with the frames: the torques at rest and in motion are the same.
    dq, ddq = np.ones_like(q), 2.0 * np.ones_like(q)
    torques = [sy.Model.nominal(r).torque(q, dq, ddq) for r in (found.robot, again)]
    assert torques[1] == pytest.approx(torques[0], abs=1e-7)  # centres are far from their origins if d are large


def test_a_urdf_keeps_its_text_and_has_the_same_kinematics_in_pinocchio(tmp_path: Path) -> None:
    source = tmp_path / "arm.urdf"
    source.write_text(urdf(4).replace('<link name="base"/>', '<link name="base"/><!-- kept -->'), encoding="utf-8")
    found, folder = _calibrated(source, tmp_path)
    path = folder / "arm_calibrated.urdf"
    assert "<!-- kept -->" in path.read_text(encoding="utf-8")
    model = pin.buildModelFromUrdf(str(path))
    data, q = model.createData(), np.random.default_rng(1).uniform(-1.5, 1.5, (50, 6))
    rotations, origins = _tips(found.robot, q)
    for row, rotation, origin in zip(q, rotations, origins, strict=True):
        pin.forwardKinematics(model, data, row)
        assert data.oMi[-1].translation == pytest.approx(origin, abs=1e-9)
        assert data.oMi[-1].rotation == pytest.approx(rotation, abs=1e-9)


def test_the_original_is_never_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "arm.urdf"
    source.write_text(urdf(4), encoding="utf-8")
    found, _ = _calibrated(source, tmp_path)
    with pytest.raises(sy.SteelyardError, match="original description"):
        found.to_urdf(source)
    assert source.read_text(encoding="utf-8") == urdf(4)


def test_offsets_alone_go_into_the_mapping_of_logs(tmp_path: Path) -> None:
    """A joint whose zero is off: with the written offsets, a log of the robot has the true positions."""
    text = urdf(0)
    robot = sy.load_robot(text, snap=0.0)
    arm = TrueArm(text, {"joint2.offset": 0.01, "joint4.offset": -0.02})
    rng = np.random.default_rng(1)
    found = sy.calibrate(robot, point_table(arm, rng.uniform(-1.8, 1.8, (60, 6)), 3, 2e-5, rng), effects=("offsets",))
    found.save(tmp_path / "run")
    n = 200
    q = np.sin(np.linspace(0.0, 6.0, n))[:, None] * np.ones(6)
    columns = {"t": 0.01 * np.arange(n)} | {f"q{k + 1}": q[:, k] for k in range(6)}
    columns |= {f"tau{k + 1}": np.zeros(n) for k in range(6)}
    read = sy.read_log(columns, robot, tmp_path / "run" / "offsets.toml")
    shift = np.mean(read.q - q, axis=0)
    # Offsets of the first and last joint are one with the sensor's place and the tool.
    assert shift[[1, 3]] == pytest.approx([0.01, -0.02], abs=1e-4)
    assert shift[[2, 4]] == pytest.approx([0.0, 0.0], abs=1e-4)


def test_a_calibrated_robot_is_a_robot_to_identify(tmp_path: Path) -> None:
    """Torques by Pinocchio of the true arm: the corrected file leaves less than half of the error of the original.

    The rest is the tilt of the first joint to gravity, which is one with the place of the sensor.
    """
    source = tmp_path / "arm.urdf"
    source.write_text(urdf(5, joints=3), encoding="utf-8")
    robot = sy.load_robot(source, snap=0.0)
    # The first joint is as described.
    drawn = drawn_values(robot, 5, ("offsets", "axes"))
    values = {name: 30.0 * v for name, v in drawn.items() if not name.startswith("joint1.")}
    arm = TrueArm(urdf(5, joints=3), values)
    rng = np.random.default_rng(0)
    found = sy.calibrate(source, point_table(arm, rng.uniform(-1.8, 1.8, (60, 3)), 3, 2e-5, rng))
    found.save(tmp_path / "run")
    _, true = arm._models
    true.gravity = pin.Motion(np.array([0.0, 0.0, -9.81]), np.zeros(3))
    data, t = true.createData(), 0.01 * np.arange(500)
    phase = np.outer(t, [1.9, 2.7, 3.5])
    q, dq = 0.9 * np.sin(phase), 0.9 * np.cos(phase) * [1.9, 2.7, 3.5]
    ddq = -0.9 * np.sin(phase) * np.array([1.9, 2.7, 3.5]) ** 2
    offset = arm.joint_values("offset")
    tau = np.array([pin.rnea(true, data, a + offset, b, c) for a, b, c in zip(q, dq, ddq, strict=True)])
    log = sy.Log(robot.joint_names, t, q, dq=dq, ddq=ddq, tau=tau)
    errors = [
        np.sqrt(np.mean((sy.identify(r, log, terms=()).model.torque(q, dq, ddq) - tau) ** 2))
        for r in (robot, sy.load_robot(tmp_path / "run" / "arm_calibrated.urdf", snap=0.0))
    ]
    assert errors[1] < 0.5 * errors[0]
