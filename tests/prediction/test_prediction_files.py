"""Predicted torques as MCAP for Foxglove and as a recording for Rerun."""

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
from steelyard.prediction import predict
from steelyard.signals.read import open_reader

STORE = get_typestore(Stores.ROS2_HUMBLE)
KIND = "sensor_msgs/msg/JointState"
START = 1_700_000_000_123_456_789  # ns since 1970


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model, and a bag of joint states recorded with rosbags."""
    folder = tmp_path_factory.mktemp("bag")
    model_to_urdf(MODEL, folder / "arm.urdf")
    model_to_sidecar(MODEL, sidecar_path(folder / "arm.urdf"))
    original_log = log(0.05)
    assert original_log.dq is not None
    assert original_log.tau is not None
    state, header, time = (STORE.types[n] for n in (KIND, "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    with Writer(folder / "run", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        channel = writer.add_connection("/joint_states", KIND, typestore=STORE)
        for t, q, dq, tau in zip(original_log.t, original_log.q, original_log.dq, original_log.tau, strict=True):
            stamp = START + round(t * 1e9)
            message = state(header(time(*divmod(stamp, 10**9)), ""), list(ROBOT.joint_names), q, dq, tau)
            writer.write(channel, stamp, STORE.serialize_cdr(message, KIND))
    return folder / "arm.urdf", folder / "run" / "run.mcap"


@pytest.fixture(scope="module")
def exported(bag: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "torques"
    code, output = run("predict", *bag, "--to", "csv,mcap", "-o", out)
    assert code == 0, output
    return out


def test_the_mcap_has_three_channels_on_the_clock_of_the_log(bag: tuple[Path, Path], exported: Path) -> None:
    """Type, schema, time stamps and content, read with the official MCAP library."""
    reader = pytest.importorskip("mcap.reader")
    with bag[1].open("rb") as one, (exported / "run.mcap").open("rb") as other:
        original, summary = (reader.make_reader(file).get_summary() for file in (one, other))
        topics = {channel.topic for channel in summary.channels.values()}
        assert topics == {"/steelyard/measured", "/steelyard/predicted", "/steelyard/residual"}
        assert {(s.name, s.encoding) for s in summary.schemas.values()} == {(KIND, "ros2msg")}
        assert all(channel.message_encoding == "cdr" for channel in summary.channels.values())
        # The times are within those of the original, and little is missing.
        assert original.statistics.message_start_time <= summary.statistics.message_start_time
        assert summary.statistics.message_end_time <= original.statistics.message_end_time
        assert summary.statistics.message_start_time - START < 0.2e9
        efforts: dict[str, dict[int, np.ndarray]] = {topic: {} for topic in topics}
        for _, channel, message in reader.make_reader(other).iter_messages():
            decoded = STORE.deserialize_cdr(message.data, KIND)
            stamp = decoded.header.stamp.sec * 10**9 + decoded.header.stamp.nanosec
            assert stamp == message.log_time
            assert decoded.name == list(ROBOT.joint_names)
            efforts[channel.topic][stamp] = decoded.effort
    measured, predicted, residual = (efforts[f"/steelyard/{n}"] for n in ("measured", "predicted", "residual"))
    assert set(measured) == set(residual) <= set(predicted)
    assert len(residual) > 3500  # of 4000; the low-pass removes the ends
    for stamp, difference in residual.items():
        np.testing.assert_allclose(measured[stamp] - predicted[stamp], difference, atol=1e-12)
    # The residual is the simulated noise, 5 % of each torque, reduced by the low-pass.
    t, torque = np.array(sorted(measured)), np.array([measured[s] for s in sorted(measured)])
    share = np.std(np.array([residual[s] for s in t.tolist()]), axis=0) / np.std(torque, axis=0)
    assert np.all(share < 0.05)


def test_our_own_reader_opens_the_mcap(exported: Path) -> None:
    table = open_reader(exported / "run.mcap", "/steelyard/predicted")
    assert table.names == ("t", *(f"effort/{joint}" for joint in ROBOT.joint_names))
    rows = np.loadtxt(exported / "run.csv", delimiter=",", skiprows=1)
    assert table.row_count == len(rows)
    torque = np.concatenate([block["effort/q2"] for block in table.blocks(["effort/q2"])])
    # The table contains the prediction itself, the message its low-passed version.
    np.testing.assert_allclose(torque[500:-500], rows[500:-500, 2], atol=0.05 * np.abs(torque).max())


def test_a_log_of_seconds_keeps_its_clock() -> None:
    original_log = log()
    late = replace(original_log, meta={"start_time": 1.7e9})
    assert predict(MODEL, [late]).logs[0].start_ns == 1_700_000_000_000_000_000
    in_ms = {"start_time": 1_700_000_000_123, "mapping": {"units": {"time": ["ms"]}}}
    assert predict(MODEL, [replace(original_log, meta=in_ms)]).logs[0].start_ns == 1_700_000_000_123_000_000


def test_rerun_reads_its_recording(bag: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="the extra rerun is half a gigabyte")
    code, output = run("predict", *bag, "--to", "rrd", "-o", tmp_path / "out")
    assert code == 0, output
    viewer = shutil.which("rerun", path=str(Path(sys.executable).parent))
    assert viewer is not None
    file = tmp_path / "out" / "run.rrd"
    subprocess.run([viewer, "rrd", "verify", file], check=True, capture_output=True)
    shown = subprocess.run([viewer, "rrd", "print", file], check=True, capture_output=True, text=True).stdout
    paths = set(re.findall(r"/torque/\S+", shown))
    assert {
        f"/torque/{joint}/{x}" for joint in ROBOT.joint_names for x in ("measured", "predicted", "residual")
    } <= paths


def test_a_missing_rerun_is_explained_with_one_sentence(
    bag: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    code, output = run("predict", *bag, "--to", "rrd", "-o", tmp_path / "out")
    assert code == 2
    assert "A recording for Rerun needs the package rerun" in output
    assert not (tmp_path / "out").exists()
    assert run("predict", *bag, "--to", "mcapp")[0] == 2
