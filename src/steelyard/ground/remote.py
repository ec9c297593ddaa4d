"""Reads remote files in pieces: `RemoteFile` has the methods of `Path` that log readers use.

A file has a URL that fsspec supports: S3, Google and Azure buckets, HTTP, archives. fsspec is imported, and the network
used, only when the first URL is read.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

from steelyard.errors import LogError, SteelyardError, UnreachableError
from steelyard.ground.addresses import SilentError, ask_server, file_system, translate_errors
from steelyard.ground.addresses import is_url as is_url
from steelyard.ground.addresses import shown_address as shown_address
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.untrusted_files import open_regular

_PAUSES_S = (0.1, 1.0)  # before a failed transfer is repeated
# A small read fetches AHEAD bytes; consecutive reads double that up to FARTHEST.
AHEAD, FARTHEST = 1 << 16, 1 << 22
# Largest cache of a file [bytes].
HELD_BYTES = 1 << 25
# Largest gap [bytes] over which two ranges are merged, because an extra request takes longer.
_GAP = 1 << 15


def any_path(path: str | os.PathLike[str] | RemoteFile, error: type[SteelyardError] = LogError) -> AnyPath:
    """Convert a path or URL to a local path or a remote file.

    Args:
        path: Path, URL or remote file.
        error: Error class for an invalid URL.
    """
    if isinstance(path, RemoteFile):
        return path
    if isinstance(path, str) and is_url(path):
        if path.startswith("file://") and "::" not in path:
            return Path(unquote(urlsplit(path).path))
        return RemoteFile(path, error)
    return Path(path)


class RemoteFile:
    """A remote file, accessed lazily; it can be pickled.

    Args:
        url: Address such as "s3://bucket/run.parquet", "https://host/run.mcap" or "zip://run.csv::s3://bucket/r.zip".
        error: Error class for an unreadable file; UnreachableError is raised if the server does not answer.
    """

    def __init__(self, url: str, error: type[SteelyardError] = LogError) -> None:
        self.url, self._error = url, error
        self._pieces: OrderedDict[int, bytes] = OrderedDict()  # cache of `RemoteBytes`, kept for the next `open`

    def __str__(self) -> str:
        return shown_address(self.url)

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteFile, (self.url, self._error)

    @cached_property
    def _place(self) -> PurePosixPath:
        first = self.url.partition("::")[0]
        web = first.startswith(("http://", "https://"))  # in other protocols ?, # and % have no special meaning
        return PurePosixPath(unquote(urlsplit(first).path) if web else first.partition("://")[2])

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def stem(self) -> str:
        return self._place.stem

    @property
    def suffix(self) -> str:
        return self._place.suffix

    @cached_property
    def _system(self) -> tuple[Any, str]:
        return file_system(self.url, self._error)

    @cached_property
    def info(self) -> dict[str, Any]:
        """Metadata from the server: at least name, size and type."""
        system, path = self._system
        with translate_errors(self, self._error):
            return dict(ask_server(system, "info", path))

    def exists(self) -> bool:
        try:
            return bool(self.info)
        except SteelyardError:
            return False

    def is_dir(self) -> bool:
        return self.info.get("type") == "directory"

    def stat(self) -> Any:
        """Return size and type like `os.stat`."""
        folder = self.is_dir()
        if not folder and self.info.get("size") is None:
            raise self._error(f"{self}: its server does not report the size; copy the file here, or to another server.")
        packed = self.info.get("compress_size")  # for a file in an archive
        size = int(self.info.get("size") or 0)
        if packed is not None and size > max(BUDGET, MOST_TIMES_SMALLER * packed):
            raise self._error(
                f"{self}: unpacks from {packed / 1e6:.3g} MB to {size / 1e6:.3g} MB, more than a log would."
            )
        kind = stat.S_IFDIR if folder else stat.S_IFREG
        return SimpleNamespace(st_size=size, st_mode=kind | 0o444)

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open the file for reading with random access.

        Args:
            mode: Must be "rb".
            buffering: Ignored; present for compatibility with `Path.open`.
        """
        assert mode == "rb", "remote files are read-only"
        return RemoteBytes(self, *self._system, self._error, self._pieces)

    def read_bytes(self, most: int) -> bytes:
        """Read the whole file of at most `most` bytes."""
        if (size := self.stat().st_size) > most:
            raise self._error(f"{self}: has {size / 1e6:.3g} MB; the limit is {most / 1e6:.3g} MB.")
        with self.open() as file:
            return bytes(file.read())

    def copy_to(self, target: Path, most: int) -> None:
        """Copy the file in small pieces.

        Args:
            target: Path of the copy.
            most: Largest allowed size [bytes].
        """
        if (size := self.stat().st_size) > most:
            raise self._error(
                f"{self}: has {size / 1e9:.3g} GB; the limit for formats that cannot be read in pieces is "
                f"{most / 1e9:.3g} GB. Convert it to Parquet or MCAP."
            )
        with self.open() as file, target.open("wb") as out:
            while part := file.read(FARTHEST):
                out.write(part)


