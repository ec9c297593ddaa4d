"""Every registered format is read in blocks, and errors name the row; other packages can add formats."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from bags import joint_states, write_bag, write_bag1
from lerobot_sets import write_lerobot
from log_files import chain, columns, motion, write_csv, write_parquet
from scipy.io import savemat

from steelyard.errors import LogError
from steelyard.ground import registry
from steelyard.ground.registry import PluginWarning, Registry
from steelyard.signals import _arrays, source, table
from steelyard.signals.read import log_chunks, read_log
from steelyard.signals.readers import bags, csv, npz, parquet
from steelyard.signals.source import LogFile, open_log
from steelyard.signals.table import READERS, LogReader, TableBlock, count_rows, later_rows, open_reader, read_table

ARM = chain("a", "b")
SIGNALS = motion(samples=1030)


def _bag(path: Path, storage: str) -> Path:
    return write_bag(path, {"/js": joint_states(["a", "b"], SIGNALS)}, storage)


def _feather(path: Path) -> Path:
    pa.feather.write_feather(pa.table(columns(SIGNALS)), path, chunksize=100)
    return path


def _hdf5(path: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, x in SIGNALS.items():
            file.create_dataset(f"run/{name}", data=x, chunks=(100, *x.shape[1:]), compression="gzip")
    return path


def _mat(path: Path) -> Path:
    savemat(path, {"log": SIGNALS}, do_compression=True)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    for name in ("q", "dq", "tau"):
        np.savetxt(path / f"{name}.txt", np.column_stack([SIGNALS["t"], SIGNALS[name]]), header=f"t {name}1 {name}2")
    return path


def _gzipped(path: Path) -> Path:
    plain = write_csv(path.with_suffix(""), columns(SIGNALS)).read_bytes()
    path.write_bytes(gzip.compress(plain))
    return path


def _by_columns(path: Path) -> Path:
    np.savez(path, **{name: np.asfortranarray(x) for name, x in SIGNALS.items()})
    return path


def _packed(path: Path) -> Path:
    np.savez_compressed(path, **SIGNALS)
    return path


WRITERS = {
    "csv": lambda folder: write_csv(folder / "run.csv", columns(SIGNALS)),
    "parquet": lambda folder: write_parquet(folder / "run.parquet", columns(SIGNALS), row_group_size=170),
    "npz": lambda folder: _packed(folder / "run.npz"),
    "npz by columns": lambda folder: _by_columns(folder / "run.npz"),
    "mcap": lambda folder: next(_bag(folder / "bag", "mcap").glob("*.mcap")),
    "rosbag2": lambda folder: _bag(folder / "bag", "sqlite3"),
    "rosbag1": lambda folder: write_bag1(folder / "run.bag", {"/js": joint_states(["a", "b"], SIGNALS)}),
    "feather": lambda folder: _feather(folder / "run.feather"),
    "hdf5": lambda folder: _hdf5(folder / "run.h5"),
    "mat": lambda folder: _mat(folder / "run.mat"),
    "signals": lambda folder: _folder(folder / "run"),
    "lerobot": lambda folder: write_lerobot(folder / "set", ["a.pos", "b.pos"], SIGNALS, episodes=1),
    "csv packed": lambda folder: _gzipped(folder / "run.csv.gz"),
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Short blocks, so that a small file has many, and a bag without cache."""
    monkeypatch.setattr(csv, "PIECE_BYTES", 5000)
    monkeypatch.setattr(npz, "ROWS", 64)
    monkeypatch.setattr(_arrays, "ROWS", 64)
    monkeypatch.setattr(parquet, "BATCH", 100)
    monkeypatch.setattr(bags, "MESSAGES", 64)
    monkeypatch.setattr(bags, "MOST_CACHED", 100)


def test_every_format_is_tested_here():
    assert set(READERS) <= {name.split()[0] for name in WRITERS}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("size", "overlap"), [(100, 0), (300, 20)])
