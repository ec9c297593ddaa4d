"""Denavit–Hartenberg files: frames agree with the textbook's 4×4 matrices, and formulas are evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from steelyard.ground.arithmetic import FormulaError, evaluate_expression
from steelyard.ground.documents import parse_document
from steelyard.robot._dh_row import _LINK_KEYS, _ROW_KEYS
from steelyard.robot.dh import _OPTIONAL, _REQUIRED, read_dh, robot_from_dh
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import move_parameters
from steelyard.robot.transmission import BallScrew, ConstantRatio

# ---------------------------------------------------------------- the textbook


def standard(theta: float, d: float, a: float, alpha: float) -> np.ndarray:
    """Paul 1981: T = Rz(theta) Tz(d) Tx(a) Rx(alpha), written out."""
    ct, st_, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [[ct, -st_ * ca, st_ * sa, a * ct], [st_, ct * ca, -ct * sa, a * st_], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
    )


def modified(theta: float, d: float, a: float, alpha: float) -> np.ndarray:
    """Craig 1986, eq. 3.6: T = Rx(alpha) Tx(a) Rz(theta) Tz(d), written out."""
    ct, st_, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [[ct, -st_, 0.0, a], [st_ * ca, ct * ca, -sa, -sa * d], [st_ * sa, ct * sa, ca, ca * d], [0.0, 0.0, 0.0, 1.0]]
    )


def link_frame(robot: Robot, q: np.ndarray, index: int) -> np.ndarray:
    """The 4×4 pose of a link's own frame in the base."""
    rotations, origins = link_poses(robot, q)
    pose, own = np.eye(4), np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotations[index], origins[index]
    own[:3, :3], own[:3, 3] = robot.links[index].frame_rotation, robot.links[index].frame_translation
    return np.asarray(pose @ own)


angles = st.one_of(st.floats(-3.2, 3.2), st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi]))
lengths = st.floats(-1.0, 1.0)
rows = st.tuples(st.sampled_from(["revolute", "prismatic"]), st.sampled_from([1, -1]), angles, lengths, lengths, angles)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from(["standard", "modified"]), st.data())
def test_frames_are_those_of_the_textbook(table: list[Any], convention: str, data: Any) -> None:
    parents = [data.draw(st.integers(-1, i - 1)) if i else -1 for i in range(len(table))]
    q = np.array([data.draw(st.floats(-3.0, 3.0)) for _ in table])
    written = []
    for i, (kind, sign, theta, d, a, alpha) in enumerate(table):
        parent = "base" if parents[i] < 0 else f"q{parents[i] + 1}"
        row = {"type": kind, "theta": theta, "d": d, "a": a, "alpha": alpha, "sign": sign, "parent": parent}
        written.append(row)
    robot = robot_from_dh({"convention": convention, "rows": written}, "random.yaml")

    transform = standard if convention == "standard" else modified
    frames: list[np.ndarray] = []
    for i, (kind, sign, theta, d, a, alpha) in enumerate(table):
        moved = (theta + sign * q[i], d) if kind == "revolute" else (theta, d + sign * q[i])
        frames.append((frames[parents[i]] if parents[i] >= 0 else np.eye(4)) @ transform(*moved, a, alpha))
        # By default, inertias live in frame i in both conventions.
        assert_allclose(link_frame(robot, q, i), frames[i], atol=1e-13)


TABLE = [[0.3, 0.1, 0.2, 0.7], [-1.1, -0.2, 0.4, np.pi / 2], [0.5, 0.3, -0.1, -2.0]]


@pytest.mark.parametrize("where", ["distal", "proximal", "joint"])
def test_link_frames_of_standard_tables(where: str) -> None:
    """Each choice of link frame, and a body's parameters carried from it into the base."""
    body = {"mass": 2.0, "com": [0.1, -0.2, 0.3], "inertia_com": {"xx": 0.3, "yy": 0.4, "zz": 0.5, "xy": 0.02}}
    written = [{"dh": row, "link": body} for row in TABLE]
    robot = robot_from_dh({"convention": "standard", "link_frame": where, "rows": written}, "arm.yaml")
    q = np.array([0.4, -0.8, 1.3])
    before = np.eye(4)
    for i, row in enumerate(TABLE):
        frame = before @ standard(row[0] + q[i], *row[1:])
        expected = {
            "distal": frame,
            "proximal": np.block([[frame[:3, :3], before[:3, 3:]], [np.zeros((1, 3)), np.ones((1, 1))]]),
            "joint": before @ standard(q[i], 0.0, 0.0, 0.0),
        }[where]
        actual = link_frame(robot, q, i)
        assert_allclose(actual, expected, atol=1e-14)
        in_base = move_parameters(robot.links[i].inertia, actual[:3, :3], actual[:3, 3])
        com = expected @ [0.1, -0.2, 0.3, 1.0]
        inertia = np.array([[0.3, 0.02, 0.0], [0.02, 0.4, 0.0], [0.0, 0.0, 0.5]])
        turned = expected[:3, :3] @ inertia @ expected[:3, :3].T
        about_base = turned + 2.0 * (com[:3] @ com[:3] * np.eye(3) - np.outer(com[:3], com[:3]))
        assert_allclose(in_base[1:4], 2.0 * com[:3], atol=1e-13)
        assert_allclose(in_base[[4, 6, 9]], np.diag(about_base), atol=1e-13)
        before = frame


