"""Loops from MJCF, URDF and loop tables close like those of MuJoCo, and survive locking and export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_plants import FIVE_BAR, FOUR_BAR, MECHANISMS, smooth

from steelyard import Mechanism, Model, load_robot, model_to_mjcf
from steelyard.errors import RobotError
from steelyard.export import loops_to_table
from steelyard.robot.kinematics.poses import link_poses

mujoco = pytest.importorskip("mujoco")

WELD = FOUR_BAR.replace(
    '<connect body1="coupler" body2="rocker" anchor="0.4 0 0.1"/>',
    '<weld body1="coupler" body2="tip" anchor="0.02 0 0.01" relpose="0.42 0 0.11 0.98006658 0 0.19866933 0"/>',
).replace(
    'mass="0.6"/></body>',
    'mass="0.6"/><body name="tip" pos="0 0 0.25"><joint name="end" axis="0 1 0"/>'
    '<geom type="sphere" size="0.02" mass="0.1"/></body></body>',
)
CURVE = FOUR_BAR.replace(
    '<connect body1="coupler" body2="rocker" anchor="0.4 0 0.1"/>',
    '<joint joint1="pin" joint2="crank" polycoef="0.1 0.5 0.3 -0.2 0.1"/><joint joint1="rocker" joint2="crank"'
    ' polycoef="0 2"/>',
)


def gaps(xml: str, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """Gaps of MuJoCo's equality constraints at one pose."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for name, x in zip(names, q, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = x
    mujoco.mj_forward(model, data)
    return np.array(data.efc_pos[: data.ne])


@pytest.mark.parametrize("xml", [FOUR_BAR, WELD, CURVE, FIVE_BAR], ids=["connect", "weld", "curve", "two drives"])
def test_solved_poses_close_the_constraints_of_mujoco(xml: str) -> None:
    for source in (xml, mujoco.MjModel.from_xml_string(xml)):
        robot = load_robot(source, loops=True)
        mechanism = Mechanism(robot)
        motion = mechanism.complete(*smooth(np.arange(0.0, 2.0, 0.01), 0.4, len(mechanism.measured)))
        assert motion.usable.all()
        for k in (0, 80, 199):
            names = tuple(link.joint for link in robot.links)
            tree = [link.ratio * motion.q[k, link.coordinate] + link.offset for link in robot.links]
            assert np.abs(gaps(xml, names, np.array(tree))).max() < 1e-8
        rates = np.gradient(motion.q, 0.01, axis=0)
        assert motion.dq[2:-2] == pytest.approx(rates[2:-2], abs=2e-2)  # differences at 100 Hz


def test_a_reference_angle_and_a_locked_joint_keep_the_loop() -> None:
    turned = FOUR_BAR.replace('name="pin" axis', 'name="pin" ref="0.7" axis')
    plain, shifted = (Mechanism(xml).complete([[0.3]]).q[0] for xml in (FOUR_BAR, turned))
    assert shifted - plain == pytest.approx([0.0, 0.7, 0.0], abs=1e-9)
    five = load_robot(FIVE_BAR, loops=True, locked={"right": 0.0})
    assert [loop.joints for loop in five.loops] == [("left", "left_pin", "right_pin")]
    whole = Mechanism(FIVE_BAR).complete([[0.2, 0.0]]).q[0]
    assert Mechanism(five, ["left"]).complete([[0.2]]).q[0] == pytest.approx(whole[[0, 1, 3]], abs=1e-9)


def link(name: str) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 0.02 0.01"/><mass value="1"/><inertia ixx="0.01" iyy="0.02" '
        'izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name: str, parent: str, child: str, xyz: str, kind: str = "continuous", more: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="{xyz}"/>{more}</joint>'
    )


BARS = '<link name="base"/>' + link("crank") + link("rod") + link("rocker")
BARS += joint("crank", "base", "crank", "0 0 0") + joint("rod", "crank", "rod", "0 0.2 0")
CLOSED = f'<robot name="bars">{BARS}{joint("rocker", "base", "rocker", "0.4 0 0")}{{}}</robot>'
# The rod ends at (0.4, 0.1) in its own axes; the rocker's pin is at (0, 0.3).
END = joint("end", "rod", "tip", "0.4 0.1 0", "fixed") + joint("pin", "rocker", "tip", "0 0.3 0") + link("tip")
PLACES = {"first": "rod", "first_position": [0.4, 0.1, 0], "second": "rocker", "second_position": [0, 0.3, 0]}


@pytest.mark.parametrize("kind", ["point", "pin", "hinge", "cylinder"])
def test_a_loop_table_closes_a_urdf(kind: str, tmp_path: Path) -> None:
    """In a plane all kinds that let the rod turn are the same loop: the pin's places coincide."""
    robot = load_robot(CLOSED.format(""), loops={"driven": ["crank"], "loops": {"end": {**PLACES, "kind": kind}}})
    mechanism = Mechanism(robot)
    assert (mechanism.mobility, mechanism.solved_names) == (1, ("rod", "rocker"))
    q = mechanism.complete(np.linspace(0.0, 1.0, 50)[:, None]).q
    R, p = link_poses(robot, q)
    rod, rocker = robot.link_names.index("rod"), robot.link_names.index("rocker")
    ends = p[:, rod] + R[:, rod] @ [0.4, 0.1, 0.0], p[:, rocker] + R[:, rocker] @ [0.0, 0.3, 0.0]
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)
    loops_to_table(robot, tmp_path / "again.toml")
    again = Mechanism(CLOSED.format(""), loops=tmp_path / "again.toml")
    assert again.complete([[0.5]]).q == pytest.approx(mechanism.complete([[0.5]]).q, abs=1e-9)


