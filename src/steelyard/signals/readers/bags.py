"""Joint states in bags: of ROS 2 (MCAP files; rosbag2: a folder with metadata.yaml, or a bare .db3 file) and ROS 1."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.documents import read_document
from steelyard.ground.remote import AnyPath
from steelyard.ground.untrusted import regular_file
from steelyard.signals.log import Finding
from steelyard.signals.table import READERS, ColumnValues, LogReader, TableBlock, later_rows

JOINT_STATE = "sensor_msgs/msg/JointState"
_SIGNALS = ("position", "velocity", "effort")
MESSAGES = 10_000  # in a block
# The columns of a bag are known when all its messages have been seen. Up to this many, what was seen is kept.
KEPT = 300_000
MOST_METADATA = 2_000_000  # bytes; a bag of hundreds of topics has some
# So many kinds of messages in a block are looked for; of others each is decoded by itself.
MOST_KINDS = 30
STAMP, RECORDED = "stamp", "recorded"  # the two clocks of a raw block, in ns


class BagReader(LogReader):
    """Columns `t`, `position/<joint>`, `velocity/<joint>`, `effort/<joint>` of one topic of a bag; needs no ROS.

    The time is that of the messages' headers, or that of recording if the headers have none.
    """

    cdr: ClassVar[bool] = True  # how messages are encoded: aligned, as in ROS 2

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        super().__init__(path, topic)
        self._kept: list[dict[str, ColumnValues]] | None = []
        joints: dict[str, None] = {}
        groups: set[tuple[str, ...]] = set()
        filled: set[str] = set()
        count, stamped = 0, False
        for names, raw in self._raw_blocks():
            joints |= dict.fromkeys(name for group in names for name in group)
            groups |= set(names)
            filled |= {name for name, x in raw.items() if name not in filled and not np.isnan(x).all()}
            count += len(raw[STAMP])
            stamped = stamped or bool(raw[STAMP].any())
            if count > KEPT:
                self._kept = None
            if self._kept is not None:
                self._kept.append(raw)
        if count == 0:
            raise LogError(f"{path}: topic '{self.topic}' has no messages.")
        self.row_count, self.joints, self.sparse = count, tuple(joints), len(groups) > 1
        self.names = ("t", *(name for s in _SIGNALS for joint in joints if (name := f"{s}/{joint}") in filled))
        self._clock = STAMP if stamped else RECORDED
        if not stamped:
            message = f"The headers of topic {self.topic} hold no time; the time of recording is used."
            self.findings = (Finding("remark", "note", message),)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        raw_blocks = (raw for _, raw in self._raw_blocks()) if self._kept is None else self._kept
        return later_rows((self._block(raw, columns) for raw in raw_blocks), start)

    def _block(self, raw: dict[str, ColumnValues], columns: Sequence[str]) -> TableBlock:
        known = {**raw, "t": raw[self._clock].astype("datetime64[ns]")}
        return {name: known[name] if name in known else np.full(len(raw[STAMP]), np.nan) for name in columns}

    def _raw_blocks(self) -> Iterator[tuple[list[tuple[str, ...]], dict[str, ColumnValues]]]:
        """The messages in blocks: the lists of names that occur, both clocks, and the signals of the joints named."""
        from rosbags.typesys import Stores, get_typestore

        # The message has been the same in every ROS; a fixed definition needs nothing of what the bag says of types.
        store = get_typestore(Stores.ROS2_HUMBLE if self.cdr else Stores.ROS1_NOETIC)
        decode = store.deserialize_cdr if self.cdr else store.deserialize_ros1
        try:
            with self._opened() as bag:
                self.topic = _chosen(self.path, [(c.topic, c.msgtype) for c in bag.connections], self.topic)
                connections = [c for c in bag.connections if c.topic == self.topic]
                messages = bag.messages(connections=connections)
                first = 1
                while some := list(itertools.islice(messages, MESSAGES)):
                    yield _raw_block(self.path, decode, self.cdr, some, first)
                    first += len(some)
        except LogError:
            raise
        except Exception as error:  # the reader's own errors, and those of SQLite, CDR and zstd below it
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LogError(
                f"{self.path}: is not a readable bag, or is cut short ({reason}); record or copy it again."
            ) from None

    def _opened(self) -> Any:
        from rosbags.rosbag2 import Reader

        return Reader(self.path)  # type: ignore[arg-type]


def _check_tables(path: Path) -> None:
    """The tables of a bag must be tables: a view is a program, which may never end."""
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as file:
            others = file.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchmany(1)
    except Exception as why:  # SQLite's errors quote what is damaged, which may be no text
        raise LogError(f"{path}: is not a readable bag, or is cut short ({why}); record or copy it again.") from None
    if others:
        raise LogError(f"{path}: holds a view or a trigger, which no bag has; record or copy it again.")


def _chosen(path: AnyPath, topics: Iterable[tuple[str, str]], wanted: str | None) -> str:
    all_topics = sorted(set(topics))
    usable = [name for name, kind in all_topics if kind == JOINT_STATE]
    if not usable:
        there = ", ".join(f"{name} ({kind})" for name, kind in all_topics) or "none"
        raise LogError(f"{path}: the bag has no topic of type sensor_msgs/JointState; its topics: {there}.")
    if wanted is not None:
        if wanted not in usable:
            raise LogError(f"{path}: {UnknownNameError('topic of joint states', wanted, usable)}")
        return wanted
    if len(usable) > 1:
        raise LogError(
            f"{path}: the bag has several topics of joint states: {', '.join(usable)}; choose one with the mapping's "
            f'key topic, e.g. topic = "{usable[0]}".'
        )
    return usable[0]


def _raw_block(
    path: AnyPath, decode: Any, cdr: bool, messages: list[tuple[Any, int, bytes]], first: int
) -> tuple[list[tuple[str, ...]], dict[str, ColumnValues]]:
    """The clocks and signals of some messages, the first of which has the number `first`.

    Messages that differ from one another in their stamps and values only are decoded together.
    """
    count = len(messages)
    out: dict[str, ColumnValues] = {
        STAMP: np.zeros(count, np.int64),
        RECORDED: np.array([m[1] for m in messages], np.int64),
    }
    groups: dict[tuple[str, ...], None] = {}
    lengths = np.array([len(data) for _, _, data in messages])
    left, kinds = np.ones(count, dtype=bool), 0
    while left.any():
        row = int(np.argmax(left))
        model = messages[row][2]
        message = decode(model, JOINT_STATE)
        names = tuple(message.name)
        groups[names] = None
        for signal in _SIGNALS:
            if len(getattr(message, signal)) not in (0, len(names)):  # a message may leave a signal out
                raise LogError(
                    f"{path}: message {first + row} has {len(names)} names but {len(getattr(message, signal))} values "
                    f"of {signal}."
                )
        alike = np.flatnonzero(left & (lengths == len(model))) if kinds < MOST_KINDS else np.array([row])
        places = joint_state_places(message, model, cdr)
        kinds += 1
        if places is None or len(alike) == 1:
            rows = np.array([row])
            stamps = np.array([message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec])
            values = {signal: getattr(message, signal)[None] for signal in places or _SIGNALS}
        else:
            raw = np.frombuffer(b"".join(messages[k][2] for k in alike), np.uint8).reshape(len(alike), -1)
            fixed = np.ones(len(model), dtype=bool)
            for place in ((4, 12) if cdr else (0, 12), *places.values()):  # the number of a message, its stamp
                fixed[slice(*place)] = False
            same = (raw[:, fixed] == np.frombuffer(model, np.uint8)[fixed]).all(axis=1)
            rows, raw = alike[same], raw[same]
            seconds = raw[:, 4:8].copy().view("<i4" if cdr else "<u4")[:, 0]
            rest = raw[:, 8:12].copy().view("<u4")[:, 0]
            stamps = seconds.astype(np.int64) * 1_000_000_000 + rest
            values = {signal: raw[:, slice(*place)].copy().view("<f8") for signal, place in places.items()}
        left[rows] = False
        out[STAMP][rows] = stamps
        for signal, x in values.items():
            for k, name in enumerate(names[: x.shape[1]]):
                out.setdefault(f"{signal}/{name}", np.full(count, np.nan))[rows] = x[:, k]
    return list(groups), out


def joint_state_places(message: Any, data: bytes, cdr: bool) -> dict[str, tuple[int, int]] | None:
    """From which byte to which the values of each signal lie in `data`, an encoded `message`; None where it is not
    certain.

    CDR (OMG, "DDS Interoperability Wire Protocol", 10.2): four bytes that tell the order of bytes, the stamp, strings
    and arrays behind their lengths, each number at a multiple of its own size. ROS 1: a number in place of the order,
    then the same, without gaps and without a zero at the end of a text. `cdr` tells which of the two it is.
    """
    whole, half, end = (8, 4, 1) if cdr else (1, 1, 0)
    at = 8  # counted from behind the first four bytes
    for text in (message.header.frame_id, None, *message.name):  # None: how many names
        at = -(-at // half) * half + 4 + (0 if text is None else len(text.encode()) + end)
    places: dict[str, tuple[int, int]] = {}
    for signal in _SIGNALS:
        values = getattr(message, signal)
        at = -(-at // half) * half + 4
        if len(values):
            at = -(-at // whole) * whole
            places[signal] = (at + 4, at + 4 + 8 * len(values))
            at += 8 * len(values)
            if data[slice(*places[signal])] != np.asarray(values, "<f8").tobytes():
                return None
    return places if len(data) == at + 4 else None


@READERS.register("mcap")
class McapReader(BagReader):
    """An MCAP file. A recording that was cut off lacks the closing mark and is refused."""

    suffixes = (".mcap",)
    description = (
        "`sensor_msgs/JointState` of ROS 2: columns `t`, `position/<joint>`, `velocity/<joint>`, `effort/<joint>`"
    )
    magic = b"\x89MCAP0\r\n"
    by_pieces = True

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        with path.open("rb") as file:
            opening = file.read(len(self.magic))
            file.seek(0, 2)
            file.seek(max(0, file.tell() - len(self.magic)))
            closing = file.read()
        if opening != self.magic:
            raise LogError(f"{path}: is not an MCAP file.")
        if closing != self.magic:
            raise LogError(f"{path}: the MCAP file is cut short; mend it with `mcap recover`, or copy it again.")
        super().__init__(path, topic)


@READERS.register("rosbag2")
class Rosbag2Reader(BagReader):
    """A rosbag2: a folder, or the SQLite file inside it."""

    suffixes = (".db3",)
    description = "the same, from the folder of the bag or the file in it"
    magic = b"SQLite format 3"
    folders = True

    @classmethod
    def claims(cls, path: Path) -> bool:
        return (path / "metadata.yaml").exists()

    def __init__(self, path: Path, topic: str | None = None) -> None:
        if path.is_dir():
            for file in path.iterdir():
                regular_file(file, LogError)
            read_document(path / "metadata.yaml", LogError, MOST_METADATA)
        for file in sorted(path.glob("*.db3")) if path.is_dir() else [path]:
            _check_tables(file)
        super().__init__(path, topic)


@READERS.register("rosbag1")
class Rosbag1Reader(BagReader):
    """A bag of ROS 1."""

    suffixes = (".bag",)
    description = "the same message of ROS 1"
    magic = b"#ROSBAG V2.0"
    cdr = False

    def _opened(self) -> Any:
        from rosbags.rosbag1 import Reader

        return Reader(self.path)  # type: ignore[arg-type]