def test_base_is_placed_and_turned() -> None:
    data = {"convention": "modified", "rows": TABLE, "base": {"rpy": [0, 90, 0], "xyz": [1, 2, 3]}, "units": "deg"}
    robot = robot_from_dh(data, "arm.yaml")
    base = np.array([[0, 0, 1, 1], [0, 1, 0, 2], [-1, 0, 0, 3], [0, 0, 0, 1.0]])
    theta, d, a, alpha = TABLE[0]
    assert_allclose(link_frame(robot, np.zeros(3), 0), base @ modified(np.deg2rad(theta), d, a, np.deg2rad(alpha)))


@pytest.mark.parametrize("units", ["rad", "deg"])
def test_right_angles_are_exact(units: str) -> None:
    quarter = "pi/2" if units == "rad" else 90
    written = [[f"q + {quarter}", 0.1, 0.2, quarter], [f"-q - 3*{quarter}", 0, 0.3, f"-{quarter}"]] * 2
    for convention in ("standard", "modified"):
        robot = robot_from_dh({"convention": convention, "rows": written, "units": units}, "arm.yaml")
        for link in robot.links:
            for matrix in (link.rotation, link.frame_rotation):
                assert set(np.unique(np.abs(matrix))) <= {0.0, 1.0}
                assert not np.any(np.signbit(matrix) & (matrix == 0.0))  # no -0.0: equal robots, equal bytes


# ---------------------------------------------------------------- ways to write the same robot

ARM_YAML = """
name: arm
convention: standard
lengths: {l1: 0.3, l2: 2*l1}
constants: {n: 100}
rows:
  - [q1, l1, 0, pi/2]
  - [-q2 + pi/2, 0, l2, 0]
  - joint: slide
    dh: [0, slide + l1/2, 0, 0]
    limits: {lower: 0, upper: 0.2, velocity: 1, effort: n*2}
    link: {name: hand, mass: 1, com: [0, 0, 0.1], inertia_com: {xx: 0.1, yy: 0.1, zz: 1e-2}}
transmission:
  motors: [a, b, c]
  joint_from_motor: [[1, 0, 0], [0, -1, 0], [0, 1, 1]]
  ratios: [n, 50, {ball_screw: {pitch: 0.005, x1_squared: 0.06, x2_squared: 0.07, phase: 0.5}}]
terms:
  - {kind: viscous, on: drive, values: [1, 2, n/10]}
  - {kind: stribeck-atan, values: [[1, 1, 1], [2, 2, 2], [3, 3, 3]], options: {Kv: 500, delta: 5}}
torque_used: [q1, slide]
"""

ARM_TOML = """
name = "arm"
convention = "standard"
rows = [
  {joint = "q1", theta = 0, d = "l1", a = 0, alpha = "pi/2"},
  {joint = "q2", theta = "pi/2", sign = -1, d = 0, a = 0.6, alpha = 0},
  {joint = "slide", type = "prismatic", theta = 0, d = "l1/2", a = 0, alpha = 0, limits = {lower = 0, upper = 0.2, velocity = 1, effort = 200}, link = {name = "hand", mass = 1, first_moment = [0, 0, 0.1], inertia_origin = [[0.11, 0, 0], [0, 0.11, 0], [0, 0, 0.01]]}},
]
torque_used = ["q1", "slide"]
[lengths]
l1 = 0.3
l2 = 0.6
[transmission]
motors = ["a", "b", "c"]
motor_from_joint = [[1, 0, 0], [0, -1, 0], [0, 1, 1]]
ratios = [100, 50, {ball_screw = {pitch = 0.005, x1_squared = 0.06, x2_squared = 0.07, phase = 0.5}}]
[[terms]]
kind = "viscous"
on = "drive"
values = [1, 2, 10]
[[terms]]
kind = "stribeck-atan"
values = [[1, 1, 1], [2, 2, 2], [3, 3, 3]]
options = {Kv = 500, delta = 5}
"""  # noqa: E501


def test_a_robot_written_in_two_ways_is_the_same_robot(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM_YAML, encoding="utf-8")
    (tmp_path / "arm.toml").write_text(ARM_TOML, encoding="utf-8")
    one, other = read_dh(tmp_path / "arm.yaml"), read_dh(tmp_path / "arm.toml")
    assert one.fingerprint == other.fingerprint
    assert one.joints == other.joints
    assert one.nominal_terms == other.nominal_terms
    assert one.lengths == other.lengths == {"l1": 0.3, "l2": 0.6}
    assert_allclose(one.links[2].inertia, other.links[2].inertia)


