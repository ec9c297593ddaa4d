"""Posterior and evidence of a linear regression, from sums of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.estimation import log_evidence, posterior

RNG = np.random.default_rng(1)


def test_evidence_and_posterior_equal_the_gaussian_formulas() -> None:
    A, mean = RNG.normal(size=(7, 3)), RNG.normal(size=3)
    root = RNG.normal(size=(3, 3))
    P, y = root @ root.T, RNG.normal(size=7)
    S = np.eye(7) + A @ P @ A.T
    expected = -0.5 * (y - A @ mean) @ np.linalg.solve(S, y - A @ mean) - 0.5 * np.linalg.slogdet(S)[1] + 0.5 * y @ y
    assert log_evidence(mean, P, A.T @ A, A.T @ y) == pytest.approx(expected, rel=1e-9)
    x, after = posterior(mean, P, A.T @ A, A.T @ y)
    gain = P @ A.T @ np.linalg.inv(S)
    np.testing.assert_allclose(x, mean + gain @ (y - A @ mean), rtol=1e-9)
    np.testing.assert_allclose(after, P - gain @ A @ P, atol=1e-9)
