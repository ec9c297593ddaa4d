"""Logs come back from a file as they went in, and bad ones are refused with the place named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from steelyard.errors import LogError, ShapeError
from steelyard.signals.log import Log
from steelyard.signals.read import load_log


def _log(**more) -> Log:
    t = np.arange(5) * 0.1
    q = np.random.default_rng(0).normal(size=(5, 2))
    return Log(("shoulder", "elbow"), t, q, **more)


@given(
    q=arrays(float, (4, 2), elements=st.floats(-1e6, 1e6)), full=st.booleans(), suffix=st.sampled_from(["csv", "npz"])
)
@settings(max_examples=40, deadline=None)
def test_a_log_survives_a_file(tmp_path_factory, q, full, suffix):
    path = tmp_path_factory.mktemp("log") / f"run.{suffix}"
    log = Log(
        ("a", "b"), np.array([0.0, 0.1, 0.2, 0.4]), q, dq=q / 3.0 if full else None, tau=q / 7.0 if full else None
    )
    log.save(path)
    back = load_log(path, joints=("a", "b"))
    for name in ("t", "q", "dq", "ddq", "tau"):
        before, after = getattr(log, name), getattr(back, name)
        assert (before is None) == (after is None)
        if before is not None:
            np.testing.assert_array_equal(after, before)
    assert back.joints == ("a", "b")


def test_columns_are_plain(tmp_path):
    log = _log(dq=np.zeros((5, 2)), ddq=np.ones((5, 2)), tau=np.ones((5, 2)))
    log.save(tmp_path / "run.csv")
    text = (tmp_path / "run.csv").read_text()
    assert text.splitlines()[0] == "t,q1,q2,dq1,dq2,ddq1,ddq2,tau1,tau2"
    assert load_log(tmp_path / "run.csv").joints == ("joint1", "joint2")


def test_npz_keeps_names_and_remarks_and_bytes(tmp_path):
    log = _log(meta={"payload": 2.5, "note": "cold"})
    log.save(tmp_path / "a.npz")
    log.save(tmp_path / "b.npz")
    back = load_log(tmp_path / "a.npz")
    assert back.joints == ("shoulder", "elbow")
    assert dict(back.meta) == {"payload": 2.5, "note": "cold"}
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    import os

    path = tmp_path / "run.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        _log().save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; a log needs a line with the names"),
        ("t,x1\n0,1\n", "column 'x1' is not one of"),
        ("t,q2\n0,1\n", "out of order"),
        ("q1\n0\n", "the column 't' is missing"),
        ("t,q1\n0,one\n", "row 1, column 'q1': 'one' is not a number"),
        ("t,q1\n0,1\n1\n", "row 2: Expected 2 columns, got 1"),
        ("t,q1\n0,1\n0,1\n", "does not increase at sample 2"),
        ("t,q1\n0,1\n1,nan\n", "row 2, column 'q1': an empty cell or NaN"),
        ("t,q1,q2,tau1\n0,1,1,1\n", "tau has shape"),
        ("t,q1\n", "column names but no rows"),
    ],
)
def test_bad_files_say_where(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(LogError, match=message) as caught:
        load_log(path)
    assert "bad.csv" in str(caught.value)


def test_other_bad_input(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        load_log(tmp_path / "none.csv")
    with pytest.raises(LogError, match=r"a \.csv or an \.npz"):
        load_log(tmp_path / "run.mat")
    (tmp_path / "broken.npz").write_bytes(b"PK not a zip")
    with pytest.raises(LogError, match=r"not a readable \.npz"):
        load_log(tmp_path / "broken.npz")
    _log().save(tmp_path / "run.csv")
    with pytest.raises(LogError, match="need \\(5, 3\\)"):
        load_log(tmp_path / "run.csv", joints=("a", "b", "c"))
    with pytest.raises(ShapeError, match="dq has shape"):
        _log(dq=np.zeros((5, 3)))


def test_a_log_cannot_be_changed():
    log = _log()
    with pytest.raises(ValueError, match="read-only"):
        log.q[0, 0] = 1.0
    with pytest.raises(TypeError):
        log.meta["x"] = 1
