"""Change detection: location of changes and false-alarm rate."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.trends import significant_changes, step_evidence

RNG = np.random.default_rng(5)


def test_step_is_located() -> None:
    z = RNG.normal(size=(60, 2))
    z[40:, 1] += 2.0
    found = step_evidence(z, np.ones_like(z), np.zeros(2), np.full(2, 3.0), 1e6)
    assert found.evidence[1] > 10.0 > 3.0 > found.evidence[0]
    assert abs(int(found.start[1]) - 40) <= 2
    assert found.size[1] == pytest.approx(2.0, abs=4.0 * found.error[1])


def test_ramp_is_located() -> None:
    z = RNG.normal(size=(60, 1))
    z[30:, 0] += 0.3 * np.arange(30)
    found = step_evidence(z, np.ones_like(z), np.zeros(1), np.full(1, 3.0), 1e6, ramps=True)
    assert found.ramp[0]
    assert abs(int(found.start[0]) - 30) <= 4
    assert found.size[0] == pytest.approx(9.0, abs=4.0 * found.error[0])


@pytest.mark.parametrize("degrees", [4, 1e6])
def test_false_alarm_rate_of_e_values(degrees: float) -> None:
    """Also when the variance is estimated from few values."""
    count = 40_000
    sigma2 = 1.0 if degrees > 1e5 else RNG.chisquare(degrees, count) / degrees
    z = RNG.normal(size=(1, count))
    e = np.exp(step_evidence(z, np.ones_like(z) * sigma2, np.zeros(count), np.full(count, 3.0), degrees).evidence)
    # Tails are heavy, so test the share beyond c (inequality of Markov) and not the mean.
    for c in (5.0, 20.0):
        assert np.mean(e > c) < 1.0 / c


def test_share_of_false_discoveries_is_limited() -> None:
    e = np.log(RNG.uniform(size=2000)) * -1.0  # logs of e-values that exceed c with probability 1/c
    e[:50] += 12.0
    real = significant_changes(e, 0.1)
    assert real[:50].mean() > 0.9
    assert real[50:].sum() <= 10  # on average at most a tenth of the discoveries
