"""Robots from objects of Pinocchio and MuJoCo and from robot_descriptions agree with these libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import public_robot_path, relative, states
from random_robots import make_tree

from steelyard import Model, load_robot
from steelyard.errors import RobotError, UnknownNameError
from steelyard.robot.load import as_robot

# Both sides compute the same sums in another order; MuJoCo also keeps orientations as quaternions and inertias as
# principal axes from its own iteration.
ROUNDING = {"pinocchio": 1e-11, "mujoco": 1e-8}

URDF = """<?xml version="1.0" encoding="latin-1"?>
<robot name="Prüfling"><link name="base"/>
<link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping="0.5" friction="0.25"/></joint></robot>"""


def random_pinocchio(pin: Any, seed: int, mimic: bool = False) -> Any:
    """A tree with every kind of joint of one coordinate, armature, damping, friction, limits and sideways gravity."""
    rng = np.random.default_rng(seed)
    pin.seed(seed)

    def axis() -> np.ndarray:
        v = rng.normal(size=3)
        return v / np.linalg.norm(v)

    kinds = [
        lambda: pin.JointModelRX(), lambda: pin.JointModelRY(), lambda: pin.JointModelRZ(),
        lambda: pin.JointModelRUBX(), lambda: pin.JointModelRUBZ(), lambda: pin.JointModelPX(),
        lambda: pin.JointModelPZ(), lambda: pin.JointModelRevoluteUnaligned(axis()),
        lambda: pin.JointModelPrismaticUnaligned(axis()),
    ]  # fmt: skip
    model = pin.Model()
    model.name = f"random{seed}"
    for k in range(7):
        parent = int(rng.integers(0, model.njoints))
        made = kinds[rng.integers(len(kinds))]() if not mimic else kinds[k % 3]()
        k = model.addJoint(parent, made, pin.SE3.Random(), f"joint{k}")
        model.appendBodyToJoint(k, pin.Inertia.Random(), pin.SE3.Random())
        model.addJointFrame(k)
        model.addBodyFrame(f"body{k}", k, pin.SE3.Identity(), -1)
    model.gravity = pin.Motion(9.81 * axis(), np.zeros(3))
    model.armature, model.damping, model.friction = rng.uniform(0.1, 2.0, (3, model.nv))
    model.velocityLimit, model.effortLimit = rng.uniform(1.0, 9.0, (2, model.nv))
    return model


def pinocchio_torque(pin: Any, model: Any, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """RNEA, which knows the armature, with what damping and dry friction mean added."""
    data, out = model.createData(), []
    for x, v, a in zip(q, dq, ddq, strict=True):
        at = pin.integrate(model, pin.neutral(model), x)
        out.append(pin.rnea(model, data, at, v, a) + model.damping * v + model.friction * np.sign(v))
    return np.array(out)


@pytest.mark.parametrize("seed", range(5))
def test_a_pinocchio_model_needs_the_torques_that_its_own_library_computes(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    model = random_pinocchio(pin, seed)
    robot = load_robot(model)
    s = states(robot, 20, seed)
    assert (
        relative(Model.nominal(robot).torque(s.q, s.dq, s.ddq), pinocchio_torque(pin, model, s.q, s.dq, s.ddq))
        < (ROUNDING["pinocchio"])
    )
    assert robot.joint_names == tuple(model.names[1:])
    assert robot.name == f"random{seed}"
    assert robot.link_names == tuple(f"body{k}" for k in range(1, 8))
    assert [j.velocity for j in robot.joints] == list(model.velocityLimit)
    assert [j.effort for j in robot.joints] == list(model.effortLimit)


def test_a_pinocchio_model_with_mimic_joints_keeps_them() -> None:
    pin = pytest.importorskip("pinocchio")
    if not hasattr(pin, "transformJointIntoMimic"):
        pytest.skip("this Pinocchio has no mimic joints")
    free = random_pinocchio(pin, 3, mimic=True)
    model = pin.transformJointIntoMimic(free, free.getJointId("joint0"), free.getJointId("joint4"), -1.7, 0.3)
    model.armature, model.damping, model.friction = np.zeros((3, model.nv))
    robot = load_robot(model)
    s = states(robot, 20)
    assert robot.dof == 6
    assert len(robot.links) == 7
    ours, data = Model.nominal(robot).torque(s.q, s.dq, s.ddq), model.createData()
    theirs = [pin.rnea(model, data, *row) for row in zip(s.q, s.dq, s.ddq, strict=True)]
    assert relative(ours, theirs) < ROUNDING["pinocchio"]


@pytest.mark.parametrize("name", ["ur10", "panda", "kinova"])
def test_a_urdf_and_its_pinocchio_model_are_one_robot(name: str) -> None:
    path = public_robot_path(name)
    pin = pytest.importorskip("pinocchio")
    mimic = {"mimic": True} if name == "panda" else {}  # its second finger follows the first
    if mimic and not hasattr(pin, "transformJointIntoMimic"):
        pytest.skip("this Pinocchio has no mimic joints")
    ours, theirs = load_robot(path), load_robot(pin.buildModelFromUrdf(str(path), **mimic))
    assert ours.joint_names == theirs.joint_names
    assert ours.link_names == theirs.link_names
    s = states(ours, 10)
    for one, other in zip(ours.joints, theirs.joints, strict=True):
        assert one == other
    here, there = (Model.nominal(r).rigid_torque(s.q, s.dq, s.ddq) for r in (ours, theirs))
    assert relative(here, there) < ROUNDING["pinocchio"]


MUJOCO = """
<mujoco model="two arms"><compiler angle="radian"/><option gravity="1 -2 -9"/>
<worldbody><body name="foot" pos="0.1 0 0.2" quat="1 2 3 4"><geom size="0.1"/>
  <body name="upper" pos="0.1 0.2 0.3" euler="0.3 0.4 0.5">
    <joint name="j1" pos="0.05 -0.02 0.01" axis="0 1 1" ref="0.26" range="-1 2" armature="0.3" damping="0.4"/>
    <joint name="j2" type="slide" axis="1 0 0.5" frictionloss="0.6" actuatorfrcrange="-4 3"/>
    <geom type="capsule" size="0.05 0.2" euler="1 2 3"/>
    <body pos="0 0.5 0"><geom type="box" size="0.1 0.2 0.3" euler="0.2 0 0"/><site name="tool" pos="0 0 0.1"/></body>
    <body name="fore" pos="0 0 0.3"><joint name="j3" axis="0 0 1"/><geom type="mesh" mesh="tetra"/></body></body></body>
