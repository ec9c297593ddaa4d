"""Text of variable length in an HDF5 file, read after the format's specification (HDF5 File Format, global heap).

Such text lies in heaps beside its data set. Where a heap is damaged the library follows it for ever, out of reach of
any signal, so that it is not asked.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from steelyard.errors import LogError

# Bytes: a heap of names, or a piece of their places, is a few kB.
_LARGEST_HEAP = 1 << 20
_PLACE = "<IQI"  # of a text: length, address of its heap, number there
_OBJECT = struct.Struct("<HHIQ")  # index, references, nothing, length
_HEAP = struct.Struct("<4sB3xQ")  # signature, version, length


def text_of(path: Path, item: Any) -> tuple[str, ...]:
    """What the data set `item`, of text of variable length, of the file at `path` holds, in order."""
    base, heaps, out = item.file.userblock_size, dict[int, dict[int, bytes]](), []
    with path.open("rb") as file:
        places = _places(path, file, item)
        for length, address, index in struct.iter_unpack(_PLACE, places[: len(places) // 16 * 16]):
            if length and address not in heaps:
                heaps[address] = _heap(path, file, base + address)
            words = heaps[address].get(index) if length else b""
            if words is None or len(words) < length:
                raise _damaged(path)
            out.append(words[:length].decode("utf-8", "replace"))
    if len(out) < item.size:
        raise _damaged(path)
    return tuple(out[: item.size])


def _places(path: Path, file: BinaryIO, item: Any) -> bytes:
    """Length, heap and number of each text, one after the other as they lie in the file."""
    plain = item.id.get_create_plist().get_nfilters() == 0
    if plain and item.file.id.get_create_plist().get_sizes() == (8, 8):
        if (begin := item.id.get_offset()) is not None:
            if begin > path.stat().st_size:
                raise _damaged(path)
            file.seek(begin)
            return file.read(16 * item.size)
        # The library sets a whole piece aside, however many texts there are in it.
        if item.chunks is not None and item.ndim == 1 and 16 * item.chunks[0] <= _LARGEST_HEAP:
            return b"".join(item.id.read_direct_chunk((k,))[1] for k in range(0, item.size, item.chunks[0]))
    raise LogError(
        f"{path}: the names in '{item.name}' are compressed, or stored in a way that is not read; write them as text "
        "of fixed length, or without compression."
    )


def _heap(path: Path, file: BinaryIO, begin: int) -> dict[int, bytes]:
    """The objects of a heap by their numbers."""
    if begin > path.stat().st_size:
        raise _damaged(path)
    file.seek(begin)
    signature, version, length = _HEAP.unpack(file.read(_HEAP.size).ljust(_HEAP.size, b"\0"))
    if signature != b"GCOL" or version != 1 or not _HEAP.size <= length <= _LARGEST_HEAP:
        raise _damaged(path)
    content = file.read(length - _HEAP.size)
    out: dict[int, bytes] = {}
    at = 0
    while at + _OBJECT.size <= len(content):
        index, _, _, size = _OBJECT.unpack_from(content, at)
        at += _OBJECT.size
        if index == 0:  # what is free
            break
        if at + size > len(content):
            raise _damaged(path)
        out[index] = content[at : at + size]
        at += -(-size // 8) * 8
    return out


def _damaged(path: Path) -> LogError:
    return LogError(f"{path}: a heap of text in it is damaged; write or copy it again.")
