"""Any name of a robot, a joint, a link, a file or a column: every output gives the name back, or it is
refused in one sentence; nothing in it is taken for code, markup, a formula or a command to a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
import yaml
from hostile_names import FIT, GROUPS, NAMES
from refusals import refused
from typer.testing import CliRunner

import steelyard as sy
from steelyard.check.repair_mapping import as_toml
from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, printable
from steelyard.excitation.motion_design import design_motions
from steelyard.export import (
    load_model,
    model_to_c,
    model_to_mjcf,
    model_to_sidecar,
    model_to_urdf,
    parameters_to_csv,
    sidecar_path,
)
from steelyard.friction.compensation import SmoothedCurve, remaining_terms
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import file_name, json_text
from steelyard.local.region import CartesianRegion
from steelyard.parameters.terms import identification_terms
from steelyard.payload import Payload
from steelyard.robot.library import builtin
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping
from steelyard.signals.read import read_log


def named(names: Sequence[str]) -> Robot:
    """A robot of three joints, called by seven names: its own, its joints', its links'."""
    plain = builtin("rotradi")
    own, joints, links = names[0], names[1:4], names[4:7]
    return replace(
        plain,
        name=own,
        joints=tuple(replace(j, name=n) for j, n in zip(plain.joints, joints, strict=True)),
        links=tuple(replace(k, name=n, joint=j) for k, n, j in zip(plain.links, links, joints, strict=True)),
    )


@pytest.fixture(scope="module", params=range(len(GROUPS)))
def robot(request: pytest.FixtureRequest) -> Robot:
    return named(GROUPS[request.param])


def quiet(text: str) -> bool:
    """No control characters of terminals, and none that turn or hide their neighbours."""
    return all(c.isprintable() or c == "\n" for c in text)


# ---------------------------------------------------------------- in


def in_xml(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def in_toml(text: str) -> str:
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08X}" for c in text) + '"'


def in_yaml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else in_toml(text)  # both escape by \U........


FORMATS = {
    "arm.urdf": (
        in_xml,
        "<robot name={0}><link name='base'/><link name={0}/>"
        "<joint name={0} type='continuous'><parent link='base'/><child link={0}/><axis xyz='0 0 1'/></joint></robot>",
    ),
    "arm.xml": (
        in_xml,
        "<mujoco model={0}><worldbody><body name={0}><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
        "<joint name={0} type='hinge'/></body></worldbody></mujoco>",
    ),
    "arm.yaml": (
        in_yaml,
        "name: {0}\nconvention: standard\nrows:\n  - joint: {0}\n    dh: [q, 0, 0.5, 0]\n    link: {{name: {0}}}\n",
    ),
    "arm.toml": (
        in_toml,
        "name = {0}\nconvention = 'standard'\n[[rows]]\njoint = {0}\ndh = ['q', 0, 0.5, 0]\nlink = {{name = {0}}}\n",
    ),
}


@pytest.mark.parametrize("label", NAMES)
@pytest.mark.parametrize("file", FORMATS)
def test_a_robot_has_the_name_that_its_file_gives_it_or_is_refused(file: str, label: str, tmp_path: Path) -> None:
    name = NAMES[label]
    written, text = FORMATS[file]
    (tmp_path / file).write_bytes(text.format(written(name)).encode("utf-8", "surrogatepass"))
    if label not in FIT:
        assert quiet(refused(lambda: sy.load_robot(tmp_path / file)))
        return
    robot = sy.load_robot(tmp_path / file)
    assert (robot.name, *robot.joint_names, *robot.link_names) == (name,) * 3


@pytest.mark.parametrize("label", sorted(set(NAMES) - set(FIT)))
def test_a_robot_made_in_python_refuses_the_same_names(label: str) -> None:
    for place in (0, 2, 5):
        names = ["robot", "a", "b", "c", "d", "e", "f"]
        names[place] = NAMES[label]
        assert quiet(refused(lambda names=names: named(names)))  # type: ignore[misc]


def test_names_that_look_alike_are_two() -> None:
    robot = named(["arm", "joint1", NAMES["a confusable"], "c", "d", "e", "f"])
    assert robot.joint_index("joint1") == 0
    assert robot.joint_index(NAMES["a confusable"]) == 1


def told(make: Callable[[], object]) -> object:
    """The result, or None after a refusal in one sentence."""
    try:
        return make()
    except SteelyardError as error:
        said = str(error)
    assert quiet(said)
    assert 0 < len(said) <= 300
    return None


@pytest.mark.parametrize("label", NAMES)
def test_a_region_is_a_folder_and_its_name_one_of_that_kind(label: str) -> None:
    region = told(lambda: CartesianRegion(NAMES[label], np.zeros(3), np.ones(3)))
    assert region is None or re.fullmatch(r"[\w-][\w.-]{0,99}", NAMES[label])


@pytest.mark.parametrize("label", NAMES)
def test_a_column_may_have_any_name(label: str, tmp_path: Path) -> None:
    """It is found by a mapping, and comes back out of the mapping that `check --fix` writes."""
    name, t = NAMES[label], np.arange(20) / 10.0
    table = csv_text([["t", name], *np.column_stack([t, np.sin(t)]).tolist()])
    (tmp_path / "log.csv").write_bytes(table.encode("utf-8", "surrogatepass"))
    robot = sy.load_robot(builtin("rotradi"), joints=["q1"])
    mapping = {"joints": ["q1"], "time": "t", "position": [name], "units": {"position": "rad"}}
    written = json.dumps(mapping) if label == "half a character" else as_toml(mapping)  # which TOML cannot hold
    assert label == "half a character" or tomllib.loads(written) == mapping
    (tmp_path / "m.toml").write_text(written, "utf-8")
    log = told(lambda: read_log(tmp_path / "log.csv", robot, tmp_path / "m.toml"))
    assert log is None or np.allclose(log.q[:, 0], np.sin(t), atol=1e-12)  # type: ignore[attr-defined]
    assert log is not None or label in COLUMNS_REFUSED


# What no line of names can hold, or is longer than any; and spaces around a name are not part of it.
COLUMNS_REFUSED = ("half a character", "very long", "a newline", "a return", "a continued line", "a dash")


# ---------------------------------------------------------------- out


def test_urdf_and_sidecar_give_the_names_back(robot: Robot, tmp_path: Path) -> None:
    model = Model.nominal(robot)
    path = tmp_path / "arm.urdf"
    model_to_urdf(model, path)
    model_to_sidecar(model, sidecar_path(path))
    for again in (sy.load_robot(path), load_model(path).robot):
        assert again.name == robot.name
        assert set(again.joint_names) == set(robot.joint_names)
        assert set(again.link_names) == set(robot.link_names)
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")
    theirs = pin.buildModelFromUrdf(str(path))
    assert set(theirs.names) == {"universe", *robot.joint_names}
    assert theirs.name == robot.name


def test_mjcf_gives_the_names_back(robot: Robot, tmp_path: Path) -> None:
    model_to_mjcf(Model.nominal(robot), tmp_path / "arm.xml")
    again = sy.load_robot(tmp_path / "arm.xml")
    assert again.name == robot.name
    assert set(again.joint_names) == set(robot.joint_names)
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle (pip install 'steelyard[oracle]')")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert {theirs.joint(k).name for k in range(theirs.njnt)} == set(robot.joint_names)


def test_tables_and_documents_give_the_names_back(robot: Robot, tmp_path: Path) -> None:
    model = Model.nominal(robot)
    parameters_to_csv(model, tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        owners = [row["of"] for row in csv.DictReader(file)]
    assert owners[:30] == [name for name in robot.link_names for _ in range(10)]
    text = json_text({"names": robot.joint_names})
    assert json.loads(text)["names"] == list(robot.joint_names)
    assert quiet(text)
    load = Payload(robot.link_names[0], np.r_[1.0, np.zeros(9)], np.eye(10))
    assert yaml.safe_load(load.to_yaml())["frame"] == robot.link_names[0]
    assert next(csv.DictReader(io.StringIO(load.to_csv())))["frame"] == robot.link_names[0]
    mapping = {"joints": list(robot.joint_names), "torque_used": [robot.joint_names[0]]}
    assert LogMapping.from_table(tomllib.loads(as_toml(mapping))).joints == robot.joint_names


def test_a_designed_motion_gives_the_names_back(robot: Robot, tmp_path: Path) -> None:
    made = design_motions(
        robot, duration=2.0, rate=20.0, harmonics=3, collision=False, limits={"q": 1.0, "dq": 2.0, "ddq": 9.0},
        progress=lambda p: True,
    )  # fmt: skip
    folder = made.save(tmp_path / "run")
    names = list(robot.joint_names)
    assert yaml.safe_load((folder / "joint_trajectory.yaml").read_text("utf-8"))["joint_names"] == names
    assert json.loads((folder / "joint_trajectory.json").read_text("utf-8"))["joint_names"] == names
    with (folder / "trajectory.csv").open(newline="", encoding="utf-8") as file:
        head = next(csv.reader(file))
    assert head == ["t", *(f"{x}_{name}" for x in ("q", "dq", "ddq") for name in names)]
    assert len((folder / "program.txt").read_text("utf-8").split("\n")) > 3


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_c_compiles_whatever_things_are_called(robot: Robot, tmp_path: Path) -> None:
    code, header = model_to_c(Model.nominal(robot), tmp_path / "arm.c", "arm")
    for standard in ("-std=c99", "-std=gnu17"):  # trigraphs are read by the first only
        flags = [standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
        done = subprocess.run(["gcc", *flags, str(code)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    said = re.findall(r"^ \*   \d+: (.*) \((?:rad|m), N(?: m)?\)$", header.read_text("utf-8"), re.MULTILINE)
    assert [json.loads(x) if x.startswith('"') else x for x in said] == list(robot.joint_names)


@pytest.mark.parametrize("label", NAMES)
def test_c_has_functions_and_files_of_fit_names_only(label: str, tmp_path: Path) -> None:
    name, model = NAMES[label], Model.nominal(builtin("rotradi"))
    named_so = told(lambda: model_to_c(model, tmp_path / "arm.c", name))
    assert (named_so is not None) == bool(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and name != "while")
    no_file = "/" in name or len(name) > 200 or label in ("NUL", "half a character") or sys.platform == "win32"
    if not no_file:
        made = told(lambda: model_to_c(model, tmp_path / f"{name}.c", "arm"))
        assert made is None or not set(name) & set('"\\\n')


# ---------------------------------------------------------------- commands


def run(*words: str, code: int | None = 0) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "20000", "TERM": "xterm-256color"})
    assert code is None or done.exit_code == code, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


def test_commands_print_names_and_nothing_that_a_terminal_obeys(robot: Robot, tmp_path: Path) -> None:
    arm = tmp_path / "arm.urdf"
    model_to_urdf(Model.nominal(robot), arm)
    t = np.arange(1500) / 100.0
    w, angle = np.array([1.3, 1.7, 2.1]), np.array([1.3, 1.7, 2.1]) * t[:, None]
    motion = np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)
    log = Log(robot.joint_names, t, motion[0], motion[1], tau=Model.nominal(robot).torque(*motion))
    any_name = "log" if sys.platform == "win32" else NAMES["a colour"] + robot.joint_names[0][:40].replace("/", "_")
    source = tmp_path / f"{any_name}.npz"
    log.save(source)
    out = tmp_path / "run"
    said = {
        "inspect": run("inspect", str(arm)),
        "check": run("check", str(arm), str(source), "--terms", "viscous,coulomb", code=None),
        "identify": run("identify", str(arm), str(source), "--terms", "viscous,coulomb", "--plain", "-o", str(out)),
    }
    for command, text in said.items():
        assert quiet(text), command
    for name in (robot.name, *robot.joint_names):
        assert printable(name) in said["inspect"]
        assert printable(name) in said["identify"]
    document = json.loads((out / "result.json").read_text("utf-8"))
    assert document["robot"]["name"] == robot.name
    assert [j["joint"] for j in document["identification"][0]["joints"]] == list(robot.joint_names)
    printed = run("inspect", str(arm), "--json")
    assert quiet(printed)
    assert {j["name"] for j in json.loads(printed)["joints"]} == set(robot.joint_names)
    assert (out / f"{file_name(robot.name)}.urdf").is_file()


@pytest.mark.parametrize("label", NAMES)
def test_what_is_not_there_is_told_in_one_quiet_line(label: str, tmp_path: Path) -> None:
    """Names of files, joints and terms that are typed."""
    name = NAMES[label]
    for words in (
        ["inspect", name],
        ["inspect", "rotradi", "--joints", name],
        ["inspect", "rotradi", f"--terms={name}"],
    ):
        said = run(*words, code=2)
        assert quiet(said), words
        assert said.count("\n") == 1 or "Usage" in said, words
        assert len(said) < 400


# ---------------------------------------------------------------- inside


def test_terms_know_joints_by_name_and_not_by_text() -> None:
    """Known friction of one joint does not fix that of joints whose names look like a list."""
    robot = named(["arm", "a+b", "where=c:d", "e,f", "k", "l", "m"])
    left = identification_terms(robot, remaining_terms(robot, {"e,f": SmoothedCurve(lambda v: v, 0.0)}))
    assert {t.where for t in left.terms if t.kind == "viscous"} == {("a+b", "where=c:d")}
