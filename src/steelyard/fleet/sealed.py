"""Files of a store under this user's seal: a body that another program put there is not believed.

A key line says what an entry is about, and anybody can write one. So every file also has a keyed hash of its name and
body, made with the user's own secret (`steelyard.ground.seals`). A store that a stranger prepared, or that another
user's runs filled, is worth nothing to this user, and does no harm: what it holds is computed anew.
"""

from __future__ import annotations

import hmac
import json
import secrets
import warnings
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground.files import write_whole
from steelyard.ground.seals import NoSecretError, make_seal, user_secret
from steelyard.ground.untrusted import read_bytes

_ENTRY, _DOCUMENT, _LINE = (f"steelyard-fleet-{kind}-1\n".encode() for kind in ("entry", "document", "line"))
# Bytes. An entry has some ten kilobytes per joint; a document or journal some hundred bytes per log.
_LARGEST = 1 << 30


class ForeignError(Exception):
    """A file is torn, or this user did not make it."""


class StoreWarning(UserWarning):
    """A store cannot be used as it should; results are right, only the next run is slower."""


class Sealer:
    """Seals what is written to a store, and reads back only what carries this user's seal."""

    def __init__(self) -> None:
        try:
            self._secret = user_secret()
        except NoSecretError as why:
            self._secret = secrets.token_bytes(32)  # of this run alone
            remedy = "; set STEELYARD_CONFIG to a folder that can be written" if why.unwritable else ""
            warnings.warn(
                f"The next run will not know the entries of the store again, since {why}{remedy}.",
                StoreWarning,
                stacklevel=2,
            )

    def write_entry(self, path: Path, key: str, body: bytes) -> None:
        """Write the entry `key`, with its `body`, to the file `path`, whole."""
        write_whole(path, b"\n".join((key.encode(), self._seal(_ENTRY, key, body), body)))

    def read_entry(self, path: Path, key: str) -> bytes | None:
        """The body of the entry `key` at `path`; None: there is none. `ForeignError` where it is not to be believed."""
        content = _content(path)
        if content is None:
            return None
        name, _, rest = content.partition(b"\n")
        seal, _, body = rest.partition(b"\n")
        if name != key.encode() or not hmac.compare_digest(seal, self._seal(_ENTRY, key, body)):
            raise ForeignError
        return body

    def write_document(self, path: Path, name: str, value: Any) -> None:
        """Write `value`, plain data, as the document `name` to the file `path`, whole."""
        seal = self._seal(_DOCUMENT, name, _canonical(value)).decode()
        write_whole(path, json.dumps({"seal": seal, "document": value}, indent=1, allow_nan=False) + "\n")

    def read_document(self, path: Path, name: str) -> Any:
        """The document `name` at `path`; None and `ForeignError` as of `read_entry`."""
        content = _content(path)
        if content is None:
            return None
        try:
            found = json.loads(content)
            seal, value = found["seal"].encode(), found["document"]
            if hmac.compare_digest(seal, self._seal(_DOCUMENT, name, _canonical(value))):
                return value
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            pass
        raise ForeignError

    def sealed_line(self, value: Any) -> bytes:
        """A line of a journal that holds `value`, plain data."""
        seal = self._seal(_LINE, "", _canonical(value)).decode()
        return json.dumps([seal, value], allow_nan=False).encode() + b"\n"

    def read_lines(self, path: Path) -> tuple[list[Any], bool]:
        """The values of the lines of the journal `path` that are this user's, and whether there are lines of others.

        A last line that a kill cut short is neither.
        """
        found, foreign = [], False
        *whole, _ = (_content(path) or b"").split(b"\n")
        for line in whole:
            try:
                seal, value = json.loads(line)
                if not hmac.compare_digest(seal.encode(), self._seal(_LINE, "", _canonical(value))):
                    raise ForeignError
                found.append(value)
            except (ForeignError, ValueError, TypeError, AttributeError, RecursionError):
                foreign = True
        return found, foreign

    def _seal(self, purpose: bytes, key: str, body: bytes) -> bytes:
        return make_seal(self._secret, purpose, key, body).hex().encode()


def _content(path: Path) -> bytes | None:
    """The bytes of a file; None: there is none. A pipe, a device or a folder in its place is foreign."""
    if not path.exists():
        return None
    try:
        return read_bytes(path, _LARGEST, SteelyardError)
    except SteelyardError:
        if not path.exists():  # another run has just put it away
            return None
        raise ForeignError from None


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
