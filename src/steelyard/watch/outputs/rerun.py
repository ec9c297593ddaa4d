"""A recording for Rerun, or its viewer, live."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.ground.extras import import_extra
from steelyard.watch.batch import Seen
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport
from steelyard.watch.parts import WatchEvent

_SINCE_1970 = 1e8  # s; a clock that shows more counts from there


@WATCH_OUTPUTS.register("rerun")
class RerunRecording(WatchOutput):
    """To a file (.rrd), or to a viewer that is open already where none is named: plots by joint, and the events."""

    description = "a recording for Rerun, or its open viewer (needs rerun-sdk)"
    wants_samples = True

    def open(self) -> str:
        self._rr: Any = import_extra("rerun", "rerun", "A recording for Rerun")
        self._recording = self._rr.RecordingStream("steelyard watch")
        if self.where:
            self._recording.save(self.where)
        else:
            self._recording.connect_grpc()
        self._joints = [self._rr.escape_entity_path_part(name) for name in self.setup.joints]
        return ""

    def _clock(self, t: Any) -> dict[str, Any]:
        t = np.asarray(t, dtype=float)
        if np.all(t > _SINCE_1970):
            return {"timestamp": np.round(t * 1e9).astype("int64").astype("datetime64[ns]")}
        return {"duration": t}

    def _set(self, t: float) -> None:
        self._recording.set_time("time", **{name: x[()] for name, x in self._clock(t).items()})

    def took(self, seen: Seen) -> None:
        b = seen.batch
        index = [self._rr.TimeColumn("time", **self._clock(b.t))]
        for name, values in (("measured", b.tau), ("external", seen.r)):
            for joint, column in zip(self._joints, values.T, strict=True):
                scalars = self._rr.Scalars.columns(scalars=np.ascontiguousarray(column))
                self._recording.send_columns(f"torque/{joint}/{name}", indexes=index, columns=scalars)

    def told(self, report: WatchReport) -> None:
        self._set(report.t)
        for part, name, value in report.numbers():
            if not isinstance(value, list):
                self._recording.log(f"{part}/{name}", self._rr.Scalars(float(value)))
            elif len(value) == len(self._joints):
                for joint, x in zip(self._joints, value, strict=True):
                    self._recording.log(f"{part}/{name}/{joint}", self._rr.Scalars(float(x)))

    def happened(self, event: WatchEvent) -> None:
        level = self._rr.TextLogLevel.WARN if event.alarm else self._rr.TextLogLevel.INFO
        self._set(event.t)
        self._recording.log("events", self._rr.TextLog(event.message, level=level))

    def close(self) -> None:
        self._recording.flush()
        self._recording.disconnect()
