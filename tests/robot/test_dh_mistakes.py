"""Denavit–Hartenberg files with mistakes: each error names the file, the place and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from steelyard.errors import RobotError
from steelyard.robot.dh import read_dh, robot_from_dh


def arm(**changes: Any) -> dict[str, Any]:
    body = {"mass": 1, "com": [0, 0, 0], "inertia_com": {"xx": 1, "yy": 1, "zz": 1}}
    row = {"joint": "elbow", "theta": 0, "d": 0, "a": 1, "alpha": 0, "link": body}
    return {"convention": "standard", "rows": [[0, 0, 1, 0], row], **changes}


def second(**changes: Any) -> dict[str, Any]:
    first, row = arm()["rows"]
    return arm(rows=[first, {**row, **changes}])


def body(**changes: Any) -> dict[str, Any]:
    return second(link={**arm()["rows"][1]["link"], **changes})


MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    ({"rows": []}, ["'convention' is missing"]),
    ({"convention": "standard"}, ["'rows' is missing"]),
    (arm(rows=[]), ["rows", "no row"]),
    (arm(convention="Denavit"), ["convention", "'Denavit'", "standard, modified"]),
    (arm(convention=["x"] * 3), ["convention", "a list of 3"]),
    (arm(link_frame="middle"), ["link_frame", "distal, proximal, joint"]),
    (arm(convention="modified", link_frame="distal"), ["link_frame", "one of joint"]),
    (arm(units="grad"), ["units", "rad, deg"]),
    (arm(grvity=[0, 0, 1]), ["unknown key 'grvity'", "did you mean 'gravity'"]),
    (arm(gravity=[0, 0]), ["gravity", "2 numbers, not 3"]),
    (arm(gravity=9.81), ["gravity", "not a list"]),
    (arm(base=[0, 0, 1]), ["base", "not a table", "rpy, xyz"]),
    (arm(columns=["a", "b", "c", "d"]), ["columns", "theta, d, a, alpha"]),
    (arm(lengths={"l 1": 1}), ["lengths", "'l 1'"]),
    (arm(lengths={"pi": 3}), ["lengths", "'pi'"]),
    (arm(lengths={"elbow": 1}), ["lengths", "'elbow'", "joint"]),
    (arm(lengths={"a": 1}, constants={"a": 1}), ["constants", "'a'", "twice"]),
    (arm(lengths=[1]), ["lengths", "table"]),
    (arm(constants={"a": "b", "b": 1}), ["constants: a", "'b'"]),
    (arm(rows=[[0, 0, 1]]), ["row 1 (q1)", "wrong number of columns", "3 instead of 4", "[theta, d, a, alpha]"]),
    (arm(rows=[5]), ["row 1", "not a table"]),
    (arm(rows={"a": 1}), ["rows", "not a list"]),
    (second(dh=[0, 0, 0]), ["row 2 (elbow)", "dh", "wrong number of columns"]),
    (second(dh=[0, 0, 0, 0]), ["row 2 (elbow)", "theta", "stated twice"]),
    (second(aplha=0), ["row 2 (elbow)", "'aplha'", "'alpha'"]),
    (second(alpha=None), ["row 2 (elbow)", "'alpha' is missing", "alpha: 0"]),
    (second(a=float("nan")), ["row 2 (elbow)", "a:", "nan", "finite"]),
    (second(a="nan"), ["row 2 (elbow)", "a:", "no constant 'nan'"]),
    (second(a=float("inf")), ["row 2 (elbow)", "a:", "finite"]),
    (second(a=True), ["row 2 (elbow)", "a:", "not a number"]),
    (second(a=10**400), ["row 2 (elbow)", "a:", "finite"]),
    (second(a="q"), ["row 2 (elbow)", "a:", "no constant 'q'"]),
    (second(a="l3", theta=0), ["row 2 (elbow)", "a:", "no constant 'l3'"]),
    (second(theta="2*q"), ["row 2 (elbow)", "theta", "2 per unit", "q or -q"]),
    (second(theta="q*q"), ["row 2 (elbow)", "theta", "only appear once"]),
    (second(theta="q", d="q"), ["row 2 (elbow)", "both theta and d"]),
    (second(theta="q", type="prismatic"), ["row 2 (elbow)", "type", "prismatic", "theta"]),
    (second(theta="-q", sign=-1), ["row 2 (elbow)", "sign", "twice"]),
    (second(sign=2), ["row 2 (elbow)", "sign", "1 or -1"]),
    (second(type="fixed"), ["row 2 (elbow)", "type", "'fixed'", "revolute, prismatic"]),
    (second(joint="q1"), ["row 2 (q1)", "joint 'q1' appears twice", "row 1"]),
    (second(joint=7), ["row 2", "joint", "not a name"]),
    (second(parent="wrist"), ["row 2 (elbow)", "parent", "'wrist'", "base, q1"]),
    (second(limits={"lower": 1, "upper": 0}), ["row 2 (elbow)", "limits", "below upper"]),
    (second(limits={"velocity": -1}), ["row 2 (elbow)", "velocity", "positive"]),
    (second(limits=[1]), ["row 2 (elbow)", "limits", "1 numbers, not 2"]),
    (body(mass=-1), ["row 2 (elbow)", "link", "mass", "negative"]),
    (body(mass=None), ["row 2 (elbow)", "link", "needs mass"]),
    (body(first_moment=[0, 0, 0]), ["row 2 (elbow)", "link", "one of com and first_moment"]),
    (body(inertia_com={"xx": 1}), ["row 2 (elbow)", "inertia_com", "'yy' is missing"]),
    (body(inertia_com=[[1, 0, 0], [2, 1, 0], [0, 0, 1]]), ["row 2 (elbow)", "inertia_com", "symmetric"]),
    (body(name="link1"), ["row 2 (elbow)", "link 'link1' appears twice"]),
    (body(mas=2), ["row 2 (elbow)", "'mas'", "'mass'"]),
    (arm(transmission={}), ["transmission", "motor_from_joint"]),
    (arm(transmission={"motor_from_joint": [[1, 0, 0]]}), ["transmission", "row 1", "3 numbers, not 2"]),
    (arm(transmission={"joint_from_motor": [[1, 1], [1, 1]]}), ["transmission", "invertible"]),
    (arm(transmission={"motor_from_joint": [[1, 0]], "motors": ["a", "b"]}), ["transmission", "1 motor names"]),
    (arm(transmission={"motor_from_joint": [[1, 0]], "ratios": [0]}), ["transmission", "ratio 1", "unconnected"]),
    (arm(terms=[{"kind": "viscous", "values": [1]}]), ["term 1 (viscous)", "values", "1 numbers, not 2"]),
    (arm(terms=[{"kind": "viscous", "values": [1, 1], "on": "drive"}]), ["term 1 (viscous)", "transmission"]),
    (arm(terms=[{"kind": "stribeck-atan", "values": [1, 1]}]), ["term 1 (stribeck-atan)", "3 parameter(s)"]),
    (arm(terms=[{"kind": "coulomb", "values": [1, 1], "options": {"smooth": "x"}}]), ["term 1 (coulomb)", "smooth"]),
    (arm(terms=[{"kind": "coulomb", "values": [1, 1], "options": {"smoth": 1}}]), ["term 1 (coulomb)", "'smoth'"]),
    (arm(terms=[{"values": [1, 1]}]), ["term 1", "'kind' is missing"]),
    (arm(torque_used=["knee"]), ["torque_used", "'knee'", "q1, elbow"]),
]


@pytest.mark.parametrize(("data", "words"), MISTAKES, ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else "")
def test_mistakes_are_explained(data: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(RobotError) as caught:
        robot_from_dh(data, "arm.yaml")
    message = str(caught.value)
    for word in ["arm.yaml", *words]:
        assert word in message
    assert message.endswith(".")


def test_the_side_of_a_term_is_no_option_of_it() -> None:
    """Options may have any key, including `on`; the term's own `on` decides where it acts."""
    from steelyard.parameters.terms import nominal_terms

    robot = robot_from_dh(arm(terms=[{"kind": "viscous", "values": [1, 2], "options": {"on": "joint"}}]), "arm.yaml")
    assert nominal_terms(robot)[0].terms[0].on == "joint"


