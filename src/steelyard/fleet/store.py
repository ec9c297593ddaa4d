"""`FactorStore`: what logs left, kept under a hash of all that it depends on, so that nothing is made twice.

An entry is written aside and put in place by one rename: two runs on one store do each other no harm, and a run that is
killed leaves nothing that could be taken for an entry. Every entry names its key and carries this user's seal
(`steelyard.fleet.sealed`); one that is torn, or that another user or program made, is noticed and made anew.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from steelyard.errors import SteelyardError
from steelyard.fleet.mapped import FactorsError, LogFactors
from steelyard.fleet.sealed import ForeignError, Sealer
from steelyard.fleet.settings import content_key
from steelyard.ground.atomic_files import leftovers
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted import read_bytes

_MARK = "steelyard fleet store 1\n"
_FOLDERS = ("factors", "settings", "identities")
# A file that was written less than so long before it was hashed may be written again within its clock's tick.
_SETTLED_S = 2.0
# A journal that nobody wrote to for a day is of a run that was killed.
_LONG_AGO_S = 86_400.0
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
    _told: dict[str, dict[str, Any]] = field(default_factory=dict)
    _new: set[str] = field(default_factory=set)
    _journal: IO[bytes] | None = None
    _sizes: set[Any] | None = None
    _sealer: Sealer = field(init=False)
    _foreign: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.root is None:
            return
        self._sealer = Sealer()
        mark = self.root / "STORE"
        try:
            if not mark.exists() and self.root.exists() and any(self.root.iterdir()):
                raise SteelyardError(f"{self.root} holds other things; name an empty folder, or none, as the store.")
            self.root.mkdir(parents=True, exist_ok=True)
            if mark.exists() and read_bytes(mark, 1 << 10, SteelyardError) != _MARK.encode():
                raise SteelyardError(f"{self.root} is a store of another version; name another one.")
            if not mark.exists():
                write_whole(mark, _MARK)
            folders = [self.root, *(path for path in self.root.glob("*/") if path.name in _FOLDERS)]
            folders += self.root.glob("factors/??/")
            for folder in folders:
                if folder != self.root and folder.is_symlink():
                    raise SteelyardError(
                        f"{folder}: is a link, and a store writes to nothing outside of it; delete it."
                    )
                for left in leftovers(folder):
                    with contextlib.suppress(OSError):
                        left.path.unlink()
            self._read_journals()
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
        """The bytes of the entry `key`; None where there is none that this user's runs made."""
        if key in self._held:
            return self._held[key]
        if self.root is None:
            return None
        try:
            return self._sealer.read_entry(self._path(key), key)
        except OSError:
            return None
        except ForeignError:
            self._noticed(key)
            return None

    def has(self, key: str) -> bool:
        """Whether there is an entry `key`, whole or not."""
        return key in self._held or (self.root is not None and self._path(key).exists())

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` as the entry `key`; held in memory where the store cannot be written."""
        if self.root is not None and not self.trouble:
            path = self._path(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._sealer.write_entry(path, key, data)
                self.tally.written += 1
                return
            except OSError as error:
                self._in_trouble(error)
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

    def _in_trouble(self, error: OSError) -> None:
        self.trouble = f"{self.root}: cannot be written any more ({error.strerror})"

    def _path(self, key: str) -> Path:
        assert self.root is not None
        return self.root / "factors" / key[:2] / key[2:]

    def _noticed(self, key: str) -> None:
        """An entry or document that is torn or foreign; it stays until another takes its place, which may be there
        already."""
        if key not in self._foreign:
            self._foreign.add(key)
            self.tally.mended += 1
        self._held.pop(key, None)

    # ---------------------------------------------------------------- documents

    def document(self, name: str) -> Any:
        """The JSON document `name` of the store; None where there is none that this user's runs made."""
        try:
            return None if self.root is None else self._sealer.read_document(self.root / name, name)
        except OSError:
            return None
        except ForeignError:
            self._noticed(name)
            return None

    def put_document(self, name: str, value: Any) -> None:
        """Keep `value`, plain data, as the document `name`; not at all where the store cannot be written."""
        if self.root is None or self.trouble:
            return
        try:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            self._sealer.write_document(self.root / name, name, value)
        except OSError as error:
            self._in_trouble(error)

    # ---------------------------------------------------------------- which file has which content

    def identity(self, url: str, place: Mapping[str, Any]) -> str | None:
        """What stands for the content of the file at `url` as it was when it lay as `place` says (`how_it_lies`); None:
        not known."""
        for known in (self._told.get(url), self._shard(url).get(url)):
            if known is not None and known["place"] == dict(place):
                return str(known["identity"])
        return None

    def remember(self, url: str, place: Mapping[str, Any], identity: str) -> None:
        """That `identity` stands for the content of the file at `url`, lying as `place` says.

        It is written to a journal at once, so that a run that is killed loses nothing of what it did.
        """
        if time.time() - place.get("mtime_ns", 0) * 1e-9 < _SETTLED_S:
            return
        self._told[url] = entry = {"place": dict(place), "identity": identity}
        self._new.add(url)
        if self.root is None or self.trouble:
            return
        try:
            if self._journal is None:
                (self.root / "identities").mkdir(exist_ok=True)
                self._journal = (self.root / "identities" / f"{secrets.token_hex(8)}.jsonl").open("xb", buffering=0)
            self._journal.write(self._sealer.sealed_line([url, entry]))
        except OSError as error:
            self._in_trouble(error)

    def knows_size(self, size: int) -> bool:
        """Whether a file that is so many bytes long (`size`) is remembered: others cannot be known by another name."""
        if self._sizes is None:
            names = [] if self.root is None else [f"identities/{p.name}" for p in self.root.glob("identities/??.json")]
            shards = (self._told, *map(self._loaded, names))
            self._sizes = {entry["place"].get("size") for shard in shards for entry in shard.values()}
        return size in self._sizes

    def save_identities(self) -> None:
        """Put what was remembered in order, and the journal away. What another run writes meanwhile may be lost: then a
        file is hashed again."""
        changed: dict[str, dict[str, Any]] = {}
        for url in sorted(self._new):
            changed.setdefault(self._shard_name(url), {})[url] = self._told[url]
        for name, entries in changed.items():
            self.put_document(name, {**(self.document(name) or {}), **entries})
            self._identities.pop(name, None)
        if self._journal is not None:
            self._journal.close()
            if not self.trouble:
                Path(self._journal.name).unlink(missing_ok=True)
        self._journal = None
        self._new.clear()

    def _read_journals(self) -> None:
        """Of runs that were killed, or are still under way; one of long ago is put in order, and away."""
        assert self.root is not None
        for path in self.root.glob("identities/*.jsonl"):
            with contextlib.suppress(OSError):
                try:
                    lines, foreign = self._sealer.read_lines(path)
                except ForeignError:
                    lines, foreign = [], True
                if foreign:
                    self._noticed(path.name)
                for url, entry in lines:
                    self._told[url] = entry
                    self._new.add(url)
                if time.time() - path.stat().st_mtime > _LONG_AGO_S:
                    path.unlink()

    def _shard(self, url: str) -> dict[str, Any]:
        return self._loaded(self._shard_name(url))

    def _loaded(self, name: str) -> dict[str, Any]:
        if name not in self._identities:
            self._identities[name] = self.document(name) or {}
        return self._identities[name]

    def _shard_name(self, url: str) -> str:
        return f"identities/{content_key(url)[:2]}.json"
