"""Hostile or odd logs of any format give an error of one sentence at once."""

import contextlib
import io
import os
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import refusals

from steelyard.errors import LogError, RobotError
from steelyard.robot.library import builtin
from steelyard.robot.load import load_robot
from steelyard.signals.log import Log
from steelyard.signals.read import load_log, read_log
from steelyard.signals.readers import csv as csv_reader
from steelyard.signals.table import MOST_COLUMNS, open_reader, read_table

SECONDS, BYTES = 3.0, 100_000_000


def refused(make: Callable[[], object], *words: str) -> str:
    """The error for a refused log, which must not be unpacked."""
    return refusals.refused(make, *words, error=LogError, seconds=SECONDS, most_bytes=BYTES)


def npy(header: str | None = None, data: bytes = b"", array: object = None) -> bytes:
    """A NumPy file of an array, or with a custom header."""
    if header is None:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
        return buffer.getvalue()
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + data


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


def header(shape: str, kind: str = "'<f8'") -> str:
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}"


HEADERS = {
    "more than memory holds": header("(1000000000000,)"),
    "more than numbers count": header("(1" + "0" * 30 + ",)"),
    "negative": header("(-5,)"),
    "no tuple": header("100"),
    "not whole": header("(1.5,)"),
    "true": header("(True,)"),
    "nested": "(" * 3000 + ")" * 3000,
    "cut": "{'descr': ",
    "a call": header("(100,)", "__import__('os').system('true')"),
    "objects": header("(1,)", "'|O'"),
    "no type": header("(1,)", "'<q99'"),
    "a list": header("(1,)", "[['a']]"),
    "keys missing": "{'shape': (100,)}",
    "no dictionary": "3",
    "empty": "",
}


@pytest.mark.parametrize("text", HEADERS.values(), ids=HEADERS)
def test_an_archive_with_an_odd_header_is_refused(tmp_path: Path, text: str) -> None:
    path = archive(tmp_path / "log.npz", {"t": npy(text, bytes(800)), "q": npy(array=np.zeros(100))})
    refused(lambda: open_reader(path), "log.npz", "'t'")


def test_a_header_of_megabytes_is_not_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.npz", {"t": npy(header("(100,)") + " " * 1_000_000, bytes(800))})
    refused(lambda: open_reader(path), "header of 1000")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    path = archive(tmp_path / "log.npz", {"t": npy(array=np.array([Evil()], dtype=object))})
    refused(lambda: open_reader(path), "objects")
    assert not marker.exists()


def test_an_archive_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    size = 400 * 1024 * 1024
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("t.npy", "w") as member:
        member.write(npy(header(f"({size // 8},)")))
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    refused(lambda: open_reader(path), "unpacks", "MB")


def test_encrypted_members_and_other_compressions_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.npz", {"t": npy(array=np.zeros(10))}, zipfile.ZIP_STORED)
    whole = path.read_bytes()
    central = whole.index(b"PK\x01\x02")
    for at, value, word in ((8, 1, "encrypted"), (10, 99, "method 99")):
        data = bytearray(whole)
        struct.pack_into("<H", data, central + at, value)
        struct.pack_into("<H", data, at - 2, value)
        path.write_bytes(data)
        refused(lambda: open_reader(path), word)


def test_an_archive_cut_or_changed_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.npz", {"t": npy(array=np.arange(20.0)), "q": npy(array=np.zeros((20, 2)))})
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for k in range(300):
        data = bytearray(whole[: rng.integers(1, len(whole))] if k % 3 == 0 else whole)
        data[rng.integers(len(data))] = rng.integers(256)
        path.write_bytes(data)
        with suppress(LogError):
            read_table(path)


def test_many_or_repeated_columns_are_refused_in_every_format(tmp_path: Path) -> None:
    names = [f"x{k}" for k in range(50_000)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    archive(tmp_path / "a.npz", {"q": npy(header("(1, 50000)"), bytes(400_000))})
    pq.write_table(pa.table({name: [1.0] for name in names[:5000]}), tmp_path / "a.parquet")
    for name in ("a.csv", "a.npz", "a.parquet"):
        refused(lambda n=name: open_reader(tmp_path / n), name, "columns", str(MOST_COLUMNS))
    (tmp_path / "b.csv").write_text("t,q1,q1\n1,2,3\n")
    archive(tmp_path / "b.npz", {"q": npy(array=np.zeros((3, 2))), "q1": npy(array=np.zeros(3))})
    twice = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["q1", "q1"])
    pq.write_table(twice, tmp_path / "b.parquet")
    for name in ("b.csv", "b.npz", "b.parquet"):
        refused(lambda n=name: open_reader(tmp_path / n), name, "'q1' appears twice")


