"""A run is a folder that appears whole, and that is replaced only where a run wrote all that it holds.

It is built aside and put in place by one step of the file system. `manifest.json` in it lists its files with their
hashes: what is not listed, or no longer as it was written, is somebody's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground.files import named, write_whole
from steelyard.ground.interrupt import unfinished, uninterrupted
from steelyard.ground.places import abandoned, aside_of, exchange, hold, rename_new
from steelyard.ground.repeat import command_and_folder
from steelyard.ground.untrusted import read_json

MANIFEST = "manifest.json"
_FORMAT = "steelyard-run-1"
# By which a process holds a folder in which its run grows.
_LOCK = ".steelyard-lock"
# Nobody's own: the lock, and what file managers leave behind in any folder that was looked at.
_OF_NO_WORTH = (_LOCK, ".DS_Store", "Thumbs.db", "desktop.ini")


class RunFolderError(SteelyardError):
    """A folder that a run cannot be written to: names it, and what would help."""


@contextmanager
def run_folder(target: str | os.PathLike[str], overwrite: bool = False, growing: Sequence[str] = ()) -> Iterator[Path]:
    """Yields a folder to fill; at the end it becomes `target`. If anything goes wrong nothing is left behind.

    Args:
        target: where the run goes; its parents are made.
        overwrite: replace a run that is there, if a run wrote all that it holds. It is exchanged for the new one in a
            single step of the file system where that has one (Linux, macOS), so that a kill at any moment leaves the
            old run or the new one.
        growing: files and folders of the run that will change in its place until it is replaced by the finished one.
    """
    place = check_target(Path(target), overwrite)
    aside = aside_of(place)
    with _refusing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        own = aside.stat().st_ino
    try:
        with unfinished(aside):
            yield aside
            with named(place / MANIFEST):
                _write_manifest(aside, growing, command_and_folder(place))
            with _refusing(place), uninterrupted():
                _put_in_place(aside, place, overwrite)
    finally:
        # After an exchange the folder aside is another one, and is removed by the list of what is in it.
        with contextlib.suppress(OSError):
            if aside.stat().st_ino == own:
                shutil.rmtree(aside)


@contextmanager
def growing_folder(
    target: str | os.PathLike[str], grown: str, *, overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Yields the folder of a run that grows in its place, so that it can go on after a kill; this process holds it.

    `Outcome.save`, with `overwrite`, replaces it by the finished run.

    Args:
        target: the folder; its parents are made.
        grown: the file or folder in it that grows.
        overwrite: what is there goes, if it is a run and nothing but a run.
        resume: what is there stays, if it is a run and nothing but a run.
    """
    place = Path(os.path.realpath(target))
    if resume and os.path.lexists(place):
        if not place.is_dir():
            raise RunFolderError(f"{target} is a file; a run is a folder.")
        only_a_run(place, grown=[grown])
        with _alone_in(place):
            _write_manifest(place, [grown], command_and_folder(place))
    else:
        if place.is_dir() and overwrite and only_a_run(place):
            with _alone_in(place):
                pass
        with run_folder(place, overwrite, [grown]):
            pass
    with _alone_in(place):
        yield place


@contextmanager
def _alone_in(place: Path) -> Iterator[None]:
    with _refusing(place):
        file = (place / _LOCK).open("ab")
    with file:
        if not hold(file):
            raise RunFolderError(f"{place}: another run is at work in this folder; wait for it, or give another one.")
        yield


def check_target(target: Path, overwrite: bool) -> Path:
    """Refuse early what would be refused at the end, and sweep up after runs that were killed.

    Args:
        target: where a run is to go: nothing may be there, unless `overwrite`.
        overwrite: there may be an empty folder, or a run with nothing of anybody else's in it.

    Returns:
        The place itself, where `target` is a link.
    """
    place = Path(os.path.realpath(target))
    sweep_up(place.parent)
    with _refusing(place), contextlib.suppress(FileNotFoundError):
        place.lstat()
    if os.path.lexists(place):
        if not overwrite:
            raise RunFolderError(f"{target} exists; give another folder, or --overwrite to replace it whole.")
        if not place.is_dir():
            raise RunFolderError(f"{target} is a file; a run is a folder.")
        only_a_run(place)
    with _refusing(place):
        standing = next(folder for folder in place.parents if folder.exists())
        probe = aside_of(standing / place.name)
        probe.mkdir()
        probe.rmdir()
    return place


def sweep_up(folder: Path) -> None:
    """Remove from `folder` what killed runs have left aside, and put back what they could no longer replace."""
    for path, place, kind in abandoned(folder):
        with contextlib.suppress(OSError):
            if kind == "old" and not os.path.lexists(place):
                rename_new(path, place)
            elif not path.is_dir() or path.is_symlink():
                path.unlink()
            elif kind == "new" and not (path / MANIFEST).exists():
                shutil.rmtree(path)
            else:  # a whole run: ours to take away only as long as a run wrote all of it
                try:
                    _remove(path)
                except RunFolderError:
                    rename_new(path, place.with_name(f"{place.name}-kept-{secrets.token_hex(2)}"))


