"""`steelyard match` on files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matching.conftest import LEG, Case
from typer.testing import CliRunner

from steelyard.cli.app import app


def files(case: Case, folder: Path) -> list[str]:
    robot, log = folder / "leg.urdf", folder / "log.csv"
    robot.write_text(LEG, "utf-8")
    rows = slice(0, 1500)
    table = np.column_stack([case.log.t[rows], case.log.q[rows], case.log.channels["goal"][rows]])
    names = ["t", *(f"q{k}" for k in (1, 2, 3)), *(f"wanted{k}" for k in (1, 2, 3))]
    np.savetxt(log, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    return [str(robot), str(log)]


def test_the_command_writes_a_run(case: Case, tmp_path: Path) -> None:
    options = ["--kp", "40", "--kd", "1", "--limit", "6", "--goal", "wanted{}", "--delayed", "goal", "--window", "0.5",
               "--draws", "3", "-o", str(tmp_path / "run"), "--json"]  # fmt: skip
    result = CliRunner().invoke(app, ["match", *files(case, tmp_path), *options])
    assert result.exit_code == 0, result.output
    stored = json.loads((tmp_path / "run" / "result.json").read_text("utf-8"))
    assert stored["joints"] == ["abduction", "hip_pitch", "knee"]
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"report.html", "draws.csv", "parameters.csv", "leg.urdf", "leg.xml"} <= names


def test_a_refusal_is_one_sentence_and_writes_nothing(case: Case, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["match", *files(case, tmp_path), "--kp", "40", "--kd", "1", "-o", str(tmp_path / "run")]
    )
    assert result.exit_code == 2
    assert "--goal" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()
