"""A model in a URDF is the same robot in Pinocchio, in MuJoCo and in our reader."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from exported import mujoco_torque, our_torque, pinocchio_torque, rigid_part
from hypothesis import given, settings
from oracles import public_robot_path, relative
from random_robots import make_tree, trees

from steelyard.dynamics.model import Model
from steelyard.export import ExportError, model_to_urdf
from steelyard.parameters import AsymmetricCoulomb, Coulomb, Rotor, terms
from steelyard.robot import load_robot
from steelyard.robot.library import builtin_names
from steelyard.robot.spatial import quaternion_of, rotation_about, rotation_from_quaternion, rotation_from_rpy, rpy_of

# Reading corrects rounded angles by up to 1e-11; the original file keeps them.
SAME = 1e-9

ARM = """<?xml version="1.0" encoding="utf-8"?>
<!-- an arm, drawn by hand -->
<robot name="arm">
  <material name="grün"><color rgba="0 1 0 1"/></material>
  <link name="base"/>
  <link name="upper">
    <!-- measured on a scale -->
    <inertial>
      <origin xyz="0.1 0 0"/><mass value="2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
    </inertial>
    <collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision>
  </link>
  <link name='camera'><inertial><mass value="0.5"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>
    <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
  </link>
  <link name="lower"/>
  <link name="finger"><inertial><mass value="0.1"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3" rpy="1.5708 0 0"/><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/><dynamics damping="9" friction="8" spring="7"/>
  </joint>
  <joint name="mount" type="fixed"><origin xyz="0 0.1 0"/><parent link="upper"/><child link="camera"/></joint>
  <joint name="elbow" type="continuous">
    <origin xyz="0.4 0 0" rpy="0 0.2 0.1"/><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="grip" type="prismatic">
    <origin xyz="0.1 0 0" /><parent link="lower"/><child link="finger"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.1" effort="50" velocity="3"/><mimic joint="elbow" multiplier="0.1" offset="0.02"/>
  </joint>
