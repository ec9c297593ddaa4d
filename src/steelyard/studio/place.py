"""`StudioFolder`: the folder that a studio works in: its project file, runs and uploads, and no path outside of it.

The folder holds data. Jobs, locks and everything else that gives power lie in this user's own state folder, one folder
for each studio (`StudioFolder.own`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.ground.atomic_files import rename_new
from steelyard.ground.extras import import_extra
from steelyard.ground.files import name_in_errors, write_whole
from steelyard.ground.folders import MANIFEST, sweep_up
from steelyard.ground.untrusted import read_json, read_text
from steelyard.ground.user_files import NotOursError, make_own_folder, state_folder
from steelyard.project import PROJECT_FILE, Project
from steelyard.studio.containment import OWN, StudioError, check_project, is_inside, is_plain_run, path_inside

# The page in the state folder that a browser is started with; it holds the token.
DOORWAY = "open.html"
__all__ = ["DOORWAY", "OWN", "RUNS_FOLDER", "StudioError", "StudioFolder", "Trashed"]
RUNS_FOLDER = "runs"
_ODD = re.compile(r"[^\w.+ -]", re.UNICODE)
_LONGEST = 120
# In a folder of the trash: where its content was.
_FROM = ".from"
# How far below the folder runs are looked for, and among how many entries.
_DEPTH, _MOST_ENTRIES = 3, 5000
# Bytes of the file that says where a thing of the trash was.
_LONGEST_FROM = 5000
_TOUCHED = "touched"
# Names of unfinished uploads.
_UPLOAD = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Trashed:
    """What lies in the trash: `name` there, `path`, where it `came` from, and `when` it went, seconds since 1970."""

    name: str
    path: Path
    came: str
    when: float


class StudioFolder:
    """The folder.

    Args:
        folder: exists; everything that is read or written for a browser lies in it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(folder))
        self._turn = threading.Lock()

    # ------------------------------------------------------------ paths

    def own(self, *parts: str) -> Path:
        """Return a path in this user's state folder of this studio; the folders above it are made.

        Args:
            parts: the names below the state folder.
        """
        folder = state_folder()
        key = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:32]
        try:
            for part in ("", "studio", key, *parts[:-1]):
                folder = make_own_folder(folder / part if part else folder)
        except NotOursError as error:
            raise StudioError(f"{error}, or set STEELYARD_STATE to a folder of your own.") from None
        except NotADirectoryError:
            raise StudioError(f"{folder} is no folder; set STEELYARD_STATE to a folder of your own.") from None
        return folder.joinpath(*parts[-1:])

    def data(self, *parts: str) -> Path:
        """Return a path in the hidden folder FOLDER/.steelyard, which holds data only; the folders above it are made.

        Args:
            parts: the names below the hidden folder.
        """
        path = self.root
        for part in (OWN, *parts[:-1]):
            path = path / part
            with suppress(FileExistsError):
                path.mkdir()
            if not stat.S_ISDIR(path.lstat().st_mode):  # a link would lead elsewhere
                raise StudioError(f"{self.relative(path)} is not a folder of this studio; delete it.")
        return path.joinpath(*parts[-1:])

    def inside(self, text: str) -> Path:
        """The path that `text`, which came from a browser, names below the folder; an error if it is elsewhere, or
        the studio's own."""
        return path_inside(self.root, text)

    @property
    def touched(self) -> bool:
        """True if this user has sent a form of this studio: then a page may start work of its own, such as a check."""
        return self.own(_TOUCHED).exists()

    def touch(self) -> None:
        """Remember that this user has sent a form of this studio."""
        self.own(_TOUCHED).touch(mode=0o600)

    def relative(self, path: Path) -> str:
        """`path`, which lies in the folder, as commands in it would say it."""
        return path.relative_to(self.root).as_posix()

    def free_name(self, folder: str, name: str) -> Path:
        """Where a new file called `name` by a browser goes in `folder`: a safe name that is not taken."""
        wanted = _ODD.sub("_", os.path.basename(name.replace("\\", "/"))).strip(". ") or "file"
        stem, dot, ending = wanted[-_LONGEST:].lstrip(". ").partition(".")
        place = self.inside(folder) if folder else self.root
        place.mkdir(parents=True, exist_ok=True)
        tried, k = place / f"{stem}{dot}{ending}", 2
        while os.path.lexists(tried):
            tried, k = place / f"{stem}-{k}{dot}{ending}", k + 1
        return tried

    # ------------------------------------------------------------ the project file

    @property
    def project_file(self) -> Path:
        """The project file of this folder, whether it exists or not; one further up is not this studio's."""
        return self.root / PROJECT_FILE

    def project(self) -> Project:
        """What the project file says; an empty project where there is none. All its paths lie in the folder."""
        if not os.path.lexists(self.project_file):
            return Project(self.project_file)
        if not is_inside(self.root, self.project_file):
            raise StudioError(f"{PROJECT_FILE} is a link that leads out of the folder; copy the file into it.")
        return check_project(self.root, Project.load(self.project_file))

    def change(self, edit: Callable[[Any], None]) -> None:
        """Change the project file: comments and order stay.

        Args:
            edit: is given the document (tomlkit), which reads and writes like a dictionary.
        """
        tomlkit = import_extra("tomlkit", "studio", "The studio", StudioError)
        with self._turn:
            self.project()  # a link that leads out, or a damaged file, is refused
            text = self.project_file.read_text("utf-8") if self.project_file.exists() else f'runs = "{RUNS_FOLDER}"\n'
            document = tomlkit.parse(text)
            edit(document)
            made = tomlkit.dumps(document)
            aside = self.own("project.toml")
            write_whole(aside, made)
            check_project(self.root, Project.load(aside))  # what cannot be read is never put in place
            if made != text or not self.project_file.exists():
                write_whole(self.project_file, made)
            aside.unlink(missing_ok=True)

    def set(self, **keys: Any) -> None:
        """Set `keys` of the project file; None takes one away."""

        def edit(document: Any) -> None:
            for key, value in keys.items():
                if value is None:
                    document.pop(key, None)
                else:
                    document[key] = value

        self.change(edit)

    # ------------------------------------------------------------ runs

    @property
    def runs_folder(self) -> str:
        """Where runs are written, relative to the folder."""
        return self.project().runs or RUNS_FOLDER

    def new_run(self, name: str, taken: tuple[str, ...] = ()) -> str:
        """A folder for a run of a command `name` that does not exist yet, relative; none of those `taken`."""
        k = 1
        while True:
            text = f"{self.runs_folder}/{name}-{k}"
            if text not in taken and not os.path.lexists(self.root / text):
                return text
            k += 1

    def runs(self) -> list[Path]:
        """Every run in the folder, the newest first; those inside of runs are theirs."""
        for home in {self.root, self.root / self.runs_folder}:
            with suppress(OSError):
                sweep_up(home)
        found = [one for one in _runs_below(self.root, _DEPTH) if is_plain_run(self.root, one[1])]
        return [path for _, path in sorted(found, key=lambda one: (-one[0], one[1].name))]

    def run(self, text: str) -> Path:
        """The run that a browser names by `text`."""
        path = self.inside(text)
        if not (path / MANIFEST).is_file() or not is_plain_run(self.root, path):
            raise StudioError(f"{text}: there is no such run; it may have been deleted.")
        return path

    def command_of(self, run: Path) -> str:
        """The command that repeats a `run`; "" if it does not say."""
        found = (run / MANIFEST).stat()
        return _command(str(run), found.st_mtime_ns, found.st_size)

    def trash(self, path: Path) -> Path:
        """Move `path`, a run or a file, to the trash, and return where it is now."""
        stamp, home = time.strftime("%Y%m%d-%H%M%S"), self.data("trash", "x").parent
        k = 0
        while True:
            target = home / (f"{stamp}-{k}" if k else stamp) / path.name
            with name_in_errors(path):
                try:
                    target.parent.mkdir(parents=True)
                except FileExistsError:
                    k += 1
                    continue
                write_whole(target.parent / _FROM, self.relative(path))
                rename_new(path, target)
            return target

    def trashed(self) -> list[Trashed]:
        """What people have put in the trash, the latest first; not what the studio itself has."""
        found = []
        with suppress(OSError):
            for folder in sorted(self._data_folder("trash"), reverse=True)[:_MOST_ENTRIES]:
                if folder.is_symlink() or not folder.is_dir():
                    continue
                kept = [path for path in folder.iterdir() if path.name != _FROM]
                if len(kept) == 1 and (folder / _FROM).is_file() and not (folder / _FROM).is_symlink():
                    came = _origin(folder / _FROM)
                    if came and not came.startswith(OWN):
                        found.append(Trashed(folder.name, kept[0], came, (folder / _FROM).stat().st_mtime))
        return found

    def sweep_uploads(self) -> None:
        """Remove the unfinished uploads that a killed server left."""
        with suppress(OSError):
            for path in self._data_folder("uploads"):
                if _UPLOAD.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()

    def _data_folder(self, name: str) -> list[Path]:
        """List a folder in FOLDER/.steelyard; empty if there is none. Nothing is made, and no link is followed."""
        folder = self.root / OWN / name
        if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
            return []
        return list(folder.iterdir())

    def put_back(self, name: str) -> Path:
        """Put what is in the trash as `name` back to where it was, or beside it; returns where."""
        kept = next((one for one in self.trashed() if one.name == name), None)
        if kept is None:
            raise StudioError("That is not in the trash; it may have been put back already.")
        target = wanted = self.inside(kept.came)
        k = 2
        while True:
            with name_in_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    rename_new(kept.path, target)
                    break
                except FileExistsError:
                    target, k = wanted.with_name(f"{wanted.stem}-{k}{wanted.suffix}"), k + 1
        shutil.rmtree(kept.path.parent, ignore_errors=True)
        return target

    def free_bytes(self) -> int:
        """Room on the disk."""
        return shutil.disk_usage(self.root).free


def _origin(path: Path) -> str:
    """Read where a thing of the trash was; "" for a file that does not say."""
    with suppress(StudioError):
        return read_text(path, _LONGEST_FROM, StudioError)
    return ""


@lru_cache(4096)
def _command(run: str, _changed: int, _size: int) -> str:
    """Read once, as long as it does not change: every page asks for all of them."""
    found = read_json(Path(run) / MANIFEST, StudioError, "Delete the run, and make it anew.").value
    command = found.get("command", "") if isinstance(found, dict) else ""
    return command if isinstance(command, str) else ""


def _runs_below(folder: Path, depth: int) -> Iterator[tuple[float, Path]]:
    """When each was written, and where it is."""
    try:
        entries = [e for e in islice(os.scandir(folder), _MOST_ENTRIES) if not e.name.startswith(".")]
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            try:
                yield os.stat(os.path.join(entry.path, MANIFEST)).st_mtime, Path(entry.path)
            except OSError:
                if depth > 1:
                    yield from _runs_below(Path(entry.path), depth - 1)
