"""Files in the layouts of other programs give the same log; oddities are reported."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from bags import joint_states, write_bag1
from lerobot_sets import write_lerobot
from log_files import chain, columns, motion, write_csv, write_parquet
from scipy.io import savemat

from steelyard.errors import LogError
from steelyard.signals.log import Log
from steelyard.signals.read import load_log, read_log
from steelyard.signals.table import open_reader, read_table

ARM = chain("a", "b")
SIGNALS = motion(samples=60)
TABLE = columns(SIGNALS)


def _same(log, atol=1e-15):
    for name, x in SIGNALS.items():
        np.testing.assert_allclose(getattr(log, name), x, rtol=0, atol=atol)


def test_the_recorder_of_universal_robots(tmp_path):
    """rtde/csv_writer.py uses Python's csv module with spaces between values; vectors are numbered from 0."""
    path = tmp_path / "robot_data.csv"
    names = {"t": "timestamp", "q": "actual_q_", "dq": "actual_qd_", "tau": "actual_current_"}
    header = [f"{names[n[:-1]]}{int(n[-1]) - 1}" if n != "t" else names[n] for n in TABLE]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=" ")
        writer.writerow(header)
        writer.writerows(zip(*(x.tolist() for x in TABLE.values()), strict=True))
    log = read_log(path, ARM)
    _same(log)
    assert log.meta["torque_kind"] == "current"


@pytest.mark.parametrize("header", ["", "t q1 q2 dq1 dq2 tau1 tau2", "recorded in the lab on a Monday at noon"])
def test_files_of_numpy(tmp_path, header):
    """`savetxt` with its defaults: spaces, and an optional header after #; free text is not a header."""
    path = tmp_path / "run.txt"
    np.savetxt(path, np.column_stack(list(TABLE.values())), header=header)
    mapping = (
        {} if header.startswith("t ") else {"time": 1, "position": [2, 3], "velocity": "4-5", "torque": ["6", "7"]}
    )
    _same(read_log(path, ARM, mapping))
    if not header.startswith("t "):
        with pytest.raises(LogError, match=r"by number \(position = \[2, 3, …\]\)"):
            read_log(path, ARM)
        with pytest.raises(LogError, match="column '9'"):
            read_log(path, ARM, mapping | {"torque": [6, 9]})


def test_aligned_text_with_runs_of_spaces(tmp_path):
    """As from MATLAB's `save -ascii` and Fortran: columns of equal width with leading spaces."""
    path = tmp_path / "run.dat"
    rows = np.column_stack(list(TABLE.values()))
    path.write_text("\n".join("".join(f"{x:26.17e}" for x in row) + "  " for row in rows) + "\n")
    _same(read_log(path, ARM, {"time": 1, "position": [2, 3], "velocity": [4, 5], "torque": [6, 7]}))


