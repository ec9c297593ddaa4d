"""The store of compiled code on disk, which returns only code written by this user.

Code from here is executed. So every object carries a keyed hash of itself and of its key (the text it was compiled
from, the processor, the versions), made with a secret that only this user can read; the folders and files must belong
to this user and be closed to others. Anything else is compiled again. Races, read-only folders and broken files cost
time, but never affect a result.
"""

from __future__ import annotations

import contextlib
import hmac
import warnings
from pathlib import Path

from steelyard.ground.atomic_files import leftovers
from steelyard.ground.files import write_whole
from steelyard.ground.seals import SEAL_BYTES, NoSecretError, make_seal, user_secret
from steelyard.ground.user_files import NotOursError, cache_folder, check_own_folder, read_own_file

_MAGIC = b"steelyard-object-2\n"
_HEAD = len(_MAGIC) + SEAL_BYTES
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code is unusable; results are correct, only the start is slower."""


def read(key: str) -> bytes | None:
    """Return the object stored under a key; None, with a warning, if it is incomplete or not this user's."""
    path = _path(key)
    try:
        check_own_folder(path.parent)
        content = read_own_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} is not readable ({error.strerror}); compiling again.")
        return None
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")
        return None
    secret = _secret()
    if secret is None:
        return None
    body = content[_HEAD:]
    if not hmac.compare_digest(content[:_HEAD], _MAGIC + make_seal(secret, _MAGIC, key, body)):
        _warn(f"The compiled code in {path} is damaged or was not written by this user; compiling again.")
        return None
    return body


def write(key: str, body: bytes) -> None:
    """Store an object: write a temporary file and rename it, so that racing processes see only complete files."""
    path = _path(key)
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        check_own_folder(path.parent)
        secret = _secret()
        if secret is None:
            return
        for left in leftovers(path.parent):
            left.path.unlink()
        write_whole(path, _MAGIC + make_seal(secret, _MAGIC, key, body) + body, private=True)
    except OSError as error:
        _warn(
            f"Compiled code cannot be stored in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a writable folder."
        )
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")


def _path(key: str) -> Path:
    return cache_folder() / "code" / f"{key}.o"


def _secret() -> bytes | None:
    """Return this user's secret; None, with a warning, if it cannot be stored."""
    try:
        return user_secret()
    except NoSecretError as why:
        if why.unwritable:
            _warn(
                f"Compiled code is not stored, since {why}; set STEELYARD_CONFIG to a writable folder."
            )  # fmt: skip
        else:
            _warn(f"The cache of compiled code is not used: {why}.")
    return None


def _warn(message: str) -> None:
    # Once per process and message, even in a batch over ten thousand logs.
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, CacheWarning, stacklevel=3)
