"""Commands on a robot with a floating base: supported, or one sentence that says what works instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from floating_plants import DESCRIBED
from typer.testing import CliRunner

from steelyard.cli.app import app
from steelyard.dynamics.model import Model
from steelyard.export import model_to_mjcf
from steelyard.parameters.terms import Terms
from steelyard.robot import load_robot


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MJCF with a free joint."""
    path = tmp_path_factory.mktemp("robot") / "swimmer.xml"
    described = load_robot(DESCRIBED, floating=True)
    model_to_mjcf(Model(described, Terms(described, ()), described.inertial_parameters), path)
    (path.parent / "log.csv").write_text("t,q1,q2,tau1,tau2\n0,0,0,0,0\n0.01,0,0,0,0\n0.02,0,0,0,0\n")
    return path


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["excite", "{robot}", "-o", "{out}"], "--joints"),
        (["friction", "{robot}", "{log}"], "identify"),
        (["simulate", "{robot}", "--duration", "1"], "not support"),
        (["excite", "{robot}", "--floating"], "(--feet A,B,…)"),
        (["watch", "{robot}", "{log}"], "live monitor"),
        (["payload", "{robot}", "--with", "{log}", "--without", "{log}"], "[base]"),
        (["payload", "{robot}", "--with", "{log}", "--without", "{log}", "--at-rest"], "--at-rest"),
        (["identify", "{robot}", "{log}"], "[base]"),
        (["check", "{robot}", "{log}"], "[base]"),
    ],
)
def test_each_command_says_in_one_sentence_what_is_missing(
    command: list[str], words: str, robot: Path, tmp_path: Path
) -> None:
    values = {"robot": str(robot), "log": str(robot.parent / "log.csv"), "out": str(tmp_path / "out")}
    result = CliRunner().invoke(app, [part.format(**values) for part in command])
    text = f"{result.output} {result.exception}"
    assert result.exit_code != 0
    assert words in text.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_held_base_is_excited_by_its_joints(robot: Path, tmp_path: Path) -> None:
    out = tmp_path / "motion"
    options = ["--joints", "shoulder,elbow", "--duration", "3", "--search-time", "1", "--starts", "1", "-o", str(out)]
    result = CliRunner().invoke(app, ["excite", str(robot), *options])
    assert result.exit_code == 0, result.output
    assert (out / "report.html").exists()