AnyPath = Path | RemoteFile


class RemoteBytes(io.RawIOBase):
    """The bytes of a remote file, with a cache of `HELD_BYTES` for recently fetched pieces.

    Args:
        place: Remote file.
        system: fsspec file system.
        path: Path in the file system.
        error: Error class for an unreadable file.
        cache: Pieces by their first byte; the most recently used is last.
    """

    def __init__(
        self, place: RemoteFile, system: Any, path: str, error: type[SteelyardError], cache: OrderedDict[int, bytes]
    ) -> None:
        super().__init__()
        self._file: Any = None
        self._place, self._system, self._path, self._error = place, system, path, error
        self._size, self._at = int(place.stat().st_size), 0
        self._held = cache
        self._expected: list[tuple[int, int]] = []
        self._least = AHEAD
        self._many = bool(getattr(system, "async_impl", False))
        with translate_errors(place, error):
            # No cache in fsspec, because this class has one.
            exact = {"block_size": AHEAD, "cache_type": "none"} if self._many else {}
            self._file = system.open(path, "rb", **exact)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a byte.

        Args:
            offset: Offset [bytes].
            whence: Reference of the offset, as in `io`.
        """
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def size(self) -> int:
        """Return the size [bytes]."""
        return self._size

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Announce `ranges` of bytes (from, to), which are fetched together at the first read in them."""
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(ranges):
            if merged and start - merged[-1][1] <= _GAP:
                merged[-1] = merged[-1][0], max(stop, merged[-1][1])
            else:
                merged.append((start, stop))
        self._expected = merged if self._many and sum(b - a for a, b in merged) <= HELD_BYTES else []

    @contextmanager
    def looking_far(self) -> Iterator[None]:
        """Inside this context, fetch large pieces: for many small reads in increasing order with gaps between them."""
        self._least = AHEAD if self._expected or not self._many else FARTHEST
        try:
            yield
        finally:
            self._least = AHEAD

    def readinto(self, buffer: Any) -> int:
        """Fill the `buffer` up to the end of the file, and return the number of bytes."""
        view, wanted = memoryview(buffer), min(len(buffer), max(0, self._size - self._at))
        filled = 0
        while filled < wanted:
            start, piece = self._piece(self._at, wanted - filled)
            part = memoryview(piece)[self._at - start :][: wanted - filled]
            view[filled : filled + len(part)] = part
            filled, self._at = filled + len(part), self._at + len(part)
        return filled

    def _piece(self, at: int, count: int) -> tuple[int, bytes]:
        """Start and bytes of a piece that contains the byte `at`; `count` bytes are wanted from there."""
        for start in reversed(self._held):
            if start <= at < start + len(self._held[start]):
                self._held.move_to_end(start)
                return start, self._held[start]
        if any(start <= at < stop for start, stop in self._expected):
            ranges, self._expected = self._expected, []
            starts, stops = zip(*ranges, strict=True)
            paths = [self._path] * len(ranges)
            pieces = self._fetched(
                lambda: ask_server(
                    self._system, "cat_ranges", paths, list(starts), list(stops), on_error="raise",
                    size=sum(stops) - sum(starts),
                )
            )  # fmt: skip
            for (start, stop), piece in zip(ranges, pieces, strict=True):
                self._hold(start, piece, stop - start)
            return self._piece(at, count)
        before = next((len(x) for start, x in reversed(self._held.items()) if start + len(x) == at), 0)
        length = count if count >= AHEAD else max(self._least, min(2 * before, FARTHEST))
        length = min(length, self._size - at)
        piece = self._fetched(lambda: (self._file.seek(at), self._file.read(length))[1])
        self._hold(at, piece, length)
        return at, piece

    def _fetched(self, fetch: Callable[[], Any]) -> Any:
        """Call `fetch`, with two more attempts if the connection breaks."""
        for pause_s in _PAUSES_S:
            try:
                with translate_errors(self._place, self._error):
                    return fetch()
            except SilentError:
                raise
            except UnreachableError:
                time.sleep(pause_s)
        with translate_errors(self._place, self._error):
            return fetch()

    def _hold(self, start: int, piece: bytes, length: int) -> None:
        if len(piece) != length:
            raise self._error(
                f"{self._place}: its server sent {len(piece)} bytes instead of {length}. Either the file changed while "
                "it was read, or the server does not support range requests; read it again, or copy it here."
            )
        self._held[start] = piece
        while len(self._held) > 1 and sum(map(len, self._held.values())) > HELD_BYTES:
            self._held.popitem(last=False)

    def close(self) -> None:
        if not self.closed and self._file is not None:
            self._file.close()
        super().close()


def content_hash(path: AnyPath, error: type[SteelyardError] = LogError) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Args:
        path: Local path or remote file.
        error: Error class if the path is not a regular file.
    """
    digest = hashlib.sha256()
    with path.open("rb") if isinstance(path, RemoteFile) else open_regular(path, error) as file:
        while part := file.read(FARTHEST):
            digest.update(part)
    return digest.hexdigest()