</worldbody>
<asset><mesh name="tetra" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.4"/></asset></mujoco>"""


def mujoco_torque(mujoco: Any, model: Any, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """M(q) q̈ + bias, armature included, with what damping and dry friction mean added."""
    data, full, out = mujoco.MjData(model), np.zeros((model.nv, model.nv)), []
    for x, v, a in zip(q, dq, ddq, strict=True):
        data.qpos[:], data.qvel[:] = x, v
        mujoco.mj_forward(model, data)
        full[:] = 0.0
        mujoco.mj_fullM(model, full, data.qM) if hasattr(data, "qM") else mujoco.mj_fullM(model, data, full)
        out.append(full @ a + data.qfrc_bias + model.dof_damping * v + model.dof_frictionloss * np.sign(v))
    return np.array(out)


@pytest.mark.parametrize("how", ["model", "spec"])
def test_a_mujoco_model_needs_the_torques_that_its_own_library_computes(how: str) -> None:
    """With a mesh, whose inertia only MuJoCo knows: a file with one could not be read."""
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_string(MUJOCO)
    model = spec.compile()
    robot = as_robot(model if how == "model" else spec)
    s = states(robot, 20)
    theirs = mujoco_torque(mujoco, model, s.q, s.dq, s.ddq)
    assert relative(Model.nominal(robot).torque(s.q, s.dq, s.ddq), theirs) < ROUNDING["mujoco"]
    assert robot.name == "two arms"
    assert robot.joint_names == ("j1", "j2", "j3")
    assert (robot.joints[0].lower, robot.joints[0].upper, robot.joints[1].effort) == (-1.0, 2.0, 4.0)
    assert {"foot", "tool"} <= set(robot.frames)
    assert robot.frame("tool").host == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_random_tree_comes_back_from_mujoco(seed: int, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    from steelyard.export import model_to_mjcf

    robot = make_tree(seed, 6)
    model_to_mjcf(Model.nominal(robot), tmp_path / "tree.xml")
    read = load_robot(mujoco.MjModel.from_xml_path(str(tmp_path / "tree.xml")), snap=0.0)  # one entry is below 1e-4
    back = read.with_joints(robot.joint_names)
    s = states(robot, 10)
    there, here = (Model.nominal(r).torque(s.q, s.dq, s.ddq) for r in (back, robot))
    assert relative(there, here) < ROUNDING["mujoco"]


def test_mujoco_joints_keep_following_or_stay_locked() -> None:
    mujoco = pytest.importorskip("mujoco")
    text = MUJOCO.replace('<asset><mesh name="tetra"', '<equality><joint joint1="j3" joint2="j1" '
                          'polycoef="0.1 -2 0 0 0"/></equality><asset><mesh name="tetra"')  # fmt: skip
    robot = load_robot(mujoco.MjModel.from_xml_string(text))
    link = robot.links[2]
    assert robot.joint_names == ("j1", "j2")
    assert link.ratio == -2.0
    # MuJoCo: q3 − 0 = 0.1 − 2 (q1 − 0.26), and the link's joint turns by q3 − 0.
    assert link.offset == pytest.approx(0.1 + 2 * 0.26)
    held = load_robot(mujoco.MjModel.from_xml_string(text.replace('joint2="j1" ', "")))
    assert held.joint_names == ("j1", "j2")
    assert len(held.links) == 2


def test_unsupported_joints_are_named() -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    model.addJoint(0, pin.JointModelHX(0.1), pin.SE3.Identity(), "hip")
    with pytest.raises(RobotError, match="joint 'hip' is a JointModelHX, but only joints that turn"):
        load_robot(model)


# ---------------------------------------------------------------- texts, names, and other arguments


def test_a_text_is_read_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_bytes(URDF.encode("latin-1"))
    for robot in (load_robot("\n " + URDF), load_robot(tmp_path / "arm.urdf")):
        assert robot.name == "Prüfling"
        assert robot.joint_names == ("j1",)
        assert robot.joints[0].effort == 4.0
    assert as_robot(MUJOCO.replace('type="mesh" mesh="tetra"', 'size="0.1"')).name == "two arms"
    with pytest.raises(RobotError, match="the text of the robot, line 1: <html> is not the root of a robot"):
        load_robot("<html/>")
    with pytest.raises(RobotError, match="well-formed"):
        load_robot("<robot")


@pytest.mark.parametrize("given", [7, None, {"joints": 3}, np.eye(3)])
def test_unsupported_objects_are_refused(given: Any) -> None:
    with pytest.raises(RobotError, match=f"can be read from '{type(given).__name__}'"):
        as_robot(given)


def test_a_description_is_found_by_its_name_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("robot_descriptions")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    before = set(sys.modules)
    with pytest.raises(RobotError, match="'z1_description' of robot_descriptions is not on this machine; download"):
        load_robot("z1_description")
    folder = tmp_path / "unitree_ros" / "robots" / "z1_description" / "xacro"
    folder.mkdir(parents=True)
    (folder / "z1.urdf").write_text(URDF.replace(' encoding="latin-1"', ""), encoding="utf-8")
    for name in ("z1_description", "z1"):
        assert load_robot(name).source == str(folder / "z1.urdf")
    for name in set(sys.modules) - before:
        if name.startswith("robot_descriptions."):
            monkeypatch.delitem(sys.modules, name)


def test_an_unknown_name_gets_the_error_text_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UnknownNameError, match=r"There is no file or built-in robot 'rotrady'\. Did you mean 'rotradi'"
    ):
        load_robot("rotrady")
    monkeypatch.setattr("steelyard.robot.load.find_spec", lambda name: None)
    with pytest.raises(RobotError, match="pip install robot_descriptions"):
        load_robot("panda_description")
