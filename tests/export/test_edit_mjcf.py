"""An edited MJCF gives the model in MuJoCo, and the rest of the file is unchanged."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import our_torque
from oracles import relative, states

from steelyard.dynamics.model import Model
from steelyard.export import ExportError, model_to_mjcf
from steelyard.export.capability import CAPABILITIES
from steelyard.parameters import Coulomb, Offset, Rotor, Spring, Viscous, terms
from steelyard.robot import Transmission, load_robot

# Degrees, classes, a geom with mass, a welded tool, two joints with anchors, sensors and actuators.
ARM = """<mujoco model="arm">
  <!-- from the workshop -->
  <compiler angle="degree" boundmass="0.5"/>
  <option timestep="0.001" gravity="0 0 -9.81"/>
  <default>
    <joint damping="7" frictionloss="3" armature="0.5" stiffness="11"/>
    <default class="light"><joint damping="2"/></default>
  </default>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 .1"/>
    <body name="upper" pos="0 0 .5" euler="0 10 0">
      <joint name="shoulder" axis="0 1 0" pos="0 0 .05" range="-90 90"/>
      <geom type="capsule" fromto="0 0 0 0 0 .4" size=".04"/>
      <body name="lower" pos="0 0 .4">
        <inertial pos="0 0 .1" mass="2" diaginertia=".02 .02 .01"/>
        <joint name="elbow" class="light" axis="0 1 0"
               range="-120 120"/>
        <geom name="shell" type="sphere" size=".05"/>
        <body name="tool" pos="0 0 .3"><geom type="box" size=".02 .02 .02"/>
          <inertial pos="0 0 0" mass=".3" diaginertia=".001 .001 .001"/>
          <site name="tip" pos="0 0 .05"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><position name="hold" joint="elbow" kp="20"/></actuator>
  <sensor><jointpos joint="elbow"/></sensor>
</mujoco>
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def identified(source: Path) -> Model:
    """The arm with other inertias and all quantities of an MJCF joint."""
    robot = load_robot(source)
    bound = terms(robot, Rotor(), Viscous(), Coulomb(), Offset(), Spring(rest=0.4, where=("elbow",)))
    values = [0.01, 0.02, 0.3, 0.1, 0.0, 0.25, -0.6, 0.2, 3.0]
    return Model(robot, bound, np.concatenate([1.3 * robot.inertial_parameters, values]))


def test_mujoco_reads_the_model_from_it(source: Path, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    model = identified(source)
    model_to_mjcf(model, tmp_path / "out.xml", source)
    compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    assert (compiled.nu, compiled.nsensor, compiled.nsite, compiled.opt.timestep) == (1, 1, 1, 0.001)
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(compiled)
    # MuJoCo's dry friction is soft, so only its number is compared.
    np.testing.assert_allclose(compiled.dof_frictionloss, [0.0, 0.25])
    compiled.dof_frictionloss[:] = 0.0
    s = states(model.robot, 4)
    out = []
    for q, dq, ddq in zip(s.q, s.dq, s.ddq, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(compiled, data)
        out.append(data.qfrc_inverse.copy())
    friction = np.array([0.0, 0.25]) * np.sign(s.dq)
    # The offset is a spring whose torque changes by a millionth per radian.
    assert relative(np.array(out) + friction, our_torque(model)) < 1e-6


def test_the_rest_of_the_file_is_unchanged(source: Path, tmp_path: Path) -> None:
    model_to_mjcf(identified(source), tmp_path / "out.xml", source)
    written = (tmp_path / "out.xml").read_text().splitlines()
    gone = [line[2:] for line in difflib.ndiff(ARM.splitlines(), written) if line.startswith("- ")]
    assert [line.split()[0] for line in gone] == [
        "<compiler", "<joint", "<inertial", "<joint", 'range="-120', "<inertial",
    ]  # fmt: skip
    again = load_robot(tmp_path / "out.xml")
    assert again.joint_names == ("shoulder", "elbow")
    nominal = Model.nominal(again)
    named = dict(zip(nominal.terms.names, nominal.theta[20:], strict=True))
    assert (named["Ia1"], named["Fv2"], named["Fc1"], named["Fc2"]) == (0.01, 0.1, 0.0, 0.25)


def test_an_uneditable_file_is_replaced_by_a_new_one_with_a_note(source: Path, tmp_path: Path) -> None:
    robot = load_robot(source).with_joints(["shoulder"])
    model = Model(robot, terms(robot), robot.inertial_parameters)
    notes = model_to_mjcf(model, tmp_path / "out.xml", source)
    assert any("has other joints than the model" in note for note in notes)
    assert "workshop" not in (tmp_path / "out.xml").read_text()
    with pytest.raises(ExportError, match="the robot's original description"):
        model_to_mjcf(identified(source), source, source)
    assert source.read_text() == ARM


def test_a_drive_of_several_joints_is_a_tendon(source: Path, tmp_path: Path) -> None:
    """u = q1 + q2 has its rotor, damping and dry friction in MuJoCo as in the model."""
    mujoco = pytest.importorskip("mujoco")
    robot = replace(load_robot(source), transmission=Transmission(np.array([[1.0, 0.0], [1.0, 1.0]])))
    motor = (robot.transmission.motors[1],)
    bound = terms(robot, *(kind(on="drive", where=motor) for kind in (Rotor, Viscous, Coulomb)))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, [0.05, 0.2, 0.4]]))
    for given in (source, None):
        assert not [note for note in model_to_mjcf(model, tmp_path / "out.xml", given) if "left out" in note]
        compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
        compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        data = mujoco.MjData(compiled)
        data.qpos[:], data.qvel[:], data.qacc[:] = (0.3, -0.2), (0.5, 0.4), (1.0, -2.0)
        mujoco.mj_inverse(compiled, data)
        # At 0.9 rad/s MuJoCo's friction has its full level.
        expected = model.torque([0.3, -0.2], [0.5, 0.4], [1.0, -2.0])
        np.testing.assert_allclose(data.qfrc_inverse, expected, rtol=1e-9)


def test_a_file_has_no_terms_that_the_model_lacks(source: Path) -> None:
    robot = load_robot(source)
    stated = CAPABILITIES["mjcf"].terms(robot, terms(robot, "viscous", "stop"))
    assert [t.kind for t in stated.terms] == ["viscous", "coulomb"]
    assert not CAPABILITIES["urdf"].terms(robot, terms(robot, "rotor", "offset")).terms
