"""Folders that are logs (bags, data sets): recognised, and checked that they hold only plain files inside the root."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from steelyard.errors import SteelyardError
from steelyard.ground.untrusted_files import read_text
from steelyard.signals.table import READERS
from steelyard.studio.containment import StudioError

# Largest number of entries of a folder that is a log, and size of a bag's metadata that is looked at [bytes].
_MOST_ENTRIES, _MOST_METADATA = 3000, 2_000_000
# A line of metadata.yaml that names a file, with the name.
_FILE_LINE = re.compile(r"^\s*(?:-|path:)\s*[\"']?([^\"'\n]+)", re.MULTILINE)


def is_log_folder(path: Path) -> bool:
    """Whether the folder at `path` is a log that may be read: plain files and folders only, no path that leads out."""
    try:
        return (
            is_plain_folder(path)
            and any(kind.folders and kind.claims(path) for kind in READERS.values())
            and not _leads_out(path)
        )
    except (OSError, SteelyardError):
        return False


def is_plain_folder(path: Path) -> bool:
    """Whether `path` is a folder with not too many entries, all of them plain files and folders."""
    try:
        return path.is_dir() and not path.is_symlink() and sum(1 for _ in _entries(path)) <= _MOST_ENTRIES
    except (OSError, SteelyardError):
        return False


def folder_state(path: Path) -> tuple[int, int]:
    """Return the total size [bytes] and the newest modification time [ns] of the files in the folder at `path`."""
    size = newest = 0
    for state in _entries(path):
        if stat.S_ISREG(state.st_mode):
            size, newest = size + state.st_size, max(newest, state.st_mtime_ns)
    return size, newest


class _LinkError(StudioError):
    """A folder holds a link or a device."""


def _entries(folder: Path, depth: int = 8) -> Iterator[os.stat_result]:
    for path in sorted(folder.iterdir())[: _MOST_ENTRIES + 1]:
        state = path.lstat()
        if stat.S_ISDIR(state.st_mode) and depth:
            yield state
            yield from _entries(path, depth - 1)
        elif stat.S_ISREG(state.st_mode):
            yield state
        else:
            raise _LinkError(f"{path.name} is a link or no plain file; replace it by the file itself.")


def _leads_out(folder: Path) -> bool:
    """Whether the metadata of a bag names files outside of its folder."""
    with suppress(StudioError):
        text = read_text(folder / "metadata.yaml", _MOST_METADATA, StudioError)
        names = [found[1].strip() for found in _FILE_LINE.finditer(text)]
        return any(name.startswith(("/", "\\")) or ".." in name for name in names)
    return False
