"""Reads text of variable length in HDF5 files by the specification (HDF5 File Format, global heap).

With a damaged heap the HDF5 library would loop for ever and ignore signals, so it is not used for such text.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from steelyard.errors import LogError

# Largest heap, or chunk of references [bytes]; joint names need a few kB.
_LARGEST_HEAP = 1 << 20
_PLACE = "<IQI"  # reference to a text: length, address of its heap, index there
_OBJECT = struct.Struct("<HHIQ")  # index, reference count, padding, length
_HEAP = struct.Struct("<4sB3xQ")  # signature, version, length


def text_of(path: Path, item: Any) -> tuple[str, ...]:
    """Read a data set of text of variable length.

    Args:
        path: Path of the file.
        item: Data set.
    """
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
    """Read the references (length, heap, index) of all texts."""
    plain = item.id.get_create_plist().get_nfilters() == 0
    if plain and item.file.id.get_create_plist().get_sizes() == (8, 8):
        if (begin := item.id.get_offset()) is not None:
            if begin > path.stat().st_size:
                raise _damaged(path)
            file.seek(begin)
            return file.read(16 * item.size)
        # The library allocates whole chunks, so their size must be limited.
        if item.chunks is not None and item.ndim == 1 and 16 * item.chunks[0] <= _LARGEST_HEAP:
            return b"".join(item.id.read_direct_chunk((k,))[1] for k in range(0, item.size, item.chunks[0]))
    raise LogError(
        f"{path}: the names in '{item.name}' are compressed, or stored in an unsupported way; write them as text of "
        "fixed length, or without compression."
    )


def _heap(path: Path, file: BinaryIO, begin: int) -> dict[int, bytes]:
    """Read the objects of a heap by their index."""
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
        if index == 0:  # free space
            break
        if at + size > len(content):
            raise _damaged(path)
        out[index] = content[at : at + size]
        at += -(-size // 8) * 8
    return out


def _damaged(path: Path) -> LogError:
    return LogError(f"{path}: a text heap in the file is damaged; write or copy it again.")
