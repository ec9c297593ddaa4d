"""Stores: entries are complete and authentic, others are detected, and a full disk does not stop a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import SteelyardError
from steelyard.fleet.log_factors import FACTOR_VERSION, skipped_log
from steelyard.fleet.sealed_files import StoreWarning
from steelyard.fleet.settings import content_key
from steelyard.fleet.store import FactorStore

ONE, OTHER = skipped_log("one").to_bytes(), skipped_log("other").to_bytes()
KEY, KEY2 = content_key("a"), content_key("b")


def entry(root: Path, key: str) -> Path:
    return root / "factors" / key[:2] / key[2:]


def test_an_entry_is_found_again(tmp_path: Path) -> None:
    FactorStore(tmp_path / "s").put(KEY, ONE)
    again = FactorStore(tmp_path / "s")
    found = again.get(KEY)
    assert found is not None
    assert found.skipped == "one"
    assert again.get(KEY2) is None
    assert again.tally.mended == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: good[: len(good) // 2],
        lambda good: b"",
        lambda good: good[:-1] + b"x",
        lambda good: KEY2.encode() + good[64:],
        lambda good: b"something else",
        lambda good: KEY.encode() + b"\n" + ONE.replace(b'"version": %d' % FACTOR_VERSION, b'"version": 0'),
    ],
    ids=["torn", "empty", "one byte", "foreign", "rubbish", "older"],
)
def test_damaged_or_foreign_entries_are_replaced(tmp_path: Path, spoil) -> None:
    FactorStore(tmp_path).put(KEY, ONE)
    path = entry(tmp_path, KEY)
    path.write_bytes(spoil(path.read_bytes()))
    again = FactorStore(tmp_path)
    assert again.get(KEY) is None
    assert again.tally.mended == 1
    again.put(KEY, ONE)
    assert FactorStore(tmp_path).get(KEY) is not None


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")
    with pytest.raises(SteelyardError, match="contains other files"):
        FactorStore(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["photo.jpg"]


def test_identities_hold_while_the_state_of_a_file_is_unchanged(tmp_path: Path) -> None:
    store, old = FactorStore(tmp_path), {"size": 3, "mtime_ns": 10**18, "inode": 7}
    store.remember("/logs/a", old, "hash")
    store.save_identities()
    again = FactorStore(tmp_path)
    assert again.identity("/logs/a", old) == "hash"
    assert again.knows_size(3)
    assert not again.knows_size(4)
    for changed in ({"size": 4}, {"mtime_ns": 10**18 + 1}, {"inode": 8}):
        assert again.identity("/logs/a", {**old, **changed}) is None
    assert again.identity("/logs/b", old) is None


def test_a_file_written_just_now_is_not_trusted_by_its_time(tmp_path: Path) -> None:
    store, fresh = FactorStore(tmp_path), {"size": 3, "mtime_ns": time.time_ns(), "inode": 7}
    store.remember("/logs/a", fresh, "hash")
    assert store.identity("/logs/a", fresh) is None


FULL = """
import resource, sys, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from steelyard.fleet.log_factors import skipped_log
from steelyard.fleet.store import FactorStore
from steelyard.fleet.sealed_files import StoreWarning
from steelyard.fleet.settings import content_key
store = FactorStore(Path(sys.argv[1]), most_held=100_000)
small, large = skipped_log("small").to_bytes(), skipped_log("x" * 20_000).to_bytes()
store.put(content_key(1), small)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
store.put(content_key(2), large)
assert store.get(content_key(2)).skipped == "x" * 20_000, "held"
assert store.trouble and store.tally.unkept == 1 and store.tally.written == 1
print(store.trouble)
for k in range(3, 9):
    store.put(content_key(k), large)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are POSIX")
def test_a_full_disk_leaves_no_damaged_entry_and_gives_one_error(tmp_path: Path) -> None:
    """A process that can write only 10 kB to a file holds larger entries in memory, up to a limit."""
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True)
    assert "can no longer be written" in done.stdout
    assert "make room and run it again" in done.stderr.splitlines()[-1]
    again = FactorStore(tmp_path)
    assert again.get(content_key(1)) is not None
    assert again.get(content_key(2)) is None
    assert again.tally.mended == 0, "no damaged entry is left"
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and "steelyard-new" in p.name]


WRITER = """
import sys
from pathlib import Path
from steelyard.fleet.log_factors import LogFactors, skipped_log
from steelyard.fleet.store import FactorStore
from steelyard.fleet.sealed_files import StoreWarning
from steelyard.fleet.settings import content_key
store = FactorStore(Path(sys.argv[1]))
for _ in range(15):
    for k in range(10):
        key, data = content_key(k), skipped_log(str(k) * 50_000)
        found = store.get(key)
        assert found is None or found.skipped == data.skipped
        store.put(key, data.to_bytes())
        store.remember(f"/logs/{k}", {"size": k, "mtime_ns": 0, "inode": 1}, str(k))
    store.save_identities()
assert store.tally.mended == 0, store.tally
"""


