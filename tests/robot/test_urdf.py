"""URDF is read as by Pinocchio, and errors in broken files name the line and the remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import RobotError
from steelyard.robot import NominalTerm, Robot, link_poses, read_urdf

EXAMPLES = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "ur_description/urdf/ur10_joint_limited_robot.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "tiago_description/robots/tiago_dual.urdf",
    "baxter_description/urdf/baxter.urdf",
    "pr2_description/urdf/pr2.urdf",
    "kinova_description/robots/kinova.urdf",
    "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "icub_description/robots/icub.urdf",
    "romeo_description/urdf/romeo.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "solo_description/robots/solo12.urdf",
    "human_description/robots/human.urdf",
)
# Both sides compute the same few products of rotations of order one, in different orders (Pinocchio by way of
# quaternions): some tens of roundings, on coordinates and inertias of at most about 10.
ROUNDING = 1e-13


def example(name: str) -> Path:
    pin = pytest.importorskip("pinocchio")
    for parent in Path(pin.__file__).parents:
        path = parent / "share" / "example-robot-data" / "robots" / name
        if path.exists():
            return path
    pytest.skip("example-robot-data is not installed")


def own_positions(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The displacement of every tree joint: the coordinates of a reader without mimic joints."""
    return np.array([link.ratio * q[link.coordinate] + link.offset for link in robot.links])


@pytest.mark.parametrize("name", EXAMPLES)
def test_joints_frames_and_inertias_agree_with_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = example(name)
    robot, model = read_urdf(path), pin.buildModelFromUrdf(str(path))
    assert [link.joint for link in robot.links] == list(model.names)[1:]
    for link, inertia in zip(robot.links, list(model.inertias)[1:], strict=True):
        ours = np.zeros(10) if link.inertia is None else link.inertia
        np.testing.assert_allclose(ours, inertia.toDynamicParameters(), atol=ROUNDING, rtol=0)

    q = np.random.default_rng(1).uniform(-2.0, 2.0, robot.dof)
    data = model.createData()
    # From the zero posture by a velocity: right for continuous joints, which Pinocchio keeps as cos and sin.
    zero = pin.neutral(model)
    pin.forwardKinematics(model, data, pin.integrate(model, zero, own_positions(robot, q)))
    rotations, origins = link_poses(robot, q)
    for k in range(len(robot.links)):
        np.testing.assert_allclose(rotations[k], data.oMi[k + 1].rotation, atol=ROUNDING)
        np.testing.assert_allclose(origins[k], data.oMi[k + 1].translation, atol=ROUNDING)


@pytest.mark.parametrize("name", EXAMPLES[:3])
def test_limits_agree_with_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = example(name)
    robot, model = read_urdf(path), pin.buildModelFromUrdf(str(path))
    for joint in robot.joints:
        index = model.joints[model.getJointId(joint.name)]
        assert joint.lower == model.lowerPositionLimit[index.idx_q]
        assert joint.upper == model.upperPositionLimit[index.idx_q]
        assert joint.velocity == model.velocityLimit[index.idx_v]
        assert joint.effort == model.effortLimit[index.idx_v]


# -------------------------------------------------------------------- small robots of our own

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="0 0 2"/>{inside}</joint>\n'


def write(folder: Path, *parts: str) -> Path:
    path = folder / "arm.urdf"
    path.write_text('<robot name="arm">\n' + "".join(parts) + "</robot>")
    return path


def test_siblings_come_by_the_name_of_the_joint_as_in_pinocchio(tmp_path: Path) -> None:
    """Fixed joints take part in the order, capitals come first, and j10 before j9."""
    pin = pytest.importorskip("pinocchio")
    limit = '<limit effort="1" velocity="1" lower="-1" upper="1"/>'
    ends = [("j9", "a", "revolute"), ("j10", "b", "revolute"), ("Z", "c", "revolute"), ("j2", "weld", "fixed")]
    parts = [joint(name, "base", child, kind, limit) for name, child, kind in ends]
    parts += [link(name) for name in ("base", "a", "b", "c", "weld", "d")]
    path = write(tmp_path, *parts, joint("aa", "weld", "d", inside=limit))
    assert read_urdf(path).joint_names == ("Z", "j10", "aa", "j9")
    assert list(pin.buildModelFromUrdf(str(path)).names)[1:] == ["Z", "j10", "aa", "j9"]


