"""A model that no robot would be built like is not trusted, however well it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sound_logs import simulated_base

from steelyard.dynamics.model import Model
from steelyard.identification._verdict import Verdict, judge
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify


@pytest.fixture(scope="module")
def found() -> Identification:
    case = simulated_base().case
    return identify(case.robot, case.fit, case.judge)


def with_parameters(found: Identification, which: slice, factor: float) -> Verdict:
    """The verdict if some parameters of the model were `factor` times what they are, all scores as they were."""
    theta = np.array(found.model.theta)
    theta[which] *= factor
    return judge(replace(found, model=Model(found.robot, found.model.terms, theta)))


def test_an_arm_of_many_tonnes_is_refused(found: Identification) -> None:
    told = with_parameters(found, slice(0, found.robot.inertial_count), 1000.0)
    assert told.grade == "poor"
    assert any("too heavy for a robot that reaches" in r for r in told.reasons)


def test_a_link_that_weighs_many_times_the_described_mass_is_named(found: Identification) -> None:
    told = with_parameters(found, slice(20, 30), 6.0)
    assert told.grade == "usable"
    assert any(f"'{found.robot.link_names[2]}'" in r and "several times" in r for r in told.reasons)


def test_descriptions_in_which_all_links_weigh_the_same_say_nothing(found: Identification) -> None:
    blocks = found.robot.inertial_parameters.reshape(-1, 10)
    alike = found.robot.with_inertial_parameters(blocks / blocks[:, :1])  # a kilogram each
    told = judge(replace(found, robot=alike))
    assert not any("several times" in r for r in told.reasons)


def test_an_arm_that_its_drives_cannot_hold_or_move_is_not_trusted(found: Identification) -> None:
    weak = replace(found.robot, joints=tuple(replace(j, effort=1.0) for j in found.robot.joints))
    told = judge(replace(found, robot=weak))
    assert told.grade == "usable"
    assert any("asks" in r and "of 'q2', whose limit is 1" in r for r in told.reasons)
    assert any("dry friction of 'q2'" in r for r in told.reasons)
