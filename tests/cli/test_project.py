"""A project file says once what is typed otherwise; what is typed wins; and a run says the command that repeats it."""

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
    """A project with a robot of three joints, one of them locked, and a folder below it, where one stands."""
    from importlib.resources import files

    (tmp_path / "arm.yaml").write_text((files("steelyard.robot.library") / "szabo3r.yaml").read_text())
    (tmp_path / "steelyard.toml").write_text(FILE)
    (tmp_path / "logs").mkdir()
    for name in ("logs/b.npz", "logs/a.npz", "judge.npz"):
        (tmp_path / name).touch()
    (tmp_path / "below" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "deeper")
    return tmp_path


def test_a_command_without_arguments_is_about_the_project_s_robot(folder: Path) -> None:
    done = run("inspect", "--json")
    seen = json.loads(done.stdout)
    assert [j["name"] for j in seen["joints"]] == ["q1", "q2"]
    assert seen["gravity"] == [0.0, 9.81, 0.0]
    assert "Fv1" in str(seen["base_parameters"])
    assert done.stderr == "Project ../../steelyard.toml: robot, joints, lock, gravity, terms\n"
    spelled = run("--project", "none", "inspect", "../../arm.yaml", "--joints", "q1,q2", "--lock", "q3=0.25",
                  "--gravity", "0,9.81,0", "--terms", "viscous,coulomb", "--json")  # fmt: skip
    again = json.loads(spelled.stdout)
    assert again.pop("command").startswith("steelyard --project none inspect ../../arm.yaml --joints q1,q2 --lock")
    assert seen.pop("command").startswith("steelyard --project none inspect ../../arm.yaml --joints q1,q2 --lock")
    assert again == seen
    assert spelled.stderr == ""


def test_what_is_typed_wins(folder: Path) -> None:
    seen = json.loads(run("inspect", "--gravity", "0,0,-1.62", "--terms", "rotor", "--json").stdout)
    assert seen["gravity"] == [0.0, 0.0, -1.62]
    assert [j["name"] for j in seen["joints"]] == ["q1", "q2"]
    assert "Fv1" not in str(seen["base_parameters"])


