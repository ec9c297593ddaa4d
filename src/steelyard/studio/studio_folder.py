"""`StudioFolder`: the working folder of a studio, with its project file, runs and uploads.

The folder holds data only. Jobs, locks and the token page are in the user's state folder (`StudioFolder.state_path`).
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
from steelyard.ground.untrusted_files import read_json, read_text
from steelyard.ground.user_files import NotOursError, make_own_folder, state_folder
from steelyard.project import PROJECT_FILE, Project
from steelyard.studio.containment import OWN, StudioError, check_project, is_inside, is_plain_run, path_inside

# Start page in the state folder; the browser opens it first. It holds the token.
START_PAGE = "open.html"
__all__ = ["OWN", "RUNS_FOLDER", "START_PAGE", "StudioError", "StudioFolder", "TrashEntry"]
RUNS_FOLDER = "runs"
_UNSAFE_CHARACTERS = re.compile(r"[^\w.+ -]", re.UNICODE)
_LONGEST_NAME = 120
# File in a trash folder that holds the original path of its content, and its size limit [bytes].
_ORIGIN_FILE, _LONGEST_ORIGIN = ".from", 5000
# Folder depth of the search for runs, and the most entries read per folder.
_DEPTH, _MOST_ENTRIES = 3, 5000
_USED_FILE = "touched"
# Names of unfinished uploads.
_UPLOAD = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class TrashEntry:
    """A run or file in the trash.

    Attributes:
        name: Name of its folder in the trash.
        path: Its path in the trash.
        origin: Its original path, relative to the studio's folder.
        when: Time of the deletion [s since 1970].
    """

    name: str
    path: Path
    origin: str
    when: float


class StudioFolder:
    """The working folder of a studio.

    Args:
        folder: An existing folder. The studio reads and writes nothing outside of it for a browser.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(folder))
        self._edit_lock = threading.Lock()

    # ------------------------------------------------------------ paths

    def state_path(self, *parts: str) -> Path:
        """Return a path in the user's state folder of this studio and create its parent folders.

        Args:
            parts: Names below the state folder.
        """
        folder = state_folder()
        key = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:32]
        try:
            for part in ("", "studio", key, *parts[:-1]):
                folder = make_own_folder(folder / part if part else folder)
        except NotOursError as error:
            raise StudioError(f"{error}, or set STEELYARD_STATE to a folder of your own.") from None
        except NotADirectoryError:
            raise StudioError(f"{folder} is not a folder; set STEELYARD_STATE to a folder of your own.") from None
        return folder.joinpath(*parts[-1:])

    def hidden_path(self, *parts: str) -> Path:
        """Return a path in the hidden folder FOLDER/.steelyard (data only) and create its parent folders.

        Args:
            parts: Names below the hidden folder.
        """
        path = self.root
        for part in (OWN, *parts[:-1]):
            path = path / part
            with suppress(FileExistsError):
                path.mkdir()
            if not stat.S_ISDIR(path.lstat().st_mode):  # a link could lead outside
                raise StudioError(f"{self.relative(path)} is not a folder of this studio; delete it.")
        return path.joinpath(*parts[-1:])

    def path_inside(self, text: str) -> Path:
        """Return the path that a browser's `text` names; a StudioError if it is outside the folder or hidden."""
        return path_inside(self.root, text)

    @property
    def was_used(self) -> bool:
        """Whether the user has submitted a form of this studio; only then may a page start a check automatically."""
        return self.state_path(_USED_FILE).exists()

    def mark_used(self) -> None:
        """Record that the user has submitted a form of this studio."""
        self.state_path(_USED_FILE).touch(mode=0o600)

    def relative(self, path: Path) -> str:
        """Return a `path` in the folder relative to the folder, with forward slashes."""
        return path.relative_to(self.root).as_posix()

    def free_path(self, subfolder: str, name: str) -> Path:
        """Return a safe path for a new file that does not exist yet.

        Args:
            subfolder: Target folder below the studio's folder; "" for the studio's folder itself.
            name: File name from the browser.
        """
        safe = _UNSAFE_CHARACTERS.sub("_", os.path.basename(name.replace("\\", "/"))).strip(". ") or "file"
        stem, dot, ending = safe[-_LONGEST_NAME:].lstrip(". ").partition(".")
        parent = self.path_inside(subfolder) if subfolder else self.root
        parent.mkdir(parents=True, exist_ok=True)
        path, k = parent / f"{stem}{dot}{ending}", 2
        while os.path.lexists(path):
            path, k = parent / f"{stem}-{k}{dot}{ending}", k + 1
        return path

    # ------------------------------------------------------------ the project file

    @property
    def project_file(self) -> Path:
        """Path of the project file, whether it exists or not; project files in parent folders are ignored."""
        return self.root / PROJECT_FILE

    def project(self) -> Project:
        """Load the project file and check that all its paths are in the folder; an empty project without a file."""
        if not os.path.lexists(self.project_file):
            return Project(self.project_file)
        if not is_inside(self.root, self.project_file):
            raise StudioError(f"{PROJECT_FILE} is a link that leads out of the folder; copy the file into it.")
        return check_project(self.root, Project.load(self.project_file))

    def edit_project(self, edit: Callable[[Any], None]) -> None:
        """Edit the project file; comments and order stay.

        Args:
            edit: Changes the tomlkit document, which works like a dictionary.
        """
        tomlkit = import_extra("tomlkit", "studio", "The studio", StudioError)
        with self._edit_lock:
            self.project()  # rejects a link that leads out and a damaged file
            text = self.project_file.read_text("utf-8") if self.project_file.exists() else f'runs = "{RUNS_FOLDER}"\n'
            document = tomlkit.parse(text)
            edit(document)
            new_text = tomlkit.dumps(document)
            draft = self.state_path("project.toml")
            write_whole(draft, new_text)
            check_project(self.root, Project.load(draft))  # an unreadable draft never replaces the project file
            if new_text != text or not self.project_file.exists():
                write_whole(self.project_file, new_text)
            draft.unlink(missing_ok=True)

    def set_keys(self, **keys: Any) -> None:
        """Set `keys` of the project file; None removes a key."""

        def edit(document: Any) -> None:
            for key, value in keys.items():
                if value is None:
                    document.pop(key, None)
                else:
                    document[key] = value

        self.edit_project(edit)

    # ------------------------------------------------------------ runs

    @property
    def runs_folder(self) -> str:
        """Folder for new runs, relative to the studio's folder."""
        return self.project().runs or RUNS_FOLDER

    def new_run(self, name: str, taken: tuple[str, ...] = ()) -> str:
        """Return a relative path for a new run that does not exist yet.

        Args:
            name: Start of the folder's name, such as the command.
            taken: Paths that running jobs will write.
        """
        k = 1
        while True:
            text = f"{self.runs_folder}/{name}-{k}"
            if text not in taken and not os.path.lexists(self.root / text):
                return text
            k += 1

    def run_paths(self) -> list[Path]:
        """List every run in the folder, newest first; runs inside other runs are skipped."""
        for home in {self.root, self.root / self.runs_folder}:
            with suppress(OSError):
                sweep_up(home)
        runs = [run for run in _runs_below(self.root, _DEPTH) if is_plain_run(self.root, run[1])]
        return [path for _, path in sorted(runs, key=lambda run: (-run[0], run[1].name))]

    def get_run(self, text: str) -> Path:
        """Return the run folder that a browser's `text` names."""
        path = self.path_inside(text)
        if not (path / MANIFEST).is_file() or not is_plain_run(self.root, path):
            raise StudioError(f"{text}: this run does not exist; it may have been deleted.")
        return path

    def command_of(self, run: Path) -> str:
        """Return the command that repeats a `run`; "" if the manifest lacks it."""
        state = (run / MANIFEST).stat()
        return _command(str(run), state.st_mtime_ns, state.st_size)

    def move_to_trash(self, path: Path) -> Path:
        """Move a run or file at `path` to the trash and return its new path."""
        stamp, home = time.strftime("%Y%m%d-%H%M%S"), self.hidden_path("trash", "x").parent
        k = 0
        while True:
            target = home / (f"{stamp}-{k}" if k else stamp) / path.name
            with name_in_errors(path):
                try:
                    target.parent.mkdir(parents=True)
                except FileExistsError:
                    k += 1
                    continue
                write_whole(target.parent / _ORIGIN_FILE, self.relative(path))
                rename_new(path, target)
            return target

    def trash_entries(self) -> list[TrashEntry]:
        """List what the user has moved to the trash, newest first; hidden data of the studio is left out."""
        entries = []
        with suppress(OSError):
            for folder in sorted(self._data_folder("trash"), reverse=True)[:_MOST_ENTRIES]:
                if folder.is_symlink() or not folder.is_dir():
                    continue
                content = [path for path in folder.iterdir() if path.name != _ORIGIN_FILE]
                origin_file = folder / _ORIGIN_FILE
                if len(content) == 1 and origin_file.is_file() and not origin_file.is_symlink():
                    origin = _origin(origin_file)
                    if origin and not origin.startswith(OWN):
                        entries.append(TrashEntry(folder.name, content[0], origin, origin_file.stat().st_mtime))
        return entries

    def sweep_uploads(self) -> None:
        """Remove unfinished uploads of a server that was killed."""
        with suppress(OSError):
            for path in self._data_folder("uploads"):
                if _UPLOAD.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()
                elif _UPLOAD.fullmatch(path.name) and stat.S_ISDIR(path.lstat().st_mode):
                    shutil.rmtree(path, ignore_errors=True)

    def _data_folder(self, name: str) -> list[Path]:
        """List a folder in FOLDER/.steelyard without following links; empty if it does not exist."""
        folder = self.root / OWN / name
        if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
            return []
        return list(folder.iterdir())

    def restore(self, name: str) -> Path:
        """Move the trash entry `name` back to its origin, or to a free name next to it, and return that path."""
        entry = next((entry for entry in self.trash_entries() if entry.name == name), None)
        if entry is None:
            raise StudioError("The trash entry does not exist any more; it may have been restored already.")
        target = original = self.path_inside(entry.origin)
        k = 2
        while True:
            with name_in_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    rename_new(entry.path, target)
                    break
                except FileExistsError:
                    target, k = original.with_name(f"{original.stem}-{k}{original.suffix}"), k + 1
        shutil.rmtree(entry.path.parent, ignore_errors=True)
        return target

    def free_bytes(self) -> int:
        """Return the free space on the disk [bytes]."""
        return shutil.disk_usage(self.root).free


def _origin(path: Path) -> str:
    """Read the original path of a trash entry; "" if the file cannot be read."""
    with suppress(StudioError):
        return read_text(path, _LONGEST_ORIGIN, StudioError)
    return ""


@lru_cache(4096)
def _command(run: str, _changed: int, _size: int) -> str:
    """Read the command in a manifest; cached by time and size, since every page reads all manifests."""
    manifest = read_json(Path(run) / MANIFEST, StudioError, "Delete the run and create it again.").value
    command = manifest.get("command", "") if isinstance(manifest, dict) else ""
    return command if isinstance(command, str) else ""


def _runs_below(folder: Path, depth: int) -> Iterator[tuple[float, Path]]:
    """Yield the time and path of each run below a folder."""
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
