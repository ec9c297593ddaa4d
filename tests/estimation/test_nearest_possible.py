"""The nearest possible robot, which for weighted least squares is the physically consistent fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimation_cases import case, motion

from steelyard.estimation import EstimationError, Prior, make_estimator, make_physical
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.identification.identify import identify
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.signals.log import Log


def test_a_possible_estimate_hardly_changes() -> None:
    c = case("rotradi")
    free = make_estimator("wls").fit(c.data(c.noise(np.random.default_rng(1))), c.base, Prior(c.theta))
    estimate = nearest_possible(free, Prior(c.theta))
    assert estimate.physical
    assert smallest_pseudo_eigenvalues(estimate.theta[:30]).min() > 0.0
    assert np.allclose(c.base.matrix @ estimate.theta, estimate.beta)
    # The divergence changes identifiable parameters by a part of a standard error.
    assert np.max(np.abs(estimate.beta - free.beta) / free.standard_errors) < 0.5


def test_it_agrees_with_the_constrained_fit_of_the_rows() -> None:
    c = case("rotradi")
    data = c.data(5.0 * c.noise(np.random.default_rng(2)))
    free = make_estimator("wls").fit(data, c.base, Prior(c.theta))
    ours, rows = nearest_possible(free, Prior(c.theta)), make_physical("wls").fit(data, c.base, Prior(c.theta))
    # The weights differ: the covariance with its spectra here, the triangle and one mean loss there.
    assert np.max(np.abs(ours.beta - rows.beta) / free.standard_errors) < 0.5


def test_an_estimate_without_error_bars_is_refused() -> None:
    c = case("rotradi")
    free = make_estimator("wls").fit(c.data(c.noise(np.random.default_rng(1))), c.base)
    with pytest.raises(EstimationError, match="no error bars"):
        nearest_possible(replace(free, covariance=0.0 * free.covariance))


def test_identify_takes_recursive_and_restricted_fits_physically() -> None:
    """Without forgetting the recursive fit is ordinary least squares, and so is its possible form."""
    c = case("rotradi")
    t = 0.01 * np.arange(len(c.clean))
    q, dq, _ = motion(c.robot, 10.0, 0)
    log = Log(c.robot.joint_names, t, q, dq=dq, tau=c.clean + c.noise(np.random.default_rng(1)))
    estimate = {name: identify(c.robot, log, terms=c.terms, estimator=name) for name in ("rls", "ols", "rtls")}
    assert all(result.possible for result in estimate.values())
    assert np.array_equal(estimate["rls"].estimate.beta, estimate["ols"].estimate.beta)
