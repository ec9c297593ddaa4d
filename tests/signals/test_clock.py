"""A clock is repaired where possible, else split into segments, and gaps are never bridged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.errors import LogError
from steelyard.signals._clock import repair_clock


def _kinds(clock):
    return {finding.kind: finding.count for finding in clock.findings}


@given(
    samples=st.integers(20, 300), seed=st.integers(0, 10**6), jitter=st.floats(0.0, 0.15), start=st.floats(-1e3, 1e3)
)
@settings(max_examples=60, deadline=None)
def test_any_shuffle_of_a_clean_log_is_the_same_log(samples, seed, jitter, start):
    rng = np.random.default_rng(seed)
    t = start + 0.01 * (np.arange(samples) + jitter * rng.uniform(-1, 1, samples))
    rows = rng.permutation(samples)
    clock = repair_clock(t[rows])
    np.testing.assert_array_equal(clock.t, t)
    np.testing.assert_array_equal(rows[clock.order], np.arange(samples))
    assert clock.segments == ((0, samples),)


@given(data=st.data(), samples=st.integers(40, 200))
@settings(max_examples=60, deadline=None)
def test_late_rows_are_sorted(data, samples):
    """Swapped neighbours and moved blocks are put in order."""
    t = 0.002 * np.arange(samples)
    rows = np.arange(samples)
    for k in data.draw(st.lists(st.integers(0, samples - 2), max_size=8)):
        rows[[k, k + 1]] = rows[[k + 1, k]]
    rows = np.roll(rows, data.draw(st.integers(0, samples - 1)))
    clock = repair_clock(t[rows])
    np.testing.assert_array_equal(clock.t, t)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=2, max_size=6).filter(lambda x: max(x) >= 20),
    breaks=st.lists(st.floats(0.3, 50.0), min_size=5, max_size=5),
    doubled=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_gaps_are_never_bridged(lengths, breaks, doubled):
    """No segment of a 100 Hz clock with pauses includes a pause."""
    starts = np.cumsum([0.0, *(0.01 * n + pause for n, pause in zip(lengths, breaks, strict=False))])
    t = np.concatenate([s + 0.01 * np.arange(n) for s, n in zip(starts, lengths, strict=False)])
    if doubled:
        t = np.repeat(t, 2)
    clock = repair_clock(t)
    for start, stop in clock.segments:
        assert stop - start >= 10
        assert np.diff(clock.t[start:stop]).max() < 0.011
    assert np.all(np.diff(clock.t) > 0.0)
    assert len(clock.t) == sum(n for n in lengths if n >= 10)
    assert len(clock.order) + len(clock.dropped) == len(t)


@given(first=st.integers(20, 200), second=st.integers(20, 200), offset=st.floats(0.0, 0.99), back=st.floats(0.3, 1.0))
@example(first=181, second=60, offset=0.375, back=0.65476)  # half of the sorted steps are half a period
@settings(max_examples=60, deadline=None)
def test_a_clock_reset_begins_a_new_segment(first, second, offset, back):
    """This holds for any size of the reset and any position of the new samples between the old ones."""
    one = 0.01 * np.arange(first)
    two = 0.01 * (np.arange(second) + offset) + (1.0 - back) * one[-1]
    clock = repair_clock(np.concatenate([one, two]))
    assert clock.segments == ((0, first), (first, first + second))
    np.testing.assert_array_equal(clock.order, np.arange(first + second))
    np.testing.assert_allclose(np.diff(clock.t[first:]), np.diff(two), atol=1e-9)
    assert clock.t[first] - clock.t[first - 1] > 0.05
    assert _kinds(clock)["reset"] == 1


def test_duplicates_are_dropped():
    t = 0.001 * np.arange(100)
    clock = repair_clock(np.insert(t, 50, t[49]), numbers=11)
    np.testing.assert_array_equal(clock.t, t)
    assert clock.dropped.tolist() == [50]
    assert _kinds(clock) == {"duplicate": 1}
    assert clock.findings[0].row == 61


def test_a_single_wrong_stamp_is_omitted():
    t = 0.001 * np.arange(100)
    t[40] = 3000.0
    clock = repair_clock(t)
    assert len(clock.t) == 99
    assert clock.segments == ((0, 99),)
    assert _kinds(clock)["isolated"] == 1


def test_a_lost_packet_is_not_a_gap_but_a_tenth_of_a_second_is():
    t = np.delete(0.01 * np.arange(200), [50, 51, 90])
    assert repair_clock(t).segments == ((0, 197),)
    assert len(repair_clock(np.delete(0.01 * np.arange(200), np.arange(100, 110))).segments) == 2
    assert len(repair_clock(t, gap=0.015).segments) == 3


def test_bursts_are_not_gaps():
    """Stamps on arrival, in bursts of five, are not gaps."""
    t = (0.005 * np.arange(100)[:, None] + 1e-4 * np.arange(5)).ravel()
    clock = repair_clock(t)
    assert clock.segments == ((0, 500),)
    assert "jitter" in _kinds(clock)


def test_jitter_is_reported():
    rng = np.random.default_rng(0)
    steps = rng.choice([0.010, 0.012], size=1000, p=[0.7, 0.3])
    clock = repair_clock(np.cumsum(steps))
    assert clock.period == pytest.approx(0.010)
    assert clock.jitter.mean == pytest.approx(0.0106, abs=1e-4)
    assert clock.jitter.longest == pytest.approx(0.012)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (np.arange(3.0), "only 3 samples"),
        (np.ones(100), "never changes"),
        (np.where(np.arange(100) == 7, np.nan, np.arange(100)), "row 8"),
        (np.cumsum(np.where(np.arange(60) % 5 == 0, 100.0, 0.001)), "breaks after fewer than 10 samples"),
    ],
)
def test_hopeless_clocks(t, message):
    with pytest.raises(LogError, match=message):
        repair_clock(t)
