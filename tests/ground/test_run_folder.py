"""A run folder appears whole or not at all, and nothing that a run did not write is ever replaced.

All of it holds by the system's own steps and, told so, without them."""

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

from steelyard.ground import folders, places
from steelyard.ground.folders import RunFolderError, check_target, growing_folder, run_folder, sweep_up


@pytest.fixture(autouse=True, params=["system", "fall-back"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fall-back":
        monkeypatch.setattr(places, "_system_call", lambda: None)
    return str(request.param)


def fill(folder: Path, text: str) -> None:
    (folder / "result.json").write_text(text)
    (folder / "tables").mkdir()
    (folder / "tables" / "more.txt").write_text(text)


def made(place: Path, text: str = "old") -> Path:
    with run_folder(place) as aside:
        fill(aside, text)
    return place


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(place: Path, why: str, overwrite: bool = True) -> None:
    """It is refused before the work and, that forgotten, at the end; nothing is touched."""
    before = contents(place.parent)
    with pytest.raises(RunFolderError, match=why):
        check_target(place, overwrite)
    with pytest.raises(RunFolderError, match=why), run_folder(place, overwrite):
        pytest.fail("the work was begun")
    assert contents(place.parent) == before


def test_a_run_appears_at_the_end(tmp_path: Path) -> None:
    with run_folder(tmp_path / "a" / "run") as aside:
        fill(aside, "1")
        assert not (tmp_path / "a" / "run").exists()
    assert (tmp_path / "a" / "run" / "tables" / "more.txt").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with run_folder(tmp_path / "run") as aside:
            fill(aside, "1")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_replaced_whole_and_only_on_request(tmp_path: Path) -> None:
    place = made(tmp_path / "run")
    refused(place, "--overwrite", overwrite=False)
    (place / ".DS_Store").write_text("a file manager was here")
    with run_folder(place, overwrite=True) as aside:
        (aside / "result.json").write_text("new")
    assert names(place) == ["manifest.json", "result.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_the_list_of_what_was_written_is_the_same_every_time(tmp_path: Path) -> None:
    assert contents(made(tmp_path / "a")) == contents(made(tmp_path / "b"))
    listed = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert set(listed["files"]) == {"result.json", "tables/more.txt"}


def test_what_is_no_run_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("dear to me")
    refused(tmp_path / "home", "holds no run")
    # As an older version would have left it.
    (tmp_path / "home" / "result.json").write_text("{}")
    refused(tmp_path / "home", "holds no run")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file")


def test_an_empty_folder_may_be_taken(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with run_folder(tmp_path / "run", overwrite=True) as aside:
        fill(aside, "new")
    assert (tmp_path / "run" / "result.json").read_text() == "new"


@pytest.mark.parametrize("name", ["thesis.txt", "tables/log.csv", "mine/log.csv", ".hidden"])
def test_a_file_that_no_run_wrote_stops_it_by_name(tmp_path: Path, name: str) -> None:
    place = made(tmp_path / "run")
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text("mine")
    refused(place, f"'{name.removesuffix('/log.csv') if name.startswith('mine') else name}', which no run wrote")


def test_a_file_that_was_changed_stops_it_by_name(tmp_path: Path) -> None:
    place = made(tmp_path / "run")
    (place / "tables" / "more.txt").write_text("old, and a remark of mine")
    refused(place, "'tables/more.txt', which was changed")


def test_an_empty_folder_of_somebody_stops_it_too(tmp_path: Path) -> None:
    place = made(tmp_path / "run")
    (place / "mine").mkdir()
    refused(place, "'mine', which no run wrote")


@pytest.mark.skipif(os.name == "nt", reason="links take a right of their own there")
def test_a_link_in_the_place_of_a_file_stops_it(tmp_path: Path) -> None:
    place = made(tmp_path / "run")
    (place / "result.json").rename(tmp_path / "elsewhere")
    (place / "result.json").symlink_to(tmp_path / "elsewhere")
    refused(place, "'result.json', which no run wrote")


def test_a_file_that_went_is_missed_by_nobody(tmp_path: Path) -> None:
    place = made(tmp_path / "run")
    (place / "result.json").unlink()
    with run_folder(place, overwrite=True) as aside:
        fill(aside, "new")
    assert (place / "result.json").read_text() == "new"


@pytest.mark.parametrize("foreign", ["folder", "empty folder", "file"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_while_a_run_is_at_work_stays(tmp_path: Path, foreign: str, overwrite: bool) -> None:
    place = tmp_path / "run"

    def work() -> None:
        with run_folder(place, overwrite) as aside:
            fill(aside, "new")
            if foreign == "file":
                place.write_text("mine")
            else:
                place.mkdir()
            if foreign == "folder":
                (place / "thesis.txt").write_text("mine")

    if foreign == "empty folder" and overwrite:
        work()
        return
    with pytest.raises(RunFolderError, match="run"):
        work()
    kept = {"run/thesis.txt": b"mine"} if foreign == "folder" else {"run": b"mine"} if foreign == "file" else {}
    assert contents(tmp_path) == kept
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_file_put_into_a_run_while_another_replaces_it_stays(tmp_path: Path) -> None:
    place = made(tmp_path / "run")

    def work() -> None:
        with run_folder(place, overwrite=True) as aside:
            fill(aside, "new")
            (place / "thesis.txt").write_text("mine")

    with pytest.raises(RunFolderError, match=r"run holds 'thesis\.txt'"):
        work()
    assert (place / "thesis.txt").read_text() == "mine"
    assert (place / "result.json").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_of_two_runs_at_once_one_wins_and_the_other_says_so(tmp_path: Path) -> None:
    def both() -> None:
        with run_folder(tmp_path / "run") as one:
            fill(one, "first")
            with run_folder(tmp_path / "run") as other:
                fill(other, "second")

    with pytest.raises(RunFolderError, match="appeared while this run was at work"):
        both()
    assert (tmp_path / "run" / "result.json").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.skipif(os.name == "nt", reason="links take a right of their own there")
def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    made(tmp_path / "of-may")
    (tmp_path / "latest").symlink_to("of-may")
    with run_folder(tmp_path / "latest", overwrite=True) as aside:
        fill(aside, "new")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "of-may" / "result.json").read_text() == "new"


@pytest.mark.parametrize("place", ["file/run", "file/deeper/run", "n" * 300])
def test_a_folder_that_cannot_be_made_is_named_before_the_work(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="cannot be written"):
        check_target(tmp_path / place, overwrite=False)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems refuse such names themselves")
@pytest.mark.parametrize("name", ["new\nline", "it's", "-o", "bytes\udcff", "n" * 190, "\x1b[31m", "ü" * 95])
def test_a_run_may_have_any_name(tmp_path: Path, name: str) -> None:
    for overwrite in (False, True):
        with run_folder(tmp_path / name, overwrite) as aside:
            fill(aside, "1")
    assert os.listdir(tmp_path) == [name]


# ---------------------------------------------------------------- runs that grow


def test_a_run_that_grows_is_held_by_one_process_and_can_be_resumed(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with growing_folder(place, "lines") as folder:
        (folder / "lines").write_text("1\n")
        for way in ("resume", "overwrite"):
            with pytest.raises(RunFolderError, match="another run is at work"):
                growing_folder(place, "lines", **{way: True}).__enter__()  # type: ignore[arg-type]
    with growing_folder(place, "lines", resume=True) as folder:
        assert (folder / "lines").read_text() == "1\n"
    with growing_folder(place, "lines", overwrite=True) as folder:
        assert not (folder / "lines").exists()
    (place / "thesis.txt").write_text("mine")
    for way in ("resume", "overwrite"):
        with pytest.raises(RunFolderError, match=r"'thesis.txt', which no run wrote"):
            growing_folder(place, "lines", **{way: True}).__enter__()  # type: ignore[arg-type]
    assert (place / "thesis.txt").read_text() == "mine"


# ---------------------------------------------------------------- after a kill


@contextmanager
def somebody_dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names given in here are those of a process that has died."""
    with monkeypatch.context() as changed:
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        changed.setattr(os, "getpid", lambda: child.pid)
        changed.setattr(places, "_started", lambda pid: "12345")
        yield


def test_the_litter_of_a_killed_run_is_swept_up_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with somebody_dead(monkeypatch):
        fill_me = places.aside_of(tmp_path / "run")
        whole = places.aside_of(tmp_path / "run")
        file = places.aside_of(tmp_path / "table.csv")
    fill_me.mkdir()
    fill(fill_me, "half")
    made(tmp_path / "other").rename(whole)
    file.write_text("half")
    living = places.aside_of(tmp_path / "living")
    living.mkdir()
    (tmp_path / ".mine.steelyard-new").write_text("looks alike")
    made(tmp_path / "run", "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([living.name, ".mine.steelyard-new", "run"])


def test_litter_of_another_machine_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with somebody_dead(monkeypatch):
        monkeypatch.setattr(places, "_host", lambda: "0" * 8)
        elsewhere = places.aside_of(tmp_path / "run")
    monkeypatch.undo()
    elsewhere.mkdir()
    sweep_up(tmp_path)
    assert elsewhere.exists()


def test_a_kill_between_the_old_run_and_the_new_gives_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(tmp_path / "run")
    with somebody_dead(monkeypatch):
        place.rename(places.aside_of(place, "old"))
    sweep_up(tmp_path)
    assert names(tmp_path) == [
        "run",
        *(f"run/{x}" for x in ["manifest.json", "result.json", "tables", "tables/more.txt"]),
    ]


def test_litter_with_something_of_somebodys_in_it_is_put_where_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(tmp_path / "run")
    (place / "thesis.txt").write_text("mine")
    with somebody_dead(monkeypatch):
        place.rename(places.aside_of(place))
    sweep_up(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("run-kept-")
    assert (kept / "thesis.txt").read_text() == "mine"


SCRIPT = """
import sys
from steelyard.ground import places
from steelyard.ground.folders import run_folder
if sys.argv[2] == "fall-back":
    places._system_call = lambda: None
k = 0
while True:
    k += 1
    with run_folder(sys.argv[1], overwrite=True) as aside:
        for name in ("result.json", "more.txt"):
            (aside / name).write_text(str(k))
    print(k, flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_run(tmp_path: Path, how: str) -> None:
    target = tmp_path / "run"
    for attempt in range(6):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(target), how], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.kill()
        process.wait()
        if how == "fall-back":  # there is a moment without a run, which the next one mends
            sweep_up(tmp_path)
        assert len({(target / name).read_text() for name in ("result.json", "more.txt")}) == 1
        assert folders.only_a_run(target)
    check_target(target, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