def test_a_chain_of_mimic_joints_ends_at_the_one_that_moves(tmp_path: Path) -> None:
    parts = [link(name) for name in ("base", "a", "b", "c")]
    dynamics = '<dynamics damping="3" friction="5"/>'
    parts.append(joint("ja", "base", "a", inside='<mimic joint="jb" multiplier="-2" offset="0.5"/>' + dynamics))
    parts.append(joint("jb", "a", "b", inside='<mimic joint="jc" multiplier="3" offset="0.25"/>'))
    parts.append(joint("jc", "b", "c", inside=dynamics))
    robot = read_urdf(write(tmp_path, *parts))
    assert robot.joint_names == ("jc",)
    assert [(k.coordinate, k.ratio, k.offset) for k in robot.links] == [(0, -6.0, 0.0), (0, 3.0, 0.25), (0, 1.0, 0.0)]
    # Virtual work: a damper at ja dissipates 3·(6 q̇)², a brake 5·|6 q̇|.
    assert robot.nominal_terms == (
        NominalTerm("viscous", ((3.0 * 36 + 3.0,),)),
        NominalTerm("coulomb", ((5.0 * 6 + 5.0,),)),
    )


def test_axes_are_unit_vectors_and_limits_are_optional(tmp_path: Path) -> None:
    limit = '<limit effort="4" velocity="2" lower="-1" upper="1"/>'
    parts = [link("base"), link("a"), link("b"), joint("j1", "base", "a"), joint("j2", "a", "b", "continuous", limit)]
    robot = read_urdf(write(tmp_path, *parts))
    assert robot.links[0].axis.tolist() == [0.0, 0.0, 1.0]
    assert (robot.joints[0].lower, robot.joints[0].effort) == (-np.inf, np.inf)
    assert (robot.joints[1].upper, robot.joints[1].velocity, robot.joints[1].effort) == (np.inf, 2.0, 4.0)


def test_inertia_is_unknown_only_if_nothing_states_it(tmp_path: Path) -> None:
    weld = joint("weld", "b", "tool", "fixed", '<origin xyz="0 0 2"/>')
    parts = [link("base"), link("a", ""), link("b", ""), link("tool"), joint("j1", "base", "a"), joint("j2", "a", "b")]
    robot = read_urdf(write(tmp_path, *parts, weld))
    assert robot.links[0].inertia is None
    assert robot.links[1].inertia is not None
    assert robot.links[1].inertia.tolist() == [1, 0, 0, 2, 5, 0, 5, 0, 0, 1]  # Steiner: 1 + 1·2²


def test_a_chain_of_thousands_of_links_needs_no_deep_stack(tmp_path: Path) -> None:
    kinds = ["fixed"] * 2950 + ["revolute"] * 50
    parts = [link(f"l{k}", "") for k in range(3001)]
    parts += [joint(f"j{k}", f"l{k}", f"l{k + 1}", kind) for k, kind in enumerate(kinds)]
    assert read_urdf(write(tmp_path, *parts)).dof == 50


def test_meshes_of_packages_and_inside_the_folder_are_fine(tmp_path: Path) -> None:
    names = ("package://arm/meshes/../a.stl", "meshes/sub/../a.stl", "/opt/a.stl", "file:///opt/a.stl", "a..b.stl")
    meshes = "".join(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in names)
    assert read_urdf(write(tmp_path, link("base", meshes), link("a"), joint("j", "base", "a"))).dof == 1


A, B, C, J = link("base"), link("a"), link("b"), joint("j", "base", "a")


def mesh(name: str) -> str:
    return link("base", f'<visual><geometry>\n<mesh filename="{name}"/></geometry></visual>') + B + J


def inertial(text: str, by: str) -> str:
    return A + link("a", INERTIAL.replace(text, by)) + J


