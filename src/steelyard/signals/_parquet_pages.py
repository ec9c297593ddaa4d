"""Checks the page headers of a Parquet file before Arrow allocates the sizes they declare: 10 kB may declare gigabytes.

This module also parses the footer itself, because Arrow's column metadata crashes the program if it is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER

# Bytes to read for a page header: first attempt, second attempt. A header has some twenty bytes plus the minimum and
# maximum of a column, which may be long texts.
_HEADER, _LONGEST_HEADER = 256, 1 << 16
_SHORTEST_HEADER, _DEEPEST = 7, 16
# Per column in a row group: a page has about a thousand rows, and Arrow's row group a million.
_MOST_PAGES = 100_000
# [bytes]; the footer has 120 bytes per column in a row group.
MOST_FOOTER = 8 << 20
# Types of Thrift's compact protocol, the encoding of headers and footer.
_TRUE, _FALSE, _BYTE, _COUNTS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
# Field numbers of a page header, of the footer and a row group, and of a column.
_UNPACKED, _PACKED = 2, 3
_GROUPS, _COLUMNS, _COLUMN = 4, 1, 3
_COLUMN_BYTES, _FIRST_PAGE, _DICTIONARY = 7, 9, 11


def odd_page(file: IO[bytes], columns: Sequence[int], first: int = 0, stop: int | None = None) -> str | None:
    """Describe the first page that exceeds its column or its decompression limit; None if all pages are valid.

    Unreadable headers are not reported here, because Arrow refuses them too.

    Args:
        file: Parquet file, open for reading.
        columns: Indices of the columns to check.
        first: First row group to check.
        stop: Row group after the last one; None: all.
    """
    try:
        for group in column_ranges(file, columns)[first:stop]:
            for k, (start, end) in zip(columns, group, strict=True):
                size = _invalid_size(file, start, end)
                if size is not None:
                    return f"a page of column {k + 1} declares {size} bytes, which the file does not contain"
    except OddEndError as why:
        return str(why)
    except (LookupError, TypeError, ValueError, OSError):
        pass
    return None


class OddEndError(Exception):
    """The footer of a file declares an impossible size."""


def column_ranges(file: IO[bytes], columns: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Return first and last byte of each column, by row group.

    Args:
        file: Parquet file, open for reading.
        columns: Indices of the columns.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    length = int.from_bytes(file.read(4), "little")
    if length > MOST_FOOTER:
        raise OddEndError(f"its footer declares {length} bytes, more than {MOST_FOOTER}")
    file.seek(max(size - 8 - length, 0))
    groups: list[list[tuple[int, int]]] = []
    for group in _Thrift(file.read(length)).struct()[_GROUPS]:
        ranges = []
        for k in columns:
            column = group[_COLUMNS][k][_COLUMN]
            starts = [_signed(column[field], 64) for field in (_FIRST_PAGE, _DICTIONARY) if column.get(field)]
            start = min(starts, default=size)
            ranges.append((start, min(start + _signed(column[_COLUMN_BYTES], 64), size)))
        groups.append(ranges)
    return groups


def _invalid_size(file: IO[bytes], place: int, end: int) -> int | None:
    """Declared size of the first invalid page between two offsets."""
    for _ in range(_MOST_PAGES):
        if place >= end:
            return None
        header = _page(file, place, _HEADER) or _page(file, place, _LONGEST_HEADER)
        if header is None:
            return None
        length, unpacked, packed = header
        place += length + packed
        if packed < 0 or place > end:
            return packed
        if not 0 <= unpacked <= max(BUDGET, MOST_TIMES_SMALLER * packed):
            return unpacked
    return end - place


def _page(file: IO[bytes], place: int, most: int) -> tuple[int, int, int] | None:
    """Sizes of a page's header, of its content uncompressed and compressed [bytes]; None if there is no header."""
    file.seek(place)
    header = _Thrift(file.read(most))
    try:
        fields = header.struct()
        sizes = _signed(fields[_UNPACKED], 32), _signed(fields[_PACKED], 32)
    except (LookupError, TypeError, ValueError):
        return None
    return (header.place, *sizes) if header.place >= _SHORTEST_HEADER else None


class _Thrift:
    """Parser of Thrift's compact protocol: structs become dicts by field number; integers stay zigzag-encoded."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def _skip(self, count: int) -> None:
        self.place += count
        if self.place > len(self._data):
            raise ValueError("truncated")

    def _varint(self) -> int:
        data, place, value, shift = self._data, self.place, 0, 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.place = place
                return value
            shift += 7
            if shift > 63:
                raise ValueError("number too long")

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Parse the struct at the current offset; `depth` counts the structs around it."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        out: dict[int, Any] = {}
        field = 0
        while True:
            head = self._data[self.place]
            self.place += 1
            kind, step = head & 15, head >> 4
            if kind == 0:
                return out
            field = field + step if step else _signed(self._varint(), 16)
            out[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _COUNTS:
            return self._varint()
        if kind == _STRUCT:
            return self.struct(depth)
        if kind in _LISTS:
            head = self._data[self.place]
            self.place += 1
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1) for _ in range(self._count(count))]
        if kind == _MAP:
            count = self._count(self._varint())
            kinds = self._data[self.place] if count else 0
            self.place += bool(count)
            for _ in range(count):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
            self._skip(8 if kind == _DOUBLE else 1)
        else:
            raise ValueError("unknown type")
        return None

    def _count(self, count: int) -> int:
        """Check a number of values; each takes at least one byte."""
        if count > len(self._data) - self.place:
            raise ValueError("truncated list")
        return count


def _signed(value: int, bits: int) -> int:
    """Decode a zigzag-encoded number."""
    return ((value & ((1 << bits) - 1)) >> 1) ^ -(value & 1)
