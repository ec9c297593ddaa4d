"""A run folder is written atomically, and only files of a run are replaced: with and without atomic system calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.ground import atomic_files, folders
from steelyard.ground.folders import RunFolderError, check_target, growing_folder, run_folder, sweep_up


@pytest.fixture(autouse=True, params=["system", "fall-back"])
def system_call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fall-back":
        monkeypatch.setattr(atomic_files, "_system_call", lambda: None)
    return str(request.param)


def fill(folder: Path, text: str) -> None:
    (folder / "result.json").write_text(text)
    (folder / "tables").mkdir()
    (folder / "tables" / "more.txt").write_text(text)


def make_run(target: Path, text: str = "old") -> Path:
    with run_folder(target) as staging:
        fill(staging, text)
    return target


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def check_refused(target: Path, why: str, overwrite: bool = True) -> None:
    """Check that a run is refused before the work and also at its end, without any change."""
    before = contents(target.parent)
    with pytest.raises(RunFolderError, match=why):
        check_target(target, overwrite)
    with pytest.raises(RunFolderError, match=why), run_folder(target, overwrite):
        pytest.fail("the work was started")
    assert contents(target.parent) == before


def test_a_run_appears_when_it_is_complete(tmp_path: Path) -> None:
    with run_folder(tmp_path / "a" / "run") as staging:
        fill(staging, "1")
        assert not (tmp_path / "a" / "run").exists()
    assert (tmp_path / "a" / "run" / "tables" / "more.txt").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_an_error_leaves_no_trace(tmp_path: Path) -> None:
    def fail() -> None:
        with run_folder(tmp_path / "run") as staging:
            fill(staging, "1")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_replaced_whole_and_only_on_request(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")
    check_refused(target, "--overwrite", overwrite=False)
    (target / ".DS_Store").write_text("a file manager was here")
    with run_folder(target, overwrite=True) as staging:
        (staging / "result.json").write_text("new")
    assert names(target) == ["manifest.json", "result.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_the_manifest_is_reproducible(tmp_path: Path) -> None:
    assert contents(make_run(tmp_path / "a")) == contents(make_run(tmp_path / "b"))
    listed = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert set(listed["files"]) == {"result.json", "tables/more.txt"}


def test_a_folder_or_file_that_is_not_a_run_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("mine")
    check_refused(tmp_path / "home", "is not replaced")
    # Like a run of an older version.
    (tmp_path / "home" / "result.json").write_text("{}")
    check_refused(tmp_path / "home", "is not replaced")
    (tmp_path / "file").write_text("x")
    check_refused(tmp_path / "file", "is a file")


def test_an_empty_folder_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with run_folder(tmp_path / "run", overwrite=True) as staging:
        fill(staging, "new")
    assert (tmp_path / "run" / "result.json").read_text() == "new"


@pytest.mark.parametrize("name", ["thesis.txt", "tables/log.csv", "mine/log.csv", ".hidden"])
def test_a_file_that_no_run_wrote_is_named_and_not_replaced(tmp_path: Path, name: str) -> None:
    target = make_run(tmp_path / "run")
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).write_text("mine")
    check_refused(target, f"'{name.removesuffix('/log.csv') if name.startswith('mine') else name}', which no run wrote")


def test_a_changed_file_is_named_and_not_replaced(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")
    (target / "tables" / "more.txt").write_text("old, and a remark of mine")
    check_refused(target, "'tables/more.txt', which was changed")


def test_an_empty_folder_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")
    (target / "mine").mkdir()
    check_refused(target, "'mine', which no run wrote")


@pytest.mark.skipif(os.name == "nt", reason="links need a special permission on Windows")
def test_a_link_instead_of_a_file_is_not_replaced(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")
    (target / "result.json").rename(tmp_path / "other")
    (target / "result.json").symlink_to(tmp_path / "other")
    check_refused(target, "'result.json', which no run wrote")


def test_a_run_with_a_deleted_file_can_be_replaced(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")
    (target / "result.json").unlink()
    with run_folder(target, overwrite=True) as staging:
        fill(staging, "new")
    assert (target / "result.json").read_text() == "new"


@pytest.mark.parametrize("foreign", ["folder", "empty folder", "file"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_created_during_a_run_are_not_replaced(tmp_path: Path, foreign: str, overwrite: bool) -> None:
    target = tmp_path / "run"

    def work() -> None:
        with run_folder(target, overwrite) as staging:
            fill(staging, "new")
            if foreign == "file":
                target.write_text("mine")
            else:
                target.mkdir()
            if foreign == "folder":
                (target / "thesis.txt").write_text("mine")

    if foreign == "empty folder" and overwrite:
        work()
        return
    with pytest.raises(RunFolderError, match="run"):
        work()
    kept = {"run/thesis.txt": b"mine"} if foreign == "folder" else {"run": b"mine"} if foreign == "file" else {}
    assert contents(tmp_path) == kept
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_file_added_to_the_old_run_during_the_work_is_not_lost(tmp_path: Path) -> None:
    target = make_run(tmp_path / "run")

    def work() -> None:
        with run_folder(target, overwrite=True) as staging:
            fill(staging, "new")
            (target / "thesis.txt").write_text("mine")

    with pytest.raises(RunFolderError, match=r"run contains 'thesis\.txt'"):
        work()
    assert (target / "thesis.txt").read_text() == "mine"
    assert (target / "result.json").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_of_two_simultaneous_runs_one_is_written_and_the_other_fails(tmp_path: Path) -> None:
    def both() -> None:
        with run_folder(tmp_path / "run") as one:
            fill(one, "first")
            with run_folder(tmp_path / "run") as other:
                fill(other, "second")

    with pytest.raises(RunFolderError, match="was created during this run"):
        both()
    assert (tmp_path / "run" / "result.json").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.skipif(os.name == "nt", reason="links need a special permission on Windows")
def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    make_run(tmp_path / "of-may")
    (tmp_path / "latest").symlink_to("of-may")
    with run_folder(tmp_path / "latest", overwrite=True) as staging:
        fill(staging, "new")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "of-may" / "result.json").read_text() == "new"


@pytest.mark.parametrize("target", ["file/run", "file/deeper/run", "n" * 300])
def test_an_unwritable_folder_is_refused_before_the_work(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="cannot be written"):
        check_target(tmp_path / target, overwrite=False)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems refuse such names themselves")
@pytest.mark.parametrize("name", ["new\nline", "it's", "-o", "bytes\udcff", "n" * 190, "\x1b[31m", "ü" * 95])
def test_a_run_may_have_any_name(tmp_path: Path, name: str) -> None:
    for overwrite in (False, True):
        with run_folder(tmp_path / name, overwrite) as staging:
            fill(staging, "1")
    assert os.listdir(tmp_path) == [name]


# ---------------------------------------------------------------- runs that grow


def test_a_growing_run_is_locked_and_can_be_resumed(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with growing_folder(target, "lines") as folder:
        (folder / "lines").write_text("1\n")
        for way in ("resume", "overwrite"):
            with pytest.raises(RunFolderError, match="another run is writing"):
                growing_folder(target, "lines", **{way: True}).__enter__()  # type: ignore[arg-type]
    with growing_folder(target, "lines", resume=True) as folder:
        assert (folder / "lines").read_text() == "1\n"
    with growing_folder(target, "lines", overwrite=True) as folder:
        assert not (folder / "lines").exists()
    (target / "thesis.txt").write_text("mine")
    for way in ("resume", "overwrite"):
        with pytest.raises(RunFolderError, match=r"'thesis.txt', which no run wrote"):
            growing_folder(target, "lines", **{way: True}).__enter__()  # type: ignore[arg-type]
    assert (target / "thesis.txt").read_text() == "mine"


# ---------------------------------------------------------------- after a kill


@contextmanager
def ended_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, staging names are those of a process that has ended."""
    with monkeypatch.context() as changed:
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        changed.setattr(os, "getpid", lambda: child.pid)
        changed.setattr(atomic_files, "_start_ticks", lambda pid: "12345")
        yield


