"""Every format preserves the numbers; a broken file is refused with the place of the fault."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import columns, motion, write_csv, write_parquet

from steelyard.errors import LogError
from steelyard.signals.table import count_rows, read_table

TABLE = columns(motion())


def _same(table, expected=TABLE, start=0, stop=None):
    assert set(table.names) == set(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(table.numbers(name), x[start:stop])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_text_round_trip(tmp_path, delimiter):
    path = write_csv(tmp_path / "run.csv", TABLE, delimiter)
    _same(read_table(path))
    assert count_rows(path) == 50
    part = read_table(path, ["q1"], 10, 20)
    assert part.first_row == 11
    np.testing.assert_array_equal(part.numbers("q1"), TABLE["q1"][10:20])


def test_text_with_comments_and_decimal_commas(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("# recorded on a Monday\n# t;q1\n" + "".join(f"{k},5;{k}\n" for k in range(20)))
    table = read_table(path)
    assert table.names == ("t", "q1")
    np.testing.assert_array_equal(table.numbers("t"), np.arange(20) + 0.5)


def test_unused_text_columns_are_ignored(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("\ufefft, q1 ,mode\n0,1,idle\n1,2,run\n", encoding="utf-8")
    table = read_table(path)
    np.testing.assert_array_equal(table.numbers("q1"), [1.0, 2.0])
    with pytest.raises(LogError, match="row 1, column 'mode': 'idle' is not a number"):
        table.numbers("mode")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("t,q1\n", "no rows"),
        ("t,t\n1,2\n", "'t' appears twice"),
        ("t,q1\n0,1\n1\n", "row 2: Expected 2 columns, got 1"),
    ],
)
def test_broken_text(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(LogError, match=message) as caught:
        read_table(path)
    assert "bad.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "row", "what"), [("0,1\n1,x\n", 2, "'x' is not a number"), ("0,1\n1,\n2,2\n", 2, "empty")]
)
def test_bad_cells_name_row_and_column(tmp_path, text, row, what):
    path = tmp_path / "bad.csv"
    path.write_text("t,q1\n" + text)
    with pytest.raises(LogError, match=f"bad.csv: row {row}, column 'q1': .*{what}"):
        read_table(path).numbers("q1")


@pytest.mark.parametrize("group", [7, 1000])
def test_parquet_ranges(tmp_path, group):
    path = write_parquet(tmp_path / "run.parquet", TABLE, row_group_size=group)
    _same(read_table(path))
    assert count_rows(path) == 50
    for start, stop in [(0, 3), (5, 29), (14, 15), (40, 60), (20, 20)]:
        table = read_table(path, None, start, stop)
        _same(table, start=start, stop=stop)
        assert table.first_row == start + 1
    with pytest.raises(LogError, match="no column 'q9'"):
        read_table(path, ["q9"])


def test_parquet_time_stamps(tmp_path):
    stamps = np.datetime64("2024-01-01T00:00:00", "us") + np.arange(5) * np.timedelta64(2000, "us")
    stamps[3] = np.datetime64("NaT")  # a row without time
    table = read_table(write_parquet(tmp_path / "run.parquet", {"t": stamps}))
    np.testing.assert_array_equal(table.column("t"), stamps)


def test_npz(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, joints=np.array(["a", "b"]), note=np.array("cold"), **motion())
    table = read_table(path)
    _same(table)
    assert table.joints == ("a", "b")


def test_npz_never_runs_pickles(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, q=np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(LogError, match=r"not a readable \.npz"):
        read_table(path)


def test_cut_off_files_are_refused(tmp_path):
    np.savez(tmp_path / "run.npz", **motion())
    write_parquet(tmp_path / "run.parquet", TABLE)
    for name, message in (("run.npz", r"\.npz"), ("run.parquet", "Parquet")):
        path = tmp_path / name
        whole = path.read_bytes()
        for keep in (0, 10, len(whole) // 2, len(whole) - 3):
            path.write_bytes(whole[:keep])
            with pytest.raises(LogError, match=message):
                read_table(path)


def test_a_table_without_columns_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
    import scipy.io

    pa.feather.write_feather(pa.table({}), str(tmp_path / "run.feather"))
    pa.parquet.write_table(pa.table({}), tmp_path / "run.parquet")
    np.savez(tmp_path / "run.npz")
    scipy.io.savemat(tmp_path / "run.mat", {})
    scipy.io.savemat(tmp_path / "wide.mat", {"q": np.zeros((6, 0))})
    for name in ("run.feather", "run.parquet", "run.npz", "run.mat", "wide.mat"):
        with pytest.raises(LogError, match=rf"{name}: (has no column|holds no array)"):
            read_table(tmp_path / name)


def test_damage_inside_parquet_is_refused(tmp_path):
    path = write_parquet(tmp_path / "run.parquet", TABLE)
    whole = bytearray(path.read_bytes())
    whole[4:60] = b"\xff" * 56
    path.write_bytes(whole)
    with pytest.raises(LogError, match="not a readable Parquet"):
        read_table(path)


def test_files_are_known_by_content(tmp_path):
    write_parquet(tmp_path / "run.parquet", TABLE).rename(tmp_path / "run.log")
    _same(read_table(tmp_path / "run.log"))
    (tmp_path / "run.odd").write_bytes(b"odd")
    with pytest.raises(LogError, match="not a readable log"):
        read_table(tmp_path / "run.odd")
    with pytest.raises(LogError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(LogError, match=r"is a folder, but none of rosbag2"):
        read_table(tmp_path)
