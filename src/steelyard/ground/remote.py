"""Files that lie elsewhere, read by pieces: `RemoteFile` has those words of `Path` that readers of logs use.

Where they lie is a URL that fsspec understands: in buckets of S3, Google or Azure, behind http, in an archive. Nothing
is imported and nothing is asked of a network before someone names one.
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
from steelyard.ground.addresses import SilentError, ask_server, file_system, told
from steelyard.ground.addresses import is_url as is_url  # whoever has a path asks here, too
from steelyard.ground.addresses import shown_address as shown_address
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.untrusted import open_regular

_PAUSES_S = (0.1, 1.0)  # before a file that was found, and then did not come, is asked for again
# Bytes that a small read fetches; where reads follow one another, twice as many each time, up to the second.
AHEAD, FARTHEST = 1 << 16, 1 << 22
# Bytes of a file that are held at most, beside what is being read.
HELD_BYTES = 1 << 25
# Two ranges that are wanted at once are one where the gap is no longer than this: a request costs more.
_GAP = 1 << 15


def any_path(given: str | os.PathLike[str] | RemoteFile, error: type[SteelyardError] = LogError) -> AnyPath:
    """A path on this machine, or a file elsewhere, as it was `given`; `error` is raised where it is neither."""
    if isinstance(given, RemoteFile):
        return given
    if isinstance(given, str) and is_url(given):
        if given.startswith("file://") and "::" not in given:
            return Path(unquote(urlsplit(given).path))
        return RemoteFile(given, error)
    return Path(given)


class RemoteFile:
    """A file that lies elsewhere, by its address. It is looked at when asked, and may be sent to another process.

    Args:
        url: such as "s3://bucket/run.parquet", "https://host/run.mcap" or "zip://run.csv::s3://bucket/runs.zip".
        error: what is raised where it cannot be read; UnreachableError where its server does not answer.
    """

    def __init__(self, url: str, error: type[SteelyardError] = LogError) -> None:
        self.url, self._error = url, error
        self._pieces: OrderedDict[int, bytes] = OrderedDict()  # as in `RemoteBytes`, for whoever opens it again

    def __str__(self) -> str:
        return shown_address(self.url)

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteFile, (self.url, self._error)

    @cached_property
    def _place(self) -> PurePosixPath:
        first = self.url.partition("::")[0]
        web = first.startswith(("http://", "https://"))  # elsewhere ?, # and % are signs like others
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
        """What its keeper says of it: at least name, size and type."""
        system, path = self._system
        with told(self, self._error):
            return dict(ask_server(system, "info", path))

    def exists(self) -> bool:
        try:
            return bool(self.info)
        except SteelyardError:
            return False

    def is_dir(self) -> bool:
        return self.info.get("type") == "directory"

    def stat(self) -> Any:
        """Its size and kind, in the words of `os.stat`."""
        folder = self.is_dir()
        if not folder and self.info.get("size") is None:
            raise self._error(f"{self}: its server does not tell its size; copy it to where that is known.")
        packed = self.info.get("compress_size")  # of a file in an archive
        size = int(self.info.get("size") or 0)
        if packed is not None and size > max(BUDGET, MOST_TIMES_SMALLER * packed):
            raise self._error(
                f"{self}: unpacks from {packed / 1e6:.3g} MB to {size / 1e6:.3g} MB, more than a log would."
            )
        kind = stat.S_IFDIR if folder else stat.S_IFREG
        return SimpleNamespace(st_size=size, st_mode=kind | 0o444)

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Its bytes, to be read in any order; `mode` and `buffering` as those of `Path`, of which it knows "rb"."""
        assert mode == "rb", "what lies elsewhere is read, never written"
        return RemoteBytes(self, *self._system, self._error, self._pieces)

    def read_bytes(self, most: int) -> bytes:
        """All of it, which may be at most so many (`most`) bytes."""
        if (size := self.stat().st_size) > most:
            raise self._error(f"{self}: has {size / 1e6:.3g} MB, more than the {most / 1e6:.3g} MB it may have.")
        with self.open() as file:
            return bytes(file.read())

    def copy_to(self, target: Path, most: int) -> None:
        """Write all of it, at most so many (`most`) bytes, to the file `target`, little of it in memory at a time."""
        if (size := self.stat().st_size) > most:
            raise self._error(
                f"{self}: has {size / 1e9:.3g} GB; of formats that are not read by pieces {most / 1e9:.3g} GB are the "
                "most: write it as Parquet or MCAP."
            )
        with self.open() as file, target.open("wb") as out:
            while part := file.read(FARTHEST):
                out.write(part)


