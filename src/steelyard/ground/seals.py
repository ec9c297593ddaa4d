"""Seals: keyed hashes that prove that this user wrote some data, with a secret key that only this user can read.

All seals use one key. The hashed data starts with its purpose, so that a seal is not valid for another purpose.
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
