"""Means, discoveries and templates, against their definitions."""

from __future__ import annotations

import numpy as np

from steelyard.trends import change_template, significant_changes, weighted_mean

RNG = np.random.default_rng(6)


def test_weighted_mean_ignores_missing_values() -> None:
    z, v = RNG.normal(size=(9, 3)), RNG.uniform(0.5, 2.0, (9, 3))
    v[4:, 1], v[:, 2] = np.inf, np.inf
    mean, variance = weighted_mean(z, v)
    np.testing.assert_allclose(mean[:2], [np.average(z[:n, k], weights=1.0 / v[:n, k]) for k, n in enumerate((9, 4))])
    np.testing.assert_allclose(variance[:2], [1.0 / np.sum(1.0 / v[:n, k]) for k, n in enumerate((9, 4))])
    assert (mean[2], variance[2]) == (0.0, np.inf)


def test_significant_changes_are_the_largest_set_with_enough_evidence() -> None:
    """e-BH by its definition: the largest k for which k e-values reach count / (rate k)."""
    for _ in range(50):
        evidence = RNG.normal(0.0, 4.0, 12)
        counts = [k for k in range(1, 13) if np.sum(evidence >= np.log(12 / (0.1 * k))) >= k]
        expected = evidence >= np.log(12 / (0.1 * max(counts))) if counts else np.zeros(12, dtype=bool)
        assert significant_changes(evidence, 0.1).tolist() == expected.tolist()


def test_templates_are_zero_before_a_change_and_one_at_the_end() -> None:
    t = np.array([0.0, 1.0, 3.0, 4.0, 8.0])
    assert change_template(t, t[[2]], False)[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert change_template(t, t[[2]], True)[:, 0].tolist() == [0.0, 0.0, 0.0, 0.2, 1.0]
