"""`RerunRecording`: a recording for Rerun, or a live view in its viewer."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.ground.extras import import_extra
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport

_SINCE_1970 = 1e8  # [s]; larger times are seconds since 1970


@WATCH_OUTPUTS.register("rerun")
class RerunRecording(WatchOutput):
    """Plots by joint, and events, in a file (.rrd), or without a file in an open viewer."""

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

    def write_samples(self, batch: ObservedBatch) -> None:
        b = batch.samples
        index = [self._rr.TimeColumn("time", **self._clock(b.t))]
        for name, values in (("measured", b.tau), ("external", batch.r)):
            for joint, column in zip(self._joints, values.T, strict=True):
                scalars = self._rr.Scalars.columns(scalars=np.ascontiguousarray(column))
                self._recording.send_columns(f"torque/{joint}/{name}", indexes=index, columns=scalars)

    def write_report(self, report: WatchReport) -> None:
        self._set(report.t)
        for monitor, name, value in report.numbers():
            if not isinstance(value, list):
                self._recording.log(f"{monitor}/{name}", self._rr.Scalars(float(value)))
            elif len(value) == len(self._joints):
                for joint, x in zip(self._joints, value, strict=True):
                    self._recording.log(f"{monitor}/{name}/{joint}", self._rr.Scalars(float(x)))

    def write_event(self, event: WatchEvent) -> None:
        level = self._rr.TextLogLevel.WARN if event.alarm else self._rr.TextLogLevel.INFO
        self._set(event.t)
        self._recording.log("events", self._rr.TextLog(event.message, level=level))

    def close(self) -> None:
        self._recording.flush()
        self._recording.disconnect()
