"""Network sources: ROS 2 joint states over Zenoh and through a node, and RTDE of Universal Robots."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_robot import FakeRobot
from live_samples import arm, samples
from random_robots import make_tree
from rosbags.typesys import Stores, get_typestore

from steelyard.ground.arrays import Array
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.joint_states import MAX_MESSAGE, StateDecoder
from steelyard.watch.live_source import (
    LiveSource,
    ReconnectingSource,
    SourceError,
    SourceLostError,
    SourceOptions,
    open_source,
)

OPTIONS = SourceOptions(arm())
STORE = get_typestore(Stores.ROS2_HUMBLE)


def message(row: Any, names: list[str], t: float | None = None) -> bytes:
    """Encode a JointState message of ROS 2 with `rosbags`."""
    kinds = STORE.types
    stamp = row[0] if t is None else t
    seconds, rest = divmod(round(stamp * 1e9), 10**9)
    header = kinds["std_msgs/msg/Header"](kinds["builtin_interfaces/msg/Time"](seconds, rest), "base")
    parts = [np.array(part) for part in np.split(np.asarray(row[1:]), 3)]
    state = kinds["sensor_msgs/msg/JointState"](header, names, *parts)
    return bytes(STORE.serialize_cdr(state, "sensor_msgs/msg/JointState"))


def rounded(rows: Array) -> Array:
    """Round stamps to nanoseconds, as in ROS."""
    out = rows.copy()
    out[:, 0] = np.round(out[:, 0] * 1e9) * 1e-9
    return out


def test_decoder_is_exact_and_counts_invalid_messages() -> None:
    rows, names = samples(40, start=1.7e9), list(arm().joint_names)
    diagnostics = Diagnostics()
    decoder = StateDecoder(OPTIONS, diagnostics)
    shuffled = rows.copy()
    shuffled[:, 1:] = rows[:, 1:].reshape(-1, 3, 3)[:, :, ::-1].reshape(-1, 9)
    sent = [(0.0, message(row, names)) for row in rows[:20]]
    sent += [(0.0, message(row, names[::-1])) for row in shuffled[20:]]
    bad = [b"", b"\x00\x01\x00\x00", b"\x00" * 64, message(rows[0], ["a", "b", "c"]), bytes(MAX_MESSAGE + 1)]
    bad += [message(rows[0], names)[:-9]]
    found = decoder.rows([*sent[:10], *((0.0, data) for data in bad), *sent[10:]])
    assert np.allclose(found[:, 0], rows[:, 0], rtol=0.0, atol=3e-7)  # resolution of a float for seconds since 1970
    assert np.array_equal(found[:, 1:], rows[:, 1:])
    assert diagnostics.counts == {"not understood": 4, "other joints": 1, "too long": 1}
    assert all(sentence.endswith(".") for sentence in diagnostics.fetch())
    still = decoder.rows([(12.5, message(rows[0], names, t=0.0))])
    assert still[0, 0] == 12.5  # a header without a time


def test_joint_states_over_zenoh() -> None:
    zenoh = pytest.importorskip("zenoh")
    config = zenoh.Config()
    port = free_port()
    for key, value in {
        "mode": "peer",
        "listen/endpoints": [f"tcp/127.0.0.1:{port}"],
        "scouting/multicast/enabled": False,
    }.items():
        config.insert_json5(key, json.dumps(value))
    unreachable = ReconnectingSource(open_source(f"zenoh:joint_states@127.0.0.1:{port}", OPTIONS))
    assert len(unreachable.read(0.0)) == 0  # no session yet
    assert unreachable.source.diagnostics.counts == {"lost": 1}
    rows, names = samples(60, start=5.0), list(arm().joint_names)
    key = "0/joint_states/sensor_msgs::msg::dds_::JointState_/RIHS01_a13ee3a330e346c9d87b5aa18d24e116"
    source = open_source(f"zenoh:/joint_states@127.0.0.1:{port}", OPTIONS)
    with zenoh.open(config) as session:
        try:
            source.open()
            direct, bridged = session.declare_publisher(key), session.declare_publisher("joint_states")
            until = time.monotonic() + 10.0
            while not (direct.matching_status.matching and bridged.matching_status.matching):
                assert time.monotonic() < until
                time.sleep(0.01)
            for row in rows[:30]:
                direct.put(message(row, names))
            bridged.put(b"garbage")
            for row in rows[30:]:
                bridged.put(message(row, names))
            found = collect(source, 60)
        finally:
            source.close()
    found = found[np.argsort(found[:, 0])]  # two topics are not ordered
    assert np.array_equal(found[:, 1:], rows[:, 1:])
    assert np.allclose(found[:, 0], rows[:, 0], atol=1e-9)
    assert source.diagnostics.counts == {"not understood": 1}


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def collect(source: LiveSource, count: int) -> Array:
    out, until = [source.no_samples()], time.monotonic() + 10.0
    while sum(map(len, out)) < count and time.monotonic() < until:
        rows = source.read(0.05)
        assert rows is not None
        out.append(rows)
    return np.vstack(out)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(SourceError, match=r"needs the package zenoh: .*pip install"):
        open_source("zenoh:", OPTIONS).open()
    monkeypatch.setitem(sys.modules, "rclpy", None)
    with pytest.raises(SourceError, match="source its setup file"):
        open_source("ros2:", OPTIONS).open()


def test_ros2_node_receives_encoded_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a substitute for rclpy, since ROS is not installed here."""
    calls: dict[str, Any] = {}

    class Node:
        def create_subscription(self, kind: Any, topic: str, call: Any, qos: Any, *, raw: bool) -> None:
            calls.update(topic=topic, call=call, raw=raw)

        def destroy_node(self) -> None:
            calls["destroyed"] = True

    def module(name: str, **content: Any) -> None:
        module_ = ModuleType(name)
        vars(module_).update(content)
        monkeypatch.setitem(sys.modules, name, module_)

    executor = SimpleNamespace(add_node=lambda node: None, spin=lambda: None, shutdown=lambda: None)
    context = SimpleNamespace(init=lambda: None, try_shutdown=lambda: None)
    module("rclpy", Context=lambda: context, create_node=lambda name, context: Node())
    module("rclpy.executors", SingleThreadedExecutor=lambda context: executor)
    module("rclpy.qos", qos_profile_sensor_data=object())
    module("sensor_msgs")
    module("sensor_msgs.msg", JointState=object)
    source = open_source("ros2:/arm/joint_states", OPTIONS)
    source.open()
    rows = samples(5, start=5.0)
    for row in rows:
        calls["call"](message(row, list(arm().joint_names)))
    assert np.allclose(collect(source, 5), rows, atol=1e-9)
    assert calls["topic"] == "/arm/joint_states"
    assert calls["raw"]
    source.close()
    assert calls["destroyed"]


