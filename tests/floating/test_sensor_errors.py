"""Delays and biases of sensors: planted ones come back, and the bodies with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from floating_plants import DESCRIBED, NAMES, TRUE, columns_of, swimmer_log, swimmer_mapping

from steelyard.floating import identify_floating
from steelyard.robot import load_robot

IMU = {"gyroscope": list(NAMES["gyro"]), "accelerometer": list(NAMES["force"])}
BIAS = np.array([0.15, -0.1, 0.2])


def late(x: np.ndarray, t: np.ndarray, delay: float) -> np.ndarray:
    return np.column_stack([np.interp(t - delay, t, c) for c in x.T])


def test_planted_delays_and_biases_are_found_and_taken_off(tmp_path: Path) -> None:
    log = swimmer_log(pytest.importorskip("pinocchio"), rate=200.0)
    t = log["t"]
    log["tau"] = late(log["tau"], t, 0.008)
    log["force"] = late(log["force"], t, 0.012) + BIAS
    log["gyro"] = late(log["gyro"], t, 0.012)
    columns = columns_of(log)
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    robot, true = load_robot(DESCRIBED, floating=True), load_robot(TRUE, floating=True)
    result = identify_floating(robot, path, mapping=swimmer_mapping(IMU), terms="viscous", cutoff_hz=8.0)
    assert result.errors is not None
    values, errors = result.errors.values, np.sqrt(np.diag(result.errors.covariance))
    # The measured wrench at the hand is on the clock of the encoders.
    assert values[0] == pytest.approx(0.008, abs=max(4.0 * errors[0], 1e-3))
    assert values[1] == pytest.approx(0.012, abs=max(4.0 * errors[1], 1e-3))
    assert np.all(np.abs(values[2:] - BIAS) < 0.05)
    mass, truth = result.bodies[:, 0], true.inertial_parameters.reshape(-1, 10)[:, 0]
    assert mass.sum() == pytest.approx(truth.sum(), rel=1e-2)
    text = " ".join(result.findings)
    for words in ("Torques are", "Signals of the base are", "bias of"):
        assert words in text
    assert {row["name"] for row in result.to_json()["sensor_errors"]} >= {"torque delay", "bias z"}


def test_a_log_without_errors_gets_none(tmp_path: Path) -> None:
    log = swimmer_log(pytest.importorskip("pinocchio"), rate=200.0, seed=3)
    columns = columns_of(log)
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    robot = load_robot(DESCRIBED, floating=True)
    result = identify_floating(robot, path, mapping=swimmer_mapping(IMU), terms="viscous", cutoff_hz=8.0)
    assert result.errors is not None
    assert np.all(np.abs(result.errors.values[:2]) < 5e-4)
    assert np.all(np.abs(result.errors.values[2:]) < 0.02)
