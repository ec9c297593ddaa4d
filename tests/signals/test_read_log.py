"""Logs in common layouts are read without a mapping; bad ones are refused with the place of the fault."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import chain, columns, motion, write_csv, write_parquet

from steelyard.errors import LogError, ShapeError
from steelyard.signals.log import Log
from steelyard.signals.read import load_log, log_chunks, read_log

ARM = chain("a", "b")


@pytest.mark.parametrize(
    ("t", "q", "dq", "tau"),
    [
        ("t", "q{1}", "dq{1}", "tau{1}"),
        ("time", "q{0}", "qd{0}", "torque{0}"),
        ("timestamp", "pos_{1}", "vel_{1}", "effort_{1}"),
        ("Time", "position[{0}]", "velocity[{0}]", "effort[{0}]"),
        ("t", "joint{1}_position", "joint{1}_velocity", "joint{1}_torque"),
        ("stamp", "actual_q_{0}", "actual_qd_{0}", "actual_current_{0}"),
        ("t", "position/{2}", "velocity/{2}", "effort/{2}"),
        ("t", "{2}_pos", "{2}_vel", "{2}_current"),
    ],
)
def test_common_layouts(tmp_path, t, q, dq, tau):
    signals = motion()
    table = {t: signals["t"]}
    for pattern, key in ((q, "q"), (dq, "dq"), (tau, "tau")):
        table |= {pattern.format(k, k + 1, name): signals[key][:, k] for k, name in enumerate("ab")}
    log = read_log(write_csv(tmp_path / "run.csv", table), ARM)
    for key in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(log, key), signals[key])
    assert log.meta["torque_kind"] == ("current" if "current" in tau else "torque")


def test_a_single_joint_needs_no_number(tmp_path):
    table = {"t": np.arange(20) * 0.1, "q": np.arange(20.0), "tau": np.ones(20), "i": np.arange(20.0)}
    log = read_log(write_csv(tmp_path / "run.csv", table), chain("slide", slides=("slide",)))
    np.testing.assert_array_equal(log.q[:, 0], np.arange(20.0))
    np.testing.assert_array_equal(log.tau, 1.0)


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_saved_logs_are_read(tmp_path, suffix):
    signals = motion()
    Log(("b", "a"), **signals).save(tmp_path / f"run.{suffix}")
    log = read_log(tmp_path / f"run.{suffix}", ARM if suffix == "npz" else chain("b", "a"))
    order = slice(None, None, -1) if suffix == "npz" else slice(None)
    np.testing.assert_array_equal(log.tau, signals["tau"][:, order])


def test_without_time_a_rate_is_needed(tmp_path):
    table = columns(motion())
    del table["t"]
    path = write_parquet(tmp_path / "run.parquet", table)
    with pytest.raises(LogError, match="no column with the time"):
        read_log(path, ARM)
    log = read_log(path, ARM, {"time": {"rate": 5000}}, rows=(11, 30))
    np.testing.assert_allclose(log.t, np.arange(10, 30) / 5000)


def test_nanoseconds_since_1970_keep_their_digits(tmp_path):
    table = columns(motion())
    start = 1_700_000_000_123_456_789
    table["t"] = start + 1_000_001 * np.arange(50)
    log = read_log(write_parquet(tmp_path / "run.parquet", table), ARM, {"units": {"time": "ns"}})
    np.testing.assert_allclose(log.t, 1.000001e-3 * np.arange(50), atol=1e-15)
    assert log.meta["start_time"] == start
    with pytest.raises(LogError, match="state the unit of the time"):
        read_log(tmp_path / "run.parquet", ARM)


def test_a_window_and_rows(tmp_path):
    signals = motion()
    path = write_parquet(tmp_path / "run.parquet", columns(signals))
    log = read_log(path, ARM, {"window": {"run": [11, 30]}})
    np.testing.assert_array_equal(log.q, signals["q"][10:30])
    assert log.meta["rows"] == [11, 30]
    assert len(read_log(path, ARM, {"window": {"other": [11, 30]}})) == 50
    np.testing.assert_array_equal(read_log(path, ARM, {"window": [11, 30]}, rows=(1, 12)).q, signals["q"][:12])
    with pytest.raises(LogError, match="not a range of rows"):
        read_log(path, ARM, rows=(5, 4))


def test_a_clock_with_several_faults(tmp_path):
    """Shuffled neighbours, a duplicate and a pause: signals are sorted with their stamps, the pause is not bridged."""
    signals = motion(samples=200)
    keep = np.r_[0:80, 120:200]
    rows = keep.copy()
    rows[[10, 11]] = rows[[11, 10]]
    rows = np.insert(rows, 50, rows[49])
    table = {name: x[rows] for name, x in columns(signals).items()}
    log = read_log(write_parquet(tmp_path / "run.parquet", table), ARM)
    np.testing.assert_array_equal(log.q, signals["q"][keep])
    assert log.segments == ((0, 80), (80, 160))
    assert {f.kind for f in log.findings} == {"out_of_order", "duplicate", "gap"}
    log.save(tmp_path / "mended.npz")
    assert load_log(tmp_path / "mended.npz").segments == log.segments


def test_segments_must_cover_the_log():
    with pytest.raises(ShapeError, match="are not consecutive"):
        Log(("a", "b"), **motion(), segments=((0, 10), (20, 50)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("q2"), "1 position columns, but 2 joints. Give --joints .* Columns: q1; joints: a, b"),
        (lambda t: t.update(q3=t["q1"]), "3 position columns, but 2 joints. Name the joints"),
        (lambda t: t.update(q4=t.pop("q2")), "position column number 2 is missing"),
        (lambda t: (t.pop("q1"), t.pop("q2")), "no columns with joint positions"),
        (lambda t: t.pop("tau2"), "1 torque columns"),
        (lambda t: t.update(t=np.full(50, 3.0)), "the time never changes"),
        (lambda t: t["dq2"].__setitem__(6, np.nan), "row 7, column 'dq2'"),
        (lambda t: t["t"].__setitem__(4, np.inf), "row 5, column 't'"),
        (lambda t: t.update({name: x[:3] for name, x in t.items()}), "only 3 samples"),
        (lambda t: t.update(q1=np.array(["1", *["x"] * 49])), "row 2, column 'q1': 'x' is not a number"),
    ],
)
def test_bad_logs_say_where(tmp_path, change, message):
    table = {name: x.copy() for name, x in columns(motion()).items()}
    change(table)
    path = write_parquet(tmp_path / "bad.parquet", table)
    with pytest.raises(LogError, match=message) as caught:
        read_log(path, ARM)
    assert "bad.parquet" in str(caught.value)


def test_zero_torque_is_reported(tmp_path):
    table = columns(motion()) | {"tau2": np.zeros(50)}
    log = read_log(write_parquet(tmp_path / "run.parquet", table), ARM)
    assert [(f.kind, f.message) for f in log.findings] == [
        ("zero_torque", "The torque of joint b is zero in every sample.")
    ]
    none = {name: x for name, x in table.items() if not name.startswith("tau")}
    log = read_log(write_parquet(tmp_path / "none.parquet", none), ARM)
    assert log.tau is None
    assert [f.kind for f in log.findings] == ["no_torque"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(("size", "overlap"), [(100, 0), (100, 7), (350, 20), (5000, 10)])
def test_pieces_cover_the_log(tmp_path, suffix, size, overlap):
    signals = motion(samples=1030)
    table = columns(signals)
    rows = np.arange(1030)
    rows[[99, 100]] = rows[[100, 99]]  # late rows across the border of two pieces
    if overlap == 0:
        rows = np.arange(1030)
    table = {name: x[rows] for name, x in table.items()}
    path = tmp_path / f"run.{suffix}"
    path = write_csv(path, table) if suffix == "csv" else write_parquet(path, table, row_group_size=170)
    chunks = list(log_chunks(path, ARM, {"window": [5, 1030]}, size=size, overlap=overlap))
    cores = [slice(*chunk.meta["core"]) for chunk in chunks]
    for name in ("t", "q", "dq", "tau"):
        whole = np.concatenate([getattr(chunk, name)[core] for chunk, core in zip(chunks, cores, strict=True)])
        np.testing.assert_array_equal(whole, signals[name][4:])
    assert all(len(chunk) <= 1.5 * size + 2 * overlap for chunk in chunks)
    assert chunks[0].meta["rows"][0] == 5
