"""`McapRecording`: samples, external torque, reports and events as MCAP."""

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
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, OutputSetup, WatchOutput, WatchReport

_SAMPLES, _EXTERNAL, _REPORTS, _EVENTS = (
    "/joint_states", "/steelyard/external_torque", "/steelyard/report", "/steelyard/events",
)  # fmt: skip
_NUMBERS, _TEXT = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"
# Size at which the next file begins [bytes]; a kill loses at most this.
_MAX_BYTES = 1 << 28


@WATCH_OUTPUTS.register("mcap")
class McapRecording(WatchOutput):
    """Writes FILE.mcap, FILE-2.mcap and so on, without replacing existing files.

    A file appears when it is complete. After a kill the incomplete file is in a hidden folder of the same directory,
    for `mcap recover`.
    """

    description = "samples, reports and events as MCAP, which can be read as a log"
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
        example = kinds[JOINT_STATE](header, list(self.setup.joints), *(np.ones(n) for _ in range(3)))
        self._state = bytearray(self._store.serialize_cdr(example, JOINT_STATE))
        places = joint_state_places(example, bytes(self._state), True)
        assert places is not None
        self._places = [places[name][0] for name in ("position", "velocity", "effort")]
        layout = kinds["std_msgs/msg/MultiArrayLayout"]([], 0)
        self._external = bytearray(self._store.serialize_cdr(kinds[_NUMBERS](layout, np.ones(n)), _NUMBERS))
        self._numbers = struct.Struct(f"<{n}d")
        self._start_file()
        return ""

    def _start_file(self) -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer

        self._folder = Path(mkdtemp(prefix=f".{self._path.stem}-", dir=self._path.absolute().parent))
        self._bag = Writer(self._folder / "bag", version=9, storage_plugin=StoragePlugin.MCAP)
        self._bag.open()
        kinds = {_SAMPLES: JOINT_STATE, _EXTERNAL: _NUMBERS, _REPORTS: _TEXT, _EVENTS: _TEXT}
        self._topics = {
            name: self._bag.add_connection(name, kind, typestore=self._store) for name, kind in kinds.items()
        }
        self._bytes = 0

    def _finish_file(self) -> None:
        self._bag.close()
        while True:
            self._number += 1
            name = self._path if self._number == 1 else self._path.with_stem(f"{self._path.stem}-{self._number}")
            with contextlib.suppress(FileExistsError):
                rename_new(self._folder / "bag" / "bag.mcap", name)
                break
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, topic: str, stamp: int, data: bytes) -> None:
        if self._bytes > _MAX_BYTES:
            self._finish_file()
            self._start_file()
        self._bag.write(self._topics[topic], stamp, data)
        self._bytes += len(data)
        self._last_ns = stamp

    def write_samples(self, batch: ObservedBatch) -> None:
        b, state, numbers = batch.samples, self._state, self._numbers
        for t, q, dq, tau, r in zip(
            b.t.tolist(), b.q.tolist(), b.dq.tolist(), b.tau.tolist(), batch.r.tolist(), strict=True
        ):
            stamp = max(0, round(t * 1e9))
            struct.pack_into("<iI", state, 4, *divmod(stamp, 10**9))
            for place, values in zip(self._places, (q, dq, tau), strict=True):
                numbers.pack_into(state, place, *values)
            self._write(_SAMPLES, stamp, bytes(state))
            numbers.pack_into(self._external, len(self._external) - numbers.size, *r)
            self._write(_EXTERNAL, stamp, bytes(self._external))

    def write_report(self, report: WatchReport) -> None:
        self._write_json(_REPORTS, report.plain())

    def write_event(self, event: WatchEvent) -> None:
        self._write_json(_EVENTS, event.plain())

    def _write_json(self, topic: str, value: dict[str, Any]) -> None:
        text = self._store.types[_TEXT](json.dumps(plain(value), allow_nan=False))
        self._write(topic, self._last_ns, bytes(self._store.serialize_cdr(text, _TEXT)))

    def close(self) -> None:
        self._finish_file()