def test_pieces_equal_the_log(tmp_path, name, size, overlap):
    path = WRITERS[name](tmp_path)
    whole = read_log(path, ARM, rows=(5, 1030))
    pieces = list(log_chunks(path, ARM, {"window": [5, 1030]}, size, overlap))
    assert len(pieces) == round(1026 / size)
    cores = [slice(*piece.meta["core"]) for piece in pieces]
    for signal in ("t", "q", "dq", "tau"):
        joined = np.concatenate([getattr(piece, signal)[core] for piece, core in zip(pieces, cores, strict=True)])
        np.testing.assert_array_equal(joined, getattr(whole, signal))
        # The time of a bag is rounded to nanoseconds.
        wanted = SIGNALS[signal][4:] - (SIGNALS["t"][4] - whole.t[0] if signal == "t" else 0.0)
        np.testing.assert_allclose(joined, wanted, rtol=0, atol=1e-9 if signal == "t" else 0.0)
    assert [piece.meta["rows"][0] for piece in pieces[:2]] == [5, 5 + size - overlap]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WRITERS)
def test_a_long_file_of_any_format_is_read_in_pieces(tmp_path, monkeypatch, name):
    path = WRITERS[name](tmp_path)
    assert not isinstance(open_log(path, ARM), LogFile)
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 900)  # the estimate for text may be wrong by a few percent
    monkeypatch.setattr(source, "PIECE_ROWS", 200)
    long = open_log(path, ARM)
    assert isinstance(long, LogFile)
    for _ in range(2):
        assert [len(piece) for piece in long.pieces()] == [200, 200, 200, 200, 230]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("odd", ["1.5", "", "NULL", "nan", "-inf", "1e400", "word", "9007199254740993", "2026-11-15"])
def test_a_text_gives_the_same_in_pieces_and_at_once(tmp_path, monkeypatch, odd):
    """A piece does not depend on the previous ones."""
    stamps = 10**18 + np.arange(2000)  # nanoseconds, which exceed the precision of a float
    lines = ["t,x,y", *(f"{t},{k},{k / 7!r}" for k, t in enumerate(stamps))]
    lines[1500] = f"{stamps[1499]},{odd},{odd}"
    path = tmp_path / "run.csv"
    path.write_text("\n".join(lines) + "\n\n\n")
    parts = list(open_reader(path).blocks(["t", "x", "y"]))
    assert len(parts) > 10
    monkeypatch.setattr(csv, "PIECE_BYTES", 1 << 22)
    whole = read_table(path)
    assert count_rows(path) == 2000
    np.testing.assert_array_equal(np.concatenate([part["t"] for part in parts]), stamps)
    for name in ("x", "y"):
        read, wanted = (np.concatenate([part[name].astype(object) for part in some]) for some in (parts, whole.blocks))
        assert [float(x) for x in np.delete(read, 1499)] == [float(x) for x in np.delete(wanted, 1499)]
        assert str(read[1499]) == str(wanted[1499]) or float(read[1499]) == float(wanted[1499])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("window", [None, (5, 1000)])
def test_a_long_file_is_split_in_pieces_and_parsed_once(tmp_path, monkeypatch, name, window):
    path = WRITERS[name](tmp_path)
    monkeypatch.setattr(source, "PIECE_ROWS", 200)
    long = LogFile(path, ARM, {"window": list(window)} if window else None)
    whole = read_log(path, ARM, rows=window)
    passes = []
    read = long.reader.blocks
    monkeypatch.setattr(long.reader, "blocks", lambda columns, start=0: passes.append(start) or read(columns, start))
    head, tail = long.split(0.3)
    for number in (1, 2):  # the second pass opens the file again
        first, last = list(head.pieces()), list(tail.pieces())
        assert len(passes) == number
        assert sum(len(piece) for piece in last) == pytest.approx(0.3 * len(whole), abs=1)
        assert max(len(piece) for piece in [*first, *last]) <= 300
        joined = np.concatenate([piece.q for piece in [*first, *last]])
        np.testing.assert_array_equal(joined, whole.q)
    again = list(tail.pieces())  # separately
    np.testing.assert_array_equal(np.concatenate([piece.q for piece in again]), joined[-sum(map(len, again)) :])
    assert len(passes) == 3


