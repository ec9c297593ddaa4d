"""Seals: keyed hashes by which this user's own work is known again, made with a secret that only this user can read.

One secret serves all. What is sealed says its purpose first, so that a seal of one kind is never taken for another's.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
from functools import cache
from pathlib import Path

from steelyard.ground.files import write_whole
from steelyard.ground.user_files import NotOursError, check_own_folder, config_folder, read_own_file

SEAL_BYTES = 32
_SECRET_BYTES = 32
# The name is older than its other uses: at first the key sealed the cache of compiled code alone.
_NAME = "cache.key"


class NoSecretError(Exception):
    """Why this user's secret cannot be used.

    Args:
        reason: a sentence without its stop.
        unwritable: the folder for it cannot be written; else what is there is not trusted.
    """

    def __init__(self, reason: str, unwritable: bool) -> None:
        super().__init__(reason)
        self.unwritable = unwritable


def user_secret() -> bytes:
    """This user's secret of 32 bytes, which is made when it is first needed; `NoSecretError` where none can be kept."""
    return _secret_in(config_folder())


def make_seal(secret: bytes, purpose: bytes, key: str, body: bytes) -> bytes:
    """The keyed hash (HMAC, SHA-256) of a `body`, 32 bytes.

    Args:
        secret: the user's.
        purpose: what kind of thing is sealed, and the version of its format.
        key: the name under which the body is stored.
        body: bytes.
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
        found = read_own_file(path, _SECRET_BYTES + 1, secret=True)
    except OSError as error:
        raise NoSecretError(f"no key for it can be kept in {folder} ({error.strerror})", unwritable=True) from None
    except NotOursError as why:
        raise NoSecretError(str(why), unwritable=False) from None
    if len(found) != _SECRET_BYTES:
        raise NoSecretError(f"{path} is no key; delete it", unwritable=False)
    return found


def forget_secrets() -> None:
    """Read the secret anew when it is next needed."""
    _secret_in.cache_clear()
