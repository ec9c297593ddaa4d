"""Folders and files that belong to this user alone: settings, caches, state.

Code, jobs and secrets are trusted only if they lie here. Each folder must belong to this user and be closed to writing
by others; each file is opened without following links.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import platformdirs

from steelyard.ground.places import is_private

# Bytes of the largest file that is read from these folders.
LARGEST_OWN_FILE = 2**28


class NotOursError(Exception):
    """A file or folder that does not belong to this user alone; the text names it and the remedy."""


def cache_folder() -> Path:
    """The folder for compiled code: $STEELYARD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("steelyard"))


def config_folder() -> Path:
    """The folder for settings and secrets: $STEELYARD_CONFIG, or the user's folder of settings."""
    chosen = os.environ.get("STEELYARD_CONFIG")
    return Path(chosen) if chosen else Path(platformdirs.user_config_dir("steelyard"))


def state_folder() -> Path:
    """The folder for jobs and locks: $STEELYARD_STATE, or the user's state folder."""
    chosen = os.environ.get("STEELYARD_STATE")
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_state_dir("steelyard"))


def make_own_folder(folder: Path) -> Path:
    """Make a folder that only this user can use, or check the one that exists; NotOursError if it is not ours.

    Args:
        folder: its path; parents are made, too.
    """
    if not os.path.lexists(folder):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700, exist_ok=True)
    check_own_folder(folder)
    return folder


def check_own_folder(folder: Path) -> None:
    """Raise NotOursError if others may write to a folder, or if it belongs to another user.

    Args:
        folder: its path; a link is no folder here.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not is_private(found):
        raise NotOursError(f"{folder} is not this user's, or others may write to it; chmod go-w it")


def read_own_file(path: Path, most: int = LARGEST_OWN_FILE, secret: bool = False) -> bytes:
    """Read a plain file of this user that others may not write; NotOursError for any other file or a link.

    Args:
        path: the file.
        most: largest size, bytes.
        secret: others may not read it either.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotOursError(f"{path} is a link; delete it") from None
        raise
    with open(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or not is_private(found, secret=secret) or found.st_size > most:
            raise NotOursError(f"{path} is not this user's own file, or is open to others; delete it")
        return file.read(most)
