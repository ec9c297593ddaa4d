"""Checks that all paths in the files of a folder are inside that folder.

A folder may come from a stranger. Its project file, links and runs must not make the studio read or write anything
outside. The checks use real paths, so they also reject links that lead out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from glob import glob
from itertools import islice
from pathlib import Path

from steelyard.errors import SteelyardError, shortened
from steelyard.project import ROLES, Project, listed_names

# The studio's hidden folder inside its folder. It holds data only: trash, unfinished uploads, checkpoints.
OWN = ".steelyard"
_LONGEST = 120
# Largest number of checked entries in a run folder, and of files that one pattern of the project matches.
_MOST_ENTRIES, _MOST_MATCHES = 100_000, 20_000
_PATTERN = "*?["


class StudioError(SteelyardError):
    """An action that the studio cannot do; its message is shown on the page."""


def is_inside(root: Path, path: str | Path) -> bool:
    """Whether the real path is inside the folder `root`.

    Args:
        root: A real path.
        path: A path, relative to `root` or absolute.
    """
    try:
        return Path(os.path.realpath(root / path)).is_relative_to(root)
    except (OSError, ValueError):  # a name with a NUL, a loop of links
        return False


def path_inside(root: Path, text: str, hidden: str = "") -> Path:
    """Return the path below `root` that a text names, or raise a StudioError.

    Args:
        root: A real path.
        text: Relative path from a browser or a job, without "..", "\\" and hidden parts.
        hidden: Folder, relative to `root`, below which hidden parts are allowed.
    """
    bad = StudioError(f"'{shortened(text, _LONGEST)}' is not a path inside the folder of this studio.")
    if not text or "\0" in text or os.path.isabs(text) or "\\" in text or "://" in text:
        raise bad
    parts = Path(text).parts
    secret = any(part.startswith(".") for part in parts)
    if not parts or ".." in parts or (secret and not (hidden and Path(text).is_relative_to(hidden))):
        raise bad
    if not is_inside(root, text):  # a link may lead out
        raise bad
    return root.joinpath(*parts)


def check_project(root: Path, project: Project) -> Project:
    """Return the project if all its paths are inside `root`; a StudioError names the first key that leads out.

    Args:
        root: The studio's folder, a real path.
        project: The project of this folder.
    """
    for key, text in _project_paths(project):
        path = os.path.normpath(text)
        out = os.path.isabs(text) or "://" in text or "\0" in text or path.split(os.sep)[0] == ".."
        if out or not is_inside(root, path):
            raise _outside(project, key, text)
        if any(c in text for c in _PATTERN) and key.startswith("logs"):
            for match in islice(_matches(root, text), _MOST_MATCHES):
                if not is_inside(root, match):
                    raise _outside(project, key, match)
    return project


def _matches(root: Path, pattern: str) -> Iterator[str]:
    with suppress(OSError, ValueError):
        yield from glob(pattern, root_dir=root, recursive=True)


def _outside(project: Project, key: str, text: str) -> StudioError:
    return StudioError(
        f"{project.file.name}: {key}: '{shortened(text, _LONGEST)}' is outside the folder of this studio; copy it "
        "into the folder, or open the studio in a folder that contains both."
    )


def _project_paths(project: Project) -> Iterator[tuple[str, str]]:
    """Yield the key and text of every path in a project."""
    for key in ("robot", "mapping", "controller", "model", "motion", "runs"):
        if text := getattr(project, key):
            yield key, text
    yield from (("packages", text) for text in listed_names(project.packages))
    for role in ROLES:
        value = getattr(project.logs, role)
        groups = value.values() if isinstance(value, Mapping) else [value]
        for texts in groups:
            yield from ((f"logs.{role}", text) for text in ([texts] if isinstance(texts, str) else texts) if text)


def is_plain_run(root: Path, run: Path) -> bool:
    """Whether a run folder holds only plain files and folders, and no link that leads out of `root`.

    Args:
        root: The studio's folder, a real path.
        run: A folder below it.
    """
    try:
        return _is_plain(str(root), str(run), run.lstat().st_mtime_ns)
    except (OSError, ValueError):
        return False


@lru_cache(4096)
def _is_plain(root: str, run: str, _changed: int) -> bool:
    """Check a run folder; cached until its modification time changes."""
    if os.path.islink(run):
        return False
    folders, count = [run], 0
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                count += 1
                if count > _MOST_ENTRIES:
                    return False
                if entry.is_symlink():
                    plain = is_inside(Path(root), entry.path) and os.path.isfile(entry.path)
                else:
                    plain = entry.is_file() or entry.is_dir()  # reading a pipe or a device might never end
                    folders += [entry.path] if entry.is_dir() else []
                if not plain:
                    return False
    return True
