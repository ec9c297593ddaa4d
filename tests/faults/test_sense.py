"""A model that no robot would be built like is not trusted, however well it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sound_logs import simulated_base

from steelyard.dynamics.model import Model
from steelyard.identification._verdict import Verdict, grade_model
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log


@pytest.fixture(scope="module")
def found() -> Identification:
    case = simulated_base().case
    return identify(case.robot, case.fit, case.judge)


def with_parameters(found: Identification, which: slice, factor: float) -> Verdict:
    """The verdict if some parameters of the model were `factor` times what they are, all scores as they were."""
    theta = np.array(found.model.theta)
    theta[which] *= factor
    return grade_model(replace(found, model=Model(found.robot, found.model.terms, theta)))


def test_an_arm_of_many_tonnes_is_refused(found: Identification) -> None:
    told = with_parameters(found, slice(0, found.robot.inertial_count), 1000.0)
    assert told.grade == "poor"
    assert any("too heavy for a robot with a reach" in r for r in told.reasons)


def test_a_long_rail_asks_for_no_heavy_carriage() -> None:
    """A carriage on a rail whose limits are a hundred metres, or only a large number, may weigh what it likes."""
    rail = load_robot(
        """<robot name="rail"><link name="floor"/><link name="carriage"><inertial><mass value="5"/>
        <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="slide" type="prismatic"><parent link="floor"/><child link="carriage"/><axis xyz="1 0 0"/>
        <limit lower="-100" upper="100" effort="1000" velocity="10"/></joint></robot>"""
    )
    t = np.arange(4000) / 200.0
    w, rng = np.array([1.3, 3.1, 5.7]), np.random.default_rng(0)
    q, dq, ddq = (0.1 * (w**k * np.sin(np.outer(t, w) + k * np.pi / 2)).sum(axis=1) for k in range(3))
    tau = 5.0 * ddq + 3.0 * dq + 2.0 * np.tanh(dq / 0.02) + 0.05 * rng.normal(size=t.shape)
    log = Log(("slide",), t, q[:, None], dq=dq[:, None], tau=tau[:, None])
    told = grade_model(identify(rail, log))
    assert not any("with a reach of" in r for r in told.reasons), told.reasons
    assert told.grade != "poor", told.reasons


def test_a_link_that_weighs_many_times_the_described_mass_is_named(found: Identification) -> None:
    told = with_parameters(found, slice(20, 30), 6.0)
    assert told.grade == "usable"
    assert any(f"'{found.robot.link_names[2]}'" in r and "Link masses differ" in r for r in told.reasons)


def test_descriptions_in_which_all_links_weigh_the_same_say_nothing(found: Identification) -> None:
    blocks = found.robot.inertial_parameters.reshape(-1, 10)
    alike = found.robot.with_inertial_parameters(blocks / blocks[:, :1])  # a kilogram each
    told = grade_model(replace(found, robot=alike))
    assert not any("Link masses differ" in r for r in told.reasons)


def test_placeholders_of_a_description_say_nothing(found: Identification) -> None:
    """A kilogram around the joint, the same in all directions, in addition to weighed links."""
    blocks = found.robot.inertial_parameters.reshape(-1, 10).copy()
    blocks[2] = 1e-3 * blocks[2, 0] * np.array([1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01])
    blocks[2, 0] = found.robot.inertial_parameters[20] / 6.0
    described = found.robot.with_inertial_parameters(blocks)
    told = grade_model(replace(found, robot=described))
    assert not any(f"'{found.robot.link_names[2]}'" in r and "Link masses differ" in r for r in told.reasons)


def test_an_arm_that_its_drives_cannot_hold_or_move_is_not_trusted(found: Identification) -> None:
    weak = replace(found.robot, joints=tuple(replace(j, effort=1.0) for j in found.robot.joints))
    told = grade_model(replace(found, robot=weak))
    assert told.grade == "usable"
    assert any("joint 'q2' needs" in r and "limit is 1 N m" in r for r in told.reasons)
    assert any("dry friction of 'q2'" in r for r in told.reasons)