def test_column_names_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"abcd": [1.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"abcd", b"abc\xf4"))
    refused(lambda: open_reader(path), "log.parquet", "Parquet")


def test_a_parquet_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    column = pa.array(np.zeros(60_000_000))
    pq.write_table(pa.table({"t": column}), path, row_group_size=len(column), use_dictionary=False, compression="zstd")
    del column
    assert path.stat().st_size < 1_000_000
    refused(lambda: open_reader(path), "unpacks")


def page_header(unpacked: int, packed: int) -> bytes:
    """The header of a data page of 1,000 numbers in Thrift's compact protocol."""

    def number(value: int) -> bytes:
        value, out = 2 * value, b""
        while value >= 0x80:
            out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
        return b"\x15" + out + bytes([value])

    return b"".join([number(0), number(unpacked), number(packed), b"\x2c", number(1000), *[number(0)] * 3, b"\0\0"])


@pytest.mark.parametrize("sizes", [(8000, 2**31 - 1), (2**31 - 1, 100)])
def test_a_parquet_page_that_declares_gigabytes_is_refused(tmp_path: Path, sizes: tuple[int, int]) -> None:
    """Arrow would allocate the declared size before it reads the data."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t": np.arange(1000.0)}), path, use_dictionary=False, compression="snappy")
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    header = page_header(*sizes)
    data[start : start + len(header)] = header
    path.write_bytes(data)
    before = pa.default_memory_pool().max_memory()
    refused(lambda: read_table(path), "log.parquet", "column 1", str(2**31 - 1))
    assert pa.default_memory_pool().max_memory() - before < BYTES


def test_a_parquet_file_with_one_level_too_many_is_refused(tmp_path: Path) -> None:
    """Arrow would crash on the range of such a column."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t": np.arange(1000.0)}), path)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    counts = b"\x26\x00\xd0\x0f"  # a list of two integers: 0 and 1000
    end = data[-8 - length : -8].replace(counts, b"\x36\x00" + counts[1:])
    assert len(end) == length + 1
    path.write_bytes(data[: -8 - length] + end + len(end).to_bytes(4, "little") + b"PAR1")
    refused(lambda: read_table(path), "log.parquet")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_pages_of_every_kind_are_read(tmp_path: Path, version: str, compression: str) -> None:
    """Dictionaries, statistics of text columns, checksums, small pages."""
    rng = np.random.default_rng(0)
    table = pa.table({"t": np.arange(3000.0), "q1": rng.integers(0, 9, 3000) * 1.0, "word": ["long " * 99] * 3000})
    how: dict[str, Any] = {"data_page_version": version, "compression": compression, "write_page_checksum": True}
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=700, data_page_size=900, **how)
    assert len(read_table(tmp_path / "a.parquet")) == 3000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes among the files of this system")
def test_pipes_and_endless_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "a.csv")
    refused(lambda: open_reader(tmp_path / "a.csv"), "pipe")
    monkeypatch.setattr(csv_reader, "LONGEST_LINE", 1 << 16)
    (tmp_path / "b.csv").write_text("t" * (1 << 17))
    refused(lambda: open_reader(tmp_path / "b.csv"), "first line")
    refused(lambda: open_reader(tmp_path / "none.csv"), "no such file")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.array([0, 2**64 - 1], np.uint64), ["18446744073709551615"]),
        (np.array([0.0, 1e300]), ["state the unit"]),
        (np.array([0.0, np.inf]), ["row 2"]),
    ],
)
def test_odd_clocks_are_refused(tmp_path: Path, column: np.ndarray, words: list[str]) -> None:
    robot = builtin("rotradi")
    path = archive(tmp_path / "log.npz", {"t": npy(array=column), "q": npy(array=np.zeros((2, robot.dof)))})
    refused(lambda: read_log(path, robot), *words)


