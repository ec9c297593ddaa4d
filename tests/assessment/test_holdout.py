"""Hold-outs are parts of the time; together they are the log, and nothing belongs to both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.assessment.holdout import split_blocks, split_last
from steelyard.errors import SteelyardError
from steelyard.robot.library import builtin
from steelyard.signals import source
from steelyard.signals.log import Log
from steelyard.signals.read import read_log
from steelyard.signals.source import LogFile, pieces_of


def a_log(samples: int = 1000, segments: tuple[tuple[int, int], ...] = ()) -> Log:
    t = 0.01 * np.arange(samples)
    q = np.arange(samples, dtype=float)[:, None]
    return Log(("a",), t, q, tau=q, segments=segments)


def test_the_last_part_is_kept_back() -> None:
    used, judged = split_last(a_log(), 0.3)
    assert used.t[-1] < judged.t[0]
    assert len(used) == pytest.approx(700, abs=2)
    assert len(used) + len(judged) == 1000


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 1.5), st.integers(2, 5), st.booleans())
def test_blocks_share_no_sample_and_lose_none(seconds: float, every: int, gap: bool) -> None:
    log = a_log(segments=((0, 444), (444, 1000)) if gap else ())
    used, judged = split_blocks(log, seconds, every)
    both = np.concatenate([used.q[:, 0], judged.q[:, 0]])
    assert len(set(both)) == len(both)
    assert len(both) >= 1000 - 2 * (1000 // max(1, int(100 * seconds)) + 2)  # pieces of one sample are dropped
    for part in (used, judged):
        for a, b in part.segments:
            assert np.all(np.diff(part.q[a:b, 0]) == 1.0)  # pieces are gap-free
            assert not (part.q[a, 0] < 444 <= part.q[b - 1, 0] and gap)


def test_blocks_of_a_file_are_those_of_the_log_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece's end cuts a block in two and moves none of its samples to the other side."""
    robot = builtin("rotradi")
    q = np.arange(3000, dtype=float).reshape(-1, 3)
    Log(robot.joint_names, 5.0 + 0.01 * np.arange(1000), q, tau=q).save(tmp_path / "run.csv")
    monkeypatch.setattr(source, "PIECE_ROWS", 130)
    whole = split_blocks(read_log(tmp_path / "run.csv", robot), 0.5, 3)
    parts = split_blocks(LogFile(tmp_path / "run.csv", robot), 0.5, 3)
    for one, file in zip(whole, parts, strict=True):
        pieces = list(pieces_of(file))
        assert len(pieces) > 5
        np.testing.assert_array_equal(np.concatenate([piece.q for piece in pieces]), one.q)
        assert all(np.all(np.diff(p.q[a:b, 0]) == 3.0) for p in pieces for a, b in p.segments)  # pieces are gap-free
    with pytest.raises(SteelyardError, match="too short"):
        list(pieces_of(split_blocks(LogFile(tmp_path / "run.csv", robot), 100.0, 3)[1]))


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(SteelyardError, match="between 0 and 1"):
        split_last(a_log(), share)


def test_impossible_blocks_are_refused() -> None:
    with pytest.raises(SteelyardError, match="seconds:every"):
        split_blocks(a_log(), 0.5, 1)
    with pytest.raises(SteelyardError, match="one part is empty"):
        split_blocks(a_log(), 100.0, 3)
