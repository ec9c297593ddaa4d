"""Everything as MCAP: samples, external torque, reports and events, for Foxglove and for our own reader of bags."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from steelyard.ground.atomic_files import rename_new
from steelyard.ground.files import check_file, plain
from steelyard.signals.readers.bags import JOINT_STATE, joint_state_places
from steelyard.watch.batch import Seen
from steelyard.watch.output import WATCH_OUTPUTS, OutputSetup, WatchOutput, WatchReport
from steelyard.watch.parts import WatchEvent

_SAMPLES, _EXTERNAL, _REPORTS, _EVENTS = (
    "/joint_states", "/steelyard/external_torque", "/steelyard/report", "/steelyard/events",
)  # fmt: skip
_NUMBERS, _TEXT = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"
# A file is ended, and the next begun, after so many bytes: what a kill can cost.
_MOST_BYTES = 1 << 28


@WATCH_OUTPUTS.register("mcap")
class McapRecording(WatchOutput):
    """A recording, FILE.mcap, then FILE-2.mcap and so on, where these are free. Each file appears when it is
    whole; what was being written when the process was killed stands in a folder beside it, for `mcap recover`."""

    description = "everything as MCAP; our own reader takes it as a log"
    wants_samples = True

    def __init__(self, where: str, setup: OutputSetup) -> None:
        super().__init__(where or "watch.mcap", setup)
        self._bag: Any = None
        self._number = 0
        self._last_ns = 0

    def open(self) -> str:
        from rosbags.typesys import Stores, get_typestore

        self._path = Path(self.where)
        check_file(self._path, new=False)
        self._store = get_typestore(Stores.ROS2_HUMBLE)
        kinds = self._store.types
        header = kinds["std_msgs/msg/Header"](kinds["builtin_interfaces/msg/Time"](0, 0), "")
        n = len(self.setup.joints)
        one = kinds[JOINT_STATE](header, list(self.setup.joints), *(np.ones(n) for _ in range(3)))
        self._state = bytearray(self._store.serialize_cdr(one, JOINT_STATE))
        places = joint_state_places(one, bytes(self._state), True)
        assert places is not None
        self._places = [places[name][0] for name in ("position", "velocity", "effort")]
        layout = kinds["std_msgs/msg/MultiArrayLayout"]([], 0)
        self._external = bytearray(self._store.serialize_cdr(kinds[_NUMBERS](layout, np.ones(n)), _NUMBERS))
        self._numbers = struct.Struct(f"<{n}d")
        self._begin()
        return ""

    def _begin(self) -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer

        self._folder = Path(mkdtemp(prefix=f".{self._path.stem}-", dir=self._path.absolute().parent))
        self._bag = Writer(self._folder / "bag", version=9, storage_plugin=StoragePlugin.MCAP)
        self._bag.open()
        kinds = {_SAMPLES: JOINT_STATE, _EXTERNAL: _NUMBERS, _REPORTS: _TEXT, _EVENTS: _TEXT}
        self._topics = {
            name: self._bag.add_connection(name, kind, typestore=self._store) for name, kind in kinds.items()
        }
        self._bytes = 0

    def _end(self) -> None:
        self._bag.close()
        while True:
            self._number += 1
            name = self._path if self._number == 1 else self._path.with_stem(f"{self._path.stem}-{self._number}")
            with contextlib.suppress(FileExistsError):
                rename_new(self._folder / "bag" / "bag.mcap", name)
                break
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, topic: str, stamp: int, data: bytes) -> None:
        if self._bytes > _MOST_BYTES:
            self._end()
            self._begin()
        self._bag.write(self._topics[topic], stamp, data)
        self._bytes += len(data)
        self._last_ns = stamp

    def took(self, seen: Seen) -> None:
        b, state, numbers = seen.batch, self._state, self._numbers
        for t, q, dq, tau, r in zip(
            b.t.tolist(), b.q.tolist(), b.dq.tolist(), b.tau.tolist(), seen.r.tolist(), strict=True
        ):
            stamp = max(0, round(t * 1e9))
            struct.pack_into("<iI", state, 4, *divmod(stamp, 10**9))
            for place, values in zip(self._places, (q, dq, tau), strict=True):
                numbers.pack_into(state, place, *values)
            self._write(_SAMPLES, stamp, bytes(state))
            numbers.pack_into(self._external, len(self._external) - numbers.size, *r)
            self._write(_EXTERNAL, stamp, bytes(self._external))

    def told(self, report: WatchReport) -> None:
        self._words(_REPORTS, report.plain())

    def happened(self, event: WatchEvent) -> None:
        self._words(_EVENTS, event.plain())

    def _words(self, topic: str, value: dict[str, Any]) -> None:
        text = self._store.types[_TEXT](json.dumps(plain(value), allow_nan=False))
        self._write(topic, self._last_ns, bytes(self._store.serialize_cdr(text, _TEXT)))

    def close(self) -> None:
        self._end()
