"""`steelyard friction --break-away`: torque ramps with known break-away torques, gravity by Pinocchio."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import PinocchioOracle
from typer.testing import CliRunner

from steelyard import Log, load_robot
from steelyard.cli import app

ROBOT = load_robot("irp6")
# Break-away torques of the second joint forward and backward [N m], and slope of the ramp [N m/s].
FORWARD, BACKWARD, SLOPE = 16.8, 10.6, 5.0
PERIOD = 0.01


def ramps(times: int = 3) -> Log:
    """Joint 2 rests under a ramp until it breaks away, slides by 0.1 rad and rests again, in both directions."""
    oracle = PinocchioOracle(ROBOT)
    q2, tau2, place = [], [], 0.0
    for k in range(2 * times):
        way, limit = (1.0, FORWARD) if k % 2 == 0 else (-1.0, BACKWARD)
        rise = np.arange(0.0, limit / SLOPE, PERIOD)
        slide = np.linspace(0.0, 0.1, 51)[1:]
        q2 += [*np.full(len(rise), place), *(place + way * slide), *np.full(50, place + way * 0.1)]
        tau2 += [*(way * SLOPE * rise), *np.full(len(slide), way * 0.8 * limit), *np.zeros(50)]
        place += way * 0.1
    q = np.zeros((len(q2), ROBOT.dof))
    q[:, 1] = q2
    tau = oracle.over("torque", q, np.zeros_like(q), np.zeros_like(q))
    tau[:, 1] += tau2
    return Log(ROBOT.joint_names, np.arange(len(q)) * PERIOD, q, tau=tau)


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(w) for w in words])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_finds_the_break_away_torques(tmp_path: Path) -> None:
    ramps().save(tmp_path / "ramps.csv")
    code, out, err = run("friction", "irp6", tmp_path / "ramps.csv", "--break-away", "-o", tmp_path / "found")
    assert (code, err) == (0, "")
    assert "The gravity torque of the description is subtracted" in " ".join(out.split())
    result = json.loads((tmp_path / "found" / "result.json").read_text())
    (joint,) = result["joints"]
    assert joint["joint"] == ROBOT.joint_names[1]
    assert (joint["forward"]["starts"], joint["backward"]["starts"]) == (3, 3)
    # The ramp rises by 0.05 N m a sample.
    assert joint["forward"]["mean"] == pytest.approx(FORWARD, rel=0.01)
    assert joint["backward"]["mean"] == pytest.approx(BACKWARD, rel=0.01)
    assert len((tmp_path / "found" / "starts.csv").read_text().splitlines()) == 7
    assert "Break-away torque" in (tmp_path / "found" / "report.html").read_text()


def test_a_log_without_starts_is_an_error(tmp_path: Path) -> None:
    t = np.arange(0.0, 2.0, 0.01)
    Log(ROBOT.joint_names, t, np.zeros((200, ROBOT.dof)), tau=np.ones((200, ROBOT.dof))).save(tmp_path / "still.csv")
    code, _, err = run("friction", "irp6", tmp_path / "still.csv", "--break-away")
    assert code == 2
    assert "starts from rest" in " ".join(err.split())
    code, _, err = run("friction", "irp6", "--design", "--break-away")
    assert (code, "remove one of the two" in " ".join(err.split())) == (2, True)
