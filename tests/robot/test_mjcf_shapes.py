"""Geoms of an MJCF are drawn where MuJoCo has them, in any posture."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from robot.test_shapes import ball, binary_stl

from steelyard.robot import load_robot
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.shapes import described_shapes, named_meshes

MJCF = """<mujoco model="two"><compiler angle="radian" meshdir="assets"/>
<default><geom group="2" rgba="1 0 0 1"/><default class="solid"><geom group="3"/></default></default>
<asset><mesh name="ball" file="ball.stl" scale="0.001 0.002 0.001"/></asset>
<worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="base" pos="0 0 0.1"><geom name="box" type="box" size="0.1 0.2 0.05" euler="0.1 0 0.4"/>
 <body name="arm" pos="0.1 0 0.05" euler="0.3 0 0"><joint name="q1" axis="0 0 1" pos="0.02 0.01 0"/>
  <inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
  <geom name="mesh" type="mesh" mesh="ball" pos="0 0 0.2" quat="0.8 0.6 0 0"/>
  <geom name="hidden" class="solid" type="sphere" size="0.3"/>
  <frame pos="0 0.1 0" euler="0 0.5 0"><geom name="rod" type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/></frame>
  <body name="hand" pos="0 0 0.4"><joint name="q2" type="slide" axis="1 0 0"/>
   <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
   <geom name="can" class="solid" type="cylinder" size="0.03 0.06" pos="0.05 0 0"/></body>
 </body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mjcf")
    (folder / "assets").mkdir()
    binary_stl(folder / "assets/ball.stl", ball(12))
    (folder / "two.xml").write_text(MJCF)
    return folder / "two.xml"


def test_geoms_are_where_mujoco_has_them(file: Path) -> None:
    robot = load_robot(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    q = np.array([0.7, 0.05])
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    rotations, origins = link_poses(robot, q[None])
    drawn = described_shapes(robot)
    assert sorted(shape.kind for shape in drawn) == ["box", "capsule", "cylinder", "mesh"]  # neither floor nor hidden
    for shape in drawn:
        turn, place = (np.eye(3), np.zeros(3)) if shape.link < 0 else (rotations[0, shape.link], origins[0, shape.link])
        centre = turn @ shape.translation + place
        axes = turn @ shape.rotation
        name = {"box": "box", "capsule": "rod", "cylinder": "can", "mesh": "mesh"}[shape.kind]
        geom = data.geom(name)
        if shape.kind == "capsule":  # drawn from one end
            centre = centre + 0.5 * shape.size[1] * axes[:, 2]
        if shape.kind == "mesh":
            # MuJoCo moves meshes to their centre and principal axes; their corners in space stay.
            first, count = model.mesh_vertadr[0], model.mesh_vertnum[0]
            theirs = model.mesh_vert[first : first + count] @ geom.xmat.reshape(3, 3).T + geom.xpos
            ours = shape.vertices @ axes.T + centre
            for end in (np.min, np.max):  # MuJoCo also merges corners at the poles
                assert np.abs(end(theirs, axis=0) - end(ours, axis=0)).max() < 1e-6
            continue
        assert np.abs(centre - geom.xpos).max() < 1e-9
        assert np.abs(np.abs(axes.T @ geom.xmat.reshape(3, 3)[:, 2]) - [0.0, 0.0, 1.0]).max() < 1e-7


def test_locked_joints_keep_their_bodies(file: Path) -> None:
    robot = load_robot(file, locked={"q1": 0.4})
    assert {shape.kind for shape in described_shapes(robot)} == {"box", "capsule", "cylinder", "mesh"}


def test_meshes_of_an_mjcf_are_named_and_stay_inside_its_folder(file: Path, tmp_path: Path) -> None:
    assert named_meshes(file) == ["assets/ball.stl"]
    inner = tmp_path / "inner"
    inner.mkdir()
    binary_stl(tmp_path / "ball.stl", ball(8))
    (inner / "two.xml").write_text(MJCF.replace('meshdir="assets"', 'meshdir=".."'))
    assert "mesh" not in {shape.kind for shape in described_shapes(load_robot(inner / "two.xml"))}
