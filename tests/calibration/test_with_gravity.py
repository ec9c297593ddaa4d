"""Geometry and gravity of one robot: compliance under identified torques, not under those of the description."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from pin_arms import Floats, TrueArm, point_table, urdf
from typer.testing import CliRunner

import steelyard as sy
from steelyard.calibration import read_torques
from steelyard.cli.app import app
from steelyard.ground.files import csv_text

COMPLIANCE = {"joint2.compliance": 2e-4, "joint3.compliance": 4e-4}


@cache
def readings() -> tuple[str, dict[str, Floats], Floats]:
    """An arm that carries 3 kg more than its description states, its readings and the torques that hold it."""
    text = urdf(8)
    heavy = text.replace(f'<mass value="{8.0 * 0.6**5}"', '<mass value="3.6"')
    assert heavy != text
    arm, rng = TrueArm(heavy, COMPLIANCE), np.random.default_rng(0)
    q = rng.uniform(-1.8, 1.8, (80, 6))
    model = pin.buildModelFromXML(heavy)
    data = model.createData()
    tau = np.array([pin.computeGeneralizedGravity(model, data, x).copy() for x in q])
    return text, point_table(arm, q, 3, 2e-5, rng), tau + 0.01 * rng.normal(size=tau.shape)


def test_compliance_is_right_with_identified_gravity_and_wrong_with_other_masses() -> None:
    text, table, tau = readings()
    robot = sy.load_robot(text, snap=0.0)
    log = read_torques(table | {f"tau{k + 1}_Nm": tau[:, k] for k in range(6)}, robot)
    gravity = sy.identify_gravity(robot, log, rows=True)
    effects = ("offsets", "axes", "compliance")
    for model, right in ((gravity, True), (None, False)):
        found = sy.calibrate(robot, table, effects=effects, gravity=model)
        rows = {row["name"]: row for row in found.parameters()}
        inside = [
            abs(rows[name]["value"] - value) < 3.0 * rows[name]["standard_error"] for name, value in COMPLIANCE.items()
        ]
        assert all(inside) == right


def test_one_report_has_both(tmp_path: Path) -> None:
    text, table, tau = readings()
    (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")
    columns = table | {f"tau{k + 1}": tau[:, k] for k in range(6)}
    rows = np.column_stack(list(columns.values())).tolist()
    path = tmp_path / "poses.csv"
    path.write_text(csv_text([list(columns), *([repr(x) for x in row] for row in rows)]), encoding="utf-8")
    words = ["calibrate", str(tmp_path / "arm.urdf"), str(path), "--torques", str(path), "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "with friction" in page
    assert "Corrections" in page
    assert "Errors in space, before and after" in page
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"arm_calibrated.urdf", "poses.csv", "arm.c", "arm.h", "report.html", "result.json"} <= names


def test_gravity_of_another_robot_is_refused() -> None:
    text, table, tau = readings()
    robot = sy.load_robot(text, snap=0.0)
    log = read_torques(table | {f"tau{k + 1}_Nm": tau[:, k] for k in range(6)}, robot)
    gravity = sy.identify_gravity(robot, log, rows=True)
    other = sy.load_robot(text.replace("joint6", "wrist"), snap=0.0)
    with pytest.raises(sy.SteelyardError, match="identify gravity with the robot to calibrate"):
        sy.calibrate(other, {n.replace("q6_rad", "wrist"): c for n, c in table.items()}, gravity=gravity)
