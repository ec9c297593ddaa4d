"""Logs with a torque sensor, and real logs with commands only."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matching.conftest import Case
from matching.test_rollout import coordinates_of

from steelyard.matching import Drives, match_robot
from steelyard.matching.command_stretch import command_stretches
from steelyard.matching.inverse_start import linear_start
from steelyard.matching.window_rollout import Physics
from steelyard.robot import Robot

DATA = Path(os.environ.get("STEELYARD_DATA", "nowhere"))


def test_a_measured_torque_shows_wrong_gains(leg: Robot, case: Case) -> None:
    """Gains stated 30 % too low; the torques are those of the plant's law, two samples late and with noise."""
    own, log = case.plant, case.log
    speed = np.gradient(log.q, log.t, axis=0)
    law = np.clip(own.kp * (log.channels["goal"] - log.q) - own.kd * speed, -own.limit, own.limit)
    late = np.vstack([law[:1], law[:1], law[:-2]])
    tau = late + 0.02 * np.random.default_rng(0).standard_normal(late.shape)
    stretches = command_stretches([replace(log, tau=tau)])
    drives = Drives(0.7 * own.kp, own.kd, np.full(3, np.inf), 0.0)
    physics = Physics.of(leg, np.full(3, 0.01))
    fit = ("armature", "viscous", "dry", "bias", "delay", "kp")
    start = linear_start(physics, coordinates_of(leg, drives, fit), stretches)
    point = start.coordinates.point(start.z)
    # Saturated samples pull the gains down by some percent, since the start has no limit here.
    np.testing.assert_allclose(point.drives.kp, own.kp, rtol=0.1)
    without = linear_start(physics, coordinates_of(leg, drives, fit), command_stretches([log]))
    error = np.abs(without.coordinates.point(without.z).drives.kp - own.kp)
    assert np.all(np.abs(point.drives.kp - own.kp) < error)


@pytest.mark.proof
@pytest.mark.parametrize(("name", "share"), [("unitree_z1", 0.1), ("unitree_aliengo_legs", 0.05)])
def test_real_command_logs_are_predicted(name: str, share: float) -> None:
    """The last 30 % of the chirps are faster than all of the fit; a tenth of the motion is the grade "good"."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not here; set STEELYARD_DATA")
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    match = match_robot(
        folder / "robot.urdf", folder / "chirp.parquet", kp=meta["kp"], kd=meta["kd"], goal="qref{}", draws=2
    )
    score, before = match.scores["hold-out"], match.scores["description"]
    assert np.all(score.windows_rms < share * score.size)
    assert np.all(score.run_rms < share * score.size)
    assert np.all(score.windows_rms < 0.3 * before.windows_rms)
