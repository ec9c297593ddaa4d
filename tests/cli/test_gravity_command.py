"""`steelyard gravity`, and the commands that lead to it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import PinocchioOracle, public_robot_path
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.robot.load import load_robot

run = CliRunner()


@pytest.fixture
def arm(tmp_path: Path) -> tuple[str, str, Path]:
    """A URDF, a table of poses with the goals of servos of 100 N m/rad, and a folder."""
    path = public_robot_path("double-pendulum")
    robot = load_robot(path)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (25, robot.dof))
    still = np.zeros_like(q)
    tau = PinocchioOracle(robot).over("torque", q, still, still)
    head = [*(f"{x}{k + 1}" for x in ("q", "tau", "goal") for k in range(robot.dof))]
    table = np.hstack([q, tau, q + tau / 100.0])
    lines = [",".join(["t", *head]), *(",".join(f"{x:.9g}" for x in [k, *row]) for k, row in enumerate(table))]
    (tmp_path / "poses.csv").write_text("\n".join(lines) + "\n")
    return str(path), str(tmp_path / "poses.csv"), tmp_path


def test_the_command_writes_its_run_folder(arm: tuple[str, str, Path]) -> None:
    robot, poses, folder = arm
    out = run.invoke(app, ["gravity", robot, poses, "-o", str(folder / "run")])
    assert out.exit_code == 0, out.output
    assert "left-out poses" in out.output
    result = json.loads((folder / "run" / "result.json").read_text())
    assert result["poses"] == 25
    assert result["verdict"]["kind"] == "good"
    assert (folder / "run" / "report.html").stat().st_size > 10_000


def test_goals_and_a_stiffness_replace_the_torque(arm: tuple[str, str, Path]) -> None:
    robot, poses, _ = arm
    one = json.loads(run.invoke(app, ["gravity", robot, poses, "--json"]).stdout)
    many = ["--goal", "goal{}", "--stiffness", "100,100", "--json"]
    out = run.invoke(app, ["gravity", robot, poses, *many])
    assert out.exit_code == 0, out.output
    for a, b in zip(one["base_parameters"], json.loads(out.stdout)["base_parameters"], strict=True):
        assert a["name"] == b["name"]
        assert a["value"] == pytest.approx(b["value"], abs=1e-5)
    refused = run.invoke(app, ["gravity", robot, poses, "--goal", "goal{}"])
    assert refused.exit_code != 0


def test_identify_takes_held_poses_for_what_they_are(arm: tuple[str, str, Path]) -> None:
    robot, poses, _ = arm
    with pytest.warns(UserWarning, match="gravity alone"):
        out = run.invoke(app, ["identify", robot, poses])
    assert out.exit_code == 0, out.output
    assert "Gravity of" in out.output
    checked = run.invoke(app, ["check", robot, poses])
    assert checked.exit_code == 2
    assert "steelyard gravity" in " ".join(checked.output.split())
