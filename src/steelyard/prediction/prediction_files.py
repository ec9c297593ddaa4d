"""Writes predicted torques as a table, as MCAP for Foxglove or as a recording for Rerun."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content
from steelyard.ground.registry import Registry

if TYPE_CHECKING:
    from steelyard.prediction.predict import PredictedLog

_JOINT_STATE = "sensor_msgs/msg/JointState"
_TOPIC = "/steelyard"


@dataclass(frozen=True)
class PredictionFormat:
    """A file format of predicted torques. Plug-ins use the entry-point group `steelyard.predictions`.

    Args:
        description: Short description.
        content: Builds the file from the predictions of a log and the names of the joints.
    """

    description: str
    content: Callable[[PredictedLog, Sequence[str]], Content]


PREDICTION_FORMATS: Registry[PredictionFormat] = Registry(
    "prediction format", ("steelyard.prediction.prediction_files",), group="steelyard.predictions"
)


def _csv(log: PredictedLog, joints: Sequence[str]) -> Content:
    heads = ["t", *(f"tau_{j}" for j in joints)]
    columns = [log.t[:, None], log.torque]
    if log.band is not None:
        heads += [f"sigma_{j}" for j in joints]
        columns.append(log.band)
    if log.half_width is not None:
        heads += [f"{side}_{j}" for side in ("lower", "upper") for j in joints]
        columns += [log.torque - log.half_width, log.torque + log.half_width]
    return csv_text([heads, *([f"{x:.10g}" if np.isfinite(x) else "" for x in row] for row in np.hstack(columns))])


def _signals(log: PredictedLog) -> Iterator[tuple[str, Array, Array]]:
    """Name, times [s] and torques: predicted for all samples; measured and residual for compared samples."""
    yield "predicted", log.t, log.filtered
    if log.measured is not None:
        compared = log.compared
        yield "measured", log.t[compared], log.measured[compared]
        yield "residual", log.t[compared], (log.measured - log.filtered)[compared]


def _stamps(log: PredictedLog, t: Array) -> list[int]:
    """Clock of the original log [ns] at `t` [s]."""
    return [log.start_ns + round(float(x) * 1e9) for x in t]


def _mcap(log: PredictedLog, joints: Sequence[str]) -> Content:
    """ROS 2 messages of type JointState with the torque as effort."""

    def write(path: Path) -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore

        store = get_typestore(Stores.ROS2_HUMBLE)
        state, header, time = (
            store.types[n] for n in (_JOINT_STATE, "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
        )
        none, names, rows = np.zeros(0), list(joints), []
        with TemporaryDirectory(dir=path.parent) as temporary:
            folder = Path(temporary) / "bag"
            with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
                for name, t, torque in _signals(log):
                    channel = bag.add_connection(f"{_TOPIC}/{name}", _JOINT_STATE, typestore=store)
                    rows += [(stamp, channel, row) for stamp, row in zip(_stamps(log, t), torque, strict=True)]
                for stamp, channel, row in sorted(rows, key=lambda entry: entry[0]):
                    at = header(time(*divmod(stamp, 10**9)), "")
                    message = state(at, names, none, none, np.ascontiguousarray(row))
                    bag.write(channel, stamp, store.serialize_cdr(message, _JOINT_STATE))
            shutil.move(folder / "bag.mcap", path)

    return write


def _rrd(log: PredictedLog, joints: Sequence[str]) -> Content:
    """A plot for each joint over the log's clock: torque/JOINT/measured, …/predicted, …/residual."""
    rr = import_extra("rerun", "rerun", "A recording for Rerun")

    def write(path: Path) -> None:
        recording = rr.RecordingStream("steelyard", recording_id=log.name)
        recording.save(path)
        for name, t, torque in _signals(log):
            stamps = np.array(_stamps(log, t), dtype="int64")
            clock = {"timestamp": stamps.astype("datetime64[ns]")} if log.start_ns else {"duration": t}
            for joint, values in zip(joints, torque.T, strict=True):
                entity = f"torque/{rr.escape_entity_path_part(joint)}/{name}"
                columns = rr.Scalars.columns(scalars=np.ascontiguousarray(values))
                recording.send_columns(entity, indexes=[rr.TimeColumn("time", **clock)], columns=columns)
        recording.disconnect()

    return write


PREDICTION_FORMATS.register("csv")(PredictionFormat("table of predicted torques and their bands", _csv))
PREDICTION_FORMATS.register("mcap")(PredictionFormat("measured, predicted and residual torque for Foxglove", _mcap))
PREDICTION_FORMATS.register("rrd")(PredictionFormat("the same for Rerun; needs rerun-sdk", _rrd))
