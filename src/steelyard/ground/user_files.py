"""Private folders of this user for settings, caches and state, and seals that prove that this user wrote some data.

Code, jobs and secrets are trusted only in these folders. Each folder must belong to this user, and others may not write
to it. Files are opened without following links. A seal is a keyed hash with a secret key that only this user can read;
all seals use one key. The hashed data starts with its purpose, so that a seal is not valid for another purpose.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import stat
from functools import cache
from pathlib import Path

import platformdirs

from steelyard.ground.atomic_files import is_private
from steelyard.ground.files import write_whole

# Largest size of a file that is read from these folders [bytes].
LARGEST_OWN_FILE = 2**28


class NotOursError(Exception):
    """A file or folder that does not belong to this user alone; the text names it and the remedy."""


def cache_folder() -> Path:
    """Return the folder for compiled code: $STEELYARD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("steelyard"))


def config_folder() -> Path:
    """Return the folder for settings and secrets: $STEELYARD_CONFIG, or the user's configuration folder."""
    chosen = os.environ.get("STEELYARD_CONFIG")
    return Path(chosen) if chosen else Path(platformdirs.user_config_dir("steelyard"))


def state_folder() -> Path:
    """Return the folder for jobs and locks: $STEELYARD_STATE, or the user's state folder."""
    chosen = os.environ.get("STEELYARD_STATE")
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_state_dir("steelyard"))


def make_own_folder(folder: Path) -> Path:
    """Create a private `folder` and its parents, or check an existing one."""
    if not os.path.lexists(folder):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700, exist_ok=True)
    check_own_folder(folder)
    return folder


def check_own_folder(folder: Path) -> None:
    """Raise NotOursError if a `folder` belongs to another user, or if others may write to it; refuse links."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not is_private(status):
        raise NotOursError(f"{folder} belongs to another user, or others may write to it; run chmod go-w on it")


def read_own_file(path: Path, most: int = LARGEST_OWN_FILE, secret: bool = False) -> bytes:
    """Read a private file of this user; NotOursError for any other file and for links.

    Args:
        path: Path of the file.
        most: Largest allowed size [bytes].
        secret: Also require that others may not read it.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotOursError(f"{path} is a link; delete it") from None
        raise
    with open(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or not is_private(status, secret=secret) or status.st_size > most:
            raise NotOursError(f"{path} is not a private file of this user, or is too large; delete it")
        return file.read(most)


SEAL_BYTES = 32
_SECRET_BYTES = 32
# Named after its first use, the cache of compiled code.
_NAME = "cache.key"


class NoSecretError(Exception):
    """This user's secret cannot be used.

    Args:
        reason: Sentence without its full stop.
        unwritable: True if the folder is not writable, False if the file of the secret is not safe to use.
    """

    def __init__(self, reason: str, unwritable: bool) -> None:
        super().__init__(reason)
        self.unwritable = unwritable


def user_secret() -> bytes:
    """Return this user's secret of 32 bytes, created at first use; NoSecretError if it cannot be stored or trusted."""
    return _secret_in(config_folder())


def make_seal(secret: bytes, purpose: bytes, key: str, body: bytes) -> bytes:
    """Return the keyed hash (HMAC, SHA-256) of data, 32 bytes.

    Args:
        secret: Secret of the user.
        purpose: Kind of the data and version of its format.
        key: Name under which the data is stored.
        body: The data.
    """
    seal = hmac.new(secret, purpose + key.encode("utf-8", "surrogatepass") + b"\n", "sha256")
    seal.update(body)
    return seal.digest()


@cache
def _secret_in(folder: Path) -> bytes:
    path = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_own_folder(folder)
        with contextlib.suppress(FileExistsError):
            if not path.exists():
                write_whole(path, secrets.token_bytes(_SECRET_BYTES), new=True, private=True)
        secret = read_own_file(path, _SECRET_BYTES + 1, secret=True)
    except OSError as error:
        raise NoSecretError(f"no key can be stored in {folder} ({error.strerror})", unwritable=True) from None
    except NotOursError as why:
        raise NoSecretError(str(why), unwritable=False) from None
    if len(secret) != _SECRET_BYTES:
        raise NoSecretError(f"{path} is not a valid key; delete it", unwritable=False)
    return secret


def forget_secrets() -> None:
    """Read the secret again at its next use."""
    _secret_in.cache_clear()