def test_every_entry_of_a_file_is_read() -> None:
    robot = robot_from_dh(parse_document(ARM_YAML, "arm.yaml"), "arm.yaml")
    assert robot.name == "arm"
    assert robot.joint_names == ("q1", "q2", "slide")
    assert robot.link_names == ("link1", "link2", "hand")
    assert [joint.kind for joint in robot.joints] == ["revolute", "revolute", "prismatic"]
    assert_array_equal(robot.links[1].axis, [0.0, 0.0, -1.0])
    assert robot.joints[2].effort == 200.0
    assert robot.joints[0].effort == np.inf
    assert robot.torque_used == (True, False, True)
    assert not robot.has_inertia
    assert robot.transmission is not None
    assert_array_equal(robot.transmission.matrix, [[1, 0, 0], [0, -1, 0], [0, 1, 1]])
    assert robot.transmission.motors == ("a", "b", "c")
    assert robot.transmission.ratios == (ConstantRatio(100.0), ConstantRatio(50.0), BallScrew(0.005, 0.06, 0.07, 0.5))
    viscous, stribeck = robot.nominal_terms
    assert (viscous.kind, viscous.on, viscous.values) == ("viscous", "drive", ((1.0, 2.0, 10.0),))
    assert stribeck.on == "joint"
    assert stribeck.options == (("Kv", 500.0), ("delta", 5.0))


def test_degrees_reach_angles_and_limits_of_revolute_joints_only() -> None:
    limits = {"lower": -90, "upper": 180, "velocity": 360}
    written = [{"dh": ["q", 1, 0, 0], "limits": limits}, {"dh": [90, "q", 0, 0], "limits": limits}]
    turn, slide = robot_from_dh({"convention": "standard", "units": "deg", "rows": written}, "arm.yaml").joints
    assert (turn.lower, turn.upper, turn.velocity) == pytest.approx((-np.pi / 2, np.pi, 2 * np.pi))
    assert (slide.lower, slide.upper, slide.velocity) == (-90.0, 180.0, 360.0)


def test_columns_may_come_in_the_order_of_the_paper() -> None:
    here = robot_from_dh({"convention": "modified", "rows": [["q", 0.1, 0.2, 0.3]]}, "arm.yaml")
    columns = ["a", "alpha", "d", "theta"]
    there = robot_from_dh({"convention": "modified", "columns": columns, "rows": [[0.2, 0.3, 0.1, "q"]]}, "arm.yaml")
    assert here.fingerprint == there.fingerprint


def test_the_examples_of_the_manual_are_robots() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "robot-files.md").read_text(encoding="utf-8")
    examples = [block.partition("```")[0] for block in manual.split("```yaml")[1:]]
    short, long = [robot_from_dh(parse_document(text, "manual.yaml"), "manual.yaml") for text in examples]
    assert short.joint_names == ("q1", "q2", "q3")
    assert long.joint_names == ("shoulder", "elbow", "quill")
    assert [t.on for t in long.nominal_terms] == ["motor", "joint", "drive"]
    for key in (*_REQUIRED, *_OPTIONAL, *_ROW_KEYS, *_LINK_KEYS):
        assert f"`{key}`" in manual or f"{key}:" in manual


# ---------------------------------------------------------------- arithmetic

numbers = st.floats(0.1, 9.0).map(lambda x: f"{x:.3f}") | st.sampled_from(["l1", "pi", "1e-3", "7"])
formulas = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"(-{x})"),
        inner.map(lambda x: f"({x})**2"),
    ),
    max_leaves=8,
)


@given(formulas)
def test_formulas_mean_what_they_mean_in_python(formula: str) -> None:
    try:
        expected = eval(formula, {"__builtins__": {}, "l1": 0.3, "pi": np.pi})  # only what the strategy above made
    except (ZeroDivisionError, OverflowError):
        expected = np.inf
    if np.isfinite(expected):
        assert evaluate_expression(formula, {"l1": 0.3}) == (pytest.approx(expected, rel=1e-12), 0.0)
    else:
        with pytest.raises(FormulaError):
            evaluate_expression(formula, {"l1": 0.3})


@pytest.mark.parametrize(
    ("formula", "value"),
    [("q", (0, 1)), ("-q + 2", (2, -1)), ("3 - (q - 1)", (4, -1)), ("q*2/2", (0, 1)), ("q1-q1", (0, 0))],
)
def test_the_variable_enters_affinely(formula: str, value: tuple[float, float]) -> None:
    assert evaluate_expression(formula, {}, {"q", "q1"}) == value


@pytest.mark.parametrize(
    "formula",
    [
        *("__import__('os')", "l1.real", "[1]", "f(1)", "1 if 1 else 2", "'a'", "True", "1j", "lambda: 1", "l1 < 2"),
        *("9**9**9**9", "1/0", "(-8)**0.5", "1e400", "2 l1", "", "l1 @ l1", "1 // 2", "7 % 2", "x := 1", "q*q", "2**q"),
        *("1/q", "(" * 150 + "1" + ")" * 150, "-" * 290 + "1" + "0" * 100, "\x00"),
    ],
)
def test_only_arithmetic_is_accepted(formula: str) -> None:
    with pytest.raises(FormulaError):
        evaluate_expression(formula, {"l1": 0.3}, {"q"})
