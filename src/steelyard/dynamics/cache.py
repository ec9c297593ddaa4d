"""The store of compiled code on disk: safe against races, read-only folders and broken files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

import platformdirs

_MAGIC = b"steelyard-object-1\n"
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code could not be used; results are right, only the start is slower."""


def cache_folder() -> Path:
    """Where compiled code is kept: $STEELYARD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("steelyard"))


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str) -> bytes | None:
    """The object stored under a key, or None; a file that is not whole is reported and passed over."""
    path = _path(key)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} cannot be read ({error.strerror}); compiling again.")
        return None
    head = len(_MAGIC) + 32
    body = content[head:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : head] != hashlib.sha256(body).digest():
        _warn(f"The compiled code in {path} is damaged; compiling again and replacing it.")
        return None
    return body


def write(key: str, body: bytes) -> None:
    """Store an object whole: written aside, then renamed, so that racing processes only ever see complete files."""
    path = _path(key)
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as aside:
            name = aside.name
            aside.write(_MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(name, path)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        _warn(
            f"Compiled code cannot be kept in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a folder that can be written."
        )


def _path(key: str) -> Path:
    return cache_folder() / "native" / f"{key}.o"


def _warn(message: str) -> None:
    # Once per process and message: a batch over ten thousand logs must not print ten thousand lines.
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, CacheWarning, stacklevel=3)
