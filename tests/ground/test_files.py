"""Files appear whole, what is somebody's own is not replaced, and what cannot be written is told early."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from steelyard.errors import SteelyardError
from steelyard.ground import places
from steelyard.ground.files import OwnFile, check_file, named, write_whole


@pytest.fixture(autouse=True, params=["system", "links", "neither"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system's own step, by links, and on file systems that have neither."""
    if request.param != "system":
        monkeypatch.setattr(places, "_system_call", lambda: None)
    if request.param == "neither":

        def no_links(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr("os.link", no_links)


def test_a_new_file_is_put_on_nothing(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.txt", "second", new=True)
    write_whole(tmp_path / "b.txt", b"bytes", new=True)
    assert (tmp_path / "a.txt").read_text() == "first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.skipif(os.name == "nt", reason="links take a right of their own there")
def test_a_new_file_is_not_put_on_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "link", "second", new=True)
    assert [p.name for p in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize(
    ("place", "why"),
    [("here.txt", "exists and is not replaced"), (".", "is a folder"), ("missing/a.txt", "cannot be written"),
     ("here.txt/a.txt", "cannot be written")],
)  # fmt: skip
def test_what_cannot_be_written_is_told_early(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "here.txt").write_text("mine")
    with pytest.raises(SteelyardError, match=why):
        check_file(tmp_path / place)
    check_file(tmp_path / "new.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["here.txt"]


def test_a_checkpoint_that_another_process_wrote_is_not_replaced(tmp_path: Path) -> None:
    one, other = OwnFile(tmp_path / "kept.json"), OwnFile(tmp_path / "kept.json")
    one.write("1")
    with pytest.raises(SteelyardError, match="another process"):
        other.write("2")
    one.write("3")
    assert (tmp_path / "kept.json").read_text() == "3"
    again = OwnFile(tmp_path / "kept.json")
    again.write("4")
    with pytest.raises(SteelyardError, match="another process"):
        one.write("5")
    (tmp_path / "kept.json").unlink()
    again.write("6")
    assert (tmp_path / "kept.json").read_text() == "6"


def test_a_failure_names_the_file_that_people_know(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left.*result\.json"), named(tmp_path / "result.json"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"in other words.*result\.json"), named(tmp_path / "result.json"):
        raise OSError("in other words")
