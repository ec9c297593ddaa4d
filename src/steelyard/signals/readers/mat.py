"""MATLAB's .mat files: versions 5 to 7, and version 7.3 (HDF5) by h5py.

Files of level 5 (versions 5 to 7) are read here, safely, because damaged ones crash SciPy's reader. The format is
MathWorks' "MAT-File Format": elements of a tag (type, length) and data. A matrix is an element with flags, dimensions,
name, and numbers or further matrices (cells, structures).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.signals._arrays import ArrayColumns, StoredArray
from steelyard.signals.readers.hdf5 import Hdf5Reader
from steelyard.signals.table import MOST_COLUMNS, READERS, LogReader, TableBlock

HEADER = 128
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32", 2: "latin-1"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCTURE, _TEXT, _FIRST_NUMBERS, _LAST_NUMBERS = 1, 2, 4, 6, 15
_COMPLEX = 0x800
_DEEPEST = 4  # nesting of structures
_MOST_PARTS = 10_000  # entries of a cell array or structure


class _DamagedError(Exception):
    """A fault of a file."""


def read_matlab(path: Path) -> dict[str, Any]:
    """Read the variables of the file at `path`: arrays, texts, lists (cells), dicts (structures); others are None."""
    data = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(data[126:HEADER])
    try:
        if order is None:
            raise _DamagedError("it is not of version 5 or later: save it again with -v7")
        out: dict[str, Any] = {}
        room = max(BUDGET, MOST_TIMES_SMALLER * len(data))
        for kind, part in _elements(memoryview(data)[HEADER:], order):
            if kind == _COMPRESSED:
                unpacked = _unpacked(part, room)
                room -= len(unpacked)
                kind, part = next(_elements(memoryview(unpacked), order), (0, part))
            if kind == _MATRIX:
                name, value = _matrix(part, order)
                out[name] = value
        return out
    except _DamagedError as why:
        raise LogError(f"{path}: is not a readable .mat file, or is cut short ({why}).") from None


def _unpacked(part: memoryview, most: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(part, most + 1)
    except zlib.error as why:
        raise _DamagedError(str(why)) from None
    if len(data) > most:
        raise _DamagedError("it unpacks to more than a log would need")
    return data


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield type and data of each element."""
    at = 0
    while at + 8 <= len(data):
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small element: length in the upper half, data in place of the length
            kind, length, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start = at + 8
            end = start + length + (-length % 8 if kind != _COMPRESSED else 0)
        if start + length > len(data):
            raise _DamagedError("an element is longer than the file")
        yield kind, data[start : start + length]
        at = end


def _matrix(data: memoryview, order: str, depth: int = 0) -> tuple[str, Any]:
    parts = _elements(data, order)
    try:
        flags = int(_numbers(next(parts), order)[0])
        shape = tuple(int(n) for n in _numbers(next(parts), order)[:8])
        name = bytes(next(parts)[1]).decode("latin-1")
        if any(n < 0 for n in shape):
            raise _DamagedError("an array has an impossible shape")
        return name, _value(flags & 0xFF, bool(flags & _COMPLEX), shape, parts, order, depth)
    except (StopIteration, IndexError):
        return "", None  # an empty cell


def _value(
    kind: int, is_complex: bool, shape: tuple[int, ...], parts: Iterator[tuple[int, memoryview]], order: str, depth: int
) -> Any:
    if _FIRST_NUMBERS <= kind <= _LAST_NUMBERS and not is_complex:
        numbers = _numbers(next(parts), order)
        if len(numbers) != math.prod(shape):
            raise _DamagedError(f"an array of {len(numbers)} numbers should have {math.prod(shape)}")
        return numbers.reshape(shape, order="F").squeeze()
    if kind == _TEXT:
        return _text(next(parts), shape, order)
    if depth >= _DEEPEST or math.prod(shape) > _MOST_PARTS:
        return None
    if kind == _CELL:
        return [_matrix(part, order, depth + 1)[1] for inner, part in parts if inner == _MATRIX][: math.prod(shape)]
    if kind == _STRUCTURE and math.prod(shape) == 1:
        width = int(_numbers(next(parts), order)[0])
        names = bytes(next(parts)[1])
        if not 0 < width <= 64 or len(names) // width > _MOST_PARTS:
            raise _DamagedError("a structure has impossible names")
        fields = [names[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(names), width)]
        values = [_matrix(part, order, depth + 1)[1] for inner, part in parts if inner == _MATRIX]
        return dict(zip(fields, values, strict=False))
    return None


def _numbers(element: tuple[int, memoryview], order: str) -> Any:
    kind, data = element
    if kind not in _NUMBERS:
        raise _DamagedError(f"numbers of an unknown type, {kind}")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(data) % dtype.itemsize:
        raise _DamagedError("an array ends in the middle of a number")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)


def _text(element: tuple[int, memoryview], shape: tuple[int, ...], order: str) -> str | list[str]:
    kind, data = element
    if kind == 4:  # UTF-16 without a byte order mark, as SciPy and MATLAB write
        text = bytes(data).decode("utf-16-le" if order == "<" else "utf-16-be", "replace")
    elif kind in _TEXTS:
        text = bytes(data).decode(_TEXTS[kind], "replace")
    else:
        raise _DamagedError(f"text of an unknown type, {kind}")
    rows = shape[0] if shape else 1
    return text if rows <= 1 else [text[k::rows].strip() for k in range(min(rows, len(text)))]


_JOINTS = ("joints", "joint_names", "names")
# Largest file of versions up to 7, which cannot be read in part; MATLAB's limit for their variables is lower.
_LARGEST = 4 << 30


@READERS.register("mat")
class MatReader(LogReader):
    """Reads the arrays of a file and of its structures; objects (timeseries, tables) and functions are ignored.

    Files up to version 7 are read whole.
    """

    suffixes = (".mat",)
    description = (
        "arrays `(samples,)`, `(samples, joints)` or `(joints, samples)`, also inside a structure (`log.q`); a cell "
        "array of text `joints` names the joints; version 7.3 needs h5py"
    )
    magic = b"MATLAB "

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with path.open("rb") as file:
            start = file.read(HEADER)
        source: ArrayColumns | Hdf5Reader
        if start.startswith((b"MATLAB 7.3", Hdf5Reader.magic)):
            source = Hdf5Reader(path, topic)
            self.joints = source.joints
        else:
            if (size := path.stat().st_size) > _LARGEST:
                raise LogError(f"{path}: has {size / 1e9:.3g} GB; save it with -v7.3, which can be read in part.")
            source = ArrayColumns(path, list(self._flat(read_matlab(path))))
        self._source = source
        self.names, self.row_count, self.findings = source.names, source.row_count, source.findings

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        return self._source.blocks(columns, start)

    def _flat(self, data: Mapping[str, Any], above: str = "") -> Iterator[StoredArray]:
        """Yield the arrays; their prefix is the structure's name and a dot, except in a single structure."""
        for name, x in data.items():
            full = f"{above}.{name}" if above else name
            if isinstance(x, Mapping):
                yield from self._flat(x, "" if len(data) == 1 and not above else full)
            elif name in _JOINTS and isinstance(x, list) and all(isinstance(each, str) for each in x):
                self.joints = tuple(each.strip() for each in x)[:MOST_COLUMNS]
            elif isinstance(x, np.ndarray):
                yield StoredArray(full, x.shape, x.dtype.kind, x)
