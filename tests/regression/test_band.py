"""The cut-off from left-out blocks: low if the columns have noise, otherwise the ceiling.

Motion and torque come from Pinocchio instead of our own physics.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import steelyard as sy
from steelyard.cutoff import choose_cutoff
from steelyard.regression.band import HARMLESS, BandChoice, BandLevels
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, motion_frequency
from steelyard.study import Study

PERIOD, SECONDS = 5e-3, 40.0
RATES = 2.0 * np.pi * np.array([0.13, 0.29, 0.41])


@cache
def arm() -> tuple[pin.Model, Robot]:
    """A 3R arm with inclined links, as explicit URDF, which is independent of our export."""
    links = "".join(
        f"""<link name="l{k}"><inertial><origin xyz="0.15 0.01 0"/><mass value="{4 - k}"/>
        <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>"""
        for k in (1, 2, 3)
    )
    joints = "".join(
        f"""<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>
        <origin xyz="{0.0 if k == 1 else 0.3} 0 0" rpy="{1.5707963267948966 if k == 2 else 0} 0 0"/><axis xyz="0 0 1"/>
        <limit lower="-3" upper="3" effort="100" velocity="10"/></joint>"""
        for k in (1, 2, 3)
    )
    text = f'<robot name="arm"><link name="l0"/>{links}{joints}</robot>'
    return pin.buildModelFromXML(text), sy.load_robot(text)


def log(noise: float, seed: int = 0, friction: float = 0.3) -> Log:
    """A log whose positions have white noise of a standard deviation [rad]; torque noise is one percent."""
    model, robot = arm()
    data, rng = model.createData(), np.random.default_rng(seed)
    t = np.arange(0.0, SECONDS, PERIOD)
    amplitude, phase = rng.uniform(0.2, 0.5, (3, 3)), rng.uniform(0.0, 6.0, (3, 3))
    angle = t[:, None, None] * RATES[:, None] + phase
    q = (amplitude * np.sin(angle)).sum(1)
    dq = (amplitude * RATES[:, None] * np.cos(angle)).sum(1)
    ddq = -(amplitude * RATES[:, None] ** 2 * np.sin(angle)).sum(1)
    tau = np.array([pin.rnea(model, data, *x) for x in zip(q, dq, ddq, strict=True)])
    tau += friction * np.sign(dq) + 0.2 * dq
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Log(robot.joint_names, t, q + noise * rng.normal(size=q.shape), tau=tau)


def choice(one: Log) -> BandChoice:
    study = choose_cutoff(Study.of(arm()[1], one, None, Preparation().for_rows(torques=True, one_by_one=True)))
    assert study.band is not None
    assert study.cutoff_hz == study.band.cutoff_hz
    return study.band


def test_without_noise_in_the_columns_the_ceiling_is_chosen() -> None:
    band = choice(log(1e-6))
    assert band.is_ceiling
    assert min(band.explained) > 0.5


def test_noise_in_the_columns_lowers_the_cut_off() -> None:
    """White noise of the position becomes acceleration noise that grows with the square of frequency."""
    quiet, loud = choice(log(3e-4)), choice(log(5e-3))
    assert loud.cutoff_hz < quiet.cutoff_hz
    assert not loud.is_ceiling
    assert loud.explained[-1] < 0.0


@pytest.mark.parametrize("seed", range(4))
def test_the_chosen_cut_off_predicts_better_than_the_ceiling(seed: int) -> None:
    """On a hold-out log without noise in its positions, biased inertias cost more than a low cut-off."""
    fitted, clean = log(5e-3, seed), log(0.0, 100 + seed)
    robot = arm()[1]
    options = {"plain": True, "check": False, "score_cutoff_hz": 3.0}
    band = choice(fitted)
    ceiling = Preparation(cutoff_hz=band.candidates_hz[-1])
    chosen, high = (sy.identify(robot, fitted, [clean], **options, **extra) for extra in ({}, {"preparation": ceiling}))
    errors = [np.mean([j.nrmse_percent for j in found.validation[0].joints]) for found in (chosen, high)]
    assert chosen.cutoff_hz == band.cutoff_hz
    assert errors[0] < 0.8 * errors[1]


def test_the_choice_is_the_highest_equivalent_candidate_or_torque_dominated_octave() -> None:
    for noise in (1e-4, 1e-3, 5e-3):
        band = choice(log(noise))
        errors = np.array(band.left_out_percent)
        harmless = max(f for f, e in zip(band.candidates_hz, errors, strict=True) if e <= (1 + HARMLESS) * errors.min())
        assert band.cutoff_hz >= harmless
        above = [e for f, e in zip(band.candidates_hz, errors, strict=True) if f > band.cutoff_hz]
        assert all(e > (1 + HARMLESS) * errors.min() for e in above)


def levels_and_choice(one: Log) -> tuple[BandLevels, BandChoice]:
    study = Study.of(arm()[1], one, None, Preparation().for_rows(torques=True, one_by_one=True))
    levels = study.band_levels(motion_frequency(study.beginnings))
    return levels, levels.choose()


def test_bounds_that_cost_nothing_do_not_change_the_choice() -> None:
    levels, free = levels_and_choice(log(1e-6))
    trials: list[np.ndarray] = []

    def possible(beta: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        trials.append(beta)
        return beta

    bounded = levels.lower_for_bounds(free, possible)
    assert bounded.cutoff_hz == free.cutoff_hz
    assert len(trials) == 2  # the lowest equivalent candidate and the chosen one
    assert np.allclose(list(bounded.bound_growth.values()), 1.0)


def test_bounds_that_cost_more_at_high_cut_offs_lower_the_choice() -> None:
    """Here the bounds change the fits of all candidates but the two lowest by a tenth of each parameter."""
    levels, free = levels_and_choice(log(1e-6))
    low = [
        levels.below[k].weighted(np.ones(levels.base.rank, bool)).fit(np.ones(levels.base.rank, bool)) for k in (0, 1)
    ]

    def possible(beta: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        return beta if any(np.array_equal(beta, fits.free[0]) for fits in low) else 1.1 * beta

    bounded = levels.lower_for_bounds(free, possible)
    assert free.is_ceiling
    assert bounded.cutoff_hz == levels.edges[1]
    assert bounded.bound_growth[free.cutoff_hz] > 1.5
    assert "bodies that can exist fit worse" in bounded.sentence
    assert bounded.to_json()["bound_growth"][0]["ratio"] == pytest.approx(1.0)


def test_a_stated_cut_off_is_kept() -> None:
    robot = arm()[1]
    found = sy.identify(robot, log(5e-3), plain=True, check=False, preparation=Preparation(cutoff_hz=7.0))
    assert found.cutoff_hz == 7.0
    assert found.band is None


def test_a_worse_stated_cut_off_is_reported_with_a_better_one() -> None:
    """The page, result.json and the reasons of the verdict report it; the fit uses the stated value."""
    from steelyard.identification.identification_run import result_json
    from steelyard.identification.page import identification_report

    robot, noisy = arm()[1], log(5e-3)
    free = choice(noisy)
    high = 0.9 * free.candidates_hz[-1]
    found = sy.identify(robot, noisy, plain=True, files=False, preparation=Preparation(cutoff_hz=high))
    band = found.band
    assert band is not None
    assert band.stated
    assert (found.cutoff_hz, band.cutoff_hz, band.advised_hz) == (high, high, free.cutoff_hz)
    errors = dict(zip(band.candidates_hz, band.left_out_percent, strict=True))
    assert errors[high] > (1 + HARMLESS) * errors[free.cutoff_hz]
    assert band.harm_percent == pytest.approx(100.0 * (errors[high] / errors[free.cutoff_hz] - 1.0))
    written = result_json(found)["band"]
    assert written["stated"]
    assert written["advised_cutoff_hz"] == free.cutoff_hz
    assert f"Give --cutoff {free.cutoff_hz:.3g}" in written["reason"]
    assert written["reason"] in found.verdict.remarks
    assert f"Give --cutoff {free.cutoff_hz:.3g}" in identification_report(found)
    # The cut-off from left-out blocks needs no advice.
    kept = sy.identify(robot, noisy, plain=True, files=False, preparation=Preparation(cutoff_hz=free.cutoff_hz))
    assert kept.band is not None
    assert kept.band.advice is None
    assert kept.model.theta == pytest.approx(sy.identify(robot, noisy, plain=True, check=False).model.theta)


def test_the_choice_is_in_the_result_and_on_the_page() -> None:
    from steelyard.identification.identification_run import result_json
    from steelyard.identification.page import identification_report

    found = sy.identify(arm()[1], log(5e-3), plain=True, check=False)
    assert found.band is not None
    written = result_json(found)["band"]
    assert written["cutoff_hz"] == found.cutoff_hz
    assert [c["cutoff_hz"] for c in written["candidates"]] == list(found.band.candidates_hz)
    assert "Above the cut-off the measured motion is mostly noise" in identification_report(found)


def test_short_pieces_leave_out_low_candidates() -> None:
    """Candidates with less than four samples per parameter are skipped."""
    one = log(1e-3)
    rows = slice(0, int(6.0 / PERIOD))
    short = Log(one.joints, one.t[rows], one.q[rows], tau=one.tau[rows])
    band = choice(short)
    assert band.candidates_hz[0] > choice(one).candidates_hz[0]
