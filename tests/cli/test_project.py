"""A project file sets defaults, typed options take precedence, and a run records the command that repeats it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import steelyard as sy
from steelyard.cli import app
from steelyard.project import ProjectError, project_file

FILE = """
robot = "arm.yaml"
joints = ["q1", "q2"]
terms = "viscous,coulomb"
gravity = [0.0, 9.81, 0]
runs = "runs"

[lock]
q3 = 0.25

[limits]
dq = 1.5
q = [[-1.0, 1.0], [-0.5, 2]]
tau = "none"

[logs]
identify = ["logs/*.npz"]
validate = "judge.npz"
payload = { tool = ["with-tool.npz"] }
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a robot of three joints, one locked; the working folder is below it."""
    from importlib.resources import files

    (tmp_path / "arm.yaml").write_text((files("steelyard.robot.library") / "szabo3r.yaml").read_text())
    (tmp_path / "steelyard.toml").write_text(FILE)
    (tmp_path / "logs").mkdir()
    for name in ("logs/b.npz", "logs/a.npz", "judge.npz"):
        (tmp_path / name).touch()
    (tmp_path / "below" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "deeper")
    return tmp_path


def test_a_command_without_arguments_uses_the_project_s_robot(folder: Path) -> None:
    result = run("inspect", "--json")
    data = json.loads(result.stdout)
    assert [j["name"] for j in data["joints"]] == ["q1", "q2"]
    assert data["gravity"] == [0.0, 9.81, 0.0]
    assert "Fv1" in str(data["base_parameters"])
    assert result.stderr == "Project ../../steelyard.toml: robot, joints, lock, gravity, terms\n"
    explicit = run("--project", "none", "inspect", "../../arm.yaml", "--joints", "q1,q2", "--lock", "q3=0.25",
                  "--gravity", "0,9.81,0", "--terms", "viscous,coulomb", "--json")  # fmt: skip
    again = json.loads(explicit.stdout)
    assert again.pop("command").startswith("steelyard --project none inspect ../../arm.yaml --joints q1,q2 --lock")
    assert data.pop("command").startswith("steelyard --project none inspect ../../arm.yaml --joints q1,q2 --lock")
    assert again == data
    assert explicit.stderr == ""


def test_typed_options_take_precedence(folder: Path) -> None:
    data = json.loads(run("inspect", "--gravity", "0,0,-1.62", "--terms", "rotor", "--json").stdout)
    assert data["gravity"] == [0.0, 0.0, -1.62]
    assert [j["name"] for j in data["joints"]] == ["q1", "q2"]
    assert "Fv1" not in str(data["base_parameters"])


def test_another_robot_ignores_the_project_file(folder: Path) -> None:
    result = run("inspect", "ns16", "--json")
    assert len(json.loads(result.stdout)["joints"]) == 6
    assert result.stderr == "Project ../../steelyard.toml: not used, it is for arm.yaml\n"
    same = run("inspect", str(folder / "arm.yaml"), "--json")
    assert len(json.loads(same.stdout)["joints"]) == 2


def test_the_search_ends_at_a_repository(folder: Path) -> None:
    assert project_file() == Path("../../steelyard.toml")
    (folder / "below" / ".git").mkdir()
    assert project_file() is None
    assert run("inspect").exit_code == 2
    with pytest.raises(ProjectError, match=r"There is no steelyard\.toml in .*deeper or above; write one"):
        sy.Project.find()
    assert sy.Project.find(folder).robot == "arm.yaml"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("robbot = 'arm.yaml'", "steelyard.toml: unknown key 'robbot'; did you mean 'robot'? Known: robot,"),
        ("[logs]\nidentfy = 'a'", "steelyard.toml: logs: unknown key 'identfy'; did you mean 'identify'?"),
        ("[logs]\nidentify = ['a', 3]", "steelyard.toml: logs: identify: entry 2: 3 is not text"),
        ("snap = true", "steelyard.toml: snap: True is not a number"),
        ("gravity = [0, 0]", "steelyard.toml: gravity: has 2 entries, not 3."),
        ("[lock]\nq1 = 'up'", "steelyard.toml: lock: q1: There is no constant 'up'"),
        ("[limits]\ndq = [1, []]", "steelyard.toml: limits: dq: entry 2: has 0 entries, not 2."),
        ("robot = ", "steelyard.toml: is not valid TOML"),
    ],
)
def test_an_invalid_file_is_refused_by_table_and_key(tmp_path: Path, monkeypatch: Any, line: str, error: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steelyard.toml").write_text(line + "\n")
    result = run("inspect")
    assert result.exit_code == 2
    assert error in result.stderr
    assert "Traceback" not in result.stderr
    assert run("inspect", "--help").exit_code == run("--project", "none", "inspect", "ns16").exit_code == 0


def test_python_reads_the_same(folder: Path) -> None:
    project = sy.Project.find()
    robot = project.load_robot()
    direct = sy.load_robot(folder / "arm.yaml", joints=["q1", "q2"], locked={"q3": 0.25}, gravity=(0.0, 9.81, 0.0))
    motion = np.random.default_rng(0).normal(size=(3, 5, 2))
    assert np.array_equal(sy.Model.nominal(robot).torque(*motion), sy.Model.nominal(direct).torque(*motion))
    assert project.log_paths("identify") == ["../../logs/a.npz", "../../logs/b.npz"]
    assert project.log_paths() == ["../../logs/a.npz", "../../logs/b.npz", "../../judge.npz", "../../with-tool.npz"]
    assert project.log_groups("payload") == {"tool": ["../../with-tool.npz"]}
    with pytest.raises(ProjectError, match="logs have no role 'test'; choose one of identify"):
        project.log_paths("test")


def words_of(name: str, *typed: str) -> list[str]:
    """Return the complete words of a command here."""
    from steelyard.cli.app import Commands
    from steelyard.cli.project_options import chosen_project, with_project

    found: Any = Commands(name="steelyard")
    for word in name.split():
        found = found.get_command(None, word)
    context = found.context_class(found)
    given = found.make_parser(context).parse_args(args=list(typed))[0]
    return list(with_project(found, given, chosen_project(""), name).words)


ROBOT = ["--joints", "q1,q2", "--lock", "q3=0.25", "--gravity", "0.0,9.81,0.0"]
TERMS = ["--terms", "viscous,coulomb"]


def test_every_command_takes_its_values_from_the_file(folder: Path) -> None:
    logs = ["../../logs/a.npz", "../../logs/b.npz"]
    arm, judge = "../../arm.yaml", ["--validate", "../../judge.npz"]
    identify = words_of("identify")
    assert identify == [arm, *logs, *judge, "-o", "../../runs/identify", *ROBOT, *TERMS]
    check = words_of("check")
    assert check[:5] == [arm, *logs, "../../judge.npz", "../../with-tool.npz"]
    excite = words_of("excite", "--dq", "0.5")
    assert excite[:6] == [arm, "-o", "../../runs/excite", "--q=-1.0:1.0,-0.5:2.0", "--dq", "0.5"]
    assert excite[excite.index("--tau") + 1] == "none"
    assert words_of("compare schemes")[:2] == [arm, logs[0]]
    assert words_of("payload")[:3] == [arm, "--with", "tool=../../with-tool.npz"]
    assert words_of("friction")[:3] == [arm, *logs]
    # Some options exclude logs of the project file.
    assert "--validate" not in words_of("identify", "--holdout", "0.3")
    assert words_of("friction", "--design")[:2] == [arm, "--design"]


def test_a_typed_log_needs_no_robot_before_it(folder: Path) -> None:
    Path("today.csv").touch()
    assert words_of("check", "today.csv")[:3] == ["../../arm.yaml", "today.csv", "--joints"]
    assert words_of("identify", "today.csv", "../../judge.npz")[:3] == [
        "../../arm.yaml",
        "today.csv",
        "../../judge.npz",
    ]


def test_a_missing_argument_is_named_with_the_remedy(folder: Path) -> None:
    assert "[required, or in steelyard.toml]" in " ".join(run("check", "--help").stdout.split())
    file = folder / "steelyard.toml"
    file.write_text('robot = "arm.yaml"\n')
    no_log = run("identify")
    assert no_log.exit_code == 2
    assert "LOG is missing, and ../../steelyard.toml has no 'logs.identify'; give LOG, or create" in no_log.stderr
    file.unlink()
    no_file = run("check")
    assert no_file.exit_code == 2
    assert "ROBOT is missing, and steelyard.toml was not found here or above; give ROBOT, or create" in no_file.stderr


def test_a_model_ignores_joints_and_is_found_in_the_project_s_runs(folder: Path) -> None:
    (folder / "runs" / "identify").mkdir(parents=True)
    predict = words_of("predict")
    assert predict[:2] == ["../../runs/identify", "../../judge.npz"]
    assert "--joints" not in predict
    assert words_of("export") == ["../../runs/identify", "-o", "../../runs/export"]


def test_a_run_records_the_command_that_repeats_it(folder: Path) -> None:
    """It contains all options, so it gives the same bytes without the project file."""
    (folder / "my arm.yaml").write_text((folder / "arm.yaml").read_text())
    file = folder / "steelyard.toml"
    file.write_text(file.read_text().replace("arm.yaml", "my arm.yaml"))
    result = run("simulate", "../../my arm.yaml", "--duration", "0.05", "--json")
    assert result.exit_code == 0, result.stderr
    run_folder = folder / "runs" / "simulate"
    result, manifest = (json.loads((run_folder / name).read_text()) for name in ("result.json", "manifest.json"))
    command = (
        "steelyard --project none simulate '../../my arm.yaml' --duration 0.05 --joints q1,q2 --lock q3=0.25 "
        "--gravity 0.0,9.81,0.0"
    )
    assert result["command"] == command
    assert manifest["command"] == f"{command} -o ../../runs/simulate --json"
    assert (run_folder / manifest["command_in"]).resolve() == Path.cwd()
    assert "&#x27;../../my arm.yaml&#x27; --duration 0.05" in (run_folder / "report.html").read_text()
    before = {path.name: path.read_bytes() for path in run_folder.iterdir()}
    file.unlink()
    again = run(*shlex.split(command)[1:], "-o", str(folder / "elsewhere"))
    assert again.exit_code == 0, again.stderr
    after = {path.name: path.read_bytes() for path in (folder / "elsewhere").iterdir()}
    assert before.keys() == after.keys()
    # Only the manifest contains the path of the run.
    assert [name for name in before if before[name] != after[name]] == ["manifest.json"]


def test_a_command_without_output_prints_how_to_save_the_result(folder: Path) -> None:
    file = folder / "steelyard.toml"
    file.write_text(file.read_text().replace('runs = "runs"', ""))
    result = run("simulate", "../../arm.yaml", "--duration", "0.05")
    assert result.exit_code == 0, result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith("Nothing was written; to save the result: steelyard --project none simulate ../../arm.yaml")
    assert last.endswith("-o RUN")
    assert "Nothing was written" not in run("simulate", "../../arm.yaml", "--duration", "0.05", "--json").stdout
    assert "Nothing was written" not in run("inspect").stdout


def test_init_writes_a_valid_file_and_replaces_none(folder: Path) -> None:
    robot = "../../arm.yaml"
    result = run(
        "init", robot, "../../logs/a.npz", "--validate", "../../judge.npz", "--lock", "q3=0.1", "--snap", "1e-4"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "Written to steelyard.toml. Validation: ../../judge.npz. Next: steelyard check.\n"
    project = sy.Project.find()
    assert project.file == Path("steelyard.toml")
    assert (project.robot, project.lock, project.snap) == (robot, {"q3": 0.1}, 1e-4)
    assert (project.logs.identify, project.logs.validate) == (("../../logs/a.npz",), ("../../judge.npz",))
    before = Path("steelyard.toml").read_bytes()
    again = run("init", "ns16")
    assert again.exit_code == 2
    assert "steelyard.toml exists; change it with an editor, or give --overwrite" in again.stderr
    assert Path("steelyard.toml").read_bytes() == before
    assert run("init", "ns16", "--overwrite").exit_code == 0
    assert sy.Project.find().robot == "ns16"
    two = run("init", robot, "../../logs/a.npz", "../../judge.npz", "--overwrite")
    assert two.exit_code == 0, two.stderr
    assert sy.Project.find().logs.validate == ("../../judge.npz",)  # the last of several logs is for validation
    assert run("init", "ns16", "--overwrite").exit_code == 0
    assert run("init", "nobody", "--overwrite").exit_code == 2
    assert sy.Project.find().robot == "ns16"


def test_every_comment_of_a_new_file_is_a_valid_key(folder: Path) -> None:
    """The examples of `init` are valid without the hash before them."""
    assert run("init").exit_code == 0
    path = Path("steelyard.toml")
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join(line.removeprefix("# ") for line in lines))
    project = sy.Project.load(path)
    empty = sy.Project(path)
    unset = [name for name, value in vars(project).items() if name != "file" and value == getattr(empty, name)]
    assert head.startswith("# ")
    assert unset == []


def test_python_checks_the_logs_of_all_roles_once(folder: Path) -> None:
    from steelyard.demo import simulated_log

    (folder / "steelyard.toml").write_text("robot = 'rotradi'\n[logs]\nidentify = 'run.npz'\nhealthy = ['run.npz']\n")
    simulated_log(sy.Model.nominal(sy.load_robot("rotradi")), seed=1).save(folder / "run.npz")
    project = sy.Project.find()
    found = project.check()
    assert (found.exit_code, found.robot) == (0, "rotradi")
    assert project.log_paths() == ["../../run.npz"]
