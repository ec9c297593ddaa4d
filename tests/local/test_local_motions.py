"""Motions for regions stay inside, satisfy the robot's limits, and survive writing and reading."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from local_cases import LEFT, ROBOT, TRUTH
from numpy.testing import assert_allclose

from steelyard import load_robot
from steelyard.errors import UnknownNameError
from steelyard.excitation import SearchSettings
from steelyard.local import CartesianRegion, Design, LocalError, design, random_motion
from steelyard.local.design import information
from steelyard.local.motions import _motion_limits, _too_much_torque, motion_from_dict, motion_to_dict, sample_times
from steelyard.regression.base_parameters import base_parameters

NS16 = load_robot("ns16")
BOX = CartesianRegion("A", [0.8, -0.3, 0.9], [1.3, 0.3, 1.4])


@pytest.mark.parametrize(("robot", "region"), [(ROBOT, LEFT), (NS16, BOX)])
def test_random_motions_stay_inside(robot, region) -> None:
    limits = _motion_limits(robot)
    motion = random_motion(robot, region, np.random.default_rng(1), points=4)
    q, dq, ddq = motion.sample(sample_times(motion))
    assert np.all(region.contains(robot, q))
    # Limits hold by construction; 1e-9 is rounding.
    assert np.all(np.abs(dq) <= limits.velocity * (1 + 1e-9))
    assert np.all(np.abs(ddq) <= limits.acceleration * (1 + 1e-9))
    back = motion_from_dict(json.loads(json.dumps(motion_to_dict(motion))), robot)
    assert back.duration == pytest.approx(motion.duration, rel=1e-12)
    assert_allclose(back.sample(sample_times(motion))[0], q, atol=1e-12)


def test_a_motion_that_takes_too_much_torque_is_slowed_down() -> None:
    own = _motion_limits(ROBOT)
    high = replace(own, velocity=4.0 * own.velocity, acceleration=16.0 * own.acceleration, jerk=64.0 * own.jerk)
    fast = random_motion(ROBOT, LEFT, np.random.default_rng(4), points=4, limits=high)
    assert _too_much_torque(TRUTH, fast)
    slow = random_motion(ROBOT, LEFT, np.random.default_rng(4), points=4, limits=high, model=TRUTH)
    assert not _too_much_torque(TRUTH, slow)
    assert slow.slowdown > 1.0
    assert slow.duration == pytest.approx(slow.slowdown * fast.duration)
    assert_allclose(slow.sample(slow.duration)[0], fast.sample(fast.duration)[0], atol=1e-12)


def test_designed_motions_have_more_information_than_the_first_candidate() -> None:
    base = base_parameters(ROBOT, TRUTH.terms)
    how = Design(how="via-points", duration=4.0, candidates=4, weights=None)
    chosen = design(ROBOT, LEFT, TRUTH.terms, how, None, base).motion
    first = design(ROBOT, LEFT, TRUTH.terms, Design(**{**vars(how), "candidates": 1}), None, base).motion
    weights = np.ones(3)
    assert information(base, chosen, 4.0, weights) >= information(base, first, 4.0, weights)
    # Scaling H by c adds 2·rank·log10 c (Pedrocchi et al. 2013, eq. 7).
    step = information(base, first, 4.0, 10.0 * weights) - information(base, first, 4.0, weights)
    assert step == pytest.approx(2.0 * base.rank, abs=1e-6)


@pytest.mark.parametrize("how", ["gradient", "evolved"])
def test_every_way_of_design_stays_inside(how: str) -> None:
    search = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 8.0), repeats=1, iterations=5)
    settings = Design(how=how, duration=5.0, harmonics=3, search=search, points=3, population=8, generations=2)
    motion = design(ROBOT, LEFT, TRUTH.terms, settings).motion
    q = motion.sample(sample_times(motion))[0]
    assert motion.duration >= 5.0
    assert np.min(LEFT.depth(ROBOT, q)) >= -1e-9
    back = motion_from_dict(json.loads(json.dumps(motion_to_dict(motion))), ROBOT)
    assert_allclose(back.sample(sample_times(motion))[0], q, atol=1e-9)


def test_invalid_designs_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="gradient"):
        Design(how="magic")
    with pytest.raises(LocalError, match="via-point"):
        random_motion(ROBOT, LEFT, np.random.default_rng(0), points=0)
    with pytest.raises(LocalError, match="cannot be written"):
        motion_to_dict(object())  # type: ignore[arg-type]
