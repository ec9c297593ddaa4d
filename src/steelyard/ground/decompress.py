"""Decompresses files while they are read, up to a limit of the decompressed size."""

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


# Decompressors by suffix of the file name.
DECOMPRESSORS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": _gzip,
    ".bz2": _bzip2,
    ".xz": _xz,
    ".zst": _arrow("zstd"),
    ".lz4": _arrow("lz4"),
}


def is_compressed(path: AnyPath) -> bool:
    """Whether the suffix of `path` is that of a compressed file."""
    return path.suffix.lower() in DECOMPRESSORS


def open_decompressed(path: AnyPath, error: type[SteelyardError]) -> IO[bytes]:
    """Open a file for reading, decompressed if its suffix is that of a compressed file.

    Args:
        path: Local path or remote file.
        error: Error class for damaged data and for a decompressed size beyond the limit.
    """
    if not is_compressed(path):
        return path.open("rb", buffering=0)
    return io.BufferedReader(_DecompressedFile(path, error), 1 << 16)


class _DecompressedFile(io.RawIOBase):
    def __init__(self, path: AnyPath, error: type[SteelyardError]) -> None:
        super().__init__()
        self._path, self._error, self._size, self._count = path, error, path.stat().st_size, 0
        self.source = path.open("rb")
        self._file: Any = DECOMPRESSORS[path.suffix.lower()](self.source)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as why:  # zlib, bz2, lzma and Arrow each have their own error classes
            reason = str(why).splitlines()[0] if str(why) else type(why).__name__
            raise self._error(
                f"{self._path}: cannot be decompressed, or is truncated ({reason}); write or copy it again."
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


def decompression_ratio(path: AnyPath, error: type[SteelyardError], most: int) -> float:
    """Estimate the ratio of decompressed to compressed size.

    Args:
        path: Local path or remote file.
        error: Error class for damaged data.
        most: Decompressed bytes to read for the estimate.
    """
    if not is_compressed(path):
        return 1.0
    raw = _DecompressedFile(path, error)
    with io.BufferedReader(raw, 1 << 16) as file:
        start = file.read(most)
        return len(start) / max(1, raw.source.tell())