def test_the_next_run_removes_leftovers_of_a_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ended_process(monkeypatch):
        partial = atomic_files.staging_path(tmp_path / "run")
        complete = atomic_files.staging_path(tmp_path / "run")
        file = atomic_files.staging_path(tmp_path / "table.csv")
    partial.mkdir()
    fill(partial, "half")
    make_run(tmp_path / "other").rename(complete)
    file.write_text("half")
    running = atomic_files.staging_path(tmp_path / "running")
    running.mkdir()
    (tmp_path / ".mine.steelyard-new").write_text("looks alike")
    make_run(tmp_path / "run", "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([running.name, ".mine.steelyard-new", "run"])


def test_leftovers_of_another_machine_are_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ended_process(monkeypatch):
        monkeypatch.setattr(atomic_files, "_host", lambda: "0" * 8)
        other = atomic_files.staging_path(tmp_path / "run")
    monkeypatch.undo()
    other.mkdir()
    sweep_up(tmp_path)
    assert other.exists()


def test_a_kill_between_the_two_renames_restores_the_old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = make_run(tmp_path / "run")
    with ended_process(monkeypatch):
        target.rename(atomic_files.staging_path(target, "old"))
    sweep_up(tmp_path)
    assert names(tmp_path) == [
        "run",
        *(f"run/{x}" for x in ["manifest.json", "result.json", "tables", "tables/more.txt"]),
    ]


def test_a_leftover_run_with_a_file_of_the_user_gets_a_visible_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_run(tmp_path / "run")
    (target / "thesis.txt").write_text("mine")
    with ended_process(monkeypatch):
        target.rename(atomic_files.staging_path(target))
    sweep_up(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("run-kept-")
    assert (kept / "thesis.txt").read_text() == "mine"


SCRIPT = """
import sys
from steelyard.ground import atomic_files
from steelyard.ground.folders import run_folder
if sys.argv[2] == "fall-back":
    atomic_files._system_call = lambda: None
k = 0
while True:
    k += 1
    with run_folder(sys.argv[1], overwrite=True) as staging:
        for name in ("result.json", "more.txt"):
            (staging / name).write_text(str(k))
    print(k, flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_complete_run(tmp_path: Path, system_call: str) -> None:
    target = tmp_path / "run"
    for attempt in range(6):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(target), system_call], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.kill()
        process.wait()
        if system_call == "fall-back":  # the run is missing for a moment; the next run restores it
            sweep_up(tmp_path)
        assert len({(target / name).read_text() for name in ("result.json", "more.txt")}) == 1
        assert folders.only_a_run(target)
    check_target(target, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
