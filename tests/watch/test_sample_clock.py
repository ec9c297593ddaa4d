"""The sample clock orders, counts and cuts samples, independent of the batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.ground.arrays import Array
from steelyard.robot.library import builtin
from steelyard.watch.clock import LATE_S, SampleClock, plausible_bounds
from steelyard.watch.diagnostics import Diagnostics

JOINTS = 2
BOUNDS = np.array([1e12, 1e5, 1e5, 1e4, 1e4, 1e7, 1e7])


def rows_at(t: Array) -> Array:
    """Samples with signals that depend on their time and index."""
    t = np.asarray(t, dtype=float)
    return np.column_stack([t, *(np.sin(t + k) + 1e-3 * np.arange(len(t)) for k in range(3 * JOINTS))])


def run(rows: Array, cuts: list[int], hold: int = 0) -> tuple[Array, list[int], dict[str, int]]:
    """Add rows in pieces; return all samples, the indices of breaks, and the counts."""
    clock, batches = SampleClock(BOUNDS, hold), []
    for piece in np.split(rows, sorted(cuts)):
        batches += clock.add(piece)
    batches += clock.finish()
    out = [np.column_stack([b.t, b.q, b.dq, b.tau]) for b in batches]
    starts = np.cumsum([0, *(len(b) for b in batches)])
    breaks = [int(k) for k, b in zip(starts, batches, strict=False) if b.fresh]
    return np.vstack(out) if out else rows[:0], breaks, clock.diagnostics.counts


@st.composite
def streams(draw: st.DrawFn) -> Array:
    """Streams with jitter, gaps, duplicates, late stamps, jumps, NaN and impossible values."""
    kinds = draw(
        st.lists(st.sampled_from(["step"] * 12 + ["same", "late", "gap", "back", "far", "nan", "huge"]), max_size=120)
    )
    t, stamps, marks = draw(st.sampled_from([0.0, 1.7e9])), [], []
    for kind in kinds:
        jitter = draw(st.floats(0.9, 1.1))
        t += {"step": 0.002 * jitter, "gap": 0.7, "back": -500.0, "far": 1e6}.get(kind, 0.0)
        stamps.append(t - (0.003 if kind == "late" else 0.0))
        marks.append(kind)
    rows = rows_at(np.array(stamps))
    rows[[m == "nan" for m in marks], 1] = np.nan
    rows[[m == "huge" for m in marks], 4] = 1e9
    return rows


@settings(max_examples=150, deadline=None)
@given(rows=streams(), hold=st.sampled_from([0, 0, 3]), data=st.data())
def test_result_does_not_depend_on_batches(rows: Array, hold: int, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=20))
    whole, breaks, counts = run(rows, [], hold)
    split, breaks_split, counts_split = run(rows, cuts, hold)
    single, breaks_single, counts_single = run(rows, list(range(1, len(rows))), hold)
    assert np.array_equal(whole, split)
    assert np.array_equal(whole, single)
    assert breaks == breaks_split == breaks_single
    assert counts == counts_split == counts_single


@settings(max_examples=100, deadline=None)
@given(rows=streams(), cut=st.integers(0, 120), hold=st.sampled_from([0, 2]))
def test_clock_continues_from_its_state(rows: Array, cut: int, hold: int) -> None:
    first, second = SampleClock(BOUNDS, hold), SampleClock(BOUNDS, hold)
    batches = first.add(rows[:cut])
    second.restore(first.state())
    ends = [[*clock.add(rows[cut:]), *clock.finish()] for clock in (first, second)]
    assert len(batches) >= 0
    for a, b in zip(*ends, strict=True):
        assert a.fresh == b.fresh
        assert np.array_equal(a.t, b.t)


@settings(max_examples=100, deadline=None)
@given(rows=streams())
def test_every_sample_is_accepted_or_counted(rows: Array) -> None:
    accepted, breaks, counts = run(rows, [])
    lost = sum(counts.get(kind, 0) for kind in ("not finite", "impossible", "duplicate", "late"))
    assert len(accepted) == counts.get("samples", 0)
    assert len(accepted) + lost == len(rows)
    for piece in np.split(accepted[:, 0], breaks):
        assert np.all(np.diff(piece) > 0.0)
    assert np.all(np.isfinite(accepted))


def test_regular_stream_is_one_batch() -> None:
    rows = rows_at(0.002 * np.arange(5000) + 1.7e9)
    accepted, breaks, counts = run(rows, [7, 1200])
    assert np.array_equal(accepted, rows)
    assert breaks == [0]
    assert counts == {"samples": 5000}


@pytest.mark.parametrize("rate", [10.0, 500.0, 8000.0])
def test_gaps_depend_on_the_period(rate: float) -> None:
    """Two lost packets are not a gap at any rate; a second without samples is one after the period is known."""
    t = np.arange(2000) / rate
    t[1000:] += 2.0 / rate
    t[1500:] += 1.0 if rate > 10.0 else 3.0
    _, breaks, counts = run(rows_at(t), [])
    assert 1500 in breaks
    assert 1000 not in breaks
    first = sum(1 for k in breaks if 0 < k < 20)  # at 10 Hz the period is not known yet
    assert counts["gap"] == 1 + first
    assert first == 0 or rate < 100.0


def test_late_samples_are_sorted() -> None:
    t = 0.01 * np.arange(400)
    rows = rows_at(t)
    order = np.arange(400)
    order[[100, 101, 102]] = [101, 102, 100]  # two samples late
    assert run(rows[order], [], hold=0)[2]["late"] == 1
    sorted_rows, breaks, counts = run(rows[order], [50, 102, 103], hold=2)
    assert np.array_equal(sorted_rows, rows)
    assert breaks == [0]
    assert "late" not in counts


def test_clock_that_is_set_back() -> None:
    t = 0.01 * np.arange(1000)
    t[500:] -= 0.4  # samples count as late until the old time is reached again
    accepted, _, counts = run(rows_at(t), [])
    assert len(accepted) >= 1000 - 0.4 / 0.01 - 1
    t[500:] -= 100.0 + LATE_S
    accepted, breaks, counts = run(rows_at(t), [])
    assert len(accepted) == 1000
    assert counts["jump"] == 1
    assert breaks == [0, 500]


def test_one_message_per_kind_of_problem() -> None:
    now = [0.0]
    diagnostics = Diagnostics(lambda: now[0])
    clock = SampleClock(BOUNDS, diagnostics=diagnostics)
    rows = rows_at(0.01 * np.arange(100))
    rows[10:20, 2] = np.nan
    rows[30:40, 5] = 1e12
    rows[50:60, 0] = rows[49, 0]
    clock.add(rows)
    batches = diagnostics.fetch()
    assert (
        len(batches) == len({sentence.split()[0:4].__repr__() for sentence in batches}) == 4
    )  # including the gap that they leave
    assert all(sentence.endswith(".") for sentence in batches)
    assert diagnostics.counts["not finite"] == diagnostics.counts["impossible"] == diagnostics.counts["duplicate"] == 10
    clock.add(rows_at(np.full(5, 0.99)))
    assert diagnostics.fetch() == []
    now[0] = 100.0
    clock.add(rows_at(np.full(5, 0.99)))
    assert len(diagnostics.fetch()) == 1


def test_plausible_bounds_include_the_limits() -> None:
    robot = builtin("arm7")
    bounds = plausible_bounds(robot)
    assert bounds.shape == (1 + 3 * robot.dof,)
    limits = np.array([joint.effort for joint in robot.joints])
    torque = bounds[1 + 2 * robot.dof :]
    assert np.all(torque[np.isfinite(limits)] >= 2.0 * limits[np.isfinite(limits)])
    assert np.all(np.isfinite(bounds))
