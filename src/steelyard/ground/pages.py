"""Pages of a Parquet file, looked at before Arrow makes room for what they declare: 10 kB may ask for gigabytes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any

from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER

# Bytes in which a page's header is looked for, first and then: it has some twenty, and the least and largest of texts.
_HEADER, _LONGEST_HEADER = 256, 1 << 16
_SHORTEST_HEADER, _DEEPEST = 7, 8
# Of a column in one group of rows: a page has some thousand rows, and Arrow's own group a million.
_MOST_PAGES = 100_000
# Kinds of values in Thrift's compact protocol, in which headers are written.
_WITHOUT_VALUE, _BYTE, _COUNTS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
_UNPACKED, _PACKED = 2, 3  # the fields of a header that say how many bytes its page has


def odd_page(file: IO[bytes], metadata: Any, groups: Iterable[int], columns: Iterable[str]) -> str | None:
    """What is wrong with the first page that is larger than its column, or unpacks to far more than it is; or None.

    Pages whose header cannot be read are left to Arrow, which cannot read them either.

    Args:
        file: the Parquet file, open for reading.
        metadata: of it, as `pyarrow.parquet.ParquetFile` has it.
        groups: of rows, by number.
        columns: that are to be read, by name.
    """
    names, size = set(columns), file.seek(0, os.SEEK_END)
    paths = [(k, metadata.schema.column(k).path) for k in range(metadata.num_columns)]
    read = [(k, path) for k, path in paths if path in names or any(path.startswith(f"{name}.") for name in names)]
    for group in map(metadata.row_group, groups):
        for k, path in read:
            column = group.column(k)
            starts = [column.data_page_offset, column.dictionary_page_offset if column.has_dictionary_page else None]
            place = min((start for start in starts if start), default=size)
            odd = _odd(file, place, min(place + column.total_compressed_size, size))
            if odd is not None:
                return f"a page of the column '{path}' declares {odd} bytes"
    return None


def _odd(file: IO[bytes], place: int, end: int) -> int | None:
    """The size that the first odd page between two places declares."""
    for _ in range(_MOST_PAGES):
        if place >= end:
            return None
        header = _read(file, place, _HEADER) or _read(file, place, _LONGEST_HEADER)
        if header is None:
            return None
        length, unpacked, packed = header
        place += length + packed
        if packed < 0 or place > end:
            return packed
        if not 0 <= unpacked <= max(BUDGET, MOST_TIMES_SMALLER * packed):
            return unpacked
    return end - place


def _read(file: IO[bytes], place: int, most: int) -> tuple[int, int, int] | None:
    """Bytes of the page's header at `place`, and of the page unpacked and packed; None if it is not such a header."""
    try:
        file.seek(place)
        return _Header(file.read(most)).sizes()
    except (IndexError, ValueError, OSError):
        return None


class _Header:
    """A page's header, gone through field by field."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def sizes(self) -> tuple[int, int, int]:
        """Its length in bytes, and those of its page, unpacked and packed."""
        found: dict[int, int] = {}
        self._struct(found, 0)
        if not _SHORTEST_HEADER <= self._place <= len(self._data):
            raise ValueError("it goes on, or is none")
        return self._place, found.get(_UNPACKED, 0), found.get(_PACKED, 0)

    def _byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1]

    def _varint(self) -> int:
        value = 0
        for k in range(10):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * k)
            if byte < 0x80:
                return value
        raise ValueError("no number has so many digits")

    def _struct(self, found: dict[int, int], depth: int) -> None:
        field = 0
        while kind := (head := self._byte()) & 15:
            field = field + (head >> 4) if head >> 4 else _signed(self._varint())
            if kind in _COUNTS:
                found[field] = _signed(self._varint())
            elif kind not in _WITHOUT_VALUE:
                self._skip(kind, depth + 1)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("no header is so deep")
        if kind in _COUNTS:
            self._varint()
        elif kind in (*_WITHOUT_VALUE, _BYTE):
            self._place += 1
        elif kind == _DOUBLE:
            self._place += 8
        elif kind == _BINARY:
            length = self._varint()
            self._place += length
        elif kind in _LISTS:
            head = self._byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self._varint()):
                self._skip(head & 15, depth + 1)
                if self._place > len(self._data):
                    raise ValueError("it goes on")
        elif kind == _STRUCT:
            self._struct({}, depth)
        else:
            raise ValueError("there is no such kind")


def _signed(value: int) -> int:
    """The number whose sign was written as its last bit, of 32 bits, which is all that Arrow looks at."""
    return ((value & 0xFFFFFFFF) >> 1) ^ -(value & 1)
