"""`FactorStore`: what logs left, kept under a hash of all that it depends on, so that nothing is made twice.

An entry is written aside and put in place by one rename: two runs on one store do each other no harm, and a run that is
killed leaves nothing that could be taken for an entry. Every entry names its key and bears a checksum; one that is
torn, or is another's, is noticed and made anew.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.fleet.mapped import FactorsError, LogFactors
from steelyard.fleet.settings import content_key
from steelyard.ground.files import write_whole
from steelyard.ground.places import abandoned

_MARK = "steelyard fleet store 1\n"
# A file that was written less than so long before it was hashed may be written again within its clock's tick.
_SETTLED_S = 2.0
# What a run holds in memory, in bytes, once its store cannot be written.
MOST_HELD = 1_000_000_000


@dataclass
class StoreTally:
    """What happened to a store during a run: entries found, written, noticed to be torn or foreign, and not kept."""

    found: int = 0
    written: int = 0
    mended: int = 0
    unkept: int = 0


@dataclass
class FactorStore:
    """Entries by key, in files below `root`; None: in memory alone.

    Args:
        root: a folder of its own; made where it is not there.
        most_held: bytes that are held in memory where the store cannot be written.
    """

    root: Path | None = None
    most_held: int = MOST_HELD
    tally: StoreTally = field(default_factory=StoreTally)
    trouble: str = ""
    _held: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0
    _identities: dict[str, dict[str, Any]] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _sizes: set[Any] | None = None

    def __post_init__(self) -> None:
        if self.root is None:
            return
        mark = self.root / "STORE"
        try:
            if not mark.exists() and self.root.exists() and any(self.root.iterdir()):
                raise SteelyardError(f"{self.root} holds other things; name an empty folder, or none, as the store.")
            self.root.mkdir(parents=True, exist_ok=True)
            if mark.exists() and mark.read_text("utf-8", "replace") != _MARK:
                raise SteelyardError(f"{self.root} is a store of another version; name another one.")
            if not mark.exists():
                write_whole(mark, _MARK)
            for folder in (self.root, *self.root.glob("*/??/"), *self.root.glob("identities/")):
                for left in abandoned(folder):
                    with contextlib.suppress(OSError):
                        left.path.unlink()
        except OSError as error:
            raise SteelyardError(
                f"{self.root}: cannot be used as a store ({error.strerror}); name another place by --store."
            ) from None

    # ---------------------------------------------------------------- entries

    def get(self, key: str) -> LogFactors | None:
        """The entry `key`; None where there is none, or none that is whole."""
        data = self.read(key)
        if data is None:
            return None
        try:
            made = LogFactors.from_bytes(data)
        except FactorsError:
            self._noticed(key)
            return None
        return made

    def read(self, key: str) -> bytes | None:
        """The bytes of the entry `key`, which is its own but may be torn."""
        if key in self._held:
            return self._held[key]
        if self.root is None:
            return None
        try:
            name, _, data = self._path(key).read_bytes().partition(b"\n")
        except OSError:
            return None
        if name != key.encode():
            self._noticed(key)
            return None
        return data

    def has(self, key: str) -> bool:
        """Whether there is an entry `key`, whole or not."""
        return key in self._held or (self.root is not None and self._path(key).exists())

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` as the entry `key`; held in memory where the store cannot be written."""
        if self.root is not None and not self.trouble:
            path = self._path(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, key.encode() + b"\n" + data)
                self.tally.written += 1
                return
            except OSError as error:
                self.trouble = f"{self.root}: cannot be written any more ({error.strerror})"
        if self.root is not None:
            self.tally.unkept += 1
        if key not in self._held:
            self._size += len(data)
        self._held[key] = data
        if self.root is not None and self._size > self.most_held:
            raise SteelyardError(
                f"{self.trouble}, and there is no memory to go on without it; make room and run it again: what is in "
                "the store is not made anew."
            )

    def _path(self, key: str) -> Path:
        assert self.root is not None
        return self.root / "factors" / key[:2] / key[2:]

    def _noticed(self, key: str) -> None:
        """An entry that is torn or foreign; it stays until another takes its place, which may be there already."""
        self.tally.mended += 1
        self._held.pop(key, None)

    # ---------------------------------------------------------------- documents

    def document(self, name: str) -> Any:
        """The JSON document `name` of the store; None where there is none that can be read."""
        try:
            return None if self.root is None else json.loads((self.root / name).read_bytes())
        except (OSError, ValueError):
            return None

    def put_document(self, name: str, value: Any) -> None:
        """Keep `value`, plain data, as the document `name`; not at all where the store cannot be written."""
        if self.root is None or self.trouble:
            return
        try:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.root / name, json.dumps(value, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            self.trouble = f"{self.root}: cannot be written any more ({error.strerror})"

    # ---------------------------------------------------------------- which file has which content

    def identity(self, url: str, place: Mapping[str, Any]) -> str | None:
        """What stands for the content of the file at `url` as it was when it lay as `place` says (`how_it_lies`); None:
        not known."""
        known = self._shard(url).get(url)
        return known["identity"] if known and known["place"] == dict(place) else None

    def remember(self, url: str, place: Mapping[str, Any], identity: str) -> None:
        """That `identity` stands for the content of the file at `url`, lying as `place` says."""
        if time.time() - place.get("mtime_ns", 0) * 1e-9 < _SETTLED_S:
            return
        self._shard(url)[url] = {"place": dict(place), "identity": identity}
        self._changed.add(self._shard_name(url))

    def knows_size(self, size: int) -> bool:
        """Whether a file that is so many bytes long (`size`) is remembered: others cannot be known by another name."""
        if self._sizes is None:
            names = [] if self.root is None else [f"identities/{p.name}" for p in self.root.glob("identities/??.json")]
            shards = (self._loaded(name) for name in names)
            self._sizes = {entry["place"].get("size") for shard in shards for entry in shard.values()}
        return size in self._sizes

    def save_identities(self) -> None:
        """Write down what was remembered. What another run wrote meanwhile may be lost: then a file is hashed again."""
        for name in sorted(self._changed):
            self.put_document(name, {**(self.document(name) or {}), **self._identities[name]})
        self._changed.clear()

    def _shard(self, url: str) -> dict[str, Any]:
        return self._loaded(self._shard_name(url))

    def _loaded(self, name: str) -> dict[str, Any]:
        if name not in self._identities:
            found = self.document(name)
            sound = isinstance(found, dict) and all(isinstance(x, dict) and {"place", "identity"} <= set(x)
                                                    for x in found.values())  # fmt: skip
            self._identities[name] = found if sound else {}
        return self._identities[name]

    def _shard_name(self, url: str) -> str:
        return f"identities/{content_key(url)[:2]}.json"
