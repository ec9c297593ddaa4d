"""Free joints: the same numbers as Pinocchio and MuJoCo, from every source of robots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles import public_robot_path

from steelyard.dynamics.model import Model
from steelyard.errors import RobotError
from steelyard.export import model_to_mjcf, model_to_urdf
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import Robot, load_robot
from steelyard.robot.free import draw_orientations, free_links, vector_part, whole_quaternion
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.spatial import rotation_from_quaternion

# Rounding of a few hundred operations, relative to the largest entry.
EXACT = 1e-10


def random_states(robot: Robot, rng: np.random.Generator, count: int = 4) -> tuple[np.ndarray, ...]:
    q, dq, ddq = (scale * rng.standard_normal((count, robot.dof)) for scale in (1.0, 2.0, 5.0))
    return draw_orientations(robot, q, rng), dq, ddq


def pinocchio_position(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The position of Pinocchio, whose quaternions are x, y, z, w and whose planes have cosine and sine."""
    parts, at = [], 0
    for link in robot.links:
        own = q[link.coordinates.start : link.coordinates.stop]
        at = link.coordinates.stop
        if link.kind in ("floating", "spherical"):
            parts += [own[:-3], np.roll(whole_quaternion(own[-3:]), -1)]
        elif link.kind == "planar":
            parts += [own[:2], [np.cos(own[2]), np.sin(own[2])]]
        else:
            parts.append(own)
    assert at == robot.dof
    return np.concatenate(parts)


