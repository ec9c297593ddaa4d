"""Run folders: they appear atomically, and are replaced only if a run wrote every file in them.

A run is built in a staging folder and put in place by one rename. Its `manifest.json` lists the files with their
hashes. A file that is not listed, or has another hash, belongs to the user.
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
from steelyard.ground.atomic_files import exchange, leftovers, lock_file, rename_new, staging_path
from steelyard.ground.files import name_in_errors, write_whole
from steelyard.ground.interrupt import unfinished, uninterrupted
from steelyard.ground.repeat import command_and_folder
from steelyard.ground.untrusted_files import read_json

MANIFEST = "manifest.json"
_FORMAT = "steelyard-run-1"
# Locked by the process whose run grows in the folder.
_LOCK = ".steelyard-lock"
# Files that may be deleted: the lock, and files that file managers create.
_IGNORED = (_LOCK, ".DS_Store", "Thumbs.db", "desktop.ini")


class RunFolderError(SteelyardError):
    """A run cannot be written to a folder; the message names the folder and the remedy."""


@contextmanager
def run_folder(target: str | os.PathLike[str], overwrite: bool = False, growing: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a staging folder, which becomes the run folder at the end; a failure leaves no trace.

    Args:
        target: Path of the run; parent folders are created.
        overwrite: Replace an existing run, if a run wrote every file in it. On Linux and macOS the old and the new
            run are exchanged in one step, so that a kill at any moment leaves one of them.
        growing: Files and folders of the run that continue to change after it is in place.
    """
    folder = check_target(Path(target), overwrite)
    staging = staging_path(folder)
    with _translate_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir()
        own = staging.stat().st_ino
    try:
        with unfinished(staging):
            yield staging
            with name_in_errors(folder / MANIFEST):
                _write_manifest(staging, growing, command_and_folder(folder))
            with _translate_errors(folder), uninterrupted():
                _put_in_place(staging, folder, overwrite)
    finally:
        # After an exchange the staging path holds the old run, which `_remove` deletes by its manifest.
        with contextlib.suppress(OSError):
            if staging.stat().st_ino == own:
                shutil.rmtree(staging)


