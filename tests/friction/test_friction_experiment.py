"""The motion for measuring friction: within limits, at given speeds, in both directions, symmetric about a posture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from planted import CURVES, ROBOT, log_of, sweeps
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.errors import SteelyardError
from steelyard.friction import find_plateaus
from steelyard.friction.design_sweeps import FRACTIONS, design_sweeps
from steelyard.robot import load_robot


@pytest.mark.parametrize("name", ["irp6", "ns16", "prrrp"])
def test_sweeps_respect_the_limits_and_dwell_at_every_speed(name: str) -> None:
    robot = load_robot(name)
    plan = design_sweeps(robot, dwell=0.4)
    t = plan.times(200.0)
    q, dq, _ = plan.sample(t)
    for k, joint in enumerate(robot.joints):
        assert np.all((joint.lower - 1e-9 <= q[:, k]) & (q[:, k] <= joint.upper + 1e-9))
        speeds = plan.speeds[joint.name]
        np.testing.assert_allclose(speeds / speeds[-1], FRACTIONS)
        for v in speeds:
            for way in (1.0, -1.0):
                dwell = np.count_nonzero(np.abs(dq[:, k] - way * v) < 1e-6) / 200.0
                assert dwell >= 0.4 - 0.02  # two samples at the ends
    assert np.all(np.count_nonzero(np.abs(dq) > 1e-9, axis=1) <= 1)  # one joint at a time


def test_sweeps_are_symmetric_about_the_posture() -> None:
    plan = sweeps(1, posture=[0.3, 0.1, -0.2])
    q, dq, _ = plan.sample(plan.times(500.0))
    steady = np.abs(dq[:, 1] - plan.speeds["q2"][4]) < 1e-9
    assert q[steady, 1].mean() == pytest.approx(0.1, abs=2e-3)
    np.testing.assert_allclose(q[:, [0, 2]], [[0.3, -0.2]] * len(q), atol=1e-12)


def test_short_ranges_limit_the_speed() -> None:
    plan = sweeps(0, limits={"q": 0.1}, dwell=0.2)
    assert plan.speeds["q1"][-1] < 1.6
    assert np.abs(plan.sample(plan.times(100.0))[0]).max() <= 0.1 + 1e-9


def test_impossible_experiments_are_refused() -> None:
    with pytest.raises(SteelyardError, match="cannot move"):
        sweeps(0, posture=[5.0, 0.0, 0.0])
    with pytest.raises(SteelyardError, match="fractions"):
        sweeps(0, fractions=(0.5, 1.5))
    with pytest.raises(SteelyardError, match="The dwell is 0 s"):
        sweeps(0, dwell=0.0)
    with pytest.raises(SteelyardError, match="3 joints"):
        sweeps(0, posture=[0.0])


def test_every_speed_gives_a_plateau() -> None:
    plan = sweeps(2)
    found = list(find_plateaus(log_of(plan), 2))
    assert len(found) >= 22


def test_from_the_design_to_the_curve_on_the_command_line(tmp_path) -> None:
    run = CliRunner().invoke(app, ["friction", "irp6", "--design", "--only", "q1", "-o", str(tmp_path / "plan")])
    assert run.exit_code == 0, run.output
    table = np.loadtxt(tmp_path / "plan" / "motion.csv", delimiter=",", skiprows=1)
    t, q, dq = table[:, 0], table[:, 1:4], table[:, 4:7]
    tau = np.column_stack([c(v) for c, v in zip(CURVES, dq.T, strict=True)])
    tau += 0.2 * np.random.default_rng(0).normal(size=q.shape)
    header = ",".join(["t", *(f"{x}_{n}" for x in ("q", "dq", "tau") for n in ROBOT.joint_names)])
    np.savetxt(tmp_path / "log.csv", np.column_stack([t, q, dq, tau]), delimiter=",", header=header, comments="")
    options = ["--only", "q1", "-o", str(tmp_path / "found")]
    run = CliRunner().invoke(app, ["friction", "irp6", str(tmp_path / "log.csv"), *options])
    assert run.exit_code == 0, run.output
    (joint,) = json.loads((tmp_path / "found" / "result.json").read_text())["joints"]
    assert joint["law"] == "tustin"
    assert joint["coefficients"]["Fc"] == pytest.approx(9.0, rel=0.03)
    run = CliRunner().invoke(app, ["friction", "irp6"])
    assert run.exit_code != 0
    assert "--design" in run.output