def test_decimal_commas_between_spaces(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("0,5 1,25\n1,5 2,25\n")
    np.testing.assert_array_equal(read_table(path).numbers("column 2"), [1.25, 2.25])


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    ".lz4": lambda data: pa.compress(data, codec="lz4", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_text(tmp_path, suffix):
    plain = write_csv(tmp_path / "run.csv", TABLE)
    path = tmp_path / f"run.csv{suffix}"
    path.write_bytes(PACKERS[suffix](plain.read_bytes()))
    _same(read_log(path, ARM))
    assert open_reader(path).counted_rows() == 60
    assert open_reader(path).estimated_rows() == pytest.approx(60, abs=3)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LogError, match=r"cannot be decompressed, or is truncated|Expected 7 columns|only \d+ samples"):
        read_log(path, ARM)


def test_a_text_of_disproportionate_size_is_refused(tmp_path, monkeypatch):
    from steelyard.ground import decompress

    monkeypatch.setattr(decompress, "BUDGET", 100_000)
    path = tmp_path / "run.csv.gz"
    path.write_bytes(gzip.compress(b"t,q1,q2\n" + b"0,0,0\n" * 1_000_000))
    with pytest.raises(LogError, match=r"too large for a log|more than a log would"):
        read_table(path)


def test_the_export_of_plotjuggler(tmp_path):
    """Its CSV publisher: `__time`, sorted paths as names, six and nine decimals, and rows of other topics."""
    series = {
        f"/joint_states/{joint}/{signal}": SIGNALS[name][:, k]
        for k, joint in enumerate("ab")
        for signal, name in (("position", "q"), ("velocity", "dq"), ("effort", "tau"))
    }
    series["/imu/linear_acceleration/x"] = None
    lines = [",".join(["__time", *sorted(series)])]
    for k, t in enumerate(1.7e9 + SIGNALS["t"]):
        cells = ["" if series[name] is None else f"{series[name][k]:.9f}" for name in sorted(series)]
        lines.append(",".join([f"{t:.6f}", *cells]))
        lines.append(",".join([f"{t + 0.004:.6f}", *("9.810000000" if c == "" else "" for c in cells)]))
    path = tmp_path / "export.csv"
    path.write_text("\n".join(lines) + "\n")
    log = read_log(path, ARM)
    assert len(log) == 60
    np.testing.assert_allclose(log.t, SIGNALS["t"], atol=1e-6)
    np.testing.assert_allclose(log.tau, SIGNALS["tau"], atol=1e-9)
    assert any("60 rows have no signal of the robot" in finding.message for finding in log.findings), log.findings


def test_ambiguous_groups_of_columns_are_an_error(tmp_path):
    both = {"t": SIGNALS["t"]}
    for arm, shift in (("left", 0.0), ("right", 1.0)):
        both |= {f"/{arm}/position/{joint}": SIGNALS["q"][:, k] + shift for k, joint in enumerate("ab")}
    path = write_csv(tmp_path / "run.csv", both)
    with pytest.raises(LogError, match=r'several groups .* prefix = "/left/"'):
        read_log(path, ARM)
    for prefix in ("/left/", ["/left/"]):
        np.testing.assert_array_equal(read_log(path, ARM, {"prefix": prefix}).q, SIGNALS["q"])
    told = {"t": SIGNALS["t"], "command.q1": both["t"], "command.q2": both["t"]}
    told |= {f"state.q{k + 1}": SIGNALS["q"][:, k] for k in range(2)}
    np.testing.assert_array_equal(read_log(write_csv(tmp_path / "told.csv", told), ARM).q, SIGNALS["q"])


def test_prefixes_of_joints(tmp_path):
    """Prefixes only in the file or only in the robot; columns of the other arm are not used."""
    bag = write_bag1(tmp_path / "run.bag", {"/js": joint_states(["left_b", "left_a"], SIGNALS)})
    with pytest.raises(LogError, match="is not in the log"):
        read_log(bag, ARM)
    log = read_log(bag, ARM, {"prefix": ["left_"]})
    np.testing.assert_array_equal(log.q, SIGNALS["q"][:, ::-1])
    plain = write_bag1(tmp_path / "plain.bag", {"/js": joint_states(["a", "b"], SIGNALS)})
    np.testing.assert_array_equal(read_log(plain, chain("arm/a", "arm/b"), {"prefix": "arm/"}).q, SIGNALS["q"])
    numbered = write_csv(tmp_path / "run.csv", {"t": SIGNALS["t"], **{f"robot_{k}": x for k, x in TABLE.items()}})
    np.testing.assert_array_equal(read_log(numbered, ARM, {"prefix": "robot_"}).tau, SIGNALS["tau"])


def test_lists_in_parquet_and_feather(tmp_path):
    lists = {"time": SIGNALS["t"], **{n: list(SIGNALS[k]) for n, k in (("position", "q"), ("effort", "tau"))}}
    lists["name"] = [["b", "a"]] * 60
    parquet, feather = write_parquet(tmp_path / "a.parquet", lists), tmp_path / "a.feather"
    pyarrow.feather.write_feather(pa.table(lists), feather)
    for path in (parquet, feather):
        log = read_log(path, ARM)
        np.testing.assert_array_equal(log.q, SIGNALS["q"][:, ::-1])
        np.testing.assert_array_equal(log.tau, SIGNALS["tau"][:, ::-1])
    lists["position"][41] = [1.0]
    with pytest.raises(
        LogError, match=r"row 42, column 'position': the list has 1 numbers, those of other rows have 2"
    ):
        read_log(write_parquet(tmp_path / "odd.parquet", lists), ARM)


def test_frames_of_pandas_and_polars(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(TABLE)
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_feather(tmp_path / "a.feather")
    frame.to_parquet(tmp_path / "a.parquet")
    other = polars.DataFrame(TABLE)
    other.write_ipc(tmp_path / "b.arrow", compression="zstd")
    other.write_ipc_stream(tmp_path / "b.arrows")
    other.write_parquet(tmp_path / "b.parquet")
    for name in ("a.csv.gz", "a.feather", "a.parquet", "b.arrow", "b.arrows", "b.parquet"):
        _same(read_log(tmp_path / name, ARM))


@pytest.mark.parametrize("turned", [False, True])
def test_files_of_matlab(tmp_path, turned):
    """Samples along rows or columns, also in a structure; other arrays are omitted and reported."""
    data = {name: x.T if turned else x for name, x in SIGNALS.items()}
    extra = {"joints": np.array(["b", "a"], dtype=object), "gains": np.arange(5.0), "note": "Monday"}
    savemat(tmp_path / "plain.mat", data | extra, do_compression=True)
    savemat(tmp_path / "inside.mat", {"log": data})
    log = read_log(tmp_path / "plain.mat", ARM)
    np.testing.assert_array_equal(log.q, SIGNALS["q"][:, ::-1])
    assert any("do not have 60 samples: gains" in finding.message for finding in log.findings)
    _same(read_log(tmp_path / "inside.mat", ARM))


def test_a_mat_file_of_disproportionate_size_is_refused(tmp_path, monkeypatch):
    from steelyard.signals.readers import mat

    monkeypatch.setattr(mat, "BUDGET", 100_000)
    packed = zlib.compress(bytes(20_000_000))
    path = tmp_path / "run.mat"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(LogError, match=r"too large for a log|more than a log would"):
        read_log(path, ARM)


def test_hdf5_and_matlab_7_3(tmp_path):
    h5py = pytest.importorskip("h5py")
    secret = write_csv(tmp_path / "secret.csv", TABLE)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        group = file.create_group("robot/state")
        for name, x in SIGNALS.items():
            group[name] = x
        group["joint_names"] = ["b", "a"]
        file["robot/away"] = h5py.ExternalLink("other.h5", "/q")
        file.create_dataset("robot/stolen", (60,), "f8", external=[(str(secret), 0, 480)])
    log = read_log(tmp_path / "run.h5", ARM)
    np.testing.assert_array_equal(log.q, SIGNALS["q"][:, ::-1])
    assert not any("stolen" in name or "away" in name for name in open_reader(tmp_path / "run.h5").names)
    _same(read_log(tmp_path / "run.h5", chain("b", "a"), {"topic": "robot/state"}))
    with pytest.raises(LogError, match="group 'arm'"):
        read_log(tmp_path / "run.h5", ARM, {"topic": "arm"})
    # Version 7.3: 512 bytes of MATLAB before an HDF5 file; arrays are transposed.
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        for name, x in SIGNALS.items():
            file.create_dataset(name, data=np.atleast_2d(x.T)).attrs["MATLAB_class"] = np.bytes_("double")
    with (tmp_path / "new.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    _same(read_log(tmp_path / "new.mat", ARM))
    kinds = np.dtype([("t", "f8"), ("q", "f8", (2,)), ("tau", "f8", (2,))])
    records = np.zeros(60, kinds)
    for name in kinds.names:
        records[name] = SIGNALS[name]
    with h5py.File(tmp_path / "records.h5", "w") as file:
        file["log"] = records
    np.testing.assert_array_equal(read_log(tmp_path / "records.h5", ARM).tau, SIGNALS["tau"])


@pytest.mark.parametrize(
    "stored", [{}, {"chunks": (1,)}, {"chunks": (3,)}, {"dtype": "S9"}, {"dtype": "S9", "compression": "gzip"}]
)
@pytest.mark.parametrize("before", [0, 512])
def test_names_in_hdf5_in_every_storage_layout(tmp_path, stored, before):
    """Text of fixed and variable length, contiguous and chunked, equals what the library reads."""
    h5py = pytest.importorskip("h5py")
    names = ["b", "", "a joint ä", "a"] if "dtype" not in stored else ["b", "", "a joint", "a"]
    with h5py.File(tmp_path / "run.h5", "w", userblock_size=before) as file:
        for name, x in SIGNALS.items():
            file[name] = x
        file.create_dataset("joint_names", data=names, **({"dtype": h5py.string_dtype()} | stored))
    with h5py.File(tmp_path / "run.h5") as file:
        assert [x.decode() for x in file["joint_names"][()]] == names
    assert open_reader(tmp_path / "run.h5").joints == tuple(names)


def test_a_damaged_heap_of_names_in_hdf5_is_refused(tmp_path):
    """The library would never return for an object whose length is all ones."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        for name, x in SIGNALS.items():
            file[name] = x
        file["joint_names"] = ["b", "a"]
    whole = (tmp_path / "run.h5").read_bytes()
    heap = whole.index(b"GCOL")
    for at, what in ((24, b"\xff" * 8), (24, b"\xf0" + b"\xff" * 7), (8, b"\xff" * 8), (0, b"G0OL"), (16, b"\x07")):
        damaged = whole[: heap + at] + what + whole[heap + at + len(what) :]
        (tmp_path / "run.h5").write_bytes(damaged)
        with pytest.raises(LogError, match=r"run\.h5: a text heap in the file is damaged"):
            open_reader(tmp_path / "run.h5")
    # A chunk may have any size.
    for stored in ({"compression": "gzip"}, {"chunks": (10**8,), "maxshape": (None,)}):
        with h5py.File(tmp_path / "run.h5", "w") as file:
            file.create_dataset("joint_names", (2,), h5py.string_dtype(), **stored)
        with pytest.raises(LogError, match="'/joint_names' are compressed, or stored in an unsupported way"):
            open_reader(tmp_path / "run.h5")


def test_declared_sizes_without_data_are_refused(tmp_path, monkeypatch):
    """A data set of a billion fill values, and batches of zeros."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        for name in ("t", "q1", "q2"):
            file.create_dataset(name, (10**9,), "f8", chunks=(1000,))
    with pytest.raises(LogError, match=r"'/q1' unpacks to 8e\+03 MB, too large for a log"):
        read_log(tmp_path / "empty.h5", ARM)
    monkeypatch.setattr("steelyard.signals.readers.feather.BUDGET", 100_000)
    zeros = pa.table({name: np.zeros(400_000) for name in TABLE})
    pyarrow.feather.write_feather(zeros, tmp_path / "zeros.feather", compression="zstd", chunksize=10_000)
    with pytest.raises(LogError, match=r"too large for a log|more than a log would"):
        read_log(tmp_path / "zeros.feather", ARM)


def test_hdf5_without_its_package_names_the_extra(tmp_path, monkeypatch):
    import sys

    (tmp_path / "run.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(LogError, match=r"reading HDF5 needs the package h5py: .*pip install"):
        read_log(tmp_path / "run.h5", ARM)


def test_bags_of_ros_1(tmp_path):
    """Messages give the same decoded together and one by one, also with names of different lengths."""
    names = ["a", "a_joint_of_another_robot", "b"]
    three = {k: x if x.ndim == 1 else np.column_stack([x[:, 0], x[:, 0], x[:, 1]]) for k, x in SIGNALS.items()}
    log = read_log(write_bag1(tmp_path / "run.bag", {"/js": joint_states(names, three)}), ARM)
    _same(log, atol=1e-9)


@pytest.mark.parametrize("version", [2, 3])
def test_data_sets_of_lerobot(tmp_path, version):
    """Versions 2 (a file per episode) and 3 (several in a file): episodes are segments and can be selected."""
    data = write_lerobot(tmp_path / "set", ["a.pos", "b.pos"], SIGNALS, episodes=4, version=version)
    log = read_log(data, ARM)
    assert len(log.segments) == 4
    assert [(f.kind, f.severity, f.count) for f in log.findings if f.kind in ("reset", "parts")] == [("parts", "ok", 4)]
    some = read_log(data, ARM, {"episodes": [1, 3]})
    assert [b - a for a, b in some.segments] == [60, 60]
    np.testing.assert_array_equal(some.q, np.concatenate([SIGNALS["q"]] * 2))  # not those of the action
    _same(read_log(data, ARM, {"episodes": "2"}), atol=1e-12)
    with pytest.raises(LogError, match=r"episodes 7"):
        read_log(data, ARM, {"episodes": 7})
    with pytest.raises(LogError, match="episodes are numbers such as 0-4,7"):
        read_log(data, ARM, {"episodes": "first"})


def test_a_data_set_whose_joints_have_no_names(tmp_path):
    _same(read_log(write_lerobot(tmp_path / "set", None, SIGNALS), ARM), atol=1e-12)


def test_one_file_per_signal(tmp_path):
    """In a folder, or listed by name; rows and clocks must agree."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("q", "dq", "tau"):
        np.savetxt(folder / f"{name}.txt", SIGNALS[name])
    np.savetxt(folder / "time.txt", SIGNALS["t"])
    (folder / "notes.md").write_text("Monday")
    _same(read_log(folder, ARM))
    parts = {"position": "q", "velocity": "dq", "torque": "tau", "time": "time"}
    _same(read_log(",".join(f"{name}={folder / file}.txt" for name, file in parts.items()), ARM))
    np.savetxt(folder / "tau.txt", SIGNALS["tau"][:50])
    with pytest.raises(LogError, match=r"tau.txt ends after 50 rows, .* has more"):
        read_log(folder, ARM)


def test_files_with_different_clocks_are_refused(tmp_path):
    write_csv(tmp_path / "q.csv", {"t": SIGNALS["t"], "a": SIGNALS["q"][:, 0], "b": SIGNALS["q"][:, 1]})
    shifted = SIGNALS["t"].copy()
    shifted[30:] += 0.007
    write_csv(tmp_path / "tau.csv", {"t": shifted, "a": SIGNALS["tau"][:, 0], "b": SIGNALS["tau"][:, 1]})
    with pytest.raises(LogError, match=r"tau.csv and q.csv show different times in row 31"):
        read_log(tmp_path, ARM)
    write_csv(tmp_path / "tau.csv", {"t": SIGNALS["t"], "b": SIGNALS["tau"][:, 1], "a": SIGNALS["tau"][:, 0]})
    np.testing.assert_array_equal(read_log(tmp_path, ARM).tau, SIGNALS["tau"])


def test_channels_of_a_saved_log_are_read_again(tmp_path):
    """Also for another order of the joints: temperatures are reordered, a wrench is not."""
    wrench, warm = np.arange(360.0).reshape(60, 6), np.arange(120.0).reshape(60, 2)
    saved = Log(("b", "a"), **SIGNALS, channels={"wrench": wrench, "temperature": warm})
    saved.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(load_log(tmp_path / "run.npz").channels["wrench"], wrench)
    log = read_log(tmp_path / "run.npz", ARM)
    np.testing.assert_array_equal(log.channels["wrench"], wrench)
    np.testing.assert_array_equal(log.channels["temperature"], warm[:, ::-1])
