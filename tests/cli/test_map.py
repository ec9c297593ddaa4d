"""`steelyard map`: output, questions, files and exit codes; presets instead of a mapping."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import map as map_command
from steelyard.cli.app import app
from steelyard.export import model_to_urdf

ARM = "rotradi"
T = 0.002 * np.arange(2000)
Q = 0.8 * np.sin(T[:, None] * [1.3, 2.1, 3.7] + 0.4)
DQ = 0.8 * np.array([1.3, 2.1, 3.7]) * np.cos(T[:, None] * [1.3, 2.1, 3.7] + 0.4)


def run(*arguments: str, typed: str = ""):
    return CliRunner().invoke(app, list(arguments), input=typed, env={"COLUMNS": "160", "NO_COLOR": "1"})


@pytest.fixture
def log(tmp_path):
    robot = sy.load_robot(ARM)
    tau = sy.Model.nominal(robot).torque(Q, DQ, -(np.array([1.3, 2.1, 3.7]) ** 2) * Q)
    names = [f"{stem}{k}" for stem in ("pos", "speed", "torque") for k in (1, 2, 3)]
    rows = np.column_stack([1e3 * T, 180.0 / np.pi * Q, 50.0 * DQ, tau])
    np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=",".join(["time", *names]), comments="")
    return tmp_path / "run.csv"


def test_the_mapping_is_shown_with_reasons_and_written(log, tmp_path):
    out = tmp_path / "columns.toml"
    result = run("map", str(log), ARM, "-o", str(out))
    assert result.exit_code == 1  # the speed is 50 times the derivative, so it is left out with a note
    for words in ("500 Hz", "50 times the derivative", "Assumed: leave the velocity out", "is written"):
        assert words in result.stdout
    keys = tomllib.loads(out.read_text())
    assert keys["position"] == ["pos1", "pos2", "pos3"]
    assert keys["velocity"] is False
    assert "# Assumed: leave the velocity out." in out.read_text()
    read = sy.read_log(log, sy.load_robot(ARM), out)
    np.testing.assert_allclose(read.q, Q, atol=1e-9)
    again = run("map", str(log), ARM, "-o", str(out))
    assert again.exit_code == 2
    assert "columns.toml" in again.stderr


def test_robot_and_log_may_be_exchanged(log, tmp_path):
    # All other commands take the robot first.
    paths = [tmp_path / "a.toml", tmp_path / "b.toml"]
    model_to_urdf(sy.Model.nominal(sy.load_robot(ARM)), tmp_path / "arm.urdf")
    for path, robot in zip(paths, (ARM, str(tmp_path / "arm.urdf")), strict=True):
        result = run("map", robot, str(log), "-o", str(path))
        assert result.exit_code == 1
        assert path.read_text().startswith(f"# {log}")
        assert f"steelyard check {robot} " in result.stdout.replace("\n", " ")


def test_questions_are_asked_on_a_terminal(log, tmp_path, monkeypatch):
    monkeypatch.setattr(map_command, "_is_terminal", lambda: True)
    result = run("map", str(log), ARM, "-o", str(tmp_path / "columns.toml"), typed="\n2\n")
    assert result.exit_code == 0
    assert "Is it the speed of the motors" in result.stdout
    keys = tomllib.loads((tmp_path / "columns.toml").read_text())
    assert keys["velocity"] == ["speed1", "speed2", "speed3"]
    assert keys["units"]["position"] == "deg"  # an empty answer keeps the assumption


def test_json_output(log):
    result = run("map", str(log), "--json")
    data = json.loads(result.stdout)
    assert data["exit_code"] == result.exit_code == 1
    assert data["mapping"]["units"]["time"] == "ms"
    assert any("the robot" in text for text in data["missing"])


def test_a_preset_instead_of_a_mapping(log, tmp_path):
    table = np.loadtxt(log, delimiter=",", skiprows=1)
    names = ["time", *(f"state.{s}[{k}]" for s in ("q", "dq", "tau_J") for k in range(3))]
    table[:, 1:4], table[:, 4:7] = Q, DQ
    path = tmp_path / "franka.csv"
    np.savetxt(path, table, delimiter=", ", header=", ".join(names), comments="")
    shown = [run("check", ARM, str(path), option, "franka", "--json") for option in ("--map", "--preset")]
    assert shown[0].stdout == shown[1].stdout
    assert json.loads(shown[0].stdout)["grade"] in ("good", "usable", "mend")
    wrong = run("check", ARM, str(path), "--preset", "frank")
    assert wrong.exit_code == 2
    assert "Did you mean 'franka'" in wrong.stderr
