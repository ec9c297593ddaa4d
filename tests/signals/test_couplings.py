"""Couplings with more or fewer motors than joints, and rows with gaps."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import chain, columns, motion, write_csv

from steelyard.errors import LogError
from steelyard.robot.transmission import Transmission
from steelyard.signals.read import log_chunks, read_log
from steelyard.signals.robot_setup import apply_log_setup

ARM = chain("a", "b")
SIGNALS = motion(samples=200)
TENDONS = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]])  # three motors for two joints
RATIOS = [10.0, 20.0, -5.0]


def _motor_log(path, matrix, ratios, tension=0.0):
    """Motor signals for the joint SIGNALS; with more motors than joints the motor torques are not unique."""
    drive = Transmission(matrix)
    rng = np.random.default_rng(3)
    effort = np.linalg.lstsq(matrix.T, SIGNALS["tau"].T, rcond=None)[0].T
    null = np.eye(len(matrix)) - matrix @ np.linalg.pinv(matrix)
    effort = effort + tension * (rng.normal(size=effort.shape) @ null)
    signals = {
        "t": SIGNALS["t"],
        "q": drive.drive(SIGNALS["q"]) * ratios,
        "dq": drive.drive(SIGNALS["dq"]) * ratios,
        "tau": effort / ratios,
    }
    return write_csv(path, columns(signals))


def test_more_motors_than_joints(tmp_path):
    """Antagonistic tendon forces do not affect the joint torques: Cᵀ removes them."""
    path = _motor_log(tmp_path / "run.csv", TENDONS, RATIOS, tension=3.0)
    mapping = {"joints": ["a", "b"], "coupling": TENDONS.tolist(), "gear_ratio": RATIOS, "motors": ["m1", "m2", "m3"]}
    log = read_log(path, ARM, mapping)
    for name in ("q", "dq", "tau"):
        np.testing.assert_allclose(getattr(log, name), SIGNALS[name], atol=1e-12)
    assert not any(finding.kind == "motors_disagree" for finding in log.findings)
    robot = apply_log_setup(ARM, [log])
    assert robot.transmission is not None
    assert robot.transmission.motors == ("m1", "m2", "m3")
    np.testing.assert_array_equal(robot.transmission.matrix, TENDONS)
    wrong = read_log(path, ARM, mapping | {"gear_ratio": [10.0, 20.0, 5.0]})
    assert any("disagree with the coupling by" in finding.message for finding in wrong.findings)


def test_a_robot_with_fewer_joints_than_the_coupling(tmp_path):
    path = _motor_log(tmp_path / "run.csv", TENDONS, RATIOS)
    log = read_log(path, chain("b"), {"joints": ["a", "b"], "coupling": TENDONS.tolist(), "gear_ratio": RATIOS})
    np.testing.assert_allclose(log.tau, SIGNALS["tau"][:, 1:], atol=1e-12)


def test_fewer_motors_than_joints(tmp_path):
    """One motor for two joints of a finger does not determine their positions, unless an inverse is stated."""
    finger = [[1.0, 1.0]]
    signals = {"t": SIGNALS["t"], "q": SIGNALS["q"], "tau": SIGNALS["tau"][:, :1]}
    path = write_csv(
        tmp_path / "run.csv", {**columns({k: signals[k] for k in ("t", "q")}), "tau1": signals["tau"][:, 0]}
    )
    with pytest.raises(LogError, match=r"1 motors do not determine 2 joint positions; state coupling_inverse"):
        read_log(path, ARM, {"coupling": finger, "position": ["q1"], "torque": ["tau1"]})
    sides = {"position": "joint", "velocity": "joint", "torque": "motor"}
    log = read_log(path, ARM, {"coupling": finger, "side": sides, "torque": ["tau1"]})
    np.testing.assert_array_equal(log.q, SIGNALS["q"])
    np.testing.assert_array_equal(log.tau, np.repeat(signals["tau"], 2, axis=1))
    inverse = {"coupling": finger, "coupling_inverse": [[0.25], [0.75]], "position": ["q1"], "torque": ["tau1"]}
    np.testing.assert_allclose(read_log(path, ARM, inverse).q, SIGNALS["q"][:, :1] * [0.25, 0.75])


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"coupling": [[1, 0], [2, 0], [3, 0]]}, "is singular"),
        ({"coupling": [[1, 0], [1]]}, "one row per motor, with one number per joint"),
        ({"joints": ["a", "b"], "coupling": [[1, 0, 0], [0, 1, 0]]}, "has 3 columns, but there are 2 joints"),
        ({"coupling": [[1, 1]], "coupling_inverse": [[1], [1]]}, "is not an inverse"),
        ({"coupling": [[1, 1]], "coupling_inverse": [[1, 0]]}, "is 1 × 2, not 2 × 1"),
        ({"coupling": [[1, 1]], "motors": ["x", "y"]}, "names 2 motors"),
        ({"motors": ["x"]}, "needs the key coupling"),
        ({"coupling": [[1, 0], [0, 1], [1, 1]], "gear_ratio": [1, 2]}, "has 2 numbers, but there are 3"),
    ],
)
def test_impossible_couplings_are_refused(tmp_path, mapping, words):
    path = write_csv(tmp_path / "run.csv", columns(SIGNALS))
    with pytest.raises(LogError, match=words):
        read_log(path, ARM, mapping)


def _with_holes(path, rows):
    table = {name: x.copy() for name, x in columns(SIGNALS).items()}
    for name, some in rows.items():
        table[name][some] = np.nan
    return write_csv(path, table)


def test_rows_with_gaps_are_refused_or_dropped_and_counted(tmp_path):
    path = _with_holes(tmp_path / "run.csv", {"q1": [10, 11], "tau2": [11, 150], "t": [60]})
    with pytest.raises(LogError, match=r"row 11, column 'q1'.*drop such rows with nan_rows"):
        read_log(path, ARM, {"time": {"rate": 100}})
    log = read_log(path, ARM, {"nan_rows": "drop"})
    assert len(log) == 196
    (finding,) = (f for f in log.findings if f.kind == "nan_rows")
    assert (finding.count, finding.row, finding.severity) == (4, 11, "warning")
    kept = np.delete(np.arange(200), [10, 11, 60, 150])
    np.testing.assert_array_equal(log.t, SIGNALS["t"][kept])
    np.testing.assert_array_equal(log.tau, SIGNALS["tau"][kept])
    assert log.meta["rows"] == [1, 200]
    assert len(log.segments) == 1  # a step of three periods is not a gap


def test_a_log_without_time_keeps_its_times_when_rows_are_dropped(tmp_path):
    path = _with_holes(tmp_path / "run.csv", {"q1": [10]})
    log = read_log(path, ARM, {"time": {"rate": 100.0}, "nan_rows": "drop"})
    np.testing.assert_allclose(log.t, np.delete(SIGNALS["t"], 10))


def test_messages_have_row_numbers_of_the_file(tmp_path):
    table = {name: x.copy() for name, x in columns(SIGNALS).items()}
    table["q1"][[5, 6]] = np.nan
    table["t"][100:] += 5.0
    log = read_log(write_csv(tmp_path / "run.csv", table), ARM, {"nan_rows": "drop"})
    assert next(f.row for f in log.findings if f.kind == "gap") == 101


def test_pieces_of_a_log_with_gaps(tmp_path):
    path = _with_holes(tmp_path / "run.csv", {"q1": [10, 120], "dq1": [150]})
    pieces = list(log_chunks(path, ARM, {"nan_rows": "drop"}, size=100, overlap=20))
    joined = np.concatenate([piece.q[slice(*piece.meta["core"])] for piece in pieces])
    np.testing.assert_array_equal(joined, np.delete(SIGNALS["q"], [10, 120, 150], axis=0))