# ---------------------------------------------------------------- Universal Robots


SIX = SourceOptions(make_tree(3, 6, chain=True))


def six_rows(count: int) -> Array:
    rng = np.random.default_rng(1)
    return np.column_stack([0.002 * np.arange(count) + 77.0, rng.normal(size=(count, 18))])


@pytest.mark.parametrize("torque", ["actual_current_as_torque", "actual_current"])
def test_rtde_reads_every_package(torque: str, tmp_path: Path) -> None:
    rows = six_rows(400)
    robot = FakeRobot(rows, torque)
    mapping = tmp_path / "map.toml"
    mapping.write_text("torque_constants = [10.0, 10.0, 10.0, 5.0, 5.0, 5.0]\n", encoding="utf-8")
    current = torque == "actual_current"
    source = open_source(f"rtde:127.0.0.1:{robot.port}", SourceOptions(SIX.robot, str(mapping) if current else ""))
    source.open()
    found = collect(source, 400)
    expected = rows.copy()
    if current:
        expected[:, 13:] *= [10.0, 10.0, 10.0, 5.0, 5.0, 5.0]
    assert np.allclose(found, expected, rtol=1e-15)
    assert source.diagnostics.counts == {"texts of the robot": 1}
    time.sleep(0.3)
    with pytest.raises(SourceLostError, match="the robot closed the connection"):
        source.read(0.1)
    source.close()
    robot.stop()


def test_rtde_reconnects() -> None:
    rows = six_rows(50)
    robot = FakeRobot(rows, "actual_current_as_torque")
    reconnecting = ReconnectingSource(open_source(f"rtde:127.0.0.1:{robot.port}", SIX))
    out, until = [], time.monotonic() + 10.0
    while sum(map(len, out)) < 100 and time.monotonic() < until:
        out.append(reconnecting.read(0.05))
    assert np.array_equal(np.vstack(out)[:100], np.vstack([rows, rows]))
    assert reconnecting.reopened
    robot.stop()
    reconnecting.close()


def test_rtde_refuses_other_robots() -> None:
    with pytest.raises(SourceError, match="needs a model with 6 joints"):
        open_source("rtde:", OPTIONS).open()
    robot = FakeRobot(six_rows(1), "other")
    with pytest.raises(SourceError, match="has no variable"):
        open_source(f"rtde:127.0.0.1:{robot.port}", SourceOptions(SIX.robot, torque="target_moment")).open()
    robot.stop()
    with pytest.raises(SourceLostError, match="refused"):
        open_source(f"rtde:127.0.0.1:{free_port()}", SIX).open()


CLIENT = """
import json, os, rtde_receive, time
client = rtde_receive.RTDEReceiveInterface("127.0.0.2", 500.0, ["timestamp", "actual_q", "actual_qd", "actual_current"])
time.sleep(0.2)
print(json.dumps([client.getTimestamp(), client.getActualQ()]), flush=True)
os._exit(0)
"""


def test_fake_robot_with_an_independent_client() -> None:
    """The client `ur-rtde` reads the samples of our fake robot."""
    pytest.importorskip("rtde_receive")
    rows = six_rows(2000)
    try:
        robot = FakeRobot(rows, "actual_current", 0.002, ("127.0.0.2", 30004))  # this client has a fixed port
    except OSError:
        pytest.skip("the port is in use, or this system has a single local address")
    done = subprocess.run([sys.executable, "-c", CLIENT], capture_output=True, text=True, timeout=30, check=True)
    t, q = json.loads(done.stdout)
    near = int(np.argmin(np.abs(rows[:, 0] - t)))
    seen = rows[max(0, near - 2) : near + 3, 1:7]  # a package may arrive between the two calls
    assert any(np.array_equal(q, row) for row in seen)
    robot.stop()
