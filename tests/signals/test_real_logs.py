"""Logs of real robots, read with the mappings of their descriptions."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import real_logs

from steelyard.robot.load import load_robot
from steelyard.signals.read import read_log
from steelyard.signals.table import read_table


def _log(tmp_path, folder, file, text, joints=None):
    (tmp_path / "map.toml").write_text(text)
    robot = load_robot(real_logs(folder) / "robot.urdf", joints=joints)
    return read_log(real_logs(folder) / file, robot, tmp_path / "map.toml")


def test_ur10e(tmp_path):
    name = "ident__20_02_10-30sec_12harm"
    text = f"""
joints = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint"]
time = "t"
position = "q{{}}"
velocity = "dq{{}}"
current = "i{{}}"
torque_constants = [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]
gravity = [0, 0, -9.81]
[window]
"{name}" = [635, 3510]
"""
    log = _log(tmp_path, "ur10e", f"{name}.parquet", text)
    raw = read_table(real_logs("ur10e") / f"{name}.parquet")
    assert log.q.shape == (2876, 6)
    np.testing.assert_allclose(log.tau[:, 2], 9.839 * raw.numbers("i3")[634:3510], rtol=1e-6)
    steps = np.diff(log.t)
    assert log.meta["period"] == pytest.approx(0.010, rel=1e-6)
    assert np.quantile(steps, 0.999) == pytest.approx(0.012, abs=1e-4)
    assert np.mean(steps) == pytest.approx(0.01065, abs=1e-4)
    assert log.segments == ((0, 2876),)


def test_ur10e_with_a_broken_beginning(tmp_path):
    """Two rows of this run have stamps of an hour before and isolate the row above; all three are omitted."""
    log = _log(tmp_path, "ur10e", "ident__20_02_19_15harm50secLoad.parquet", "torque_constants = 10")
    assert len(log) == 6096
    assert "isolated" in {finding.kind for finding in log.findings}
    assert np.diff(log.t).max() < 0.05


def test_panda(tmp_path):
    log = _log(tmp_path, "panda_gaz", "trajectory_1.parquet", 'position = "q{}"\ntorque = "tau{}"\n')
    # Some of 20544 rows repeat the previous one, because of two clocks.
    assert next(f.count for f in log.findings if f.kind == "repeated") == 1120
    assert log.q.shape == (19424, 7)
    assert log.meta["period"] == pytest.approx(1e-3, rel=1e-6)
    assert np.diff(log.t).max() == pytest.approx(8.81e-3, rel=1e-2)
    assert log.segments == ((0, 19424),)
    assert "jitter" in {finding.kind for finding in log.findings}


def test_tx40_on_the_motor_side(tmp_path):
    """A motor-side log, computed from the file, gives the joint-side signals of the file."""
    n = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    folder = real_logs("staubli_tx40")
    raw = read_table(folder / "trajectory.parquet", stop=2000)
    q = np.stack([raw.numbers(f"q{k}") for k in range(1, 7)], axis=1)
    tau = np.stack([raw.numbers(f"tau{k}") for k in range(1, 7)], axis=1)
    rq, rt = np.diag(n), np.diag(n)
    rq[5, 4] = rt[4, 5] = 32.0
    offset = np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    np.savez(tmp_path / "motors.npz", m=(q - offset) @ rq.T, c=np.linalg.solve(rt, tau.T).T)
    text = """
time = {rate = 5000}
position = "m{}"
torque = "c{}"
side = "motor"
gear_ratio = [32, 32, 45, -48, 45, 32]
coupling = [[1,0,0,0,0,0], [0,1,0,0,0,0], [0,0,1,0,0,0], [0,0,0,1,0,0], [0,0,0,0,1,0], [0,0,0,0,1,1]]
offset = [0, "-pi/2", "pi/2", 0, 0, 0]
"""
    log = _log(tmp_path, "staubli_tx40", tmp_path / "motors.npz", text)
    np.testing.assert_allclose(log.q, q, atol=1e-12)
    np.testing.assert_allclose(log.tau, tau, atol=1e-12)
    assert log.meta["period"] == pytest.approx(2e-4)
    whole = _log(tmp_path, "staubli_tx40", "trajectory.parquet", "")
    assert whole.q.shape == (45000, 6)
    assert whole.meta["period"] == pytest.approx(2e-4)
    assert whole.dq is None


def test_tiago(tmp_path):
    joints = ["torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))]
    text = f"""
joints = {joints}
torque_constants = [1, 13.6, 13.6, -8.7, -8.7, -20.5968, -20.5968, -20.5968]
torque_used = {joints[:5]}
window = [921, 6791]
"""
    log = _log(tmp_path, "tiago", "trajectory.parquet", text, joints=joints)
    assert log.q.shape == (5871, 8)
    assert log.meta["period"] == pytest.approx(0.01, rel=1e-2)
    assert log.meta["torque_used"] == joints[:5]
    raw = read_table(real_logs("tiago") / "trajectory.parquet", ["i4"])
    np.testing.assert_allclose(log.tau[:, 3], -8.7 * raw.numbers("i4")[920:6791], rtol=1e-6)


def test_emps(tmp_path):
    log = _log(tmp_path, "emps", "ident.parquet", 'joints = ["joint1"]\nposition = "q1"\ntorque = "tau1"\n')
    assert log.q.shape == (24841, 1)
    assert log.meta["period"] == pytest.approx(1e-3)
    volts = _log(tmp_path, "emps", "ident.parquet", 'current = "vir"\ntorque_constants = 35.15065188248547\n')
    np.testing.assert_allclose(volts.tau, log.tau, rtol=1e-5, atol=1e-4)