def only_a_run(place: Path, called: Path | None = None, grown: Sequence[str] = ()) -> list[str]:
    """The names of all files of the run in `place`, or an error that names what else is there.

    Args:
        place: the folder. One that is empty holds nothing else either.
        called: what people call it, where it stands aside.
        grown: what may have changed, beside what still grows.
    """
    called = called or place
    with os.scandir(place) as entries:
        first = min((entry.name for entry in entries), default="")
    if not first:
        return []
    if (listed := _manifest(place)) is None:
        raise RunFolderError(
            f"{called} holds no run that says what it wrote ('{first}', but no {MANIFEST}): it is somebody's own or an "
            "older version's, and is not replaced, for safety's sake; give another folder, or move it away."
        )
    own = {MANIFEST, *listed["growing"], *grown}
    folders = {parent.as_posix() for name in listed["files"] for parent in Path(name).parents}
    found = []
    for name, path, mode in _held(place, listed["growing"]):
        if name in own or path.name in _OF_NO_WORTH:
            found.append(name)
        elif stat.S_ISREG(mode) and name in listed["files"]:
            if _hash(path) != listed["files"][name]:
                raise _foreign(called, name, "which was changed after a run wrote it")
            found.append(name)
        elif not (stat.S_ISDIR(mode) and name in folders):
            raise _foreign(called, name, "which no run wrote")
    return found


def _foreign(place: Path, name: str, why: str) -> RunFolderError:
    return RunFolderError(
        f"{place} holds '{name}', {why}; only what a run wrote is replaced, and nothing was touched: move that away, "
        "or give another folder."
    )


def _held(place: Path, whole: Sequence[str], above: str = "") -> Iterator[tuple[str, Path, int]]:
    """All that a folder holds, by name, folders before what is in them; `whole` names those not to look into."""
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            name, mode = above + entry.name, entry.stat(follow_symlinks=False).st_mode
            yield name, place / entry.name, mode
            if stat.S_ISDIR(mode) and name not in whole:
                yield from _held(place / entry.name, whole, name + "/")


def _manifest(place: Path) -> dict[str, Any] | None:
    path = place / MANIFEST
    if path.is_symlink():
        return None
    try:
        found = read_json(path, RunFolderError, "it is no run's").table(
            ("format", "files", "growing"), ("command", "command_in")
        )
        files = {name: entry.value for name, entry in found["files"].entries().items()}
        growing = [entry.value for entry in found["growing"].items("name")]
    except RunFolderError:
        return None
    right = found["format"].value == _FORMAT and all(isinstance(name, str) for name in growing)
    return {"files": files, "growing": growing} if right else None


def _write_manifest(place: Path, growing: Sequence[str], command: Mapping[str, str]) -> None:
    files = {
        name: _hash(path)
        for name, path, mode in _held(place, growing)
        if stat.S_ISREG(mode) and name not in (MANIFEST, *growing) and path.name not in _OF_NO_WORTH
    }
    content = {"format": _FORMAT, **command, "growing": list(growing), "files": files}
    write_whole(place / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put_in_place(aside: Path, place: Path, overwrite: bool) -> None:
    if not overwrite or not os.path.lexists(place):
        try:
            rename_new(aside, place)
        except FileExistsError:
            raise RunFolderError(
                f"{place} appeared while this run was at work, perhaps by another run; it was not touched, and nothing "
                "was written: give another folder."
            ) from None
        return
    _to_the_disk(aside)  # before the old run goes: after a power cut there is one of them
    if not any(place.iterdir()):
        place.rmdir()
        rename_new(aside, place)
    elif exchange(aside, place):
        # What was put there since it was looked at is seen now, when nobody finds the folder any more.
        with _undone(lambda: exchange(aside, place)):
            only_a_run(aside, place)
        _remove(aside)
    else:
        old = aside_of(place, "old")
        os.rename(place, old)
        with _undone(lambda: os.rename(old, place)):
            only_a_run(old, place)
            rename_new(aside, place)
        _remove(old)


@contextmanager
def _undone(undo: Any) -> Iterator[None]:
    try:
        yield
    except BaseException:
        undo()
        raise


def _remove(folder: Path) -> None:
    """Take away a run's own files, the list of them last, and the folders that are empty then."""
    own = only_a_run(folder)
    for name in sorted(own, key=MANIFEST.__eq__):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        path.rmdir()
    folder.rmdir()


def _to_the_disk(folder: Path) -> None:
    for _, path, mode in _held(folder, ()):
        if stat.S_ISREG(mode):
            with path.open("rb+") as file, contextlib.suppress(OSError):
                os.fsync(file.fileno())


@contextmanager
def _refusing(place: Path) -> Iterator[None]:
    """What the system says against a place, as a sentence that names it."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{place}: cannot be written ({error.strerror}); choose another folder.") from None
