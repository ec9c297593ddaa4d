"""The pyramid of a log, against NumPy on its samples."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import SteelyardError
from steelyard.ground.progress import CancelledError, ProgressReport, report_progress_to
from steelyard.robot.library import builtin
from steelyard.signals import source as sources
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile
from steelyard.studio.pyramid import Pyramid, Stretch, build_pyramid

ROBOT = builtin("prrrp")


def log_of(samples: int, seed: int = 0, step: float = 0.001) -> Log:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.5, 1.5, samples)) * step
    shape = samples, ROBOT.dof
    return Log(ROBOT.joint_names, t, rng.normal(size=shape), rng.normal(size=shape), None, rng.normal(size=shape))


def values_of(log: Log) -> np.ndarray:
    """Return the plotted values as saved; rounding to float32 is monotonic."""
    return np.concatenate([log.q, log.dq, log.tau], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pyramids")


@settings(max_examples=60, deadline=None)
@given(
    samples=st.integers(1, 3000), piece=st.integers(2, 700), a=st.floats(-0.2, 1.2), b=st.floats(-0.2, 1.2),
    pixels=st.integers(1, 400), seed=st.integers(0, 5),
)  # fmt: skip
def test_every_window_agrees_with_numpy(
    folder: Path, samples: int, piece: int, a: float, b: float, pixels: int, seed: int
) -> None:
    log = log_of(samples, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PIECE_ROWS", piece)
        made = build_pyramid(log, ROBOT, folder / "one")
    assert made.samples == samples
    span = log.t[-1] - log.t[0]
    t0, t1 = sorted([log.t[0] + a * span, log.t[0] + b * span])
    found, x = made.window(t0, t1, pixels), values_of(log)
    size = found.samples
    first = int(np.searchsorted(log.t, found.times[0, 0]))
    assert first % size == 0, "buckets start at multiples of their size, so that they do not flicker on pan"
    for k, (begin, end) in enumerate(found.times):
        rows = slice(first + k * size, min(first + (k + 1) * size, samples))
        assert (begin, end) == (log.t[rows][0], log.t[rows][-1])
        np.testing.assert_array_equal(found.low[k], x[rows].min(axis=0))
        np.testing.assert_array_equal(found.high[k], x[rows].max(axis=0))
    inside = (log.t >= t0) & (log.t <= t1)
    covered = np.zeros(samples, dtype=bool)
    covered[first : first + len(found.times) * size] = True
    assert np.all(covered[inside]), "a sample of the window is missing"
    wanted = int(inside.sum())
    assert len(found.times) <= 2 * pixels + 4
    assert len(found.times) >= min(wanted, pixels) or size == 1


def test_columns_have_joint_unit_and_range(folder: Path) -> None:
    log = log_of(5000)
    made = build_pyramid(log, ROBOT, folder / "columns")
    x = values_of(log)
    assert [(c.signal, c.joint) for c in made.columns] == [
        (s, j) for s, j in itertools.product(("q", "dq", "tau"), ROBOT.joint_names)
    ]
    slides = [j.kind == "prismatic" for j in ROBOT.joints]
    assert [c.unit for c in made.columns[: ROBOT.dof]] == ["m" if s else "rad" for s in slides]
    assert [c.unit for c in made.columns[2 * ROBOT.dof :]] == ["N" if s else "N m" for s in slides]
    np.testing.assert_array_equal([c.low for c in made.columns], x.min(axis=0))
    np.testing.assert_array_equal([c.high for c in made.columns], x.max(axis=0))
    some = made.window(log.t[0], log.t[-1], 50, columns=[4, 1])
    every = made.window(log.t[0], log.t[-1], 50)
    np.testing.assert_array_equal(some.low, every.low[:, [4, 1]])
    assert Pyramid.open(folder / "columns") == made


def test_the_nearest_sample_is_exact(folder: Path) -> None:
    log = log_of(999)
    made = build_pyramid(log, ROBOT, folder / "nearest")
    for t in [-1.0, *np.linspace(log.t[0], log.t[-1], 37), 99.0]:
        when, values = made.at(t)
        row = int(np.argmin(np.abs(log.t - t)))
        assert when == log.t[row]
        np.testing.assert_array_equal(values, values_of(log)[row])


def test_gaps_are_detected_and_time_is_monotonic(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(400)
    t = np.where(np.arange(400) < 150, log.t, log.t + 2.0)
    broken = Log(log.joints, t, log.q, segments=((0, 150), (150, 400)))
    made = build_pyramid(broken, ROBOT, folder / "gap")
    assert made.gap == t[150] - t[149]
    assert {c.signal for c in made.columns} == {"q"}
    # A clock that was set back in one piece restarts in the next, because each piece is corrected separately.
    again = [log, Log(log.joints, log.t, log.q, log.dq, None, log.tau)]
    monkeypatch.setattr("steelyard.studio.pyramid.pieces_of", lambda source: iter(again))
    twice = build_pyramid(log, ROBOT, folder / "reset")
    every = twice.window(twice.start, twice.end, 4000)
    assert every.samples == 1
    assert twice.samples == len(every.times) == 800
    assert np.all(np.diff(every.times[:, 0]) > 0.0)


def test_the_binary_format_for_browsers(folder: Path) -> None:
    log = log_of(3000)
    made = build_pyramid(log, ROBOT, folder / "bytes")
    for pixels in (100, 4000):
        part = made.window(1.0, 2.0, pixels, [0, 5])
        data = part.to_bytes()
        length = int.from_bytes(data[:4], "little")
        head = json.loads(data[4 : 4 + length])
        numbers = np.frombuffer(data, "<f4", offset=4 + length)
        n = head["count"]
        assert (4 + length) % 4 == 0
        assert head["samples"] == part.samples
        np.testing.assert_allclose(head["origin"] + numbers[:n], part.times[:, 0], atol=1e-6)  # float32 of a second
        lines = numbers[2 * n :].reshape(2, -1, n)
        assert lines.shape[1] == (1 if part.samples == 1 else 2)
        np.testing.assert_array_equal(lines[:, 0], part.low.T)
        np.testing.assert_array_equal(lines[:, -1], part.high.T)


def test_a_cancelled_build_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 1000)

    def cancel(far: ProgressReport) -> None:
        if far.fraction > 0.3:
            raise CancelledError

    with pytest.raises(CancelledError), report_progress_to(cancel):
        build_pyramid(log_of(10_000), ROBOT, tmp_path / "x")
    assert not list(tmp_path.iterdir())
    (tmp_path / "x").write_bytes(b"no pyramid")
    with pytest.raises(SteelyardError, match="is not a plot file"):
        Pyramid.open(tmp_path / "x")
    with pytest.raises(SteelyardError, match="a start, a later end"):
        build_pyramid(log_of(100), ROBOT, tmp_path / "x").window(2.0, 1.0, 10)


def test_a_long_file_is_read_in_pieces(tmp_path: Path) -> None:
    """The build holds a few pieces of 150,000 rows in memory; the pyramid has every row."""
    rows = 1_200_000
    rng = np.random.default_rng(1)
    columns = {f"{s}{k + 1}": rng.normal(size=rows) for s in ("q", "dq", "tau") for k in range(ROBOT.dof)}
    np.savez(tmp_path / "long.npz", t=np.arange(rows) * 1e-3, **columns)
    whole = sum(x.nbytes for x in columns.values())
    del columns
    tracemalloc.start()
    reports: list[ProgressReport] = []
    with report_progress_to(reports.append):
        made = build_pyramid(LogFile(tmp_path / "long.npz", ROBOT), ROBOT, tmp_path / "pyramid")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.samples > 0.999 * rows
    assert peak < 0.8 * whole, f"{peak / 1e6:.0f} MB of {whole / 1e6:.0f} MB"
    assert reports[-1].fraction == 1.0
    assert len(reports) >= 8
    assert isinstance(made.window(made.start, made.end, 1000), Stretch)