AnyPath = Path | RemoteFile


class RemoteBytes(io.RawIOBase):
    """The bytes of a remote file: what was fetched last is held, up to `HELD_BYTES`; nothing is fetched unasked.

    Args:
        place: the file.
        system: fsspec's file system.
        path: in it.
        error: as in `RemoteFile`.
        held: pieces that were fetched before, by their first byte, the last used last.
    """

    def __init__(
        self, place: RemoteFile, system: Any, path: str, error: type[SteelyardError], held: OrderedDict[int, bytes]
    ) -> None:
        super().__init__()
        self._file: Any = None
        self._place, self._system, self._path, self._error = place, system, path, error
        self._size, self._at = int(place.stat().st_size), 0
        self._held = held
        self._expected: list[tuple[int, int]] = []
        self._least = AHEAD
        self._many = bool(getattr(system, "async_impl", False))
        with told(place, error):
            # Exactly what is asked for: that is held here.
            exact = {"block_size": AHEAD, "cache_type": "none"} if self._many else {}
            self._file = system.open(path, "rb", **exact)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to byte `offset`, counted from where `whence` says, as files do."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def size(self) -> int:
        """In bytes."""
        return self._size

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch these `ranges` of bytes (from, to) at once when the first of them is read; at most `HELD_BYTES`."""
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(ranges):
            if merged and start - merged[-1][1] <= _GAP:
                merged[-1] = merged[-1][0], max(stop, merged[-1][1])
            else:
                merged.append((start, stop))
        self._expected = merged if self._many and sum(b - a for a, b in merged) <= HELD_BYTES else []

    @contextmanager
    def looking_far(self) -> Iterator[None]:
        """In here small reads are many and follow one another with gaps: what is fetched for one serves some."""
        self._least = AHEAD if self._expected or not self._many else FARTHEST
        try:
            yield
        finally:
            self._least = AHEAD

    def readinto(self, buffer: Any) -> int:
        """Fill the `buffer`, but for the end of the file; how many bytes that were."""
        view, wanted = memoryview(buffer), min(len(buffer), max(0, self._size - self._at))
        filled = 0
        while filled < wanted:
            start, piece = self._piece(self._at, wanted - filled)
            part = memoryview(piece)[self._at - start :][: wanted - filled]
            view[filled : filled + len(part)] = part
            filled, self._at = filled + len(part), self._at + len(part)
        return filled

    def _piece(self, at: int, count: int) -> tuple[int, bytes]:
        """A piece that holds the byte `at`, of which `count` are wanted, and where it starts."""
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
        """What `fetch` brings, which a connection that breaks may hinder once or twice."""
        for pause_s in _PAUSES_S:
            try:
                with told(self._place, self._error):
                    return fetch()
            except SilentError:
                raise
            except UnreachableError:
                time.sleep(pause_s)
        with told(self._place, self._error):
            return fetch()

    def _hold(self, start: int, piece: bytes, length: int) -> None:
        if len(piece) != length:
            raise self._error(
                f"{self._place}: its server gave {len(piece)} bytes where {length} were asked for; it was changed or "
                "cut short while it was read, or its server hands out no parts of files."
            )
        self._held[start] = piece
        while len(self._held) > 1 and sum(map(len, self._held.values())) > HELD_BYTES:
            self._held.popitem(last=False)

    def close(self) -> None:
        if not self.closed and self._file is not None:
            self._file.close()
        super().close()


def content_hash(path: AnyPath, error: type[SteelyardError] = LogError) -> str:
    """SHA-256 of all bytes of the file at `path`, in hexadecimal; `error` where it is a pipe or a device."""
    digest = hashlib.sha256()
    with path.open("rb") if isinstance(path, RemoteFile) else open_regular(path, error) as file:
        while part := file.read(FARTHEST):
            digest.update(part)
    return digest.hexdigest()
