"""Better data, not only a better number: designed motions beside random ones on simulated robots."""

from __future__ import annotations

import pytest
from better_data import compare

from steelyard.excitation import SearchSettings

QUICK = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=20)


def test_errors_fall_as_predicted_on_one_robot():
    found = compare("szabo3r", range(2), QUICK)
    # Two seeds tell a ratio of medians over 25 parameters to about 40 %.
    assert found.stated_gain == pytest.approx(found.predicted_gain, rel=0.4)
    assert found.true_gain > 1.5
    assert found.holdout_gain > 1.2


@pytest.mark.proof
@pytest.mark.parametrize("name", ["szabo3r", "arm7", "ns16"])
def test_errors_fall_as_predicted_on_three_robots(name):
    found = compare(name, range(20))
    assert found.predicted_gain > 2.0
    # Filters and friction at reversals are not in WᵀW: error bars and true errors follow it to a quarter or so.
    assert found.stated_gain == pytest.approx(found.predicted_gain, rel=0.3)
    assert found.true_gain == pytest.approx(found.predicted_gain, rel=0.4)
    assert found.holdout_gain > 1.5