def test_another_robot_takes_nothing_from_the_file(folder: Path) -> None:
    done = run("inspect", "ns16", "--json")
    assert len(json.loads(done.stdout)["joints"]) == 6
    assert done.stderr == "Project ../../steelyard.toml: not used, it is about arm.yaml\n"
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
    ("line", "complaint"),
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
def test_a_wrong_file_is_refused_by_table_and_key(tmp_path: Path, monkeypatch: Any, line: str, complaint: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steelyard.toml").write_text(line + "\n")
    done = run("inspect")
    assert done.exit_code == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
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
    """The words that a command would run with here."""
    from steelyard.cli.app import Commands
    from steelyard.cli.filling import chosen_project, with_project

    found: Any = Commands(name="steelyard")
    for word in name.split():
        found = found.get_command(None, word)
    context = found.context_class(found)
    given = found.make_parser(context).parse_args(args=list(typed))[0]
    return list(with_project(found, given, chosen_project(""), name).words)


ROBOT = ["--joints", "q1,q2", "--lock", "q3=0.25", "--gravity", "0.0,9.81,0.0"]
TERMS = ["--terms", "viscous,coulomb"]


def test_every_stage_takes_what_is_for_it(folder: Path) -> None:
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
    # An option beside which a role makes no sense keeps it away.
    assert "--validate" not in words_of("identify", "--holdout", "0.3")
    assert words_of("friction", "--design")[:2] == [arm, "--design"]


def test_a_log_that_is_typed_needs_no_robot_before_it(folder: Path) -> None:
    Path("today.csv").touch()
    assert words_of("check", "today.csv")[:3] == ["../../arm.yaml", "today.csv", "--joints"]
    assert words_of("identify", "today.csv", "../../judge.npz")[:3] == [
        "../../arm.yaml",
        "today.csv",
        "../../judge.npz",
    ]


def test_what_is_missing_is_asked_for_with_the_way_out(folder: Path) -> None:
    assert "[required, or in steelyard.toml]" in " ".join(run("check", "--help").stdout.split())
    file = folder / "steelyard.toml"
    file.write_text('robot = "arm.yaml"\n')
    lacking = run("identify")
    assert lacking.exit_code == 2
    assert "LOG is missing, and ../../steelyard.toml has no 'logs.identify'; type it, or let" in lacking.stderr
    file.unlink()
    bare = run("check")
    assert bare.exit_code == 2
    assert "ROBOT is missing, and there is no steelyard.toml here or above; type it, or let" in bare.stderr


def test_a_model_has_its_own_joints_and_the_project_s_runs_are_found(folder: Path) -> None:
    (folder / "runs" / "identify").mkdir(parents=True)
    predict = words_of("predict")
    assert predict[:2] == ["../../runs/identify", "../../judge.npz"]
    assert "--joints" not in predict
    assert words_of("export") == ["../../runs/identify", "-o", "../../runs/export"]


def test_a_run_says_the_command_that_repeats_it(folder: Path) -> None:
    """Every option is spelled out: the command gives the same bytes without the project file."""
    (folder / "my arm.yaml").write_text((folder / "arm.yaml").read_text())
    file = folder / "steelyard.toml"
    file.write_text(file.read_text().replace("arm.yaml", "my arm.yaml"))
    done = run("simulate", "../../my arm.yaml", "--duration", "0.05", "--json")
    assert done.exit_code == 0, done.stderr
    place = folder / "runs" / "simulate"
    result, manifest = (json.loads((place / name).read_text()) for name in ("result.json", "manifest.json"))
    command = (
        "steelyard --project none simulate '../../my arm.yaml' --duration 0.05 --joints q1,q2 --lock q3=0.25 "
        "--gravity 0.0,9.81,0.0"
    )
    assert result["command"] == command
    assert manifest["command"] == f"{command} -o ../../runs/simulate --json"
    assert (place / manifest["command_in"]).resolve() == Path.cwd()
    assert "&#x27;../../my arm.yaml&#x27; --duration 0.05" in (place / "report.html").read_text()
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    file.unlink()
    again = run(*shlex.split(command)[1:], "-o", str(folder / "elsewhere"))
    assert again.exit_code == 0, again.stderr
    after = {path.name: path.read_bytes() for path in (folder / "elsewhere").iterdir()}
    assert before.keys() == after.keys()
    # Where a run is written stands in the manifest alone.
    assert [name for name in before if before[name] != after[name]] == ["manifest.json"]


def test_a_command_that_wrote_nothing_says_so_and_how_to_keep_it(folder: Path) -> None:
    file = folder / "steelyard.toml"
    file.write_text(file.read_text().replace('runs = "runs"', ""))
    done = run("simulate", "../../arm.yaml", "--duration", "0.05")
    assert done.exit_code == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Nothing was written; to keep the result: steelyard --project none simulate ../../arm.yaml")
    assert last.endswith("-o RUN")
    assert "Nothing was written" not in run("simulate", "../../arm.yaml", "--duration", "0.05", "--json").stdout
    assert "Nothing was written" not in run("inspect").stdout


def test_init_writes_a_file_that_is_read_and_replaces_none(folder: Path) -> None:
    robot = "../../arm.yaml"
    done = run("init", robot, "../../logs/a.npz", "--validate", "../../judge.npz", "--lock", "q3=0.1", "--snap", "1e-4")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "Written to steelyard.toml. ../../judge.npz will judge. Next: steelyard check.\n"
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
    assert sy.Project.find().logs.validate == ("../../judge.npz",)  # of several logs the last one judges
    assert run("init", "ns16", "--overwrite").exit_code == 0
    assert run("init", "nobody", "--overwrite").exit_code == 2
    assert sy.Project.find().robot == "ns16"


def test_every_comment_of_a_new_file_is_a_key_that_is_read(folder: Path) -> None:
    """The examples of `init` are right when the hash before them is taken away."""
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