def random_model(pin, seed: int):
    """A random Pinocchio tree of all kinds of joints."""
    rng = np.random.default_rng(seed)
    model = pin.Model()
    kinds = [pin.JointModelFreeFlyer, pin.JointModelSpherical, pin.JointModelPlanar, pin.JointModelRX, pin.JointModelPY]
    for k in range(6):
        kind = kinds[0] if k == 0 else kinds[rng.integers(len(kinds))]
        parent = int(rng.integers(0, model.njoints)) if k else 0
        joint = model.addJoint(parent, kind(), pin.SE3.Random(), f"j{k}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    return model


def mass_matrix(pin, model, data, q: np.ndarray) -> np.ndarray:
    """By inverse dynamics, since Pinocchio's algorithm needs joints in depth-first order."""
    zero = np.zeros(model.nv)
    still = pin.rnea(model, data, q, zero, zero).copy()
    return np.column_stack([pin.rnea(model, data, q, zero, e).copy() - still for e in np.eye(model.nv)])


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_are_those_of_pinocchio(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    pin.seed(seed)
    model = random_model(pin, seed)
    robot, data = load_robot(model, snap=0.0), model.createData()
    q, dq, ddq = random_states(robot, np.random.default_rng(seed))
    theta = robot.inertial_parameters
    physics = robot.dynamics
    torque = physics.inverse_dynamics(q, dq, ddq, theta)
    assert np.allclose(physics.forward_dynamics(q, dq, torque, theta), ddq, atol=1e-7)
    # The momentum form: dp/dt + D θ = τ, with dp/dt by central differences along the motion.
    for k in range(len(q)):
        there = pinocchio_position(robot, q[k])
        Y = np.reshape(pin.computeJointTorqueRegressor(model, data, there, dq[k], ddq[k]), (robot.dof, -1))
        assert np.abs(physics.torque_regressor(q[k], dq[k], ddq[k]) - Y).max() < EXACT * np.abs(Y).max()
        tau = pin.rnea(model, data, there, dq[k], ddq[k])
        assert np.abs(torque[k] - tau).max() < EXACT * np.abs(tau).max()
        mass = mass_matrix(pin, model, data, there)
        assert np.allclose(physics.mass_matrix(q[k], theta), mass, rtol=0, atol=EXACT * mass.max())
        energy = pin.computeKineticEnergy(model, data, there, dq[k])
        assert physics.kinetic_energy_regressor(q[k], dq[k]) @ theta == pytest.approx(energy, rel=EXACT)
        momentum = physics.momentum_regressor(q[k], dq[k]) @ theta
        assert np.allclose(momentum, physics.mass_matrix(q[k], theta) @ dq[k], atol=EXACT * np.abs(momentum).max())
        h = 1e-5
        ahead, behind = (pin.integrate(model, there, s * h * dq[k] + 0.5 * h * h * ddq[k]) for s in (1.0, -1.0))
        moments = [mass_matrix(pin, model, data, x) @ (dq[k] + s * h * ddq[k]) for x, s in ((ahead, 1), (behind, -1))]
        rate = (moments[0] - moments[1]) / (2 * h)
        remainder = physics.remainder_regressor(q[k], dq[k]) @ theta
        assert np.allclose(rate + remainder, tau, atol=1e-5 * np.abs(tau).max())  # O(h²) of the differences
        pin.forwardKinematics(model, data, there)
        rotations, origins = link_poses(robot, q[k])
        for i in range(len(robot.links)):
            assert np.allclose(rotations[i], data.oMi[i + 1].rotation, atol=1e-12)
            assert np.allclose(origins[i], data.oMi[i + 1].translation, atol=1e-12)


@pytest.mark.parametrize("name", ["anymal", "solo", "talos", "go1", "go2", "g1", "icub", "hector"])
def test_floating_robots_from_urdf_are_those_of_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = public_robot_path(name)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    robot, data = load_robot(path, floating=True, snap=0.0), model.createData()
    assert robot.joint_names[:6] == tuple(f"root_joint_{x}" for x in ("x", "y", "z", "rx", "ry", "rz"))
    assert robot.joint_names[6:] == tuple(model.names)[2:]
    q, dq, ddq = random_states(robot, np.random.default_rng(7), 2)
    for k in range(len(q)):
        Y = pin.computeJointTorqueRegressor(model, data, pinocchio_position(robot, q[k]), dq[k], ddq[k])
        assert np.abs(robot.torque_regressor(q[k], dq[k], ddq[k]) - Y).max() < EXACT * np.abs(Y).max()


def mujoco_inverse(mujoco, model, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Torques of `mj_inverse` for a floating base and hinges, in the coordinates of the package."""
    data = mujoco.MjData(model)
    R = rotation_from_quaternion(*whole_quaternion(q[3:6]))
    data.qpos[:] = [*q[:3], *whole_quaternion(q[3:6]), *q[6:]]
    data.qvel[:] = [*(R @ dq[:3]), *dq[3:]]
    data.qacc[:] = [*(R @ (ddq[:3] + np.cross(dq[3:6], dq[:3]))), *ddq[3:]]
    mujoco.mj_inverse(model, data)
    return np.concatenate([R.T @ data.qfrc_inverse[:3], data.qfrc_inverse[3:]])


@pytest.mark.parametrize("name", ["anymal", "solo", "go1", "go2", "hector"])
def test_written_files_of_floating_robots_have_the_inverse_dynamics_of_mujoco(name: str, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot(public_robot_path(name), floating=True, snap=0.0)
    theta = robot.inertial_parameters
    model_to_mjcf(Model(robot, Terms(robot, ()), theta), tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # the forces of joint limits
    for q, dq, ddq in zip(*random_states(robot, np.random.default_rng(7), 2), strict=True):
        theirs = mujoco_inverse(mujoco, model, q, dq, ddq)
        own = robot.dynamics.inverse_dynamics(q, dq, ddq, theta)
        assert np.abs(own - theirs).max() < EXACT * np.abs(theirs).max()


@pytest.mark.parametrize("name", ["solo", "hector"])
def test_a_floating_tree_has_ten_and_seven_per_joint_base_parameters(name: str) -> None:
    """The count of Ayusawa, Venture & Nakamura 2014: the base shows all ten; a revolute joint hides three.

    They are identifiable from the rows of the base alone.
    """
    robot = load_robot(public_robot_path(name), floating=True)
    expected = 10 + 7 * (robot.dof - 6)
    assert base_parameters(robot).rank == expected
    of_base = robot.with_torque_used(robot.joint_names[:6])
    assert base_parameters(of_base).rank == expected


MJCF = """<mujoco model="walker"><option gravity="0 0 -9.81"/>
<worldbody><body name="trunk" pos="0 0 1" quat="0.9 0.1 0.3 0.2"><freejoint name="float"/>
<inertial pos="0.1 0.02 -0.03" mass="3" fullinertia="0.05 0.06 0.07 0.001 0.002 -0.003"/>
<body name="arm" pos="0.1 0.2 0.3" euler="10 20 30"><joint name="hip" type="ball" pos="0.05 0 0.02"/>
<inertial pos="0 0.1 -0.2" mass="1" diaginertia="0.02 0.03 0.04"/>
<body name="shank" pos="0 0 -0.3"><joint name="knee" axis="0 1 0"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/></body></body></body></worldbody></mujoco>"""


def test_mjcf_and_mujoco_agree_with_inverse_dynamics_of_mujoco(tmp_path: Path) -> None:
    """Velocities of a free joint in MuJoCo are those in world axes for translation, in body axes for rotation."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "walker.xml"
    path.write_text(MJCF)
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    for robot in (load_robot(path, snap=0.0), load_robot(model, snap=0.0)):
        assert [link.kind for link in robot.links] == ["floating", "spherical", "revolute"]
        q, dq, ddq = (x[0] for x in random_states(robot, rng, 1))
        R = rotation_from_quaternion(*whole_quaternion(q[3:6]))
        data.qpos[:] = [*q[:3], *whole_quaternion(q[3:6]), *whole_quaternion(q[6:9]), q[9]]
        data.qvel[:] = [*(R @ dq[:3]), *dq[3:]]
        data.qacc[:] = [*(R @ (ddq[:3] + np.cross(dq[3:6], dq[:3]))), *ddq[3:]]
        mujoco.mj_inverse(model, data)
        expected = np.concatenate([R.T @ data.qfrc_inverse[:3], data.qfrc_inverse[3:]])
        torque = robot.dynamics.inverse_dynamics(q, dq, ddq, robot.inertial_parameters)
        assert np.abs(torque - expected).max() < EXACT * np.abs(expected).max()


URDF = """<robot name="r"><link name="base"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial></link><link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="j" type="{kind}"><parent link="base"/><child link="arm"/>
<axis xyz="0 0 1"/><origin xyz="0.1 0.2 0.3"/></joint></robot>"""


@pytest.mark.parametrize(("kind", "width"), [("floating", 6), ("planar", 3), ("spherical", 3)])
def test_urdf_has_free_joints_inside_the_tree(kind: str, width: int) -> None:
    robot = load_robot(URDF.format(kind=kind))
    assert robot.dof == width
    assert free_links(robot)[0].kind == kind
    assert load_robot(URDF.format(kind=kind), floating=True).dof == 6 + width


def test_a_quaternion_and_its_negative_are_one_orientation() -> None:
    quaternions = np.random.default_rng(0).standard_normal((50, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    again = whole_quaternion(vector_part(quaternions))
    assert np.allclose(again, np.where(quaternions[:, :1] < 0, -1, 1) * quaternions, atol=1e-7)  # √ε near w = 0


def test_a_free_joint_is_locked_as_a_whole_or_not_at_all() -> None:
    robot = load_robot(URDF.format(kind="revolute"), floating=True)
    assert robot.with_joints(["j"]).dof == 1
    with pytest.raises(RobotError, match="all of its coordinates"):
        robot.with_joints(["root_joint_x", "j"])
    with pytest.raises(RobotError, match="all of its coordinates"):
        robot.with_joints(["root_joint_z", "root_joint_x"])


DH = """
convention: modified
floating_base: {name: trunk, mass: 4.0, com: [0.02, 0.0, 0.05], inertia_com: {xx: 0.05, yy: 0.06, zz: 0.07}}
base: {xyz: [0.1, 0.2, -0.05], rpy: [0.0, pi/2, 0.0]}
rows:
  - joint: hip
    dh: [q, 0.1, 0.0, pi/2]
    link: {mass: 1.0, com: [0.0, 0.0, 0.1], inertia_com: {xx: 0.01, yy: 0.01, zz: 0.004}}
  - joint: knee
    dh: [q, 0.0, 0.3, 0.0]
    link: {mass: 0.5, com: [0.1, 0.0, 0.0], inertia_com: {xx: 0.002, yy: 0.01, zz: 0.01}}
terms:
  - {kind: viscous, values: [0.3, 0.2]}
"""


def floating_leg(pin):
    """The robot of `DH` by hand: with zero offsets, modified placements are Rx(alpha) Tx(a) Tz(d)."""
    model, turn = pin.Model(), pin.rpy.rpyToMatrix
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "float")
    model.appendBodyToJoint(
        joint, pin.Inertia(4.0, np.array([0.02, 0.0, 0.05]), np.diag([0.05, 0.06, 0.07])), pin.SE3.Identity()
    )
    mount = pin.SE3(turn(0.0, np.pi / 2, 0.0), np.array([0.1, 0.2, -0.05]))
    hip = mount * pin.SE3(turn(np.pi / 2, 0.0, 0.0), np.zeros(3)) * pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    knee = pin.SE3(np.eye(3), np.array([0.3, 0.0, 0.0]))
    bodies = (pin.Inertia(1.0, np.array([0.0, 0.0, 0.1]), np.diag([0.01, 0.01, 0.004])),
              pin.Inertia(0.5, np.array([0.1, 0.0, 0.0]), np.diag([0.002, 0.01, 0.01])))  # fmt: skip
    for name, place, body in zip(("hip", "knee"), (hip, knee), bodies, strict=True):
        joint = model.addJoint(joint, pin.JointModelRZ(), place, name)
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    return model


def test_a_denavit_hartenberg_table_floats(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    (tmp_path / "leg.yaml").write_text(DH, encoding="utf-8")
    robot, model = load_robot(tmp_path / "leg.yaml"), floating_leg(pin)
    assert robot.joint_names[-2:] == ("hip", "knee")
    assert [t.values for t in robot.nominal_terms] == [((0.0,) * 6 + (0.3, 0.2),)]
    for q, dq, ddq in zip(*random_states(robot, np.random.default_rng(0)), strict=True):
        own = robot.dynamics.inverse_dynamics(q, dq, ddq, robot.inertial_parameters)
        theirs = pin.rnea(model, model.createData(), pinocchio_position(robot, q), dq, ddq)
        assert np.abs(own - theirs).max() < EXACT * np.abs(theirs).max()

    bare = "\n".join(line for line in DH.splitlines() if not line.startswith("floating_base"))
    (tmp_path / "bare.yaml").write_text(bare, encoding="utf-8")
    option = load_robot(tmp_path / "bare.yaml", floating=True)
    assert option.fingerprint == robot.fingerprint
    assert option.links[0].inertia is None
    (tmp_path / "clash.yaml").write_text(DH.replace("name: trunk", "name: link1"), encoding="utf-8")
    with pytest.raises(RobotError, match="'link1' is also the name of a link"):
        load_robot(tmp_path / "clash.yaml")


def test_a_base_floats_only_in_formats_that_can_say_so(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match="freejoint"):
        load_robot(MJCF.replace('<freejoint name="float"/>', '<joint name="float"/>'), floating=True)


def test_identified_inertias_are_written_into_the_original_files_of_floating_robots(tmp_path: Path) -> None:
    pin, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    source = public_robot_path("solo")
    robot = load_robot(source, floating=True)
    theta = 1.1 * robot.inertial_parameters
    terms = Model.nominal(robot).terms
    model_to_urdf(Model(robot, terms, np.append(theta, np.zeros(len(terms)))), tmp_path / "solo.urdf", source)
    written = pin.buildModelFromUrdf(str(tmp_path / "solo.urdf"), pin.JointModelFreeFlyer())
    found = np.concatenate([i.toDynamicParameters() for i in list(written.inertias)[1:]])
    assert np.allclose(found, theta, atol=1e-12)
    (tmp_path / "walker.xml").write_text(MJCF)
    walker = load_robot(tmp_path / "walker.xml", snap=0.0)
    heavier = Model(walker, Terms(walker, ()), 1.1 * walker.inertial_parameters)
    for name, original in (("edited.xml", tmp_path / "walker.xml"), ("new.xml", None)):
        model_to_mjcf(heavier, tmp_path / name, original)
        loaded = mujoco.MjModel.from_xml_path(str(tmp_path / name))
        assert loaded.nv == walker.dof
        assert loaded.body_mass.sum() == pytest.approx(1.1 * walker.inertial_parameters[::10].sum(), rel=1e-12)
