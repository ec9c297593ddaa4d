"""Files of a store, authenticated with the user's secret.

Every file carries a keyed hash of its name and body (`steelyard.ground.user_files`). Entries that another user or
program wrote are ignored and computed again, so that a foreign store does no harm.
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
from steelyard.ground.untrusted_files import read_bytes
from steelyard.ground.user_files import NoSecretError, make_seal, user_secret

_ENTRY, _DOCUMENT, _LINE = (f"steelyard-fleet-{kind}-1\n".encode() for kind in ("entry", "document", "line"))
# Largest file in bytes. An entry has some ten kilobytes per joint; a document or journal some hundred bytes per log.
_LARGEST = 1 << 30


class ForeignError(Exception):
    """A file is damaged, or this user did not write it."""


class StoreWarning(UserWarning):
    """A store cannot be used fully; results are correct, but the next run is slower."""


class Sealer:
    """Adds the user's seal to files of a store, and reads only files with this seal."""

    def __init__(self) -> None:
        try:
            self._secret = user_secret()
        except NoSecretError as why:
            self._secret = secrets.token_bytes(32)  # valid in this run only
            remedy = "; set STEELYARD_CONFIG to a writable folder" if why.unwritable else ""
            warnings.warn(
                f"The next run cannot use the entries of this run in the store, since {why}{remedy}.",
                StoreWarning,
                stacklevel=2,
            )

    def write_entry(self, path: Path, key: str, body: bytes) -> None:
        """Write an entry atomically.

        Args:
            path: The file.
            key: Key of the entry.
            body: Content of the entry.
        """
        write_whole(path, b"\n".join((key.encode(), self._seal(_ENTRY, key, body), body)))

    def read_entry(self, path: Path, key: str) -> bytes | None:
        """Read the body of an entry; None if the file is missing.

        Args:
            path: The file.
            key: Key of the entry.

        Raises:
            ForeignError: If the file is damaged or has no valid seal.
        """
        content = _content(path)
        if content is None:
            return None
        name, _, rest = content.partition(b"\n")
        seal, _, body = rest.partition(b"\n")
        if name != key.encode() or not hmac.compare_digest(seal, self._seal(_ENTRY, key, body)):
            raise ForeignError
        return body

    def write_document(self, path: Path, name: str, value: Any) -> None:
        """Write a document atomically.

        Args:
            path: The file.
            name: Name of the document.
            value: Plain data.
        """
        seal = self._seal(_DOCUMENT, name, _canonical(value)).decode()
        write_whole(path, json.dumps({"seal": seal, "document": value}, indent=1, allow_nan=False) + "\n")

    def read_document(self, path: Path, name: str) -> Any:
        """Read a document; None and `ForeignError` as in `read_entry`.

        Args:
            path: The file.
            name: Name of the document.
        """
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
        """Make a line of a journal with `value`, plain data."""
        seal = self._seal(_LINE, "", _canonical(value)).decode()
        return json.dumps([seal, value], allow_nan=False).encode() + b"\n"

    def read_lines(self, path: Path) -> tuple[list[Any], bool]:
        """Read the journal `path`: values of lines with a valid seal, and whether there are other lines.

        An incomplete last line, which a killed run leaves, is ignored.
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
    """Read a file; None if missing. A pipe, a device or a folder in its place counts as foreign."""
    if not path.exists():
        return None
    try:
        return read_bytes(path, _LARGEST, SteelyardError)
    except SteelyardError:
        if not path.exists():  # another run has just removed it
            return None
        raise ForeignError from None


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
