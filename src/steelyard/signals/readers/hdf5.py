"""HDF5 files: data sets with samples along the first or second axis.

Text of variable length is read by the specification (HDF5 File Format, global heap): with a damaged heap the HDF5
library would loop forever and ignore signals.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.extras import import_extra
from steelyard.ground.untrusted_files import DEEPEST
from steelyard.signals._arrays import ArrayColumns, StoredArray
from steelyard.signals.table import MOST_COLUMNS, READERS, LogReader, TableBlock

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


MOST_SETS = 10_000
# Largest number of entries of all groups: data sets, groups, types, links.
_MOST_ENTRIES = 100_000
_JOINTS = ("joints", "joint_names", "names", "name")


@READERS.register("hdf5")
class Hdf5Reader(LogReader):
    """Reads the data sets of a file, named by their paths without a common prefix; `topic` selects a group.

    Links to other files, virtual data sets, external storage and objects are ignored.
    """

    path: Path
    suffixes = (".h5", ".hdf5", ".hdf")
    description = (
        "data sets `(samples,)`, `(samples, joints)` or `(joints, samples)`, and tables of named fields; one of text "
        "`joint_names` names the joints; the mapping's key `topic` selects a group; links out of the file are not "
        "followed"
    )
    magic = b"\x89HDF\r\n\x1a\n"
    extra: ClassVar[str] = "hdf5"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with self._opened() as file:
            self._columns = ArrayColumns(path, self._arrays(file))
        self.names, self.row_count = self._columns.names, self._columns.row_count
        self.findings = self._columns.findings

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        with self._opened() as file:
            yield from ArrayColumns(self.path, self._arrays(file)).blocks(columns, start)

    def _opened(self) -> Any:
        return _OpenFile(self.path)

    def _arrays(self, file: Any) -> list[StoredArray]:
        import h5py

        root = file
        if self.topic is not None:
            root = file.get(self.topic, getclass=False) if self.topic in file else None
            if not isinstance(root, h5py.Group):
                groups = [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
                raise LogError(f"{self.path}: {UnknownNameError('group', self.topic, groups)}")
        sets = self._data_sets(root)
        self._find_joints(sets)
        usable = {name: item for name, item in sets.items() if self._is_plain(item)}
        shared = _shared_group(list(usable))
        out: list[StoredArray] = []
        for name, item in usable.items():
            short = name[len(shared) :]
            if item.dtype.names is None:
                out.append(StoredArray(short, item.shape, item.dtype.kind, item))
                continue
            for field in item.dtype.names:
                kind = item.dtype[field]
                full = field if len(usable) == 1 else f"{short}.{field}"
                out.append(StoredArray(full, item.shape + kind.shape, kind.base.kind, _Field(item, field)))
        return out

    def _data_sets(self, root: Any) -> dict[str, Any]:
        """Find the data sets below `root` by their paths, through hard links only, each object once.

        The library's `visititems` has no limit of depth, and its time grows with the square of the depth.
        """
        import h5py

        sets: dict[str, Any] = {}
        known: set[tuple[int, int]] = set()
        waiting: list[tuple[str, int, Any]] = [("", 0, root)]
        entries = 0
        while waiting:
            prefix, depth, item = waiting.pop()
            info = h5py.h5o.get_info(item.id)
            if (info.fileno, info.addr) in known:
                continue
            known.add((info.fileno, info.addr))
            if isinstance(item, h5py.Dataset) and not prefix.startswith("#"):
                sets[prefix] = item
            if len(sets) > MOST_SETS:
                raise LogError(f"{self.path}: has more than {MOST_SETS} data sets; select a group with the key topic.")
            if not isinstance(item, h5py.Group):
                continue
            if depth >= DEEPEST:
                raise LogError(
                    f"{self.path}: its groups are nested deeper than {DEEPEST} levels; copy the data sets of the log "
                    "into one group."
                )
            entries += len(item)
            if entries > _MOST_ENTRIES:
                raise LogError(f"{self.path}: has more than {_MOST_ENTRIES} entries, too many for a log.")
            below = [name for name in sorted(item) if isinstance(item.get(name, getlink=True), h5py.HardLink)]
            path = f"{prefix}/" if prefix else ""
            waiting += [(f"{path}{name}", depth + 1, item[name]) for name in reversed(below)]
        return sets

    def _is_plain(self, item: Any) -> bool:
        """Whether a data set has numbers in this file; one of disproportionate size is refused."""
        if item.dtype.hasobject or not item.shape or item.is_virtual or item.external:
            return False
        # A data set, or a chunk, may declare any size and consist of fill values only.
        whole, piece = (math.prod(n) * item.dtype.itemsize for n in (item.shape, item.chunks or (0,)))
        if max(whole, piece) > max(BUDGET, MOST_TIMES_SMALLER * self.path.stat().st_size):
            raise LogError(
                f"{self.path}: the data set '{item.name}' unpacks to {max(whole, piece) / 1e6:.3g} MB, too large for a "
                "log."
            )
        return True

    def _find_joints(self, sets: dict[str, Any]) -> None:
        import h5py

        for name, item in sets.items():
            text = h5py.check_string_dtype(item.dtype)
            if item.is_virtual or item.external:
                continue
            if name.rsplit("/", 1)[-1] in _JOINTS and text and item.shape and item.size <= MOST_COLUMNS:
                if text.length is None:
                    self.joints = text_of(self.path, item)
                elif self._is_plain(item):
                    self.joints = tuple(str(x) for x in np.ravel(item.asstr(errors="replace")[()]))


class _Field:
    """One field of a table, which can be sliced like an array."""

    def __init__(self, item: Any, field: str) -> None:
        self._item, self._field = item, field

    def __getitem__(self, rows: Any) -> Any:
        return self._item[rows][self._field]


class _OpenFile:
    """A file open for reading; errors of the library become a `LogError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        h5py = import_extra("h5py", "hdf5", f"{self._path}: reading HDF5", LogError)
        try:
            self._file = h5py.File(self._path, "r", locking=False)
        except Exception as why:
            raise _broken(self._path, why) from None
        return self._file

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._file.close()
        if isinstance(error, Exception) and not isinstance(error, LogError):
            raise _broken(self._path, error) from None


def _broken(path: Path, why: Exception) -> LogError:
    reason = str(why).splitlines()[0] if str(why) else type(why).__name__
    return LogError(f"{path}: is not a readable HDF5 file, or is cut short ({reason}); write or copy it again.")


def _shared_group(names: list[str]) -> str:
    """Return the common prefix of all paths, up to a slash."""
    groups = [name.split("/")[:-1] for name in names]
    shared: list[str] = []
    for parts in zip(*groups, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "".join(f"{part}/" for part in shared)
