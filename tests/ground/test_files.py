"""Files are written atomically, files of others are not replaced, and unwritable paths are refused early."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from steelyard.errors import SteelyardError
from steelyard.ground import atomic_files
from steelyard.ground.files import OwnFile, check_file, name_in_errors, write_whole


@pytest.fixture(autouse=True, params=["system", "links", "neither"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rename by the system call, by hard links, and on file systems with neither."""
    if request.param != "system":
        monkeypatch.setattr(atomic_files, "_system_call", lambda: None)
    if request.param == "neither":

        def no_links(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr("os.link", no_links)


def test_a_new_file_does_not_replace_an_existing_one(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.txt", "second", new=True)
    write_whole(tmp_path / "b.txt", b"bytes", new=True)
    assert (tmp_path / "a.txt").read_text() == "first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.skipif(os.name == "nt", reason="links need a special permission on Windows")
def test_a_new_file_does_not_replace_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "link", "second", new=True)
    assert [p.name for p in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize(
    ("path", "why"),
    [("here.txt", "exists and is not replaced"), (".", "is a folder"), ("missing/a.txt", "cannot be written"),
     ("here.txt/a.txt", "cannot be written")],
)  # fmt: skip
def test_an_unwritable_path_is_refused_early(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "here.txt").write_text("mine")
    with pytest.raises(SteelyardError, match=why):
        check_file(tmp_path / path)
    check_file(tmp_path / "new.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["here.txt"]


def test_a_file_changed_by_another_process_is_not_replaced(tmp_path: Path) -> None:
    one, other = OwnFile(tmp_path / "state.json"), OwnFile(tmp_path / "state.json")
    one.write("1")
    with pytest.raises(SteelyardError, match="another process"):
        other.write("2")
    one.write("3")
    assert (tmp_path / "state.json").read_text() == "3"
    again = OwnFile(tmp_path / "state.json")
    again.write("4")
    with pytest.raises(SteelyardError, match="another process"):
        one.write("5")
    (tmp_path / "state.json").unlink()
    again.write("6")
    assert (tmp_path / "state.json").read_text() == "6"


def test_an_error_names_the_final_path(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left.*result\.json"), name_in_errors(tmp_path / "result.json"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"error of a library.*result\.json"), name_in_errors(tmp_path / "result.json"):
        raise OSError("error of a library")
