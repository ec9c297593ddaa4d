"""The store of compiled code on disk: only what this user's own runs have put there is ever given out.

What is read from here is executed. So every object carries a keyed hash of itself and of the key it is stored under
(the text it was compiled from, the processor, the versions), made with a secret that only this user can read; the
folders and files must be this user's, and closed to others. Whatever fails in this is compiled again. Races, read-only
folders and broken files cost time, never a result.
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
    """The cache of compiled code could not be used; results are right, only the start is slower."""


def read(key: str) -> bytes | None:
    """The object stored under a key, or None; what is not whole, or not this user's, is reported and passed over."""
    path = _path(key)
    try:
        check_own_folder(path.parent)
        content = read_own_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} cannot be read ({error.strerror}); compiling again.")
        return None
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")
        return None
    secret = _secret()
    if secret is None:
        return None
    body = content[_HEAD:]
    if not hmac.compare_digest(content[:_HEAD], _MAGIC + make_seal(secret, _MAGIC, key, body)):
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
        check_own_folder(path.parent)
        secret = _secret()
        if secret is None:
            return
        for left in leftovers(path.parent):
            left.path.unlink()
        write_whole(path, _MAGIC + make_seal(secret, _MAGIC, key, body) + body, private=True)
    except OSError as error:
        _warn(
            f"Compiled code cannot be kept in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a folder that can be written."
        )
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")


def _path(key: str) -> Path:
    return cache_folder() / "code" / f"{key}.o"


def _secret() -> bytes | None:
    """This user's secret; None, and a warning, where none can be kept."""
    try:
        return user_secret()
    except NoSecretError as why:
        if why.unwritable:
            _warn(
                f"Compiled code is not kept, since {why}; set STEELYARD_CONFIG to a folder that can be written."
            )  # fmt: skip
        else:
            _warn(f"The cache of compiled code is not used: {why}.")
    return None


def _warn(message: str) -> None:
    # Once per process and message: a batch over ten thousand logs must not print ten thousand lines.
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, CacheWarning, stacklevel=3)
