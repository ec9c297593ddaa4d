"""Restricted total least squares: between total and weighted least squares, and exact where both are biased."""

from __future__ import annotations

import numpy as np
import pytest
from estimation_cases import case

from steelyard.errors import UnknownNameError
from steelyard.estimation import EstimationError, RestrictedTotalLeastSquares, make_estimator
from steelyard.estimation.linear.total_least_squares import _solve


def noisy_data():
    c = case("rotradi")
    return c.data(c.noise(np.random.default_rng(3)))


def test_without_exact_columns_it_is_total_least_squares() -> None:
    base = case("rotradi").base
    ours = RestrictedTotalLeastSquares(exact=()).fit(noisy_data(), base)
    theirs = make_estimator("tls").fit(noisy_data(), base)
    # The same singular vector, from a triangle after another rotation.
    assert np.allclose(ours.beta, theirs.beta, rtol=1e-9, atol=1e-12)
    assert np.allclose(ours.covariance, theirs.covariance, rtol=1e-7)


def test_with_errors_in_no_column_it_is_weighted_least_squares() -> None:
    base = case("rotradi").base
    ours = RestrictedTotalLeastSquares(column_error=1e-7).fit(noisy_data(), base)
    wls = make_estimator("wls").fit(noisy_data(), base)
    assert np.all(np.abs(ours.beta - wls.beta) < 1e-6 * wls.standard_errors)


def test_the_columns_of_coulomb_friction_are_exact() -> None:
    base = case("rotradi").base
    estimate = RestrictedTotalLeastSquares().fit(noisy_data(), base)
    assert {name.rstrip("0123456789") for name in estimate.details["exact"]} == {"Fc"}


def test_a_line_with_intercept_is_unbiased() -> None:
    """Errors in variables with an intercept (Fuller 1987, 1.3): orthogonal regression with an exact column of ones.

    y = a + b x with noise of equal size in x and y. Least squares biases b by var x/(var x + σ²); total least squares
    also changes the column of ones. Textbooks have the closed form of orthogonal regression.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(2.0, 6.0, 4000)
    observed, y = x + rng.normal(size=x.size), 3.0 + 2.0 * x + rng.normal(size=x.size)
    beta, _ = _solve(np.linalg.qr(np.column_stack([np.ones_like(x), observed, y]), mode="r"), np.array([True, False]))
    sxx, syy = np.var(observed), np.var(y)
    sxy = np.mean((observed - observed.mean()) * (y - y.mean()))
    slope = (syy - sxx + np.sqrt((syy - sxx) ** 2 + 4.0 * sxy**2)) / (2.0 * sxy)
    assert beta[1] == pytest.approx(slope, rel=1e-9)
    assert beta[0] == pytest.approx(y.mean() - slope * observed.mean(), rel=1e-9)
    # 4000 samples: a few percent; the error of least squares is 1/(1 + 12/16) = 43 %.
    assert beta[1] == pytest.approx(2.0, rel=0.1)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'offset'"):
        RestrictedTotalLeastSquares(exact=("ofset",))
    with pytest.raises(EstimationError, match="positive"):
        RestrictedTotalLeastSquares(column_error=0.0)