def test_impossible_values_of_a_signal_are_refused_with_their_place() -> None:
    t = np.arange(5.0)
    q = np.zeros((5, 2))
    q[3, 1] = 1e16
    refused(lambda: Log(("a", "b"), t, q), "joint 'b'", "beyond 1e+15", "sample 4")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"meta": npy(array=np.array("[" * 5000))}, ["meta", "nested"]),
        ({"meta": npy(array=np.array("[1]"))}, ["meta", "table"]),
        ({"joints": npy(header("(2,)", "'<U1'"), struct.pack("<2I", 0x110000, 65))}, ["joints", "invalid text"]),
        ({"joints": npy(header("(2,)", "'<U1'"), struct.pack("<2I", 0xD800, 65))}, ["joints", "invalid text"]),
        ({"segments": npy(array=np.zeros(3))}, ["segments"]),
        ({"t": npy(array=np.array(["a", "b", "c"]))}, ["t"]),
    ],
)
def test_a_saved_log_is_checked_part_by_part(tmp_path: Path, change: dict[str, bytes], words: list[str]) -> None:
    path = tmp_path / "log.npz"
    Log(("a", "b"), np.arange(3.0), np.zeros((3, 2))).save(path)
    with zipfile.ZipFile(path) as file:
        members = {name.removesuffix(".npy"): file.read(name) for name in file.namelist()}
    assert load_log(path).joints == ("a", "b")
    refused(lambda: load_log(archive(path, {**members, **change})), "log.npz", *words)


def test_an_impossible_file_name_is_an_error(tmp_path: Path) -> None:
    refused(lambda: open_reader(tmp_path / ("a" * 5000 + ".csv")), "cannot be read")
    with pytest.raises(RobotError, match="path, or name a built-in robot"):
        load_robot(tmp_path / ("a" * 5000 + ".urdf"))


def test_bags_with_views_or_large_metadata_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bag.db3"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE topics (id INTEGER)")
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        file.execute(f"CREATE VIEW messages AS {endless}")
        file.commit()
    refused(lambda: open_reader(path), "bag.db3", "view")
    damaged = tmp_path / "damaged.db3"
    damaged.write_bytes(path.read_bytes().replace(b"CREATE TABLE topics", b"CREATE TA\xed\xed\xed topics"))
    refused(lambda: open_reader(damaged), "damaged.db3", "bag")
    folder = tmp_path / "bag"
    folder.mkdir()
    merge = "\n".join([f"x{k}: &x{k} {{<<: [{', '.join([f'*x{k - 1}'] * 9)}]}}" for k in range(1, 10)])
    (folder / "metadata.yaml").write_text(f"x0: &x0 {{a: 1}}\n{merge}")
    refused(lambda: open_reader(folder), "metadata.yaml: line 2")


def nested(path: Path, levels: int) -> Path:
    """A complete log in the root group, and deeply nested groups."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        t = np.arange(40) * 0.01
        for name in ("q", "dq", "tau"):
            file[name] = np.sin(np.outer(t, [1.0, 2.0, 3.0]))
        file["t"] = t
        group = file
        for _ in range(levels):
            group = group.create_group("g")
    return path


def test_deeply_nested_hdf5_groups_are_refused(tmp_path: Path) -> None:
    robot = builtin("szabo3r")
    assert len(read_log(nested(tmp_path / "flat.h5", 20), robot)) == 40
    deep = nested(tmp_path / "deep.h5", 500)
    refused(lambda: read_log(deep, robot), "deep.h5", "nested deeper than 64 levels", "one group")


def test_loops_and_large_numbers_of_hdf5_groups_terminate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    robot, path = builtin("szabo3r"), nested(tmp_path / "loop.h5", 3)
    with h5py.File(path, "a") as file:
        file["g/back"] = file["/"]  # a group that contains itself
        file["g/g/again"] = file["g"]
    assert len(read_log(path, robot)) == 40
    from steelyard.signals.readers import hdf5

    monkeypatch.setattr(hdf5, "_MOST_ENTRIES", 5)
    refused(lambda: read_log(path, robot), "more than 5 entries")


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-100])
@pytest.mark.parametrize("what", ["q", "dq", "tau"])
def test_numbers_whose_squares_underflow_become_zero(what: str, size: float) -> None:
    """Their ratios would be 0/0."""
    from steelyard.check import check_log

    robot = builtin("szabo3r")
    t = np.arange(300) * 0.01
    k = np.arange(1.0, 4.0)
    values = {"q": np.sin(np.outer(t, k)), "dq": k * np.cos(np.outer(t, k)), "tau": np.cos(np.outer(t, 2.0 * k))}
    values[what] = size * values[what]
    log = Log(robot.joint_names, t, **values)
    assert not getattr(log, what).any()
    assert check_log(robot, log).to_json()


def test_other_small_numbers_are_unchanged() -> None:
    small = np.full((3, 1), 1e-50)
    assert np.array_equal(Log(("a",), np.arange(3.0), small).q, small)