def test_a_second_parent_closes_the_loop_like_a_table() -> None:
    table = {"driven": ["crank"], "loops": {"end": {**PLACES, "kind": "point"}}}
    by_table = Mechanism(CLOSED.format(""), loops=table).complete([[0.4]]).q[0]
    robot = load_robot(CLOSED.format(END), loops=True)
    mechanism = Mechanism(robot, ["crank"])
    q = mechanism.complete([[0.4]]).q[0]
    for k, name in enumerate(("crank", "rod", "rocker")):
        assert q[robot.joint_index(name)] == pytest.approx(by_table[k], abs=1e-9)


def test_a_slider_crank_and_a_mimic_with_offset() -> None:
    """The pin slides at the height 0.1: closed form for the angle of the rod. A mimic joint turns with the crank."""
    follower = joint("wheel", "crank", "wheel", "0 0 0", more='<mimic joint="crank" multiplier="-2" offset="0.3"/>')
    text = CLOSED.format(follower + link("wheel")).replace(joint("rocker", "base", "rocker", "0.4 0 0"), "")
    text = text.replace(link("rocker"), "")
    loop = {"first": "world", "first_position": [0, 0.1, 0], "first_rpy": [0, np.pi / 2, 0], "second": "rod",
            "second_position": [0.5, 0, 0], "kind": "pin"}  # fmt: skip
    robot = load_robot(text, loops={"driven": ["crank"], "start": {"rod": -0.2}, "loops": {"track": loop}})
    mechanism = Mechanism(robot)
    assert mechanism.mobility == 1
    crank = np.linspace(-0.5, 0.8, 30)
    q = mechanism.complete(crank[:, None]).q
    # The crank's end is at height 0.2 cos(crank); the rod of 0.5 leads down to 0.1.
    angle = np.arcsin((0.1 - 0.2 * np.cos(crank)) / 0.5)
    assert q.sum(axis=1) == pytest.approx(angle, abs=1e-9)
    wheel = next(link for link in robot.links if link.joint == "wheel")
    assert (wheel.ratio, wheel.offset) == (-2.0, 0.3)


def test_redundant_encoders_share_their_noise() -> None:
    """Crank and rocker measured: the pose closes the loop and lies between the two encoders."""
    exact = Mechanism(FOUR_BAR)
    true = exact.complete([[0.4]], [[1.0]], [[2.0]])
    both = Mechanism(FOUR_BAR, ["crank", "rocker"])
    assert both.redundant
    measured = [exact.robot.joint_index(n) for n in ("crank", "rocker")]
    error = np.array([[1e-4, -1e-4]])
    motion = both.complete(true.q[:, measured] + error, true.dq[:, measured], true.ddq[:, measured])
    assert motion.gap.max() < 1e-9
    assert np.abs(motion.q - true.q).max() < 3e-4
    assert motion.dq == pytest.approx(true.dq, abs=1e-3)
    assert motion.ddq == pytest.approx(true.ddq, abs=2e-2)


def test_a_new_mjcf_has_the_loops(tmp_path: Path) -> None:
    """Written from a URDF with a table, MuJoCo's constraints close where the solved pose is."""
    table = {"driven": ["crank"], "loops": {"end": {**PLACES, "kind": "point"}}}
    robot = load_robot(CLOSED.format(""), loops=table)
    notes = model_to_mjcf(Model.nominal(robot), tmp_path / "bars.xml")
    assert not any("left open" in note for note in notes)
    q = Mechanism(robot).complete([[0.4]]).q[0]
    assert np.abs(gaps((tmp_path / "bars.xml").read_text(), robot.joint_names, q)).max() < 1e-8


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "empty"),
        ({"loops": {"a": {"first": "rod", "second": "nowhere", "kind": "point"}}}, "nowhere"),
        ({"loops": {"a": {"first": "rod", "second": "rod", "kind": "point"}}}, "do not move relative to each other"),
        ({"loops": {"a": {**PLACES, "kind": "glue"}}}, "glue"),
        ({"start": {"elbow": 1.0}, "loops": {"a": {**PLACES, "kind": "point"}}}, "elbow"),
        ({"loops": {"a": {**PLACES, "second_position": [0, 2.0, 0], "kind": "point"}}}, "mm are missing"),
    ],
)
def test_wrong_tables_are_refused_with_the_entry(table: dict, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Mechanism(CLOSED.format(""), ["crank"], loops=table)


def test_loops_of_six_mechanisms_are_those_of_the_compiled_models() -> None:
    for xml in MECHANISMS.values():
        text, compiled = (load_robot(x, loops=True) for x in (xml, mujoco.MjModel.from_xml_string(xml)))
        assert text.actuated == compiled.actuated
        q = np.array([[text.start.get(n, 0.0) for n in text.joint_names]])
        other = np.array([[compiled.start.get(n, 0.0) for n in compiled.joint_names]])
        assert q == pytest.approx(other, abs=1e-12)
        assert Mechanism(text).structure.equations(q)[0] == pytest.approx(
            Mechanism(compiled).structure.equations(q)[0], abs=1e-9
        )
