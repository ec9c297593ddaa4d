"""Designed motions give better data than random ones on simulated robots."""

from __future__ import annotations

import pytest
from better_data import compare

from steelyard.excitation import SearchSettings

QUICK = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=20)


def test_errors_fall_as_predicted_on_one_robot():
    comparison = compare("szabo3r", range(2), QUICK)
    # With two seeds, a ratio of medians over 25 parameters is uncertain by about 40 %.
    assert comparison.stated_gain == pytest.approx(comparison.predicted_gain, rel=0.4)
    assert comparison.true_gain > 1.5
    assert comparison.holdout_gain > 1.2


@pytest.mark.proof
@pytest.mark.parametrize("name", ["szabo3r", "arm7", "ns16"])
def test_errors_fall_as_predicted_on_three_robots(name):
    comparison = compare(name, range(20))
    assert comparison.predicted_gain > 2.0
    # WᵀW neglects filters and friction at reversals: error bars and true errors follow it within about a quarter.
    assert comparison.stated_gain == pytest.approx(comparison.predicted_gain, rel=0.3)
    assert comparison.true_gain == pytest.approx(comparison.predicted_gain, rel=0.4)
    assert comparison.holdout_gain > 1.5
