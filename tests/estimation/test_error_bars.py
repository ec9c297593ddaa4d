"""95 % intervals contain the truth in 95 % of cases, also for correlated noise."""

from __future__ import annotations

import numpy as np
import pytest
from estimation_cases import Case, case

from steelyard.estimation import (
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    Robust,
    WeightedLeastSquares,
    confidence_intervals,
    make_estimator,
)
from steelyard.estimation.linear.covariance import _nonnegative_solution
from steelyard.regression.data import Block, RegressionData


def coverage(c: Case, estimator, rho: float, runs: int, seed: int = 0) -> tuple[float, float, float]:
    """Share of base parameters within 1.96 standard errors, within the t interval, and within white error bars."""
    rng = np.random.default_rng(seed)
    bars, intervals, white = [], [], []
    for _ in range(runs):
        estimate = estimator.fit(c.data(c.noise(rng, rho)), c.base)
        error = np.abs(estimate.beta - c.beta)
        low, high = confidence_intervals(estimate).T
        bars.append(error < 1.96 * estimate.standard_errors)
        intervals.append((low < c.beta) & (c.beta < high))
        white.append(error < 1.96 * estimate.standard_errors / np.sqrt(estimate.details["inflation"]))
    return float(np.mean(bars)), float(np.mean(intervals)), float(np.mean(white))


# Errors of one run are correlated; 25 runs of 21 parameters leave a scatter of about 2 %.
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize(
    "estimator", [OrdinaryLeastSquares(), WeightedLeastSquares(), Robust()], ids=["ols", "wls", "huber"]
)
def test_coverage_in_short(estimator, rho: float) -> None:
    bars, intervals, white = coverage(case("rotradi"), estimator, rho, 25)
    assert 0.89 < bars < 0.99
    assert 0.89 < intervals < 0.99
    if rho > 0.0:
        assert white < 0.5  # coverage of error bars for independent residuals


def test_white_noise_is_recognised() -> None:
    estimate = WeightedLeastSquares().fit(
        case("rotradi").data(case("rotradi").noise(np.random.default_rng(0))), case("rotradi").base
    )
    assert 0.5 < np.median(estimate.details["inflation"]) < 2.0


def test_joints_of_different_noise_have_their_own_error_bars() -> None:
    """Only the last joint is noisy; parameters of the others stay accurate, also under equal weights."""
    c = case("rotradi")
    rng = np.random.default_rng(1)
    errors = []
    for estimator in (OrdinaryLeastSquares(), WeightedLeastSquares()):
        z = []
        for _ in range(20):
            noise = c.noise(rng) * np.array([0.01, 0.01, 10.0])
            estimate = estimator.fit(c.data(noise), c.base)
            z.append((estimate.beta - c.beta) / estimate.standard_errors)
        errors.append(estimate.standard_errors)
        assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.25
    assert np.all(errors[1] < 1.4 * errors[0])  # each accurate to some 15 %
    assert np.median(errors[1] / errors[0]) < 0.1


def test_a_band_without_power_takes_none_from_the_others() -> None:
    """A quiet band has less power than the fit transfers into it; plain least squares would reduce the loud band
    instead."""
    loud, quiet, transferred = 1.0, 1e-9, 1e-7
    T = np.array([[10.0, 0.0], [transferred, 700.0]])
    scale = np.array([loud, quiet])
    observed = np.array(
        [10.0 * loud, 0.1 * transferred * loud]
    )  # probability 25 % for a chi-square with one degree of freedom
    power = _nonnegative_solution(T * scale / scale[:, None], observed / scale) * scale
    assert power == pytest.approx([loud, 0.0])


def test_gaps_between_blocks_are_no_correlation() -> None:
    """Twice the data in separate blocks halve the variance."""
    c = case("rotradi")
    rng = np.random.default_rng(2)
    data = [c.data(c.noise(rng, 0.9)) for _ in range(4)]
    both = RegressionData(
        data[0].equations, data[0].parameters, lambda: [Block(b.equation, b.A, b.y) for d in data for b in d.blocks()],
        0.01,
    )  # fmt: skip
    one, four = (WeightedLeastSquares().fit(d, c.base).standard_errors for d in (data[0], both))
    assert np.median(one / four) == pytest.approx(2.0, rel=0.2)


# Robots and numbers of runs for a scatter of the pooled share below 1 %.
LONG = [("rotradi", 200), ("szabo3r", 200), ("irp6", 100), ("arm7", 60)]


@pytest.mark.proof
@pytest.mark.parametrize(("name", "runs"), LONG)
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("estimator", ["wls", "ols", "huber"])
def test_coverage(name: str, runs: int, rho: float, estimator: str) -> None:
    bars, intervals, white = coverage(case(name), make_estimator(estimator), rho, runs, seed=7)
    print(f"{name} ρ={rho} {estimator}: 1.96σ {bars:.3f}, t {intervals:.3f}, if taken for white {white:.3f}")
    assert 0.92 <= bars <= 0.98
    assert 0.92 <= intervals <= 0.98


@pytest.mark.proof
@pytest.mark.parametrize("name", ["rotradi", "szabo3r", "arm7"])
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_coverage_of_the_physical_fit(name: str, rho: float) -> None:
    """Error bars are those of the free fit; the constrained error is smaller, so they cover more."""
    bars, _, _ = coverage(case(name), PhysicallyConsistent(), rho, 60, seed=8)
    print(f"{name} ρ={rho} physical: 1.96σ {bars:.3f}")
    assert 0.92 <= bars <= 0.99
