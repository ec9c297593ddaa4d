"""Reads NumPy's .npz archives after checking them: declared sizes must fit the file and a memory budget."""

from __future__ import annotations

import ast
import math
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.numbers import number
from steelyard.ground.untrusted_files import regular_file

# Limits of the unpacked size: BUDGET [bytes] is always allowed, and so is this multiple of the archive's size. Logs
# compress 3 to 10 times; only constant data compresses 100 times.
BUDGET, MOST_TIMES_SMALLER = 256 * 1024 * 1024, 100
MOST_MEMBERS = 1000
# [bytes]; NumPy writes about a hundred.
_LONGEST_HEADER = 10_000
_MAGIC = b"\x93NUMPY"
_STORED_OR_DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLAIN_TYPE = re.compile(r"[<>|=]?(?:[biufcMmUSVO?]\d*)(?:\[\w+\])?")


@dataclass(frozen=True)
class Member:
    """Header data of one array in an archive."""

    name: str
    shape: tuple[int, ...]
    by_columns: bool  # Fortran order
    dtype: np.dtype[Any]
    start: int  # offset of the numbers [bytes]


class Archive:
    """An archive with checked members: not encrypted, without Python objects, of the declared size.

    Args:
        file: Open archive.
        size: Size of the archive [bytes].
    """

    def __init__(self, file: zipfile.ZipFile, size: int) -> None:
        self._file = file
        infos = [info for info in file.infolist() if info.filename.endswith(".npy")]
        _check_archive(infos, size)
        self.members = {info.filename.removesuffix(".npy"): self._member(info) for info in infos}

    def _member(self, info: zipfile.ZipInfo) -> Member:
        name = info.filename.removesuffix(".npy")
        shown = shortened(name, 60)
        if info.flag_bits & 1:
            raise _RefusedError(f"the array '{shown}' is encrypted")
        if info.compress_type not in _STORED_OR_DEFLATED:
            raise _RefusedError(
                f"the array '{shown}' uses compression method {info.compress_type}; save it again with NumPy"
            )
        with self._file.open(info) as file:
            shape, by_columns, dtype = _header(file, shown)
            start = file.tell()
        if dtype.hasobject:
            raise _RefusedError(f"the array '{shown}' holds Python objects, which are not loaded for safety")
        stated = math.prod(shape) * dtype.itemsize
        if stated != info.file_size - start:
            raise _RefusedError(
                f"the array '{shown}' should have {number(stated, 3)} bytes and has {info.file_size - start}"
            )
        return Member(name, shape, by_columns and len(shape) == 2, dtype, start)

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """Open the bytes of the array `name`, starting at its first number."""
        with self._file.open(f"{name}.npy") as file:
            file.read(self.members[name].start)
            yield file

    def array(self, name: str) -> NDArray[Any]:
        """Read the array `name`."""
        member = self.members[name]
        with self.opened(name) as file:
            data = file.read()
        if member.dtype.kind == "U":
            codes = np.frombuffer(data, np.dtype("u4").newbyteorder(member.dtype.byteorder))
            if np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))):  # NumPy would accept them
                raise _RefusedError(f"the array '{shortened(name, 60)}' holds invalid text")
        order = "F" if member.by_columns else "C"
        return np.frombuffer(data, member.dtype).reshape(member.shape, order=order).copy()  # type: ignore[call-overload, no-any-return]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Read all arrays, by name."""
        return {name: self.array(name) for name in self.members}


@contextmanager
def opened_archive(path: Path, error: type[SteelyardError], what: str = "readable .npz file") -> Iterator[Archive]:
    """Open and check an archive.

    Args:
        path: Path of the .npz file.
        error: Error class for an unreadable file, also inside the `with` block.
        what: Expected kind of file, for the message.
    """
    size = regular_file(path, error)
    try:
        with zipfile.ZipFile(path) as file:
            yield Archive(file, size)
    except SteelyardError:
        raise
    except Exception as why:  # zipfile and zlib raise many unrelated classes, among them struct.error
        reason = str(why) or type(why).__name__
        raise error(f"{path}: is not a {what}, or is truncated ({reason}).") from None


class _RefusedError(Exception):
    """An archive failed a check; the message is the reason."""


def _check_archive(infos: list[zipfile.ZipInfo], size: int) -> None:
    if len(infos) > MOST_MEMBERS:
        raise _RefusedError(f"it holds {len(infos)} arrays; the limit is {MOST_MEMBERS}")
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise _RefusedError("two arrays have the same name")
    unpacked = sum(info.file_size for info in infos)
    if unpacked > max(BUDGET, MOST_TIMES_SMALLER * size):
        raise _RefusedError(
            f"it unpacks from {number(size / 1e6, 3)} MB to {number(unpacked / 1e6, 3)} MB, more than a log would"
        )


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type; the file position is then the first number."""
    start = file.read(8)
    if start[:6] != _MAGIC or start[6:7] not in (b"\1", b"\2", b"\3"):
        raise _RefusedError(f"'{name}' is not a NumPy array")
    count = int.from_bytes(file.read(2 if start[6] == 1 else 4), "little")
    if count > _LONGEST_HEADER:
        raise _RefusedError(f"the array '{name}' has a header of {count} bytes")
    try:
        header = ast.literal_eval(file.read(count).decode("utf-8" if start[6] == 3 else "latin-1"))
        shape, by_columns, kind = (header[key] for key in ("shape", "fortran_order", "descr"))
        plain = isinstance(kind, list) or _PLAIN_TYPE.fullmatch(kind) is not None
        dtype = np.dtype([tuple(field) for field in kind] if isinstance(kind, list) else kind)
    except Exception:  # Python's parser and NumPy raise many classes for unexpected input
        plain = False
    if not plain or not isinstance(by_columns, bool) or not isinstance(shape, tuple):
        raise _RefusedError(f"the array '{name}' has an unreadable header")
    if len(shape) > 8 or any(type(n) is not int or not 0 <= n < 1 << 60 for n in shape):
        raise _RefusedError(f"the array '{name}' has an impossible shape")
    return shape, by_columns, dtype
