"""Logs in the formats of other programs, as targets: name, suffix, seeds, mutator, what reads a file."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutators as change
from steelyard.check.guess import guess_mapping
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

Target = tuple[str, str, tuple[bytes, ...], change.Mutator, Callable[[Path], Any]]


def log_targets(folder: Path, robot: Robot, log: Log, table: bytes) -> Iterator[Target]:
    """The formats of other programs; of folders, one of the files in them is changed."""
    import gzip

    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq
    from scipy.io import savemat

    yield from _bags(folder, robot, log)
    spaced = table.replace(b",", b" ")
    named = table.replace(b"q1,q2,q3", b"J1 pos [deg],J2 pos [deg],J3 pos [deg]", 1)
    numbers = {"time": 1, "position": [2, 3, 4], "torque": "8-10"}
    yield ("text", ".dat", (spaced, spaced.split(b"\n", 1)[1]), change.change_text,
                 lambda p: read_log(p, robot, numbers))  # fmt: skip
    juggler = table.replace(b"t,", b"__time,", 1).replace(b"\n", b"\n,,,,,,,,,\n", 1)
    yield ("plotjuggler", ".csv", (juggler,), change.change_csv, lambda p: read_log(p, robot))
    yield ("csv.gz", ".csv.gz", (gzip.compress(table),), change.change_bytes, lambda p: read_log(p, robot))
    lists = {"t": log.t, "q": list(log.q), "tau": list(log.tau), "name": [list(log.joints)] * len(log)}
    packed, plain = io.BytesIO(), io.BytesIO()
    pa.feather.write_feather(pa.table(lists), packed, chunksize=16)
    pa.feather.write_feather(pa.table({"t": log.t, "q1": log.q[:, 0]}), plain, compression="uncompressed")
    yield ("feather", ".feather", (packed.getvalue(), plain.getvalue()), change.change_bytes,
                 lambda p: read_log(p, robot))  # fmt: skip
    held = io.BytesIO()
    pq.write_table(pa.table(lists), held, row_group_size=16)
    yield ("parquet-lists", ".parquet", (held.getvalue(),), change.change_bytes, lambda p: read_log(p, robot))
    arrays = {"t": log.t, "q": log.q, "tau": log.tau}
    mats = [io.BytesIO() for _ in range(2)]
    savemat(mats[0], arrays, do_compression=True)
    savemat(mats[1], {"log": arrays, "joints": np.array(log.joints, dtype=object)})
    yield ("mat", ".mat", tuple(m.getvalue() for m in mats), change.change_bytes, lambda p: read_log(p, robot))
    with suppress(ImportError):
        yield ("hdf5", ".h5", (_hdf5(arrays, robot),), change.change_bytes, lambda p: read_log(p, robot))
    yield ("map", ".csv", (table, named), change.change_csv, lambda p: guess_mapping(p, robot).to_json())
    yield from _log_folders(folder, robot, lists, spaced)


def _hdf5(arrays: dict[str, Any], robot: Robot) -> bytes:
    import h5py

    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        for name, x in arrays.items():
            file.create_dataset(f"run/{name}", data=x, compression="gzip")
        file["run/joint_names"] = list(robot.joint_names)
    return out.getvalue()


def _log_folders(folder: Path, robot: Robot, lists: dict[str, Any], spaced: bytes) -> Iterator[Target]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / "signals"
    place.mkdir()
    for name in ("q", "tau"):
        (place / f"{name}.txt").write_bytes(spaced)

    def changed_part(path: Path) -> None:
        shutil.copyfile(path, place / "tau.txt")
        read_log(place, robot, {"prefix": "q/"})

    yield ("signals", ".dat", (spaced,), change.change_text, changed_part)
    data = folder / "lerobot" / "data" / "chunk-000"
    data.mkdir(parents=True)
    (folder / "lerobot" / "meta").mkdir()
    rows = len(lists["t"])
    table = {"observation.state": lists["q"], "frame_index": np.arange(rows), "episode_index": np.zeros(rows, int)}
    pq.write_table(pa.table(table), data / "file-000.parquet")
    state = {"dtype": "float64", "shape": [3], "names": [f"{name}.pos" for name in robot.joint_names]}
    info = {"codebase_version": "v3.0", "fps": 100, "features": {"observation.state": state}}

    def changed_info(path: Path) -> None:
        shutil.copyfile(path, folder / "lerobot" / "meta" / "info.json")
        read_log(folder / "lerobot", robot, {"episodes": "0-3"})

    yield ("lerobot", ".json", (json.dumps(info).encode(),), change.change_json, changed_info)


def _bags(folder: Path, robot: Robot, log: Log) -> Iterator[Target]:
    """Bags of ROS 2 and ROS 1."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    try:
        from bags import joint_states, write_bag, write_bag1
    finally:
        sys.path.pop(0)
    messages = {"/joint_states": joint_states(list(log.joints), {"t": log.t, "q": log.q, "dq": log.dq, "tau": log.tau})}
    for kind, storage, suffix in (("mcap", "mcap", ".mcap"), ("rosbag2", "sqlite3", ".db3")):
        bag = write_bag(folder / f"bag-{kind}", messages, storage)
        seed = next(bag.glob(f"*{suffix}")).read_bytes()
        yield (kind, suffix, (seed,), change.change_bytes, lambda p: read_log(p, robot))
    seed = write_bag1(folder / "run.bag", messages).read_bytes()
    yield ("rosbag1", ".bag", (seed,), change.change_bytes, lambda p: read_log(p, robot))