@contextmanager
def growing_folder(
    target: str | os.PathLike[str], grown: str, *, overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Yield the locked folder of a run that grows in place, so that it can continue after a kill.

    `Outcome.save` with `overwrite` replaces it by the finished run.

    Args:
        target: Path of the run; parent folders are created.
        grown: File or folder of the run that grows.
        overwrite: Delete an existing run, if a run wrote every file in it.
        resume: Continue an existing run, if a run wrote every file in it.
    """
    folder = Path(os.path.realpath(target))
    if resume and os.path.lexists(folder):
        if not folder.is_dir():
            raise RunFolderError(f"{target} is a file; a run is a folder.")
        only_a_run(folder, grown=[grown])
        with _locked(folder):
            _write_manifest(folder, [grown], command_and_folder(folder))
    else:
        if folder.is_dir() and overwrite and only_a_run(folder):
            with _locked(folder):
                pass
        with run_folder(folder, overwrite, [grown]):
            pass
    with _locked(folder):
        yield folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with _translate_errors(folder):
        file = (folder / _LOCK).open("ab")
    with file:
        if not lock_file(file):
            raise RunFolderError(f"{folder}: another run is writing to this folder; wait for it, or give another one.")
        yield


def check_target(target: Path, overwrite: bool) -> Path:
    """Check early that a run can be written, remove leftovers of killed runs, and return the path without links.

    Args:
        target: Path of the run.
        overwrite: Accept an empty folder, or a run without files of the user.
    """
    folder = Path(os.path.realpath(target))
    sweep_up(folder.parent)
    with _translate_errors(folder), contextlib.suppress(FileNotFoundError):
        folder.lstat()
    if os.path.lexists(folder):
        if not overwrite:
            raise RunFolderError(f"{target} exists; give another folder, or --overwrite to replace it.")
        if not folder.is_dir():
            raise RunFolderError(f"{target} is a file; a run is a folder.")
        only_a_run(folder)
    with _translate_errors(folder):
        standing = next(parent for parent in folder.parents if parent.exists())
        probe = staging_path(standing / folder.name)
        probe.mkdir()
        probe.rmdir()
    return folder


def sweep_up(folder: Path) -> None:
    """Remove leftovers of killed runs from a `folder`, and restore old runs that they had not replaced yet."""
    for path, target, kind in leftovers(folder):
        with contextlib.suppress(OSError):
            if kind == "old" and not os.path.lexists(target):
                rename_new(path, target)
            elif not path.is_dir() or path.is_symlink():
                path.unlink()
            elif kind == "new" and not (path / MANIFEST).exists():
                shutil.rmtree(path)
            else:  # a complete run: deleted only if a run wrote every file in it
                try:
                    _remove(path)
                except RunFolderError:
                    rename_new(path, target.with_name(f"{target.name}-kept-{secrets.token_hex(2)}"))


def only_a_run(folder: Path, called: Path | None = None, grown: Sequence[str] = ()) -> list[str]:
    """List the files of a run; raise RunFolderError if the folder holds any other file.

    Args:
        folder: Folder to check; it may be empty.
        called: Path for messages, if the folder has a staging name.
        grown: Files that may have changed, in addition to those that still grow.
    """
    called = called or folder
    with os.scandir(folder) as entries:
        first = min((entry.name for entry in entries), default="")
    if not first:
        return []
    if (listed := _manifest(folder)) is None:
        raise RunFolderError(
            f"{called} is not replaced: it contains '{first}' but no {MANIFEST}, so it may hold files of the user or "
            "of an older version; give another folder, or move it away."
        )
    own = {MANIFEST, *listed["growing"], *grown}
    folders = {parent.as_posix() for name in listed["files"] for parent in Path(name).parents}
    names = []
    for name, path, mode in _walk(folder, listed["growing"]):
        if name in own or path.name in _IGNORED:
            names.append(name)
        elif stat.S_ISREG(mode) and name in listed["files"]:
            if _hash(path) != listed["files"][name]:
                raise _foreign_file(called, name, "which was changed after a run wrote it")
            names.append(name)
        elif not (stat.S_ISDIR(mode) and name in folders):
            raise _foreign_file(called, name, "which no run wrote")
    return names


def _foreign_file(folder: Path, name: str, why: str) -> RunFolderError:
    return RunFolderError(
        f"{folder} contains '{name}', {why}; only files of a run are replaced, and nothing was changed: move the file "
        "away, or give another folder."
    )


def _walk(folder: Path, whole: Sequence[str], above: str = "") -> Iterator[tuple[str, Path, int]]:
    """Yield name, path and mode of all entries of a folder, parents first; omit the content of folders in `whole`."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            name, mode = above + entry.name, entry.stat(follow_symlinks=False).st_mode
            yield name, folder / entry.name, mode
            if stat.S_ISDIR(mode) and name not in whole:
                yield from _walk(folder / entry.name, whole, name + "/")


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    if path.is_symlink():
        return None
    try:
        table = read_json(path, RunFolderError, "").table(("format", "files", "growing"), ("command", "command_in"))
        files = {name: entry.value for name, entry in table["files"].entries().items()}
        growing = [entry.value for entry in table["growing"].items("name")]
    except RunFolderError:
        return None
    valid = table["format"].value == _FORMAT and all(isinstance(name, str) for name in growing)
    return {"files": files, "growing": growing} if valid else None


def _write_manifest(folder: Path, growing: Sequence[str], command: Mapping[str, str]) -> None:
    files = {
        name: _hash(path)
        for name, path, mode in _walk(folder, growing)
        if stat.S_ISREG(mode) and name not in (MANIFEST, *growing) and path.name not in _IGNORED
    }
    content = {"format": _FORMAT, **command, "growing": list(growing), "files": files}
    write_whole(folder / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put_in_place(staging: Path, folder: Path, overwrite: bool) -> None:
    if not overwrite or not os.path.lexists(folder):
        try:
            rename_new(staging, folder)
        except FileExistsError:
            raise RunFolderError(
                f"{folder} was created during this run, perhaps by another run; it was not changed, and nothing was "
                "written: give another folder."
            ) from None
        return
    _sync_to_disk(staging)  # first, so that a power cut leaves the old or the new run
    if not any(folder.iterdir()):
        folder.rmdir()
        rename_new(staging, folder)
    elif exchange(staging, folder):
        # Check again: a file may have been added since the first check; the old name is now out of reach.
        with _undo_on_error(lambda: exchange(staging, folder)):
            only_a_run(staging, folder)
        _remove(staging)
    else:
        old = staging_path(folder, "old")
        os.rename(folder, old)
        with _undo_on_error(lambda: os.rename(old, folder)):
            only_a_run(old, folder)
            rename_new(staging, folder)
        _remove(old)


@contextmanager
def _undo_on_error(undo: Any) -> Iterator[None]:
    try:
        yield
    except BaseException:
        undo()
        raise


def _remove(folder: Path) -> None:
    """Delete the files of a run, its manifest last, and then its empty folders."""
    own = only_a_run(folder)
    for name in sorted(own, key=MANIFEST.__eq__):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        path.rmdir()
    folder.rmdir()


def _sync_to_disk(folder: Path) -> None:
    for _, path, mode in _walk(folder, ()):
        if stat.S_ISREG(mode):
            with path.open("rb+") as file, contextlib.suppress(OSError):
                os.fsync(file.fileno())


@contextmanager
def _translate_errors(folder: Path) -> Iterator[None]:
    """Translate system errors into a sentence that names the folder."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be written ({error.strerror}); choose another folder.") from None
