"""Remote logs are read in pieces: from HTTP, from a bucket, from an archive."""

from __future__ import annotations

import gzip
import pickle
import zipfile

import numpy as np
import pytest
from bags import joint_states, write_bag
from elsewhere import http_server, s3_bucket
from log_files import chain, columns, motion, write_csv, write_parquet
from refusals import refused

from steelyard.errors import LogError, UnreachableError
from steelyard.ground.remote import HELD_BYTES, RemoteFile, any_path
from steelyard.signals.read import log_chunks, read_log
from steelyard.signals.table import open_reader, read_table

ROBOT = chain("shoulder", "elbow")
SAMPLES = 3000
NAMES = ("run.parquet", "run.csv", "run.csv.gz", "run.mcap", "run.npz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One motion in five formats; only .npz needs a copy."""
    where = tmp_path_factory.mktemp("logs")
    signals = motion(samples=SAMPLES)
    write_parquet(where / "run.parquet", columns(signals), row_group_size=1000)
    write_csv(where / "run.csv", columns(signals))
    (where / "run.csv.gz").write_bytes(gzip.compress((where / "run.csv").read_bytes()))
    bag = write_bag(where / "bag", {"/joint_states": joint_states(list(ROBOT.joint_names), signals)}, "mcap")
    next(bag.glob("*.mcap")).rename(where / "run.mcap")
    np.savez(where / "run.npz", **signals)
    with zipfile.ZipFile(where / "runs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NAMES:
            archive.write(where / name, f"night/{name}")
    return where


@pytest.fixture(scope="module")
def http(folder):
    with http_server(folder) as served:
        yield served


@pytest.fixture(scope="module")
def bucket(folder):
    """The same logs in a bucket on a moto server, with the usual S3 settings."""
    with s3_bucket("fleet") as (served, system):
        system.put([str(folder / name) for name in (*NAMES, "runs.zip")], "fleet/arm-1/")
        yield served


def same(one, other):
    for signal in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(one, signal), getattr(other, signal))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["http", "s3", "zip", "zip in s3"])
def test_remote_and_local_logs_are_equal(folder, http, bucket, name, where):
    url = {
        "http": f"{http.url}/{name}?signature=unknown",
        "s3": f"s3://fleet/arm-1/{name}",
        "zip": f"zip://night/{name}::{folder}/runs.zip",
        "zip in s3": f"zip://night/{name}::s3://fleet/arm-1/runs.zip",
    }[where]
    log = read_log(url, ROBOT)
    same(log, read_log(folder / name, ROBOT))
    if name != "run.npz":
        assert log.meta["source"] == url.partition("?")[0]
    pieces = list(log_chunks(url, ROBOT, size=700, overlap=0))
    assert sum(len(piece) for piece in pieces) == SAMPLES


def test_only_the_needed_columns_of_a_parquet_file_are_fetched(tmp_path):
    """Reading 3 of 40 columns fetches little more than their share, in a few requests."""
    rng = np.random.default_rng(1)
    table = {f"c{k}": rng.normal(size=40_000) for k in range(40)}
    path = write_parquet(tmp_path / "wide.parquet", table, row_group_size=10_000)
    share = 3 / 40 * path.stat().st_size
    with http_server(tmp_path) as served:
        read = read_table(f"{served.url}/wide.parquet", ["c3", "c17", "c18"])
        np.testing.assert_array_equal(read.numbers("c17"), table["c17"])
        # Besides the three: the end of the file, 64 kB; gaps up to 32 kB are fetched to save requests.
        assert share < served.total < 1.2 * share + 2 * 65536
        assert served.gets < 20  # four groups of two ranges each, and the index of the file


def test_a_file_larger_than_the_buffer_is_read_in_runs(tmp_path, monkeypatch):
    """With a hundredth of the usual buffer the result is the same and the buffer is respected."""
    most = HELD_BYTES // 100
    for module in ("steelyard.ground.remote", "steelyard.signals.readers.parquet"):
        monkeypatch.setattr(f"{module}.HELD_BYTES", most)
    rng = np.random.default_rng(1)
    table = {f"c{k}": rng.normal(size=60_000) for k in range(4)}
    path = write_parquet(tmp_path / "long.parquet", table, row_group_size=5000)
    with http_server(tmp_path) as served:
        reader = open_reader(f"{served.url}/long.parquet")
        row = 0
        for block in reader.blocks(("c0", "c3")):
            held = sum(map(len, reader._bytes._held.values()))  # type: ignore[attr-defined]
            assert held <= most
            np.testing.assert_array_equal(block["c3"], table["c3"][row : row + len(block["c3"])])
            row += len(block["c3"])
        assert row == 60_000
        assert served.total < path.stat().st_size


