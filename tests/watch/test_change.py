"""Changes in series: found where they are, dated, and not invented more often than is stated."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.watch.change import real_changes, step_evidence
from steelyard.watch.evidence import learnt, log_evidence

RNG = np.random.default_rng(5)


def test_a_step_is_found_where_it_is() -> None:
    z = RNG.normal(size=(60, 2))
    z[40:, 1] += 2.0
    found = step_evidence(z, np.ones_like(z), np.zeros(2), np.full(2, 3.0), 1e6)
    assert found.evidence[1] > 10.0 > 3.0 > found.evidence[0]
    assert abs(int(found.start[1]) - 40) <= 2
    assert found.size[1] == pytest.approx(2.0, abs=4.0 * found.error[1])


def test_what_wears_is_a_ramp_with_its_beginning() -> None:
    z = RNG.normal(size=(60, 1))
    z[30:, 0] += 0.3 * np.arange(30)
    found = step_evidence(z, np.ones_like(z), np.zeros(1), np.full(1, 3.0), 1e6, ramps=True)
    assert found.ramp[0]
    assert abs(int(found.start[0]) - 30) <= 4
    assert found.size[0] == pytest.approx(9.0, abs=4.0 * found.error[0])


@pytest.mark.parametrize("degrees", [4, 1e6])
def test_e_values_have_a_mean_of_at_most_one_without_change(degrees: float) -> None:
    """The variance, too, is only known from so many values."""
    count = 40_000
    sigma2 = 1.0 if degrees > 1e5 else RNG.chisquare(degrees, count) / degrees
    z = RNG.normal(size=(1, count))
    e = np.exp(step_evidence(z, np.ones_like(z) * sigma2, np.zeros(count), np.full(count, 3.0), degrees).evidence)
    # Heavy tails: by Ville's and Markov's inequality the counts beyond c, not the mean, are what can be tested.
    for c in (5.0, 20.0):
        assert np.mean(e > c) < 1.0 / c


def test_of_many_changes_few_are_false() -> None:
    e = np.log(RNG.uniform(size=2000)) * -1.0  # logs of e-values that exceed c once in c cases
    e[:50] += 12.0
    real = real_changes(e, 0.1)
    assert real[:50].mean() > 0.9
    assert real[50:].sum() <= 10  # a tenth of what is told, at most, on the average


def test_evidence_is_the_gaussian_density_of_the_rows() -> None:
    A, mean = RNG.normal(size=(7, 3)), RNG.normal(size=3)
    root = RNG.normal(size=(3, 3))
    P, y = root @ root.T, RNG.normal(size=7)
    S = np.eye(7) + A @ P @ A.T
    expected = -0.5 * (y - A @ mean) @ np.linalg.solve(S, y - A @ mean) - 0.5 * np.linalg.slogdet(S)[1] + 0.5 * y @ y
    assert log_evidence(mean, P, A.T @ A, A.T @ y) == pytest.approx(expected, rel=1e-9)
    x, after = learnt(mean, P, A.T @ A, A.T @ y)
    gain = P @ A.T @ np.linalg.inv(S)
    np.testing.assert_allclose(x, mean + gain @ (y - A @ mean), rtol=1e-9)
    np.testing.assert_allclose(after, P - gain @ A @ P, atol=1e-9)
