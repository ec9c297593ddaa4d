"""Bags of joint states are read without ROS."""

from __future__ import annotations

import numpy as np
import pytest
from bags import joint_states, write_bag
from log_files import chain, motion

from steelyard.errors import LogError
from steelyard.signals.read import read_log
from steelyard.signals.table import read_table

NAMES = ["elbow", "shoulder"]


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
@pytest.mark.parametrize("bare", [False, True])
def test_round_trip(tmp_path, storage, bare):
    signals = motion()
    states = joint_states(NAMES, signals)
    path = write_bag(tmp_path / "bag", {"/joint_states": states, "/chat": [{"data": "hello"}]}, storage)
    if bare:
        path = next(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
    table = read_table(path)
    assert table.joints == ("elbow", "shoulder")
    np.testing.assert_array_equal(table.numbers("position/elbow"), signals["q"][:, 0])
    np.testing.assert_array_equal(table.numbers("effort/shoulder"), signals["tau"][:, 1])
    log = read_log(path, chain("shoulder", "elbow"))
    np.testing.assert_array_equal(log.q, signals["q"][:, ::-1])
    np.testing.assert_array_equal(log.dq, signals["dq"][:, ::-1])
    np.testing.assert_array_equal(log.tau, signals["tau"][:, ::-1])
    np.testing.assert_allclose(log.t, signals["t"], atol=1e-9)
    assert log.meta["start_time"] == states[0]["stamp"]


def test_without_stamps_the_time_of_recording_is_used(tmp_path):
    signals = motion()
    states = [{**m, "log_time": m["stamp"] + 5, "stamp": 0} for m in joint_states(NAMES, signals)]
    log = read_log(write_bag(tmp_path / "bag", {"/js": states}), chain(*NAMES))
    np.testing.assert_allclose(log.t, signals["t"], atol=1e-9)
    assert any("time of recording" in finding.message for finding in log.findings)


def test_messages_about_parts_of_the_robot(tmp_path):
    """A gripper on the same topic does not affect the log of the arm."""
    signals = motion()
    arm = joint_states(NAMES, signals)
    gripper = [{"stamp": m["stamp"] + 1000, "name": ["finger"], "position": [0.0]} for m in arm]
    mixed = [m for pair in zip(arm, gripper, strict=True) for m in pair]
    log = read_log(write_bag(tmp_path / "bag", {"/js": mixed}), chain(*NAMES))
    np.testing.assert_array_equal(log.q, signals["q"])
    assert {"extra_joints", "remark"} <= {finding.kind for finding in log.findings}


def test_joints_that_are_missing_are_named(tmp_path):
    path = write_bag(tmp_path / "bag", {"/js": joint_states(NAMES, motion())})
    with pytest.raises(LogError, match="'wrist' of robot 'chain' is not in the log, whose joints are elbow, shoulder"):
        read_log(path, chain("shoulder", "elbow", "wrist"))


def test_topics(tmp_path):
    states = joint_states(NAMES, motion())
    path = write_bag(tmp_path / "bag", {"/left/js": states, "/right/js": states[:20]})
    with pytest.raises(LogError, match=r"several topics of joint states: /left/js, /right/js"):
        read_log(path, chain(*NAMES))
    assert len(read_log(path, chain(*NAMES), {"topic": "/right/js"})) == 20
    with pytest.raises(LogError, match=r"no topic of joint states '/rigth/js'\. Did you mean '/right/js'"):
        read_log(path, chain(*NAMES), {"topic": "/rigth/js"})
    other = write_bag(tmp_path / "other", {"/chat": [{"data": "hello"}]})
    with pytest.raises(
        LogError, match=r"no topic of type sensor_msgs/JointState; its topics: /chat \(std_msgs/msg/String\)"
    ):
        read_log(other, chain(*NAMES))


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_cut_off_bags_are_refused(tmp_path, storage):
    folder = write_bag(tmp_path / "bag", {"/js": joint_states(NAMES, motion(samples=2000))}, storage)
    file = next(p for p in folder.iterdir() if p.suffix in (".db3", ".mcap"))
    whole = file.read_bytes()
    for keep in (0, 20, len(whole) // 2, len(whole) - 5000):
        file.write_bytes(whole[:keep])
        for path in (folder, file):
            with pytest.raises(LogError, match=r"cut short|not an MCAP"):
                read_table(path)


def test_names_and_values_must_match(tmp_path):
    states = joint_states(NAMES, motion())
    states[3]["velocity"] = [1.0]
    with pytest.raises(LogError, match="message 4 has 2 names but 1 values of velocity"):
        read_table(write_bag(tmp_path / "bag", {"/js": states}))


def test_messages_of_many_kinds(tmp_path):
    """Values are read correctly for names of any length and order and for signals that are present at times."""
    rng = np.random.default_rng(5)
    joints = ["j", "axis_2", "shoulder_é", "elbow"]
    states, sent = [], []
    for k in range(400):
        names = [joints[i] for i in rng.permutation(4)[: rng.integers(1, 5)]] if k % 3 else joints
        values = {
            s: rng.normal(size=len(names)) for s in ("position", "velocity", "effort") if k % 3 or rng.random() < 0.7
        }
        states.append({"stamp": 1_700_000_000_000_000_000 + 1_000_000 * k, "name": names, **values})
        sent += [(k, f"{s}/{name}", x) for s, array in values.items() for name, x in zip(names, array, strict=True)]
    table = read_table(write_bag(tmp_path / "bag", {"/js": states}, "mcap"))
    assert sum(np.count_nonzero(~np.isnan(table.column(name))) for name in table.names if name != "t") == len(sent)
    read = {name: table.column(name) for name in table.names}
    assert [read[name][k] for k, name, _ in sent] == [x for _, _, x in sent]
    np.testing.assert_array_equal(np.diff(read["t"]), np.timedelta64(1_000_000, "ns"))