def test_two_runs_on_one_store_read_complete_entries(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], env=os.environ) for _ in range(2)]
    assert [p.wait(60) for p in both] == [0, 0]
    again = FactorStore(tmp_path)
    assert all(again.get(content_key(k)) is not None for k in range(10))
    assert again.identity("/logs/3", {"size": 3, "mtime_ns": 0, "inode": 1}) == "3"


# ---------------------------------------------------------------- foreign entries


def test_a_foreign_body_with_the_right_key_is_ignored(tmp_path: Path) -> None:
    """Fifteen valid bodies under the right keys, with no seal, a wrong seal, or the seal of another entry."""
    store = FactorStore(tmp_path)
    keys = [content_key("log", k) for k in range(15)]
    for key in keys:
        store.put(key, ONE)
    for k, key in enumerate(keys):
        seal = [b"", b"0" * 64 + b"\n", entry(tmp_path, keys[k - 1]).read_bytes().split(b"\n")[1] + b"\n"][k % 3]
        entry(tmp_path, key).write_bytes(key.encode() + b"\n" + seal + OTHER)
    again = FactorStore(tmp_path)
    assert [again.get(key) for key in keys] == [None] * 15
    assert again.tally.mended == 15
    again.get(keys[0])
    assert again.tally.mended == 15, "each counts once"


def test_entries_of_another_user_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"size": 3, "mtime_ns": 10**18, "inode": 7}
    with monkeypatch.context() as theirs:
        theirs.setenv("STEELYARD_CONFIG", str(tmp_path / "theirs"))
        other = FactorStore(tmp_path / "store")
        other.put(KEY, OTHER)
        other.put_document("settings/x.json", {"a": 1})
        other.remember("/logs/a", old, "hash")
        other.save_identities()
        other.remember("/logs/b", old, "hash")  # in its journal
        assert FactorStore(tmp_path / "store").get(KEY) is not None
    ours = FactorStore(tmp_path / "store")
    assert ours.get(KEY) is None
    assert ours.document("settings/x.json") is None
    assert ours.identity("/logs/a", old) is None
    assert ours.identity("/logs/b", old) is None
    assert ours.tally.mended == 4


def test_documents_and_journals_are_sealed(tmp_path: Path) -> None:
    """A forged identity of a file would make a run take one log for another."""
    old = {"size": 3, "mtime_ns": 10**18, "inode": 7}
    store = FactorStore(tmp_path)
    store.remember("/logs/a", old, "hash")
    (journal,) = tmp_path.glob("identities/*.jsonl")
    valid = journal.read_bytes()
    assert FactorStore(tmp_path).identity("/logs/a", old) == "hash"
    journal.write_bytes(valid + valid.replace(b"/logs/a", b"/logs/b") + valid[:20])
    again = FactorStore(tmp_path)
    assert (again.identity("/logs/a", old), again.identity("/logs/b", old)) == ("hash", None)
    assert again.tally.mended == 1
    again.put_document("settings/x.json", {"a": 1})
    path = tmp_path / "settings" / "x.json"
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    assert again.document("settings/x.json") is None


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are POSIX")
def test_pipes_and_links_in_a_store_do_not_block(tmp_path: Path) -> None:
    store = FactorStore(tmp_path / "s")
    store.put(KEY, ONE)
    path = entry(tmp_path / "s", KEY)
    path.unlink()
    os.mkfifo(path)
    for name in ("identities", "settings"):
        (tmp_path / "s" / name).mkdir()
    os.mkfifo(tmp_path / "s" / "identities" / "x.jsonl")
    os.symlink("/dev/zero", tmp_path / "s" / "identities" / "y.jsonl")
    os.symlink("/dev/zero", tmp_path / "s" / "settings" / "x.json")
    again = FactorStore(tmp_path / "s")
    assert again.get(KEY) is None
    assert again.document("settings/x.json") is None
    assert again.tally.mended == 4
    again.put(KEY, ONE)
    assert FactorStore(tmp_path / "s").get(KEY) is not None
    (tmp_path / "s" / "STORE").unlink()
    os.mkfifo(tmp_path / "s" / "STORE")
    with pytest.raises(SteelyardError, match="a pipe or a device"):
        FactorStore(tmp_path / "s")


def test_a_store_writes_only_inside_its_folder(tmp_path: Path) -> None:
    FactorStore(tmp_path / "s").put(KEY, ONE)
    (tmp_path / "outside").mkdir()
    shard = entry(tmp_path / "s", KEY).parent
    entry(tmp_path / "s", KEY).unlink()
    shard.rmdir()
    shard.symlink_to(tmp_path / "outside")
    with pytest.raises(SteelyardError, match="is a link"):
        FactorStore(tmp_path / "s")
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX")
def test_without_a_stored_secret_entries_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("a file where the folder would be")
    monkeypatch.setenv("STEELYARD_CONFIG", str(tmp_path / "config"))
    with pytest.warns(StoreWarning, match="set STEELYARD_CONFIG"):
        store = FactorStore(tmp_path / "s")
    store.put(KEY, ONE)
    assert store.get(KEY) is not None
    with pytest.warns(StoreWarning):
        assert FactorStore(tmp_path / "s").get(KEY) is None
