"""Predicted torques beside the original log: MCAP as Foxglove reads it, a recording as Rerun reads it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from test_predict_and_export import MODEL, ROBOT, log, run

from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path
from steelyard.signals.read import open_reader
from steelyard.use import predict

STORE = get_typestore(Stores.ROS2_HUMBLE)
KIND = "sensor_msgs/msg/JointState"
BEGUN = 1_700_000_000_123_456_789  # ns since 1970


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model, and a bag of joint states that rosbags recorded on a day in 2023."""
    place = tmp_path_factory.mktemp("bag")
    model_to_urdf(MODEL, place / "arm.urdf")
    model_to_sidecar(MODEL, sidecar_path(place / "arm.urdf"))
    seen = log(0.05)
    assert seen.dq is not None
    assert seen.tau is not None
    state, header, time = (STORE.types[n] for n in (KIND, "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    with Writer(place / "run", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        channel = writer.add_connection("/joint_states", KIND, typestore=STORE)
        for t, q, dq, tau in zip(seen.t, seen.q, seen.dq, seen.tau, strict=True):
            stamp = BEGUN + round(t * 1e9)
            message = state(header(time(*divmod(stamp, 10**9)), ""), list(ROBOT.joint_names), q, dq, tau)
            writer.write(channel, stamp, STORE.serialize_cdr(message, KIND))
    return place / "arm.urdf", place / "run" / "run.mcap"


@pytest.fixture(scope="module")
def written(bag: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "torques"
    code, said = run("predict", *bag, "--to", "csv,mcap", "-o", out)
    assert code == 0, said
    return out


def test_foxglove_finds_three_channels_on_the_clock_of_the_log(bag: tuple[Path, Path], written: Path) -> None:
    """Read by the library of MCAP's makers: type, schema, time stamps, and what the messages hold."""
    reader = pytest.importorskip("mcap.reader")
    with bag[1].open("rb") as one, (written / "run.mcap").open("rb") as other:
        original, made = (reader.make_reader(file).get_summary() for file in (one, other))
        topics = {channel.topic for channel in made.channels.values()}
        assert topics == {"/steelyard/measured", "/steelyard/predicted", "/steelyard/residual"}
        assert {(s.name, s.encoding) for s in made.schemas.values()} == {(KIND, "ros2msg")}
        assert all(channel.message_encoding == "cdr" for channel in made.channels.values())
        # Nothing lies outside the original's time, and little of it is missing.
        assert original.statistics.message_start_time <= made.statistics.message_start_time
        assert made.statistics.message_end_time <= original.statistics.message_end_time
        assert made.statistics.message_start_time - BEGUN < 0.2e9
        found: dict[str, dict[int, np.ndarray]] = {topic: {} for topic in topics}
        for _, channel, message in reader.make_reader(other).iter_messages():
            decoded = STORE.deserialize_cdr(message.data, KIND)
            stamp = decoded.header.stamp.sec * 10**9 + decoded.header.stamp.nanosec
            assert stamp == message.log_time
            assert decoded.name == list(ROBOT.joint_names)
            found[channel.topic][stamp] = decoded.effort
    measured, predicted, residual = (found[f"/steelyard/{n}"] for n in ("measured", "predicted", "residual"))
    assert set(measured) == set(residual) <= set(predicted)
    assert len(residual) > 3500  # of 4000: the low-pass sees no further
    for stamp, left in residual.items():
        np.testing.assert_allclose(measured[stamp] - predicted[stamp], left, atol=1e-12)
    # The planted noise is what is left: 5 % of each torque, less what the low-pass takes.
    t, torque = np.array(sorted(measured)), np.array([measured[s] for s in sorted(measured)])
    share = np.std(np.array([residual[s] for s in t.tolist()]), axis=0) / np.std(torque, axis=0)
    assert np.all(share < 0.05)


def test_our_own_reader_opens_it(written: Path) -> None:
    table = open_reader(written / "run.mcap", "/steelyard/predicted")
    assert table.names == ("t", *(f"effort/{joint}" for joint in ROBOT.joint_names))
    rows = np.loadtxt(written / "run.csv", delimiter=",", skiprows=1)
    assert table.row_count == len(rows)
    torque = np.concatenate([block["effort/q2"] for block in table.blocks(["effort/q2"])])
    # The table holds the prediction as it is, the message what the low-pass leaves of it.
    np.testing.assert_allclose(torque[500:-500], rows[500:-500, 2], atol=0.05 * np.abs(torque).max())


def test_a_log_of_seconds_keeps_its_clock() -> None:
    seen = log()
    late = replace(seen, meta={"start_time": 1.7e9})
    assert predict(MODEL, [late]).logs[0].start_ns == 1_700_000_000_000_000_000
    in_ms = {"start_time": 1_700_000_000_123, "mapping": {"units": {"time": ["ms"]}}}
    assert predict(MODEL, [replace(seen, meta=in_ms)]).logs[0].start_ns == 1_700_000_000_123_000_000


def test_rerun_reads_its_recording(bag: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="the extra rerun is half a gigabyte")
    code, said = run("predict", *bag, "--to", "rrd", "-o", tmp_path / "out")
    assert code == 0, said
    viewer = shutil.which("rerun", path=str(Path(sys.executable).parent))
    assert viewer is not None
    file = tmp_path / "out" / "run.rrd"
    subprocess.run([viewer, "rrd", "verify", file], check=True, capture_output=True)
    shown = subprocess.run([viewer, "rrd", "print", file], check=True, capture_output=True, text=True).stdout
    paths = set(re.findall(r"/torque/\S+", shown))
    assert {
        f"/torque/{joint}/{x}" for joint in ROBOT.joint_names for x in ("measured", "predicted", "residual")
    } <= paths


def test_without_rerun_one_sentence_says_what_is_missing(
    bag: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    code, said = run("predict", *bag, "--to", "rrd", "-o", tmp_path / "out")
    assert code == 2
    assert "A recording for Rerun needs the package rerun" in said
    assert not (tmp_path / "out").exists()
    assert run("predict", *bag, "--to", "mcapp")[0] == 2
