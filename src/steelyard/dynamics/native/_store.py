"""The store of compiled code on disk: only what this user's own runs have put there is ever given out.

What is read from here is executed. So every object carries a keyed hash of itself and of the key it is stored under
(the text it was compiled from, the processor, the versions), made with a secret that only this user can read; the
folders and files must be this user's, and closed to others. Whatever fails in this is compiled again. Races, read-only
folders and broken files cost time, never a result.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import stat
import warnings
from functools import cache
from pathlib import Path

import platformdirs

from steelyard.ground.files import write_whole
from steelyard.ground.places import abandoned, is_private

_MAGIC = b"steelyard-object-2\n"
_HEAD = len(_MAGIC) + 32
_SECRET = 32
_LARGEST = 2**28  # bytes of an object; what is larger was not made here
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code could not be used; results are right, only the start is slower."""


class _NotOursError(Exception):
    """Why a file or folder is not trusted."""


def cache_folder() -> Path:
    """Where compiled code is kept: $STEELYARD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("steelyard"))


def config_folder() -> Path:
    """Where the secret is kept: $STEELYARD_CONFIG, or the user's folder of settings."""
    chosen = os.environ.get("STEELYARD_CONFIG")
    return Path(chosen) if chosen else Path(platformdirs.user_config_dir("steelyard"))


def read(key: str) -> bytes | None:
    """The object stored under a key, or None; what is not whole, or not this user's, is reported and passed over."""
    path = _path(key)
    try:
        _check_folder(path.parent)
        content = _content(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} cannot be read ({error.strerror}); compiling again.")
        return None
    except _NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")
        return None
    secret = _secret(config_folder())
    if secret is None:
        return None
    body = content[_HEAD:]
    if not hmac.compare_digest(content[:_HEAD], _MAGIC + _seal(secret, key, body)):
        _warn(f"The compiled code in {path} is damaged, or not of this user's making; compiling again.")
        return None
    return body


def write(key: str, body: bytes) -> None:
    """Store an object whole: written aside, then renamed, so that racing processes only ever see complete files."""
    path = _path(key)
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        _check_folder(path.parent)
        secret = _secret(config_folder())
        if secret is None:
            return
        for left in abandoned(path.parent):
            left.path.unlink()
        write_whole(path, _MAGIC + _seal(secret, key, body) + body, private=True)
    except OSError as error:
        _warn(
            f"Compiled code cannot be kept in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a folder that can be written."
        )
    except _NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")


def _seal(secret: bytes, key: str, body: bytes) -> bytes:
    seal = hmac.new(secret, _MAGIC + key.encode() + b"\n", "sha256")
    seal.update(body)
    return seal.digest()


def _path(key: str) -> Path:
    return cache_folder() / "code" / f"{key}.o"


@cache
def _secret(folder: Path) -> bytes | None:
    """This user's secret, made when it is first wanted; None, and a warning, where none can be kept."""
    path = folder / "cache.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_folder(folder)
        with contextlib.suppress(FileExistsError):
            if not path.exists():
                write_whole(path, secrets.token_bytes(_SECRET), new=True, private=True)
        found = _content(path, secret=True)
        if len(found) == _SECRET:
            return found
        raise _NotOursError(f"{path} is no key; delete it")
    except OSError as error:
        _warn(
            f"Compiled code is not kept, since no key for it can be kept in {folder} ({error.strerror}); "
            "set STEELYARD_CONFIG to a folder that can be written."
        )
    except _NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")
    return None


def _check_folder(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not is_private(found):
        raise _NotOursError(f"{folder} is not this user's, or others may write to it; chmod go-w it")


def _content(path: Path, secret: bool = False) -> bytes:
    """What a plain file of this user's holds, which others may not write, nor read where it is `secret`."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _NotOursError(f"{path} is a link; delete it") from None
        raise
    with open(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or not is_private(found, secret=secret) or found.st_size > _LARGEST:
            raise _NotOursError(f"{path} is not this user's own file, or is open to others; delete it")
        return file.read(_LARGEST)


def _warn(message: str) -> None:
    # Once per process and message: a batch over ten thousand logs must not print ten thousand lines.
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, CacheWarning, stacklevel=3)