def test_reading_pieces_from_a_bucket(bucket, folder):
    begun = bucket.total
    read_table("s3://fleet/arm-1/run.parquet", ["t", "q1"])
    assert 0 < bucket.total - begun < 0.8 * (folder / "run.parquet").stat().st_size + 10_000


def test_a_broken_connection_is_restored(http, folder):
    http.drops = 1
    same(read_log(f"{http.url}/run.parquet", ROBOT), read_log(folder / "run.parquet", ROBOT))
    assert http.drops == 0


def test_temporary_copies_are_deleted_with_their_reader(http):
    reader = open_reader(f"{http.url}/run.npz")
    copy = reader.path
    assert copy.exists()
    del reader
    assert not copy.exists()


def test_an_address_can_be_sent_to_another_process(http):
    place = pickle.loads(pickle.dumps(RemoteFile(f"{http.url}/run.csv")))
    assert place.stat().st_size > 0
    assert (place.name, place.stem, place.suffix) == ("run.csv", "run", ".csv")


def test_paths_stay_paths(tmp_path):
    assert any_path(f"file://{tmp_path}/a%20b.csv") == tmp_path / "a b.csv"
    assert any_path("C:/logs/run.csv").name == "run.csv"
    assert any_path(tmp_path / "run.csv") == tmp_path / "run.csv"


class TestRefusals:
    """Checks that each error is one sentence."""

    def test_missing_files(self, http, bucket, folder):
        for url in (
            f"{http.url}/none.parquet",
            "s3://fleet/none.parquet",
            "s3://nobody/run.parquet",
            f"zip://none.csv::{folder}/runs.zip",
        ):
            refused(lambda url=url: open_reader(url), url, "there is no such", error=LogError)

    def test_forbidden_files(self, http):
        refused(lambda: open_reader(f"{http.url}/secret.csv"), "access denied", "secret.csv", error=LogError)

    def test_a_server_that_does_not_answer(self, http):
        url = "http://127.0.0.1:1/run.csv"
        refused(lambda: open_reader(url), url, "cannot be reached", error=UnreachableError)

    def test_a_bucket_that_does_not_answer(self, monkeypatch):
        s3fs = pytest.importorskip("s3fs")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        s3fs.S3FileSystem.clear_instance_cache()
        refused(lambda: open_reader("s3://fleet/run.csv"), "cannot be reached", error=UnreachableError, seconds=4.0)
        s3fs.S3FileSystem.clear_instance_cache()

    def test_unknown_protocols(self):
        refused(lambda: open_reader("gopher://a/run.csv"), "gopher", "s3", error=LogError)
        refused(lambda: open_reader("reference://a::http://b/run.json"), "reference", error=LogError)

    def test_missing_packages(self, monkeypatch):
        for url, package in (("gs://b/run.csv", "gcsfs"), ("az://b/run.csv", "adlfs"), ("s3://b/run.csv", "s3fs")):
            monkeypatch.setitem(__import__("sys").modules, package, None)
            refused(lambda url=url: open_reader(url), "pip install", package, error=LogError)

    def test_passwords_are_not_printed(self):
        said = refused(lambda: open_reader("https://me:word@host/run.csv"), "password", error=LogError)
        assert "word@" not in said

    def test_a_server_without_ranges(self, folder):
        with http_server(folder, ranges=False) as served:
            refused(lambda: open_reader(f"{served.url}/run.parquet"), "range requests", error=LogError)

    def test_an_archive_of_disproportionate_size(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard.ground.remote.BUDGET", 1 << 20)
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("run.csv", bytes(2 << 20))
        refused(lambda: open_reader(f"zip://run.csv::{tmp_path}/a.zip"), "more than a log would", error=LogError)

    def test_a_file_that_is_not_an_archive(self, tmp_path):
        (tmp_path / "a.zip").write_bytes(b"no archive")
        refused(lambda: open_reader(f"zip://run.csv::{tmp_path}/a.zip"), "archive", error=LogError)

    def test_a_log_that_is_cut_short(self, tmp_path, folder):
        for name in ("run.parquet", "run.mcap", "run.npz"):
            (tmp_path / name).write_bytes((folder / name).read_bytes()[:-100])
        with http_server(tmp_path) as served:
            for name in ("run.parquet", "run.mcap", "run.npz"):
                url = f"{served.url}/{name}"
                refused(lambda url=url: read_log(url, ROBOT), url, error=LogError)
