"""A model in MJCF: MuJoCo's inverse dynamics equals ours for all terms that MJCF supports."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import mujoco_torque, our_torque, rigid_part
from hypothesis import given, settings
from oracles import public_robot_path, relative
from random_robots import make_tree, trees

from steelyard.dynamics.model import Model
from steelyard.export import ExportError, model_to_mjcf
from steelyard.parameters import Rotor, Spring, Viscous, terms
from steelyard.robot import ConstantRatio, Transmission, load_robot
from steelyard.robot.library import builtin_names

SAME = 1e-9


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_robots(name, tmp_path):
    model = Model.nominal(load_robot(name))
    model_to_mjcf(model, tmp_path / "out.xml")
    xml = (tmp_path / "out.xml").read_text()
    assert relative(mujoco_torque(xml, model), our_torque(rigid_part(model))) < SAME
    if all(term.on == "joint" for term in model.terms.terms) or name == "irp6":  # irp6 has tendons for its drives
        with_rotors = our_torque(rigid_part(model, "rotor"))
        assert relative(mujoco_torque(xml, model, armature=True), with_rotors) < SAME


@pytest.mark.parametrize("name", ["ur10", "panda", "tiago"])
def test_public_robots(name, tmp_path):
    model = Model.nominal(load_robot(public_robot_path(name)))
    model_to_mjcf(model, tmp_path / "out.xml")
    xml = (tmp_path / "out.xml").read_text()
    assert relative(mujoco_torque(xml, model), our_torque(rigid_part(model))) < SAME
    damped = our_torque(rigid_part(model, "viscous"))
    assert relative(mujoco_torque(xml, model, passive=True), damped) < SAME


@given(trees(max_links=6, mimic=True, own_frames=True))
@settings(max_examples=25, deadline=None)
def test_any_tree(robot):
    model = Model.nominal(robot)
    with tempfile.TemporaryDirectory() as folder:
        model_to_mjcf(model, Path(folder) / "tree.xml")
        xml = (Path(folder) / "tree.xml").read_text()
    assert relative(mujoco_torque(xml, model), our_torque(model)) < SAME


def test_rotors_damping_and_springs_through_gears(tmp_path):
    """A term behind a gear gets its reflected value at the joint."""
    plain = make_tree(3, 3, chain=True)
    gears = tuple(ConstantRatio(r) for r in (50.0, -80.0, 30.0))
    robot = replace(plain, transmission=Transmission(np.diag([1.0, -1.0, 2.0]), ratios=gears))
    bound = terms(robot, Rotor(on="motor"), Viscous(on="drive"), Spring(on="drive", rest=0.3))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, 1e-4 * np.arange(1, 4), *np.ones((2, 3))]))
    assert model_to_mjcf(model, tmp_path / "out.xml") == ()
    xml = (tmp_path / "out.xml").read_text()
    assert relative(mujoco_torque(xml, model, passive=True, armature=True), our_torque(model)) < SAME


def test_massless_links_share_a_body(tmp_path):
    source = tmp_path / "two.xml"
    source.write_text(
        '<mujoco><compiler angle="radian"/><worldbody><body name="a" pos="0 0 1"><joint name="x" axis="1 0 0"'
        ' pos="0 .1 0" ref="0.3"/><joint name="y" type="slide" axis="0 1 0"/>'
        '<joint name="z" axis="0 0 1" pos=".2 0 0"/>'
        '<inertial pos=".1 .2 .3" mass="2" diaginertia=".1 .2 .25"/></body></worldbody></mujoco>'
    )
    robot = load_robot(source)
    model = Model.nominal(robot)
    model_to_mjcf(model, tmp_path / "out.xml")
    xml = (tmp_path / "out.xml").read_text()
    assert xml.count("<body") == 1
    assert relative(mujoco_torque(xml, model), our_torque(model)) < SAME
    # Our own reader gives the model again.
    again = Model.nominal(load_robot(tmp_path / "out.xml"))
    assert relative(our_torque(again), our_torque(model)) < 1e-12


def test_bodies_that_mujoco_refuses_are_refused(tmp_path):
    robot = make_tree(1, 2, chain=True)
    theta = robot.inertial_parameters.copy()
    theta[4] = -1.0
    with pytest.raises(ExportError, match=r"physically impossible.*--physical"):
        model_to_mjcf(Model(robot, terms(robot), theta), tmp_path / "out.xml")
    theta = robot.inertial_parameters.copy()
    theta[10:] = 0.0
    with pytest.raises(ExportError, match="has no mass"):
        model_to_mjcf(Model(robot, terms(robot), theta), tmp_path / "out.xml")
    assert not list(tmp_path.iterdir())


def test_unsupported_terms_are_named_in_the_file(tmp_path):
    model = Model.nominal(load_robot("irp6-screws"))
    notes = model_to_mjcf(model, tmp_path / "out.xml")
    assert any("depends on posture" in note for note in notes)
    assert notes[0] in (tmp_path / "out.xml").read_text()
