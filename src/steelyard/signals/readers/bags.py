"""Joint states in bags of ROS 2 (MCAP; rosbag2: a folder with metadata.yaml, or a .db3 file) and ROS 1."""

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
from steelyard.ground.untrusted_files import regular_file
from steelyard.signals.log import Finding
from steelyard.signals.table import READERS, ColumnValues, LogReader, TableBlock, later_rows

JOINT_STATE = "sensor_msgs/msg/JointState"
_SIGNALS = ("position", "velocity", "effort")
MESSAGES = 10_000  # messages of a block
# All messages must be read to find the columns of a bag. Up to this number they are cached.
MOST_CACHED = 300_000
MOST_METADATA = 2_000_000  # bytes; a bag with hundreds of topics has a part of it
# Number of message layouts that are decoded together per block; other messages are decoded one by one.
MOST_KINDS = 30
STAMP, RECORDED = "stamp", "recorded"  # the two clocks of a raw block, in ns


class BagReader(LogReader):
    """Reads `t`, `position/<joint>`, `velocity/<joint>`, `effort/<joint>` of one topic of a bag, without ROS.

    The time is that of the message headers, or that of recording if the headers lack it.
    """

    cdr: ClassVar[bool] = True  # messages are encoded as CDR (aligned), as in ROS 2

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        super().__init__(path, topic)
        self._cached: list[dict[str, ColumnValues]] | None = []
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
            if count > MOST_CACHED:
                self._cached = None
            if self._cached is not None:
                self._cached.append(raw)
        if count == 0:
            raise LogError(f"{path}: topic '{self.topic}' has no messages.")
        self.row_count, self.joints, self.sparse = count, tuple(joints), len(groups) > 1
        self.names = ("t", *(name for s in _SIGNALS for joint in joints if (name := f"{s}/{joint}") in filled))
        self._clock = STAMP if stamped else RECORDED
        if not stamped:
            message = f"The headers of topic {self.topic} lack the time; the time of recording is used."
            self.findings = (Finding("remark", "note", message),)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        raw_blocks = (raw for _, raw in self._raw_blocks()) if self._cached is None else self._cached
        return later_rows((self._block(raw, columns) for raw in raw_blocks), start)

    def _block(self, raw: dict[str, ColumnValues], columns: Sequence[str]) -> TableBlock:
        known = {**raw, "t": raw[self._clock].astype("datetime64[ns]")}
        return {name: known[name] if name in known else np.full(len(raw[STAMP]), np.nan) for name in columns}

    def _raw_blocks(self) -> Iterator[tuple[list[tuple[str, ...]], dict[str, ColumnValues]]]:
        """Yield the messages in blocks: lists of joint names, and both clocks and all signals."""
        from rosbags.typesys import Stores, get_typestore

        # The message is the same in every version of ROS, so the type definitions in the bag are not needed.
        store = get_typestore(Stores.ROS2_HUMBLE if self.cdr else Stores.ROS1_NOETIC)
        decode = store.deserialize_cdr if self.cdr else store.deserialize_ros1
        try:
            with self._opened() as bag:
                self.topic = _choose_topic(self.path, [(c.topic, c.msgtype) for c in bag.connections], self.topic)
                connections = [c for c in bag.connections if c.topic == self.topic]
                messages = bag.messages(connections=connections)
                first = 1
                while batch := list(itertools.islice(messages, MESSAGES)):
                    yield _raw_block(self.path, decode, self.cdr, batch, first)
                    first += len(batch)
        except LogError:
            raise
        except Exception as error:  # errors of the reader, and of SQLite, CDR and zstd
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LogError(
                f"{self.path}: is not a readable bag, or is cut short ({reason}); record or copy it again."
            ) from None

    def _opened(self) -> Any:
        from rosbags.rosbag2 import Reader

        return Reader(self.path)  # type: ignore[arg-type]


def _check_tables(path: Path) -> None:
    """Refuse views and triggers in a bag, which could run forever."""
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as file:
            others = file.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchmany(1)
    except Exception as why:  # SQLite's errors quote damaged bytes, which may not be text
        raise LogError(f"{path}: is not a readable bag, or is cut short ({why}); record or copy it again.") from None
    if others:
        raise LogError(f"{path}: has a view or a trigger, which bags do not have; record or copy it again.")


def _choose_topic(path: AnyPath, topics: Iterable[tuple[str, str]], wanted: str | None) -> str:
    all_topics = sorted(set(topics))
    usable = [name for name, kind in all_topics if kind == JOINT_STATE]
    if not usable:
        names = ", ".join(f"{name} ({kind})" for name, kind in all_topics) or "none"
        raise LogError(f"{path}: the bag has no topic of type sensor_msgs/JointState; its topics: {names}.")
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
    """Decode clocks and signals of messages, counted from `first`.

    Messages that only differ in their stamps and values are decoded together.
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
            if len(getattr(message, signal)) not in (0, len(names)):  # a message may lack a signal
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
            for place in ((4, 12) if cdr else (0, 12), *places.values()):  # number and stamp of a message
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
    """Find the byte ranges of the values of each signal in an encoded message; None if they are not certain.

    CDR (OMG, "DDS Interoperability Wire Protocol", 10.2): four bytes for the byte order, the stamp, strings and arrays
    after their lengths, each number aligned to its size. ROS 1: a number in place of the byte order, then the same
    without alignment and without a final zero in strings.

    Args:
        message: Decoded message.
        data: Encoded message.
        cdr: Encoding: CDR, or else that of ROS 1.
    """
    whole, half, end = (8, 4, 1) if cdr else (1, 1, 0)
    at = 8  # offset after the first four bytes
    for text in (message.header.frame_id, None, *message.name):  # None: the number of names
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
    """Reads an MCAP file. An interrupted recording lacks the closing mark and is refused."""

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
            raise LogError(f"{path}: the MCAP file is cut short; repair it with `mcap recover`, or copy it again.")
        super().__init__(path, topic)


@READERS.register("rosbag2")
class Rosbag2Reader(BagReader):
    """Reads a rosbag2: a folder, or the SQLite file inside it."""

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
    """Reads a bag of ROS 1."""

    suffixes = (".bag",)
    description = "the same message of ROS 1"
    magic = b"#ROSBAG V2.0"
    cdr = False

    def _opened(self) -> Any:
        from rosbags.rosbag1 import Reader

        return Reader(self.path)  # type: ignore[arg-type]
