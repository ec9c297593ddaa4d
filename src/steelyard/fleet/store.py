"""`FactorStore`: factors of logs under a hash of everything that they depend on, so that nothing is computed twice.

An entry is written to a temporary file and renamed. Two runs can therefore share a store, and a killed run leaves no
incomplete entry. Every entry carries its key and this user's seal (`steelyard.fleet.sealed_files`). Entries that are
damaged, or written by another user or program, are detected and computed again.
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
from steelyard.fleet.log_factors import FactorsError, LogFactors
from steelyard.fleet.sealed_files import ForeignError, Sealer
from steelyard.fleet.settings import content_key
from steelyard.ground.atomic_files import leftovers
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted_files import read_bytes

_MARK = "steelyard fleet store 1\n"
_FOLDERS = ("factors", "settings", "identities")
# A file modified less than this before it was hashed may change again within the resolution of its time stamp [s].
_SETTLED_S = 2.0
# Age at which a journal belongs to a killed run [s].
_LONG_AGO_S = 86_400.0
# Bytes that a run holds in memory if its store cannot be written.
MOST_HELD = 1_000_000_000


@dataclass
class StoreTally:
    """Statistics of a store.

    Attributes:
        written: Number of entries written.
        mended: Number of entries that were damaged or foreign.
        unkept: Number of entries that could not be written.
    """

    written: int = 0
    mended: int = 0
    unkept: int = 0


@dataclass
class FactorStore:
    """Entries by key, in files or in memory.

    Attributes:
        root: Folder of the store, which is created if it does not exist; None: in memory only.
        most_held: Largest number of bytes in memory if the store cannot be written.
        tally: Statistics.
        trouble: Problem with the store; "" without one.
    """

    root: Path | None = None
    most_held: int = MOST_HELD
    tally: StoreTally = field(default_factory=StoreTally)
    trouble: str = ""
    _held: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0
    _identities: dict[str, dict[str, Any]] = field(default_factory=dict)
    _remembered: dict[str, dict[str, Any]] = field(default_factory=dict)
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
                raise SteelyardError(f"{self.root} contains other files; name an empty or a new folder as the store.")
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
                        f"{folder}: is a link, but a store writes only inside its folder; delete the link."
                    )
                for left in leftovers(folder):
                    with contextlib.suppress(OSError):
                        left.path.unlink()
            self._read_journals()
        except OSError as error:
            raise SteelyardError(
                f"{self.root}: cannot be used as a store ({error.strerror}); name another folder with --store."
            ) from None

    # ---------------------------------------------------------------- entries

    def get(self, key: str) -> LogFactors | None:
        """Return the factors of the entry `key`; None if it is missing or damaged."""
        data = self.read(key)
        if data is None:
            return None
        try:
            return LogFactors.from_bytes(data)
        except FactorsError:
            self._mark_foreign(key)
            return None

    def read(self, key: str) -> bytes | None:
        """Return the bytes of the entry `key`; None if this user's runs wrote none."""
        if key in self._held:
            return self._held[key]
        if self.root is None:
            return None
        try:
            return self._sealer.read_entry(self._path(key), key)
        except OSError:
            return None
        except ForeignError:
            self._mark_foreign(key)
            return None

    def has(self, key: str) -> bool:
        """Whether there is an entry `key`, intact or not."""
        return key in self._held or (self.root is not None and self._path(key).exists())

    def put(self, key: str, data: bytes) -> None:
        """Write an entry; it is held in memory if the store cannot be written.

        Args:
            key: Key of the entry.
            data: Content of the entry.
        """
        if self.root is not None and not self.trouble:
            path = self._path(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._sealer.write_entry(path, key, data)
                self.tally.written += 1
                return
            except OSError as error:
                self._report_trouble(error)
        if self.root is not None:
            self.tally.unkept += 1
        if key not in self._held:
            self._size += len(data)
        self._held[key] = data
        if self.root is not None and self._size > self.most_held:
            raise SteelyardError(
                f"{self.trouble}, and there is not enough memory to continue without it; make room and run it again: "
                "entries in the store are not computed again."
            )

    def _report_trouble(self, error: OSError) -> None:
        self.trouble = f"{self.root}: can no longer be written ({error.strerror})"

    def _path(self, key: str) -> Path:
        assert self.root is not None
        return self.root / "factors" / key[:2] / key[2:]

    def _mark_foreign(self, key: str) -> None:
        """Count a damaged or foreign entry or document; the file stays until it is overwritten."""
        if key not in self._foreign:
            self._foreign.add(key)
            self.tally.mended += 1
        self._held.pop(key, None)

    # ---------------------------------------------------------------- documents

    def document(self, name: str) -> Any:
        """Return the JSON document `name`; None if this user's runs wrote none."""
        try:
            return None if self.root is None else self._sealer.read_document(self.root / name, name)
        except OSError:
            return None
        except ForeignError:
            self._mark_foreign(name)
            return None

    def put_document(self, name: str, value: Any) -> None:
        """Write a document, unless the store cannot be written.

        Args:
            name: Name of the document.
            value: Plain data.
        """
        if self.root is None or self.trouble:
            return
        try:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            self._sealer.write_document(self.root / name, name, value)
        except OSError as error:
            self._report_trouble(error)

    # ---------------------------------------------------------------- identities of files

    def identity(self, url: str, place: Mapping[str, Any]) -> str | None:
        """Return the identity of a file's content; None if unknown.

        Args:
            url: Location of the file.
            place: `file_state` of the file.
        """
        for known in (self._remembered.get(url), self._shard(url).get(url)):
            if known is not None and known["place"] == dict(place):
                return str(known["identity"])
        return None

    def remember(self, url: str, place: Mapping[str, Any], identity: str) -> None:
        """Remember the identity of a file's content, at once in a journal in case the run is killed.

        Args:
            url: Location of the file.
            place: `file_state` of the file.
            identity: Hash of its content.
        """
        if time.time() - place.get("mtime_ns", 0) * 1e-9 < _SETTLED_S:
            return
        self._remembered[url] = entry = {"place": dict(place), "identity": identity}
        self._new.add(url)
        if self.root is None or self.trouble:
            return
        try:
            if self._journal is None:
                (self.root / "identities").mkdir(exist_ok=True)
                self._journal = (self.root / "identities" / f"{secrets.token_hex(8)}.jsonl").open("xb", buffering=0)
            self._journal.write(self._sealer.sealed_line([url, entry]))
        except OSError as error:
            self._report_trouble(error)

    def knows_size(self, size: int) -> bool:
        """Whether a file of this `size` [bytes] is remembered; others cannot be known under another name."""
        if self._sizes is None:
            names = [] if self.root is None else [f"identities/{p.name}" for p in self.root.glob("identities/??.json")]
            shards = (self._remembered, *map(self._loaded, names))
            self._sizes = {entry["place"].get("size") for shard in shards for entry in shard.values()}
        return size in self._sizes

    def save_identities(self) -> None:
        """Move remembered identities from the journal to documents.

        Identities that another run saves at the same time may be lost; their files are then hashed again.
        """
        changed: dict[str, dict[str, Any]] = {}
        for url in sorted(self._new):
            changed.setdefault(self._shard_name(url), {})[url] = self._remembered[url]
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
        """Read the journals of other runs; delete old ones, whose identities are saved by this run."""
        assert self.root is not None
        for path in self.root.glob("identities/*.jsonl"):
            with contextlib.suppress(OSError):
                try:
                    lines, foreign = self._sealer.read_lines(path)
                except ForeignError:
                    lines, foreign = [], True
                if foreign:
                    self._mark_foreign(path.name)
                for url, entry in lines:
                    self._remembered[url] = entry
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
