"""The command line: terminal output, JSON output and errors."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracles import public_robot_path
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.robot.library import builtin_names


def run(*arguments: str, columns: int = 120):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns), "NO_COLOR": "1"})


def words(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------- output


def test_inspect_shows_a_robot() -> None:
    result = run("inspect", "irp6", "--terms", "rotor@drive,viscous@drive")
    assert result.exit_code == 0
    assert "irp6: 3 joints, 3 moving links" in result.output
    assert "motor3   q2 + q3     170" in result.output
    assert "18 base parameters with rotor@drive, viscous@drive" in result.output
    assert "Izz2 + l2²·m3 + Ia_motor2" in words(result.output)
    assert "Identifiability of the 36 parameters" in result.output
    assert re.search(r"The torque regressor takes \d+ operations per sample", result.output)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", [*builtin_names(), "ur10"])
def test_tables_fit_the_width_without_losing_text(name: str, columns: int) -> None:
    source = name if name in builtin_names() else str(public_robot_path(name))
    result = run("inspect", source, columns=columns)
    assert result.exit_code == 0
    assert max(len(line) for line in result.output.splitlines()) <= columns
    data = json.loads(run("inspect", source, "--json").output)
    assert "…" not in result.output.replace("more)", "")
    for joint in data["joints"]:
        assert joint["name"] in result.output
    for base in data["base_parameters"]["parameters"]:
        head = base["formula"].split(" ")[0]
        assert re.search(rf"^ *\d+ +{re.escape(head)} ", result.output, re.MULTILINE)


def test_json_output_is_valid() -> None:
    """No NaN and no infinity: unknown limits are null."""
    result = run("inspect", "rotradi", "--terms", "nominal", "--json")
    data = json.loads(result.output, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))
    assert data["joints"][0]["lower"] is None
    assert data["joints"][0]["effort"] == 50.0
    base = data["base_parameters"]
    assert base["count"] == len(base["parameters"]) == 21
    assert base["condition_number"] > 1.0
    assert set(base["parameters"][0]) == {"name", "formula", "unit", "nominal", "links"}
    assert math.isclose(base["parameters"][1]["nominal"], 12.742706 * 0.344322 + 2.85115 * 0.45, rel_tol=1e-9)
    assert sum(map(len, data["identifiable"].values())) == 36
    assert data["notes"] == []


def test_options_reach_the_robot() -> None:
    locked = json.loads(run("inspect", "ns16", "--lock", "q2=0.5", "--lock", "q6=-1", "--json").output)
    assert [j["name"] for j in locked["joints"]] == ["q1", "q3", "q4", "q5"]
    chosen = json.loads(run("inspect", "ns16", "--joints", "q3, q1", "--gravity", "0,9.81,0", "--json").output)
    assert [j["name"] for j in chosen["joints"]] == ["q3", "q1"]
    assert chosen["gravity"] == [0.0, 9.81, 0.0]
    kernel = json.loads(run("inspect", "ns16", "--method", "kernel", "--json").output)
    assert kernel["base_parameters"]["method"] == "kernel"
    assert kernel["base_parameters"]["count"] == 36


def test_nearly_right_angles_are_corrected_with_a_note(tmp_path: Path) -> None:
    rough = tmp_path / "rough.urdf"
    rough.write_text(urdf(ROUGH))
    first = run("inspect", str(rough))
    assert first.exit_code == 0
    assert "Nearly right angles were made exact" in words(first.output)
    unchanged = run("inspect", str(rough), "--snap", "0")
    assert "--snap 1e-4" in words(unchanged.output)


def test_robots_are_listed() -> None:
    result = run("robots")
    assert result.exit_code == 0
    assert all(name in result.output for name in builtin_names())
    listed = json.loads(run("robots", "--json").output)
    assert [entry["name"] for entry in listed] == list(builtin_names())
    assert all(entry["description"].endswith(".") for entry in listed)


@pytest.mark.parametrize("command", [["inspect"], ["robots"]])
def test_help_has_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"Example: steelyard {command[0]}" in result.output
    assert "--json" in result.output


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"steelyard \d+\.\d+\.\d+\S*\n", result.output)


# ---------------------------------------------------------------- errors

ROUGH = (
    '<joint name="a" type="continuous"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/></joint>'
    '<joint name="b" type="continuous"><parent link="one"/><child link="two"/><axis xyz="0 0 1"/>'
    '<origin rpy="1.5708 0 0" xyz="0.3 0 0"/></joint>'
)
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<robot name="bomb"><link name="&b;"/></robot>'
)


def urdf(joints: str) -> str:
    return f'<robot name="r"><link name="base"/><link name="one"/><link name="two"/>{joints}</robot>'


FILES = {
    "empty.urdf": "",
    "broken.urdf": "<robot><link",
    "missing.urdf": urdf('<joint name="a" type="revolute"><parent link="base"/><child link="gone"/></joint>'),
    "bomb.urdf": BOMB,
    "binary.urdf": "\x00\x01\x02",
    "odd.stl": "solid",
    "list.yaml": "- 1\n- 2\n",
    "python.yaml": "!!python/object/apply:os.system ['true']\n",
    "numbers.toml": "rows = 3\n",
}

BAD = [
    (["rotrady"], "Did you mean 'rotradi'?"),
    (["no/such/file.urdf"], "there is no such file"),
    (["."], "this is a folder"),
    (["empty.urdf"], "empty.urdf"),
    (["broken.urdf"], "broken.urdf"),
    (["missing.urdf"], "gone"),
    (["bomb.urdf"], "bomb.urdf"),
    (["binary.urdf"], "binary.urdf"),
    (["odd.stl"], "is read from .toml, .urdf, "),
    (["list.yaml"], "list.yaml"),
    (["python.yaml"], "python.yaml"),
    (["numbers.toml"], "numbers.toml"),
    (["ns16", "--joints", "q7"], "There is no joint 'q7'"),
    (["ns16", "--lock", "q2"], "joint=value"),
    (["ns16", "--lock", "q9=1"], "q9"),
    (["ns16", "--gravity", "down"], "3 finite numbers"),
    (["ns16", "--gravity", "0,0"], "3 finite numbers"),
    (["ns16", "--gravity", "0,0,nan"], "finite"),
    (["ns16", "--terms", "viscos"], "Did you mean 'viscous'?"),
    (["ns16", "--terms", "rotor@drive"], "has no transmission"),
    (["ns16", "--terms", "rotor@moon"], "moon"),
    (["ns16", "--terms", "viscous,viscous"], "once per coordinate"),
    (["ns16", "--method", "lu"], "There is no method 'lu'"),
    (["ns16", "--snap", "3"], "snap"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_refused_in_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    result = run("inspect", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("steelyard: ")
    assert result.stderr.count("\n") == 1
    assert re.search(message, result.stderr)
    assert "Traceback" not in result.stderr


def test_the_installed_program_refuses_bad_input() -> None:
    """With the installed entry point instead of a test runner."""
    command = [sys.executable, "-c", "from steelyard.cli import main; main()", "inspect", "rotrady"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("steelyard: There is no file or built-in robot 'rotrady'. Did you mean 'rotradi'?")
    assert result.stderr.count("\n") == 1


def test_output_to_a_file_is_complete() -> None:
    command = [sys.executable, "-c", "from steelyard.cli import main; main()", "inspect", "ns16"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONUTF8": "1"})
    assert "Iyy1 + a1²·m2 + Iyy2 + Izz3 + (a1² + a2²)·m3 + (a1² + a2² + a3²)·(m4 + m5 + m6)" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(("path", "why"), [("mine.toml", "is not replaced"), ("no/fixed.toml", "cannot be written")])
def test_an_existing_or_unwritable_mapping_is_refused_before_the_work(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "mine.toml").write_text("# mine")
    result = run("check", "rotradi", "no-such-log.csv", "--fix", str(tmp_path / path))
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())
    assert (tmp_path / "mine.toml").read_text() == "# mine"