</robot>
"""


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM, encoding="utf-8")
    return path


def random_theta(robot, seed: int = 0):
    """Possible inertias, independent of those of the file."""
    return make_tree(seed, len(robot.links)).inertial_parameters


def without_shapes(path: Path) -> str:
    """Remove meshes: MuJoCo opens them, but they are missing here, and it does not support all formats."""
    return re.sub(r"<(visual|collision)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_robots_get_a_new_file(name, tmp_path):
    model = Model.nominal(load_robot(name))
    path = tmp_path / "out.urdf"
    model_to_urdf(model, path, Path(model.robot.source))
    ours = our_torque(rigid_part(model))
    assert relative(pinocchio_torque(path, model), ours) < SAME
    assert relative(mujoco_torque(path.read_text(), model), ours) < SAME
    again = load_robot(path, gravity=model.robot.gravity)
    assert [(j.name, j.kind) for j in again.joints] == [(j.name, j.kind) for j in model.robot.joints]


@pytest.mark.parametrize("name", ["ur10", "panda", "tiago", "baxter"])
def test_public_robots_keep_their_files(name, tmp_path):
    source = public_robot_path(name)
    robot = load_robot(source)
    model = Model(robot, terms(robot), random_theta(robot))
    path = tmp_path / "out.urdf"
    model_to_urdf(model, path, source)
    ours = our_torque(model)
    assert relative(pinocchio_torque(path, model), ours) < SAME
    if name != "tiago":  # its antenna, fixed to the base, has no inertia: MuJoCo also refuses the original
        assert relative(mujoco_torque(without_shapes(path), model), ours) < SAME
    shapes = [re.findall(r"<(?:mesh|visual|collision|limit)[^>]*>", p.read_text()) for p in (source, path)]
    assert shapes[0] == shapes[1]


@given(trees(max_links=6, mimic=True, own_frames=True))
@settings(max_examples=25, deadline=None)
def test_any_tree_is_the_same_robot_elsewhere(robot):
    model = Model.nominal(robot)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.urdf"
        model_to_urdf(model, path)
        ours = our_torque(model)
        assert relative(pinocchio_torque(path, model), ours) < SAME
        assert relative(mujoco_torque(path.read_text(), model), ours) < SAME


def test_only_the_model_changes_in_the_file(arm, tmp_path):
    robot = load_robot(arm, snap=0.0)  # keep its rounded angles
    bound = terms(robot, "viscous", "coulomb")
    model = Model(robot, bound, np.concatenate([random_theta(robot), [1.0, 2.0, 0.3, 0.4]]))
    out = tmp_path / "out.urdf"
    assert model_to_urdf(model, out, arm) == ()
    text = out.read_text(encoding="utf-8")
    for text_part in ("<!-- an arm, drawn by hand -->", "<!-- measured on a scale -->", 'name="grün"', "<mimic joint="):
        assert text_part in text
    assert '<dynamics damping="1.0" friction="0.3" spring="7"/>' in text
    assert "inertia merged into link 'upper'" in text
    assert text.count("<inertial>") == 3
    again = load_robot(out, snap=0.0)
    np.testing.assert_allclose(again.inertial_parameters, robot_theta(model), rtol=1e-12, atol=1e-14)
    assert relative(our_torque(Model.nominal(again)), our_torque(model)) < 1e-12
    # The camera has a shape but no inertia any more: MuJoCo must not compute a mass for it.
    assert relative(mujoco_torque(text, model), our_torque(rigid_part(model))) < SAME


def robot_theta(model):
    return model.theta[: model.robot.inertial_count]


def test_rounded_angles_are_written_as_the_model_has_them(arm, tmp_path):
    robot = load_robot(arm, snap=1e-3)
    model = Model(robot, terms(robot), random_theta(robot))
    notes = model_to_urdf(model, tmp_path / "out.urdf", arm)
    assert any("placement" in note for note in notes)
    assert relative(pinocchio_torque(tmp_path / "out.urdf", model), our_torque(model)) < SAME


@pytest.mark.parametrize("with_values", [True, False])
def test_locked_joints_become_fixed(tmp_path, with_values):
    source, locked = public_robot_path("panda"), {"panda_joint3": 0.7, "panda_joint7": -1.0}
    robot = load_robot(source, ["panda_joint4", "panda_joint2"], locked, gravity=(1.0, 2.0, -9.0))
    model = Model(robot, terms(robot), random_theta(robot))
    path = tmp_path / "out.urdf"
    notes = model_to_urdf(model, path, source, locked=locked if with_values else None)
    assert "panda_joint3" in notes[0]
    ours = our_torque(model)
    assert relative(pinocchio_torque(path, model), ours) < SAME
    assert relative(mujoco_torque(without_shapes(path), model), ours) < SAME


def test_unsupported_terms_are_noted(tmp_path):
    robot = load_robot("arm7").with_joints(["joint1", "joint2"])
    bound = terms(robot, Rotor(), Coulomb(smooth=0.1, where=("joint1",)), AsymmetricCoulomb(where=("joint2",)))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, [0.1, 0.2, 3.0, 4.0, 6.0]]))
    notes = " ".join(model_to_urdf(model, tmp_path / "out.urdf"))
    assert "rotor on joint (joint1, joint2) cannot be expressed" in notes
    assert "smoothed" in notes
    assert "mean" in notes
    text = (tmp_path / "out.urdf").read_text()
    assert 'friction="3.0"' in text
    assert 'friction="5.0"' in text
    assert "rotor on joint" in text


def test_an_unsuitable_model_or_file_is_refused(arm, tmp_path):
    robot = load_robot(arm)
    theta = random_theta(robot)
    good = Model(robot, terms(robot), theta)
    with pytest.raises(ExportError, match="original description"):
        model_to_urdf(good, arm, arm)
    assert arm.read_text(encoding="utf-8") == ARM
    for change, message in (({0: -1.0}, "negative mass"), ({0: 0.0}, "no mass"), ({0: 1e-12}, "too little mass")):
        bad = theta.copy()
        for k, value in change.items():
            bad[k] = value
        with pytest.raises(ExportError, match=message):
            model_to_urdf(Model(robot, terms(robot), bad), tmp_path / "out.urdf", arm)
    other = load_robot("arm7")
    with pytest.raises(ExportError, match="has no movable joint 'joint1'"):
        model_to_urdf(Model.nominal(other), tmp_path / "out.urdf", arm)
    assert [p.name for p in tmp_path.iterdir()] == ["arm.urdf"]


def test_other_encodings_and_layouts_survive(arm, tmp_path):
    robot = load_robot(arm)
    model = Model(robot, terms(robot), random_theta(robot))
    text = ARM.replace('encoding="utf-8"', 'encoding="iso-8859-1"').replace("\n", "\r\n")
    arm.write_bytes(text.encode("iso-8859-1"))
    model_to_urdf(model, tmp_path / "out.urdf", arm)
    assert "grün".encode("iso-8859-1") in (tmp_path / "out.urdf").read_bytes()
    assert relative(our_torque(Model.nominal(load_robot(tmp_path / "out.urdf"))), our_torque(model)) < 1e-12


def test_a_mujoco_extension_of_the_file_is_kept(arm, tmp_path):
    arm.write_text(
        ARM.replace('<link name="base"/>', '<mujoco><compiler fusestatic="false"/></mujoco><link name="base"/>')
    )
    robot = load_robot(arm, gravity=(0.0, 9.81, 0.0))
    model = Model(robot, terms(robot), random_theta(robot))
    model_to_urdf(model, tmp_path / "out.urdf", arm)
    text = (tmp_path / "out.urdf").read_text()
    assert '<compiler fusestatic="false" inertiafromgeom="false"/>' in text
    assert relative(mujoco_torque(text, model), our_torque(model)) < SAME


@pytest.mark.parametrize("seed", range(20))
def test_rotations_survive_angles_and_quaternions(seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    quarter = rotation_from_rpy(rng.uniform(-3, 3), np.pi / 2 * rng.choice([-1, 1]), rng.uniform(-3, 3))
    half = rotation_about(axis / np.linalg.norm(axis), np.pi)
    for rotation in (quarter, half, rotation_about(axis / np.linalg.norm(axis), rng.uniform(-3, 3)), np.eye(3)):
        np.testing.assert_allclose(rotation_from_rpy(*rpy_of(rotation)), rotation, atol=2e-15)
        np.testing.assert_allclose(rotation_from_quaternion(*quaternion_of(rotation)), rotation, atol=4e-15)


def test_unknown_limits_are_read_as_no_limits(tmp_path):
    """URDF requires limits: the value for an unknown limit is read as no limit."""
    model_to_urdf(Model.nominal(load_robot("rotradi")), tmp_path / "arm.urdf")
    for joint in load_robot(tmp_path / "arm.urdf").joints:
        assert (joint.lower, joint.upper, joint.velocity) == (-np.inf, np.inf, np.inf)
