"""Old names of arguments and attributes still work."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from steelyard.errors import SteelyardError
from steelyard.ground.renamed import renamed


@renamed(cutoff="cutoff_hz")
@dataclass(frozen=True)
class Filter:
    cutoff_hz: float
    order: int = 4


@renamed(cutoff="cutoff_hz")
def smooth(cutoff_hz: float, order: int = 4) -> tuple[float, int]:
    return cutoff_hz, order


def test_old_names_of_arguments_and_attributes_work():
    assert Filter(cutoff=5.0) == Filter(5.0) == Filter(cutoff_hz=5.0)
    assert Filter(5.0).cutoff == 5.0
    assert replace(Filter(5.0), cutoff_hz=6.0).cutoff == 6.0
    assert smooth(cutoff=5.0, order=2) == smooth(5.0, 2)


@pytest.mark.parametrize("thing", [Filter, smooth])
def test_both_names_at_once_are_refused(thing):
    with pytest.raises(SteelyardError, match="'cutoff' is the old name of 'cutoff_hz'"):
        thing(cutoff=5.0, cutoff_hz=5.0)
