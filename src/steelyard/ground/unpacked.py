"""Compressed files, unpacked while they are read: never more than asked for, and never out of proportion."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

from steelyard.errors import SteelyardError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.remote import AnyPath


def _gzip(file: IO[bytes]) -> IO[bytes]:
    import gzip

    return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]


def _bzip2(file: IO[bytes]) -> IO[bytes]:
    import bz2

    return bz2.BZ2File(file)  # type: ignore[return-value]


def _xz(file: IO[bytes]) -> IO[bytes]:
    import lzma

    return lzma.LZMAFile(file)  # type: ignore[return-value]


def _arrow(kind: str) -> Callable[[IO[bytes]], IO[bytes]]:
    def opened(file: IO[bytes]) -> IO[bytes]:
        import pyarrow as pa

        return pa.CompressedInputStream(file, kind)  # type: ignore[no-any-return]

    return opened


# By the last suffix of a file's name.
PACKED: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": _gzip,
    ".bz2": _bzip2,
    ".xz": _xz,
    ".zst": _arrow("zstd"),
    ".lz4": _arrow("lz4"),
}


def is_packed(path: AnyPath) -> bool:
    """Whether the name of `path` says that it is compressed."""
    return path.suffix.lower() in PACKED


def opened(path: AnyPath, error: type[SteelyardError]) -> IO[bytes]:
    """The bytes of the file at `path`, unpacked if its name says that it is compressed.

    Args:
        path: of the file.
        error: what is raised where it cannot be unpacked, or unpacks to more than a log would.
    """
    if not is_packed(path):
        return path.open("rb", buffering=0)
    return io.BufferedReader(_Unpacked(path, error), 1 << 16)


class _Unpacked(io.RawIOBase):
    def __init__(self, path: AnyPath, error: type[SteelyardError]) -> None:
        super().__init__()
        self._path, self._error, self._size, self._count = path, error, path.stat().st_size, 0
        self.source = path.open("rb")
        self._file: Any = PACKED[path.suffix.lower()](self.source)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as why:  # zlib, bz2, lzma and Arrow have errors of their own each
            reason = str(why).splitlines()[0] if str(why) else type(why).__name__
            raise self._error(
                f"{self._path}: cannot be unpacked, or is cut short ({reason}); write or copy it again."
            ) from None
        self._count += len(data)
        if self._count > max(BUDGET, MOST_TIMES_SMALLER * self._size):
            raise self._error(
                f"{self._path}: unpacks from {self._size / 1e6:.3g} MB to more than {self._count / 1e6:.3g} MB, more "
                "than a log would."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.source.close()
        super().close()


def times_larger(path: AnyPath, error: type[SteelyardError], most: int) -> float:
    """How many times its size the file at `path` unpacks to, by its first `most` bytes; `error` as in `opened`."""
    if not is_packed(path):
        return 1.0
    raw = _Unpacked(path, error)
    with io.BufferedReader(raw, 1 << 16) as file:
        start = file.read(most)
        return len(start) / max(1, raw.source.tell())
