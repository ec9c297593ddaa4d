"""`StudioFolder`: the folder that a studio works in: its project file, runs and uploads, and no path outside of it."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra
from steelyard.ground.files import named, write_whole
from steelyard.ground.folders import MANIFEST, sweep_up
from steelyard.ground.places import rename_new
from steelyard.ground.untrusted import read_json
from steelyard.project import PROJECT_FILE, Project

# What is the studio's own in the folder: jobs, trash, pyramids, the key of the door.
OWN = ".steelyard"
RUNS_FOLDER = "runs"
_ODD = re.compile(r"[^\w.+ -]", re.UNICODE)
_LONGEST = 120
# In a folder of the trash: where its content was.
_FROM = ".from"
# How far below the folder runs are looked for, and among how many entries.
_DEPTH, _MOST_ENTRIES = 3, 5000


class StudioError(SteelyardError):
    """What the studio cannot do: one sentence, for the page that asked."""


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
        """A path of the studio's own, below its `parts`; its folder is made."""
        path = self.root.joinpath(OWN, *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def inside(self, text: str) -> Path:
        """The path that `text`, which came from a browser, names below the folder; an error if it is elsewhere, or
        the studio's own."""
        bad = StudioError(f"'{text[:_LONGEST]}' is no path inside the folder of this studio.")
        if not text or "\0" in text or os.path.isabs(text) or "\\" in text:
            raise bad
        parts = Path(text).parts
        if not parts or ".." in parts or any(part.startswith(".") for part in parts):
            raise bad
        path = self.root.joinpath(*parts)
        if not Path(os.path.realpath(path)).is_relative_to(self.root):  # a link that leads out
            raise bad
        return path

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
        """What the project file says; an empty project where there is none."""
        return Project.load(self.project_file) if self.project_file.exists() else Project(self.project_file)

    def change(self, edit: Callable[[Any], None]) -> None:
        """Change the project file: comments and order stay.

        Args:
            edit: is given the document (tomlkit), which reads and writes like a dictionary.
        """
        tomlkit = import_extra("tomlkit", "studio", "The studio", StudioError)
        with self._turn:
            text = self.project_file.read_text("utf-8") if self.project_file.exists() else f'runs = "{RUNS_FOLDER}"\n'
            document = tomlkit.parse(text)
            edit(document)
            made = tomlkit.dumps(document)
            aside = self.own("project.toml")
            write_whole(aside, made)
            Project.load(aside)  # what cannot be read is never put in place
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
        found = list(_runs_below(self.root, _DEPTH))
        return [path for _, path in sorted(found, key=lambda one: (-one[0], one[1].name))]

    def run(self, text: str) -> Path:
        """The run that a browser names by `text`."""
        path = self.inside(text)
        if not (path / MANIFEST).is_file():
            raise StudioError(f"{text}: there is no such run; it may have been deleted.")
        return path

    def command_of(self, run: Path) -> str:
        """The command that repeats a `run`; "" if it does not say."""
        found = (run / MANIFEST).stat()
        return _command(str(run), found.st_mtime_ns, found.st_size)

    def trash(self, path: Path) -> Path:
        """Move `path`, a run or a file, to the trash, and return where it is now."""
        stamp, home = time.strftime("%Y%m%d-%H%M%S"), self.own("trash")
        k = 0
        while True:
            target = home / (f"{stamp}-{k}" if k else stamp) / path.name
            with named(path):
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
            for folder in sorted(self.own("trash").iterdir(), reverse=True):
                kept = [path for path in folder.iterdir() if path.name != _FROM]
                if len(kept) == 1 and (folder / _FROM).is_file():
                    came = (folder / _FROM).read_text("utf-8")
                    if not came.startswith(OWN):
                        found.append(Trashed(folder.name, kept[0], came, (folder / _FROM).stat().st_mtime))
        return found

    def put_back(self, name: str) -> Path:
        """Put what is in the trash as `name` back to where it was, or beside it; returns where."""
        kept = next((one for one in self.trashed() if one.name == name), None)
        if kept is None:
            raise StudioError("That is not in the trash; it may have been put back already.")
        target = wanted = self.inside(kept.came)
        k = 2
        while True:
            with named(target):
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