BROKEN = {
    "missing child": (A + J, ["line 3", "joint 'j'", "child link 'a'", "define it"]),
    "missing parent": (B + J, ["line 3", "joint 'j'", "parent link 'base'"]),
    "no parent tag": (A + B + '<joint name="j" type="fixed"><child link="a"/></joint>', ["joint 'j'", "<parent>"]),
    "two roots": (A + B + C + J, ["line 4", "link 'b'", "second root", "'base'"]),
    "two parents": (A + B + C + J + joint("k", "base", "b") + joint("l", "b", "a"), ["joint 'l'", "'a'", "loop"]),
    "closed ring": (B + C + joint("j", "a", "b") + joint("k", "b", "a"), ["root", "loop"]),
    "ring apart": (A + B + C + joint("j", "a", "b") + joint("k", "b", "a"), ["joint 'k'", "'a'", "loop"]),
    "own child": (A + B + joint("j", "a", "a"), ["joint 'j'", "'a'", "loop"]),
    "NaN mass": (inertial('value="1"', 'value="nan"'), ["line 3", "<mass> of link 'a'", "'value'", "finite"]),
    "negative mass": (inertial('value="1"', 'value="-1"'), ["line 3", "<mass> of link 'a'", "negative"]),
    "infinite inertia": (inertial('ixx="1"', 'ixx="inf"'), ["line 3", "<inertia> of link 'a'", "'ixx'", "finite"]),
    "overflowing inertia": (
        inertial("<mass", '<origin xyz="1e200 0 0"/><mass'),
        ["line 3", "<origin> of link 'a'", "beyond 1e+15"],
    ),
    "inertia missing": (inertial('ixx="1"', ""), ["<inertia> of link 'a'", "'ixx'"]),
    "mass missing": (inertial('<mass value="1"/>', ""), ["<inertial> of link 'a'", "<mass>"]),
    "zero axis": (A + B + J.replace("0 0 2", "0 0 0"), ["line 4", "<axis> of joint 'j'", "zero"]),
    "short axis": (A + B + J.replace("0 0 2", "0 1"), ["line 4", "<axis> of joint 'j'", "write 3"]),
    "link twice": (A + B + B + J, ["line 4", "link 'a'", "twice", "line 3"]),
    "joint twice": (A + B + C + J + joint("j", "a", "b"), ["line 6", "joint 'j'", "twice", "line 5"]),
    "no name": (A + "<link/>", ["<link>", "'name'"]),
    "no joints": (A, ["robot 'arm'", "no joint that moves"]),
    "only fixed": (A + B + joint("j", "base", "a", "fixed"), ["no joint that moves", "revolute"]),
    "no links": ("", ["robot 'arm'", "no link"]),
    "mimic of a free joint": (
        A + B + joint("j", "base", "a", "floating", inside='<mimic joint="j"/>'),
        ["joint 'j'", "free"],
    ),
    "unknown type": (A + B + joint("j", "base", "a", "hinge"), ["joint 'j'", "'hinge'", "revolute"]),
    "mimic of nobody": (A + B + joint("j", "base", "a", inside='<mimic joint="x"/>'), ["<mimic> of joint 'j'", "'x'"]),
    "mimic of itself": (A + B + joint("j", "base", "a", inside='<mimic joint="j"/>'), ["joint 'j'", "loop"]),
    "limits swapped": (A + B + joint("j", "base", "a", inside='<limit lower="1" upper="0"/>'), ["joint 'j'", "swap"]),
    "xacro": (A + '<xacro:macro name="m"/>' + B + J, ["line 3", "xacro", "run"]),
    "xacro value": (inertial('value="1"', 'value="${m}"'), ["line 3", "xacro"]),
    "climbing mesh": (mesh("../../secret.stl"), ["line 3", "<mesh> of link 'base'", "climbs", "../../secret.stl"]),
    "climbing midway": (mesh("meshes/../../secret.stl"), ["<mesh> of link 'base'", "climbs"]),
    "climbing package": (mesh("package://arm/../other/a.stl"), ["<mesh> of link 'base'", "climbs"]),
    "climbing scheme": (mesh("package://../a.stl"), ["climbs"]),
    "climbing encoded": (mesh("package://arm/%2e%2e/a.stl"), ["climbs"]),
    "climbing backslash": (mesh("..\\a.stl"), ["climbs"]),
    "climbing file": (mesh("file:///opt/../etc/passwd"), ["climbs"]),
}


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_a_broken_file_is_refused_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    text, words = BROKEN[case]
    path = write(tmp_path, text)
    with pytest.raises(RobotError) as caught:
        read_urdf(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_kinds_of_files_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    for text, words in (("<mujoco/>", "MuJoCo"), ("<sdf/>", "convert"), ("", "empty")):
        path.write_text(text)
        with pytest.raises(RobotError, match=words):
            read_urdf(path)
    with pytest.raises(RobotError, match="run `xacro"):
        read_urdf(tmp_path / "arm.urdf.xacro")