def test_rows_are_estimated_from_the_size_of_a_text(tmp_path):
    path = write_csv(tmp_path / "run.csv", columns(motion(samples=20000)))
    assert open_reader(path).estimated_rows() == pytest.approx(20000, rel=0.05)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x", "row 912, column 'q2': 'x' is not a number"),
        ("", "row 912, column 'q2': an empty cell or NaN is not a finite number"),
        ("1,2", "row 912: Expected 7 columns, got 8"),
    ],
)
def test_a_bad_cell_late_in_a_text_is_named(tmp_path, cell, message):
    path = write_csv(tmp_path / "run.csv", columns(SIGNALS))
    lines = path.read_text().splitlines()
    cells = lines[912].split(",")
    cells[2] = cell
    lines[912] = ",".join(cells)
    path.write_text("\n".join(lines))
    with pytest.raises(LogError, match=f"run.csv: .*{message}"):
        read_log(path, ARM)
    with pytest.raises(LogError, match=f"run.csv: .*{message}"):
        list(log_chunks(path, ARM, size=200, overlap=0))
    assert len(list(log_chunks(path, ARM, {"window": [1, 600]}, size=200, overlap=0))) == 3


@pytest.mark.usefixtures("small_blocks")
def test_whole_numbers_at_first_and_fractions_later(tmp_path):
    """The first piece of text has integers; later fractions must not be truncated."""
    path = tmp_path / "run.csv"
    values = [str(k) if k < 2000 else f"{k}.5" for k in range(3000)]
    path.write_text("t,q1\n" + "".join(f"{k},{value}\n" for k, value in enumerate(values)))
    np.testing.assert_array_equal(read_table(path).numbers("q1"), [float(value) for value in values])


@pytest.mark.usefixtures("small_blocks")
def test_time_stamps_that_end_in_the_middle_are_named(tmp_path):
    path = tmp_path / "run.csv"
    stamps = [f"2024-01-01 00:{k // 60:02d}:{k % 60:02d}" if k < 600 else "" for k in range(1200)]
    path.write_text("t,q1\n" + "".join(f"{stamp},{k}.5\n" for k, stamp in enumerate(stamps)))
    with pytest.raises(LogError, match="row 601, column 't': the time is missing"):
        read_log(path, chain("a"))


def test_a_window_past_the_end_is_refused(tmp_path):
    path = write_csv(tmp_path / "run.csv", columns(SIGNALS))
    with pytest.raises(LogError, match=r"the window \[5, 2000\] ends after the last row, 1030"):
        read_log(path, ARM, rows=(5, 2000))
    assert count_rows(path) == 1030


def test_nothing_is_imported_before_a_file_of_its_kind_is_read():
    code = "import sys, steelyard.signals.source as s; from steelyard.signals.table import READERS; list(READERS)\n"
    code += "print([name for name in ('pyarrow', 'rosbags', 'pandas', 'yaml') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class PairsReader(LogReader):
    """A format of another package: binary pairs of time and position."""

    suffixes = (".pairs",)
    description = "pairs of doubles"
    names = ("t", "q")

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        pairs = np.fromfile(self.path).reshape(-1, 2)
        every = {"t": pairs[:, 0], "q": pairs[:, 1]}
        return later_rows([{name: every[name] for name in columns}], start)


def test_formats_of_other_packages(tmp_path, monkeypatch):
    """One plug-in adds a format, another one is broken: the first works, the second gives an error."""
    points = [
        EntryPoint("broken", "steelyard_that_is_not_there:Reader", "steelyard.readers"),
        EntryPoint("pairs", f"{__name__}:PairsReader", "steelyard.readers"),
    ]
    monkeypatch.setitem(sys.modules, __name__, sys.modules[PairsReader.__module__])
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    fresh: Registry[type[LogReader]] = Registry(READERS.noun, (), group=READERS.group)
    for name, kind in READERS.items():
        fresh.register(name)(kind)
    monkeypatch.setattr(table, "READERS", fresh)
    t = 0.01 * np.arange(100)
    np.stack([t, np.sin(t)], axis=1).tofile(tmp_path / "run.pairs")
    with pytest.warns(PluginWarning, match=r"The log format 'broken' is left out, it cannot be loaded \(ModuleNot"):
        log = read_log(tmp_path / "run.pairs", chain("a"))
    np.testing.assert_array_equal(log.q[:, 0], np.sin(t))
    assert len(read_log(write_csv(tmp_path / "run.csv", columns(SIGNALS)), ARM)) == 1030
    (tmp_path / "run.odd").write_bytes(b"odd")
    with pytest.raises(LogError, match=r"known formats are .*\.pairs"):
        read_log(tmp_path / "run.odd", ARM)


def test_the_page_on_logs_describes_every_format():
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
    for kind in READERS.values():
        assert kind.description in page
        assert all(f"`{suffix}`" in page for suffix in kind.suffixes)
        assert f"the extra `{kind.extra}`" in page if kind.extra else True
