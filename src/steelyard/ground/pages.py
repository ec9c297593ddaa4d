"""Pages of a Parquet file, looked at before Arrow makes room for what they declare: 10 kB may ask for gigabytes.

Where they lie is read from the file's end by ourselves, too: of a damaged one Arrow's description of a column ends the
program.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER

# Bytes in which a page's header is looked for, first and then: it has some twenty, and the least and largest of texts.
_HEADER, _LONGEST_HEADER = 256, 1 << 16
_SHORTEST_HEADER, _DEEPEST = 7, 16
# Of a column in one group of rows: a page has some thousand rows, and Arrow's own group a million.
_MOST_PAGES = 100_000
# The file's end has 120 bytes for a column in a group of rows.
MOST_FOOTER = 8 << 20
# Kinds of values in Thrift's compact protocol, in which headers and the file's end are written.
_TRUE, _FALSE, _BYTE, _COUNTS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
# Fields by number: of a page's header, of the file's end, of a group of rows, of a column in it.
_UNPACKED, _PACKED = 2, 3
_GROUPS, _COLUMNS, _COLUMN = 4, 1, 3
_COLUMN_BYTES, _FIRST_PAGE, _DICTIONARY = 7, 9, 11


def odd_page(file: IO[bytes], columns: Sequence[int], first: int = 0, stop: int | None = None) -> str | None:
    """What is wrong with the first page that is larger than its column, or unpacks to far more than it is; or None.

    What cannot be read is left to Arrow, which cannot read it either.

    Args:
        file: the Parquet file, open for reading.
        columns: that are to be read, by number among those of the file.
        first: the first group of rows that is to be read, from 0.
        stop: the group after the last one; None: all.
    """
    try:
        for group in column_ranges(file, columns)[first:stop]:
            for k, (place, end) in zip(columns, group, strict=True):
                odd = _odd(file, place, end)
                if odd is not None:
                    return f"a page of its column {k + 1} declares {odd} bytes, which are not there"
    except OddEndError as why:
        return str(why)
    except (LookupError, TypeError, ValueError, OSError):
        pass
    return None


class OddEndError(Exception):
    """The end of a file declares more than there may be."""


def column_ranges(file: IO[bytes], columns: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Where the `columns` lie in the Parquet `file`, by group of rows: from which byte to which, within the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    length = int.from_bytes(file.read(4), "little")
    if length > MOST_FOOTER:
        raise OddEndError(f"its end declares {length} bytes, more than {MOST_FOOTER}")
    file.seek(max(size - 8 - length, 0))
    groups: list[list[tuple[int, int]]] = []
    for group in _Thrift(file.read(length)).struct()[_GROUPS]:
        found = []
        for k in columns:
            column = group[_COLUMNS][k][_COLUMN]
            starts = [_signed(column[field], 64) for field in (_FIRST_PAGE, _DICTIONARY) if column.get(field)]
            place = min(starts, default=size)
            found.append((place, min(place + _signed(column[_COLUMN_BYTES], 64), size)))
        groups.append(found)
    return groups


def _odd(file: IO[bytes], place: int, end: int) -> int | None:
    """The size that the first odd page between two places declares."""
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
    """Bytes of the page's header at `place`, and of the page unpacked and packed; None if it is not such a header."""
    file.seek(place)
    header = _Thrift(file.read(most))
    try:
        found = header.struct()
        sizes = _signed(found[_UNPACKED], 32), _signed(found[_PACKED], 32)
    except (LookupError, TypeError, ValueError):
        return None
    return (header.place, *sizes) if header.place >= _SHORTEST_HEADER else None


class _Thrift:
    """Values in Thrift's compact protocol: structs by the numbers of their fields, whole numbers as written."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def _skip(self, count: int) -> None:
        self.place += count
        if self.place > len(self._data):
            raise ValueError("it goes on")

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
                raise ValueError("no number has so many digits")

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The struct that begins here."""
        if depth > _DEEPEST:
            raise ValueError("nothing is so deep")
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
            raise ValueError("there is no such kind")
        return None

    def _count(self, count: int) -> int:
        """So many values, of which each has a byte at least."""
        if count > len(self._data) - self.place:
            raise ValueError("there are not so many")
        return count


def _signed(value: int, bits: int) -> int:
    """The number of so many bits whose sign was written as its last."""
    return ((value & ((1 << bits) - 1)) >> 1) ^ -(value & 1)
