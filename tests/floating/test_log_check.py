"""Mistakes in the statement of base and contacts, in logs of a trunk that Pinocchio moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from floating_plants import DESCRIBED, NAMES, columns_of, swimmer_log, swimmer_mapping
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.errors import SteelyardError
from steelyard.floating import check_floating_log
from steelyard.robot import load_robot

POSE = {"position": list(NAMES["position"]), "orientation": list(NAMES["orientation"])}
IMU = {"gyroscope": list(NAMES["gyro"]), "accelerometer": list(NAMES["force"])}
TWIST = {"linear_velocity": list(NAMES["twist"][:3]), "angular_velocity": list(NAMES["twist"][3:])}


@pytest.fixture(scope="module")
def logs() -> dict[bool, dict]:
    pin = pytest.importorskip("pinocchio")
    return {resting: swimmer_log(pin, seconds=8.0, resting=resting) for resting in (True, False)}


def write(columns: dict, path: Path) -> Path:
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


def kinds(columns: dict, mapping: dict, path: Path) -> list[tuple[str, str]]:
    robot = load_robot(DESCRIBED, floating=True)
    found = check_floating_log(robot, write(columns, path / "log.csv"), mapping=mapping)
    return [(f.kind, f.advice) for f in found.findings if f.severity == "problem"]


def test_correct_statements_pass(logs: dict, tmp_path: Path) -> None:
    closed = {"kind": "point"}
    for resting, base, contact in (
        (True, {**POSE, **IMU}, closed), (True, POSE, closed), (True, IMU, closed),
        (False, {**POSE, **TWIST, "twist": "mixed"}, None),
    ):  # fmt: skip
        assert kinds(columns_of(logs[resting]), swimmer_mapping(base, contact), tmp_path) == []


def test_a_contact_that_slides_is_found(logs: dict, tmp_path: Path) -> None:
    """The hand of this log moves through the air, and is stated as resting."""
    (found,) = kinds(columns_of(logs[False]), swimmer_mapping(POSE, {"kind": "point"}), tmp_path)
    assert found[0] == "sliding"
    assert "state column" in found[1]
    # An IMU alone does not show how fast the base moves.
    assert kinds(columns_of(logs[False]), swimmer_mapping(IMU, {"kind": "point"}), tmp_path) == []


@pytest.mark.parametrize(("base", "kind", "advice"), [
    ({**POSE, **IMU, "quaternion": "xyzw"}, "quaternion", 'quaternion = "wxyz"'),
    ({**POSE, **TWIST, "twist": "world"}, "twist", 'twist = "body"'),
])  # fmt: skip
def test_wrong_axes_are_named_with_the_right_ones(
    base: dict, kind: str, advice: str, logs: dict, tmp_path: Path
) -> None:
    found = kinds(columns_of(logs[False]), swimmer_mapping(base), tmp_path)
    assert [f[0] for f in found] == [kind]
    assert advice in found[0][1]


def test_a_small_tilt_shows_the_order_of_the_quaternion_by_gravity(logs: dict, tmp_path: Path) -> None:
    """A robot that hardly turns: noise hides the rate of its orientation, but the accelerometer shows the vertical."""
    columns = columns_of(logs[True])
    level = {**columns, **dict.fromkeys(NAMES["orientation"], 0.0 * columns["t"])}
    level[NAMES["orientation"][0]] = 0.0 * columns["t"] + 1.0
    for name, value in zip(NAMES["force"], (0.0, 0.0, 9.81), strict=True):
        level[name] = 0.0 * columns["t"] + value
    (found,) = kinds(level, swimmer_mapping({**POSE, **IMU, "quaternion": "xyzw"}), tmp_path)
    assert found == ("quaternion", 'State quaternion = "wxyz".')
    turned = {**level, NAMES["force"][1]: level[NAMES["force"][2]], NAMES["force"][2]: level[NAMES["force"][1]]}
    (found,) = kinds(turned, swimmer_mapping({**POSE, **IMU}), tmp_path)
    assert found[0] == "gravity"


def test_an_accelerometer_without_gravity_or_in_g_is_found(logs: dict, tmp_path: Path) -> None:
    columns = columns_of(logs[False])
    mapping = swimmer_mapping({**POSE, **IMU})
    names, mean = NAMES["force"], [np.mean(columns[n]) for n in NAMES["force"]]
    without = {**columns, **{n: columns[n] - m for n, m in zip(names, mean, strict=True)}}
    assert [f[0] for f in kinds(without, mapping, tmp_path)] == ["gravity"]
    milli = {**columns, **{n: 1e3 * columns[n] for n in names}}
    assert [f[0] for f in kinds(milli, mapping, tmp_path)] == ["units"]


def test_command(logs: dict, tmp_path: Path) -> None:
    import json

    write(columns_of(logs[False]), tmp_path / "log.csv")
    (tmp_path / "robot.urdf").write_text(DESCRIBED)
    (tmp_path / "map.json").write_text(json.dumps(swimmer_mapping({**POSE, **IMU, "quaternion": "xyzw"})))
    call = ["check", str(tmp_path / "robot.urdf"), str(tmp_path / "log.csv"), "--floating", "--map"]
    outcome = CliRunner().invoke(app, [*call, str(tmp_path / "map.json")])
    assert outcome.exit_code == 1
    assert 'quaternion = "wxyz"' in " ".join(outcome.output.split())  # lines may break at the blank
    (tmp_path / "map.json").write_text(json.dumps(swimmer_mapping({**POSE, **IMU})))
    assert CliRunner().invoke(app, [*call, str(tmp_path / "map.json")]).exit_code == 0
    robot = load_robot(DESCRIBED, floating=True)
    with pytest.raises(SteelyardError, match="no table"):
        check_floating_log(robot, tmp_path / "log.csv", mapping={"joints": ["shoulder", "elbow"]})
