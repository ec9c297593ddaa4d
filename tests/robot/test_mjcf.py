"""MJCF is read as by MuJoCo: the same frames, bodies and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.errors import RobotError
from steelyard.robot import NominalTerm, Robot, link_poses, read_mjcf
from steelyard.robot.spatial import move_parameters, parameters_from_com

# MuJoCo keeps orientations as quaternions and inertias as principal axes, from its own iteration
# that stops at about 1e-12 relative.
ROUNDING = 1e-9

EVERYTHING = """
<mujoco model="everything">
  <compiler angle="degree" eulerseq="zYx"/>
  <option gravity="0.1 0 -9.7"/>
  <default>
    <joint damping="0.5"/>
    <default class="arm">
      <joint frictionloss="0.2" armature="0.01" range="-90 45"/>
      <geom type="capsule" size="0.05 0.2" density="700"/>
      <default class="wrist"><joint type="slide" axis="1 1 0" range="-0.1 0.2"/></default>
    </default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="pedestal" pos="0 0 0.4" euler="10 20 30">
      <geom type="box" size="0.2 0.2 0.2"/>
      <body name="upper" pos="0.1 0.2 0.3" axisangle="1 2 3 40" childclass="arm">
        <joint name="j1" pos="0.05 -0.02 0.01" axis="0 1 1" ref="15"/>
        <joint name="j2" pos="-0.03 0.04 0.02" axis="1 0 0.5"/>
        <joint name="j3" class="wrist"/>
        <geom pos="0.1 0 0.2" euler="30 0 50"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" mass="1.5" quat="1 2 3 4"/>
        <frame pos="0 0 0.1" zaxis="1 1 1"><geom type="cylinder" size="0.1 0.2" pos="0.1 0 0"/></frame>
        <body name="welded" pos="0 0.5 0" xyaxes="0 1 0 -1 0.5 0">
          <geom type="box" fromto="0 0 0 0.3 0.2 0.1" size="0.04"/>
          <body name="fore" pos="0 0 0.3" zaxis="0 -1 0.3">
            <inertial pos="0.01 0.02 0.03" mass="2" fullinertia="0.04 0.05 0.06 0.001 0.002 0.003"/>
            <joint class="wrist" name="j4" limited="false"/>
            <body name="hand" pos="0.1 0 0">
              <inertial pos="0 0 0.1" quat="1 1 0 0.5" mass="0.5" diaginertia="0.001 0.002 0.0025"/>
              <joint name="j5" axis="0 0 -3" actuatorfrcrange="-4 3" armature="0"/>
            </body>
          </body>
        </body>
      </body>
      <body name="other" pos="0 -0.3 0">
        <joint name="j6"/>
        <geom type="sphere" size="0.1" pos="0.1 0.1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0.2 0.4"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def write(folder: Path, text: str, name: str = "arm.xml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def moving_masses(mujoco: Any, model: Any, data: Any) -> dict[str, np.ndarray]:
    """MuJoCo's bodies seen from the world, welded ones summed, by the name of the body that moves them."""
    out: dict[str, np.ndarray] = {}
    for body in range(1, model.nbody):
        top = model.body_weldid[body]
        if top == 0:
            continue
        own = parameters_from_com(model.body_mass[body], np.zeros(3), np.diag(model.body_inertia[body]))
        seen = move_parameters(own, data.ximat[body].reshape(3, 3), data.xipos[body])
        name = model.body(top).name
        out[name] = out.get(name, np.zeros(10)) + seen
    return out


def compare(path: Path, followers: Any = None) -> Robot:
    """Frames and inertias at a random posture; `followers` maps our q to MuJoCo's qpos."""
    mujoco = pytest.importorskip("mujoco")
    robot = read_mjcf(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    q = np.random.default_rng(3).uniform(-1.0, 1.0, robot.dof)
    data.qpos[:] = q if followers is None else followers(q)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    masses = moving_masses(mujoco, model, data)
    rotations, origins = link_poses(robot, q)
    for k, link in enumerate(robot.links):
        if link.kind == "revolute":
            np.testing.assert_allclose(origins[k], data.joint(link.joint).xanchor, atol=ROUNDING)
        np.testing.assert_allclose(rotations[k] @ link.axis, data.joint(link.joint).xaxis, atol=ROUNDING)
        if link.name not in masses:
            assert np.array_equal(link.inertia, np.zeros(10))  # type: ignore[arg-type]
            continue
        np.testing.assert_allclose(rotations[k], data.body(link.name).xmat.reshape(3, 3), atol=ROUNDING)
        assert link.inertia is not None
        seen = move_parameters(link.inertia, rotations[k], origins[k])
        np.testing.assert_allclose(seen, masses.pop(link.name), rtol=ROUNDING, atol=ROUNDING)
    assert not masses
    return robot


def test_frames_and_inertias_agree_with_mujoco(tmp_path: Path) -> None:
    compare(write(tmp_path, EVERYTHING))


def test_limits_gravity_and_joint_terms_agree_with_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = write(tmp_path, EVERYTHING)
    robot, model = read_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    assert robot.name == "everything"
    assert robot.joint_names == tuple(model.joint(k).name for k in range(model.njnt))
    assert np.array_equal(robot.gravity, model.opt.gravity)
    for k, joint in enumerate(robot.joints):
        assert np.isfinite(joint.upper) == bool(model.jnt_limited[k])
        if np.isfinite(joint.upper):
            np.testing.assert_allclose([joint.lower, joint.upper], model.jnt_range[k], rtol=1e-15)
    assert robot.joints[4].effort == 4.0
    assert robot.nominal_terms == (
        NominalTerm("viscous", (tuple(model.dof_damping),)),
        NominalTerm("coulomb", (tuple(model.dof_frictionloss),)),
        NominalTerm("rotor", (tuple(model.dof_armature),)),
    )


BODY = '<body name="{0}"><joint name="j{0}"/><geom size="0.1" pos="0.3 0 0"/>{1}</body>'


def nested(*names: str) -> str:
    out = ""
    for name in reversed(names):
        out = BODY.format(name, out)
    return out


def document(inside: str, rest: str = "") -> str:
    return f"<mujoco>{rest}<worldbody>\n{inside}\n</worldbody></mujoco>"


@pytest.mark.parametrize(
    "compiler",
    [
        'inertiafromgeom="true"',
        'inertiafromgeom="false"',
        'angle="radian" autolimits="false"',
        'inertiagrouprange="1 2"',
        'boundmass="3" boundinertia="0.5"',
        'balanceinertia="true"',
        'eulerseq="XYZ"',
    ],
)
def test_compiler_settings_mean_what_they_mean_to_mujoco(compiler: str, tmp_path: Path) -> None:
    body = (
        '<body name="a" euler="0.1 0.2 0.3"><inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.3"/>'
        '<joint axis="1 0 0"/><geom size="0.1" group="1"/><geom size="0.2" group="3" pos="1 0 0"/></body>'
    )
    if "balance" not in compiler:
        body = body.replace("0.1 0.1 0.3", "0.2 0.2 0.3")
    compare(write(tmp_path, document(body.replace("<joint ", '<joint name="j" '), f"<compiler {compiler}/>")))


def test_a_linear_equality_is_a_follower(tmp_path: Path) -> None:
    rest = (
        '<compiler angle="radian"/><equality><joint joint1="ja" joint2="jb" polycoef="0.2 -2 0 0 0"/>'
        '<joint joint1="jb" joint2="jc" polycoef="0.1 3"/><joint joint1="jc" joint2="ja" active="false"/></equality>'
    )
    text = document(nested("a", "b", "c"), rest).replace('name="jc"', 'name="jc" ref="0.7" damping="2"')

    def qpos(q: np.ndarray) -> list[float]:
        b = 0.1 + 3 * (q[0] - 0.7)  # MuJoCo's polynomials are in the displacement from the reference
        return [0.2 - 2 * b, b, q[0]]

    robot = compare(write(tmp_path, text), qpos)
    assert robot.joint_names == ("jc",)


def test_an_equality_of_one_joint_locks_it(tmp_path: Path) -> None:
    rest = '<equality><joint joint1="jb" polycoef="0.5 0 0 0 0"/></equality>'
    robot = read_mjcf(write(tmp_path, document(nested("a", "b", "c"), rest)))
    assert robot.joint_names == ("ja", "jc")
    np.testing.assert_allclose(robot.links[1].rotation[0], [np.cos(0.5), -np.sin(0.5), 0.0], atol=1e-15)


def test_included_files_join_the_document(tmp_path: Path) -> None:
    write(tmp_path, "<mujocoinclude>" + nested("b") + "</mujocoinclude>", "arm_part.xml")
    path = write(tmp_path, document(BODY.format("a", '<include file="arm_part.xml"/>')))
    assert compare(path).joint_names == ("ja", "jb")


def test_unnamed_elements_get_a_number(tmp_path: Path) -> None:
    robot = read_mjcf(write(tmp_path, document('<body><joint/><joint type="slide"/><geom size="1"/></body>')))
    assert robot.joint_names == ("joint1", "joint2")
    assert robot.link_names == ("joint1_body", "body1")
    assert robot.gravity.tolist() == [0.0, 0.0, -9.81]
    named = document('<body><joint name="joint2"/><joint/><joint name="joint1"/><geom size="1"/></body>')
    assert read_mjcf(write(tmp_path, named)).joint_names == ("joint2", "joint3", "joint1")


def test_a_chain_of_two_hundred_nested_bodies_is_read(tmp_path: Path) -> None:
    assert read_mjcf(write(tmp_path, document(nested(*(f"b{k}" for k in range(200)))))).dof == 200


def test_inertia_is_unknown_if_the_compiler_must_not_compute_it(tmp_path: Path) -> None:
    body = '<body><joint/><geom type="mesh" mesh="m"/></body>'
    assert read_mjcf(write(tmp_path, document(body, '<compiler inertiafromgeom="false"/>'))).links[0].inertia is None


def one(joint: str = "<joint/>", rest: str = "", geom: str = '<geom size="0.1"/>') -> str:
    return document(f'<body name="a">\n{joint}{geom}</body>', rest)


STATED = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
BROKEN = {
    "free and more": (one('<joint name="f" type="free"/><joint/>'), ["line 3", "joint 'f'", "alone"]),
    "free with armature": (one('<joint name="f" type="free" armature="1"/>'), ["joint 'f'", "armature", "set it to 0"]),
    "unknown type": (one('<joint name="f" type="screw"/>'), ["line 3", "joint 'f'", "screw", "hinge"]),
    "zero axis": (one('<joint name="f" axis="0 0 0"/>'), ["joint 'f'", "zero axis"]),
    "NaN": (one('<joint name="f" pos="0 nan 0"/>'), ["joint 'f'", "'pos'", "finite"]),
    "range": (one('<joint name="f" range="1 0"/>'), ["joint 'f'", "swap"]),
    "autolimits": (one('<joint range="0 1"/>', '<compiler autolimits="false"/>'), ["<joint>", "limited"]),
    "mesh": (one(geom='<geom name="g" type="mesh" mesh="m"/>'), ["geom 'g'", "mesh", "<inertial>"]),
    "sizes": (one(geom='<geom name="g" type="box" size="1 1"/>'), ["geom 'g'", "3 positive numbers"]),
    "sphere": (one(geom='<geom name="g" size="1" fromto="0 0 0 0 0 1"/>'), ["geom 'g'", "sphere", "pos"]),
    "ends": (one(geom='<geom name="g" type="box" size="1" fromto="0 0 1 0 0 1"/>'), ["geom 'g'", "coincide"]),
    "mass": (one(geom=STATED.replace('mass="1"', 'mass="-1"')), ["<inertial> of body 'a'", "negative"]),
    "no mass": (one(geom=STATED.replace('mass="1"', "")), ["<inertial> of body 'a'", "'mass'"]),
    "class": (one('<joint name="f" class="x"/>'), ["joint 'f'", "class 'x'", "main"]),
    "twice": (document(nested("a", "a")), ["body 'a'", "twice"]),
    "no joints": (one(""), ["no joint that moves"]),
    "global": (one(rest='<compiler coordinate="global"/>'), ["<compiler>", "global"]),
    "totalmass": (one(rest='<compiler settotalmass="3"/>'), ["<compiler>", "settotalmass"]),
    "eulerseq": (one(rest='<compiler eulerseq="xy"/>'), ["<compiler>", "eulerseq"]),
    "angle": (one(rest='<compiler angle="grad"/>'), ["<compiler>", "'grad'", "radian"]),
    "loop": (one(rest='<equality><connect body1="a" anchor="0 0 0"/></equality>'), ["<connect>", "loop"]),
    "polynomial": (
        one(rest='<equality><joint joint1="j" polycoef="0 1 2"/></equality>'),
        ["<joint>", "polycoef", "straight line"],
    ),
    "follows nobody": (
        one('<joint name="j"/>', '<equality><joint joint1="j" joint2="x"/></equality>'),
        ["<joint>", "'x'"],
    ),
    "macro": (one(geom='<replicate count="2"><geom size="1"/></replicate>'), ["<replicate>", "macro"]),
    "include outside": (one(rest='<include file="../x.xml"/>'), ["<include>", "outside"]),
    "include absolute": (one(rest='<include file="/etc/passwd"/>'), ["<include>", "outside"]),
    "include missing": (one(rest='<include file="x.xml"/>'), ["<include>", "does not exist"]),
    "include itself": (one(rest='<include file="arm.xml"/>'), ["<include>", "second time"]),
    "not MJCF": ("<robot/>", ["<mujoco>"]),
}


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_a_broken_file_is_refused_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    text, words = BROKEN[case]
    path = write(tmp_path, text)
    with pytest.raises(RobotError) as caught:
        read_mjcf(path)
    for word in [str(path), "line", *words]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_symbolic_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    write(tmp_path, "<mujocoinclude/>", "secret.xml")
    (tmp_path / "inside" / "part.xml").symlink_to(tmp_path / "secret.xml")
    with pytest.raises(RobotError, match="outside"):
        read_mjcf(write(tmp_path / "inside", one(rest='<include file="part.xml"/>')))