def test_the_arm_without_a_mistake_is_read() -> None:
    assert robot_from_dh(arm(), "arm.yaml").dof == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "convention: standard\nrows: [1, 2", ["line 2", "YAML"]),
        ("a.yaml", "a: 1\nb: 2\na: 3\n", ["line 3", "'a'", "twice"]),
        ("a.yaml", "rows:\n  - {a: 1, a: 2}\n", ["line 2", "'a'", "twice"]),
        ("a.yaml", "x: !!python/object/apply:os.system ['true']", ["line 1", "YAML"]),
        ("a.yaml", "- 1\n- 2\n", ["table"]),
        ("a.yaml", "", ["table"]),
        ("a.yaml", "x: 2020-13-45", ["cannot be read"]),
        ("a.yaml", "x: \x07", ["YAML"]),
        ("a.yaml", "[" * 1500, ["nested"]),
        ("a.toml", "x = [1,\ny", ["TOML", "line 2"]),
        ("a.toml", "x = 1\nx = 2\n", ["TOML", "line 2"]),
    ],
)
def test_malformed_files_are_explained(tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(RobotError) as caught:
        read_dh(tmp_path / name)
    for word in [name, *words]:
        assert word in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: Kozłowski".encode("iso-8859-2"))
    (tmp_path / "huge.yaml").write_bytes(b"#" * 2_000_000)
    for name, word in [
        ("none.yaml", "no such file"),
        ("latin.yaml", "UTF-8"),
        ("huge.yaml", "too much"),
        ("", "folder"),
    ]:
        with pytest.raises(RobotError, match=word):
            read_dh(tmp_path / name)


def test_a_file_of_aliases_does_not_explode() -> None:
    """The 'billion laughs': ten levels of ten references each."""
    levels = ["x0: &x0 [1, 1]"] + [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(RobotError, match="a list of 10"):
        robot_from_dh({**arm(), "gravity": [yaml.safe_load("\n".join(levels))["x9"], 0, 0]}, "arm.yaml")
