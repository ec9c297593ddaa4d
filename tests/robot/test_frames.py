"""Named frames of a description remain when fixed joints are merged, with the poses of Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import UnknownNameError
from steelyard.robot import load_robot
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle (pip install 'steelyard[oracle]')")
pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")

URDF = """<robot name="two">
  <link name="base"/>
  <link name="arm"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="slide"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="flange"/><link name="tool"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <origin xyz="0.1 0 0.4" rpy="0.2 0 0.3"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="b" type="prismatic"><parent link="arm"/><child link="slide"/><axis xyz="0 0 1"/>
    <origin xyz="0 0.2 0.5" rpy="0 0.7 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="c" type="fixed"><parent link="slide"/><child link="flange"/><origin xyz="0 0.1 0.2" rpy="1 0 0"/></joint>
  <joint name="d" type="fixed"><parent link="flange"/><child link="tool"/><origin xyz="0.3 0 0" rpy="0 0 1"/></joint>
</robot>"""


def pose(robot: Robot, place: LinkFrame, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rotations, origins = link_poses(robot, q)
    above, foot = (rotations[place.host], origins[place.host]) if place.host >= 0 else (np.eye(3), np.zeros(3))
    return above @ place.rotation, foot + above @ place.translation


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "two.urdf"
    path.write_text(URDF)
    return path


@pytest.mark.parametrize("name", ["base", "arm", "slide", "flange", "tool"])
@pytest.mark.parametrize("locked", [False, True])
def test_frames_agree_with_pinocchio(urdf: Path, name: str, locked: bool) -> None:
    model = pin.buildModelFromUrdf(str(urdf))
    data = model.createData()
    q = np.array([0.4, 0.3])
    pin.framesForwardKinematics(model, data, q)
    expected = data.oMf[model.getFrameId(name)]
    robot = load_robot(urdf, locked={"b": 0.3} if locked else None)
    rotation, origin = pose(robot, robot.frame(name), q[:1] if locked else q)
    np.testing.assert_allclose(rotation, expected.rotation, atol=1e-12)
    np.testing.assert_allclose(origin, expected.translation, atol=1e-12)


def test_the_default_frame_is_the_last_links(urdf: Path) -> None:
    robot = load_robot(urdf)
    assert robot.frame().host == 1
    with pytest.raises(UnknownNameError, match="frame 'tol'"):
        robot.frame("tol")


def test_sites_and_welded_bodies_of_mjcf_are_frames(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        """<mujoco><worldbody><body name="arm" pos="0 0 1"><joint name="j" axis="0 1 0" pos="0.1 0 0"/>
        <geom type="sphere" size="0.1" mass="1"/>
        <body name="tool" pos="0.5 0 0" euler="0 90 0"><geom type="sphere" size="0.1" mass="1"/>
        <site name="tip" pos="0 0 0.2" euler="30 0 0"/></body></body></worldbody></mujoco>"""
    )
    robot = load_robot(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:] = 0.7
    mujoco.mj_forward(model, data)
    for name, expected in (("tip", data.site("tip")), ("tool", data.body("tool"))):
        rotation, origin = pose(robot, robot.frame(name), np.array([0.7]))
        np.testing.assert_allclose(origin, expected.xpos, atol=1e-12)
        np.testing.assert_allclose(rotation.ravel(), expected.xmat, atol=1e-12)
