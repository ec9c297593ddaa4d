"""Error bars with the variance between motions and structures also cover friction without a candidate term."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.estimation.linear.block_jackknife import block_jackknife, jackknife
from steelyard.identification.identify import identify
from steelyard.parameters import Coulomb, StopElement, Viscous, terms
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Unknowns
from steelyard.robot.library import builtin
from steelyard.signals.log import Log


def test_the_jackknife_of_a_mean_is_its_textbook_variance() -> None:
    """Of a mean of n numbers, the jackknife variance is s²/n exactly (Efron 1982)."""
    x = np.random.default_rng(0).normal(size=9)
    without = [np.array([np.delete(x, k).mean()]) for k in range(9)]
    assert jackknife(without)[0] == pytest.approx(np.var(x, ddof=1) / 9)


def test_the_three_parts_add_up_and_cover_friction_of_another_shape() -> None:
    """Maxwell slip of widths between those that are offered: 95 % intervals of the rigid body hold the truth.

    Of some 13 base parameters of the rigid body and two draws, 26 in all, five or more outside would come once in
    a hundred times if each were outside with 5 %.
    """
    robot, outside, count, deviations = builtin("szabo3r"), 0, 0, list[float]()
    parts = [(StopElement(width=0.002), 0.7), (StopElement(width=0.02), 0.5), (Viscous(), 0.5)]
    bound = terms(robot, *(term for term, _ in parts))
    truth = Model(robot, bound, np.concatenate([robot.inertial_parameters, *(np.full(3, v) for _, v in parts)]))
    rates = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        size, phase = rng.uniform(0.1, 0.5, (4, 3)), rng.uniform(0.0, 6.0, (4, 3))
        t = np.arange(8000) / 200.0
        angle = t[:, None, None] * rates[:, None] + phase
        q, dq = (size * np.sin(angle)).sum(1), (size * rates[:, None] * np.cos(angle)).sum(1)
        tau = truth.torque(q, dq, -(size * rates[:, None] ** 2 * np.sin(angle)).sum(1), 0.005)
        tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
        found = identify(robot, Log(robot.joint_names, t, q, dq=dq, tau=tau), check=False)
        parts_of = [np.array(found.estimate.details[f"{part}_error"]) for part in ("noise", "motion", "structure")]
        np.testing.assert_allclose(np.sqrt(sum(p**2 for p in parts_of)), found.estimate.standard_errors, rtol=1e-9)
        own = [p.name for p in found.base.parameters]
        theta = np.zeros(len(own))
        theta[: robot.inertial_count] = robot.inertial_parameters
        rigid = [not n.startswith("F") for n in found.base.names]
        away = np.abs(found.estimate.beta - found.base.values(theta)) / found.estimate.standard_errors
        outside += int(np.sum(away[rigid] > 1.96))
        deviations += away[rigid].tolist()
        count += int(np.sum(rigid))
    assert count >= 12
    assert outside <= 4
    assert np.sqrt(np.mean(np.square(deviations))) > 0.5  # nor are they so wide that they would hold anything


def test_leaving_blocks_out_of_least_squares() -> None:
    """With white noise the variances of the jackknife are those of the textbook, on average over parameters."""
    rng, rows, size = np.random.default_rng(3), 4000, 40
    a, std = rng.normal(size=(2, rows, size)), np.array([0.5, 2.0])
    x = rng.normal(size=size)
    y = [one @ x + s * rng.normal(size=rows) for one, s in zip(a, std, strict=True)]
    data = RegressionData.from_arrays(("j1", "j2"), range(size), list(a), y, size)
    expected = 1.0 / (rows * np.sum(std**-2.0))
    # 40 parameters with 19 degrees of freedom each: the mean is known to √(2/760) = 5 %; three times that.
    names = tuple(f"p{k}" for k in range(size))
    assert np.mean(block_jackknife(data, Unknowns(names), std)) == pytest.approx(expected, rel=0.15)


def test_the_jackknife_of_short_logs_is_not_too_wide() -> None:
    """Three rows to an unknown: fits without a block scatter 1.5 times as much as noise alone makes the whole one."""
    rng, rows, size, draws = np.random.default_rng(4), 120, 40, 40
    a, names = rng.normal(size=(rows, size)), tuple(f"p{k}" for k in range(40))
    found = [
        block_jackknife(RegressionData.from_arrays(("j",), range(size), [a], [y], size), Unknowns(names), [1.0])
        for y in rng.normal(size=(draws, rows))
    ]
    ratio = np.mean(found) / np.mean(np.diag(np.linalg.inv(a.T @ a)))
    # The mean over 40 draws and as many correlated parameters is known to some 5 %; three times that.
    assert ratio == pytest.approx(1.0, rel=0.15)


def test_stated_terms_have_the_error_of_motions() -> None:
    """Dry friction that jumps, fitted with a rounded one: error bars knew of noise alone."""
    robot = builtin("szabo3r")
    sharp, smooth = (terms(robot, Viscous(), Coulomb(smooth=s)) for s in (0.0, 0.2))
    truth = Model(robot, sharp, np.concatenate([robot.inertial_parameters, np.full(3, 0.5), np.full(3, 5.0)]))
    rng, t = np.random.default_rng(0), np.arange(4000) / 200.0
    rates, size, phase = 2.0 * np.pi * np.array([0.13, 0.29, 0.47])[:, None], *rng.uniform(0.2, 0.5, (2, 3, 3))
    angle = t[:, None, None] * rates + 9.0 * phase
    q, dq, ddq = ((size * x).sum(1) for x in (np.sin(angle), rates * np.cos(angle), -(rates**2) * np.sin(angle)))
    log = Log(robot.joint_names, t, q, dq=dq, tau=truth.torque(q, dq, ddq))
    found = identify(robot, log, terms=smooth.terms, check=False)
    noise, motion = (np.array(found.free.details[f"{part}_error"]) for part in ("noise", "motion"))
    np.testing.assert_allclose(np.hypot(noise, motion), found.free.standard_errors, rtol=1e-9)
    assert np.any(motion > 0.0)
