"""In logs of real robots the check reports the known faults and no other problem."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from steelyard.check import Check, check_log
from steelyard.robot.load import load_robot
from steelyard.signals.read import read_log

TIAGO = ["torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))]
UR10E = {"torque_constants": [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]}


# Motor 6 turns with joints 5 and 6, as papers of its owner say; positions and torques are at the joints.
COUPLING = [[float(a == b or (a, b) == (5, 4)) for b in range(6)] for a in range(6)]


def _checked(folder: str, file: str, mapping: dict[str, Any], joints: list[str] | None = None) -> Check:
    root = os.environ.get("STEELYARD_DATA")
    if not root or not (Path(root) / folder).is_dir():
        pytest.skip(f"STEELYARD_DATA does not lead to the logs of {folder}")
    robot = load_robot(Path(root) / folder / "robot.urdf", joints=joints, snap=1e-4)
    return check_log(robot, read_log(Path(root) / folder / f"{file}.parquet", robot, mapping))


def test_tiago_has_three_useless_channels() -> None:
    """The owner of the robot says so; a plain cross-correlation confirms the lag of 190 ms."""
    constants = [1, 13.6, 13.6, -8.7, -8.7, -20.5968, -20.5968, -20.5968]
    mapping = {"joints": TIAGO, "torque_constants": constants, "window": [921, 6791]}
    found = _checked("tiago", "trajectory", mapping, TIAGO)
    assert [e.joint for e in found.of("quantised")] == ["arm_5_joint", "arm_6_joint", "arm_7_joint"]
    assert found.of("velocity_delay")[0].severity == "warning"
    assert not [e for e in found.entries if e.severity == "problem"]
    assert any("torque_used" in advice for advice in found.advice)


@pytest.mark.parametrize(
    ("folder", "file", "mapping"),
    [
        ("ur10e", "ident__20_02_10-30sec_12harm", {**UR10E, "window": [635, 3510]}),
        ("ur10e", "val__20_01_17-ptp_10_points", {**UR10E, "window": [700, 4200]}),
        ("panda_gaz", "trajectory_1", {"position": "q{}", "torque": "tau{}"}),
        ("staubli_tx40", "trajectory", {"side": "joint", "coupling": COUPLING}),
        ("emps", "ident", {"joints": ["joint1"], "position": "q1", "torque": "tau1"}),
    ],
)
def test_sound_logs_have_no_problem(folder: str, file: str, mapping: dict[str, Any]) -> None:
    """The inertias of the Panda and of the EMPS are placeholders, and raise no false alarm."""
    found = _checked(folder, file, mapping)
    # Of the Panda's rows 5 % do repeat the one before; they are left out.
    assert [e for e in found.complaints if e.kind != "repeated"] == []


def test_the_coupled_wrist_of_a_real_robot_is_found() -> None:
    found = _checked("staubli_tx40", "trajectory", {})
    assert [e.kind for e in found.complaints] == ["coupled"]
    fix = found.complaints[0].fix
    assert fix == {"coupling": {"joint": "joint_5", "motor": "joint_6", "factor": 1.0, "torque": "joint"}}
