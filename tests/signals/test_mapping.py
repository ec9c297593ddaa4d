"""Mappings compared with manual computations; wrong ones are refused with the place of the mistake."""

from __future__ import annotations

import json

import numpy as np
import pytest
from log_files import chain, columns, motion, write_csv, write_parquet

from steelyard.errors import LogError
from steelyard.robot.transmission import Transmission
from steelyard.signals.mapping import LogMapping
from steelyard.signals.read import read_log

ARM = chain("a", "b")


@pytest.fixture
def raw(tmp_path):
    """A file with t, q, dq, tau of two joints, and its content."""
    signals = motion()
    return write_parquet(tmp_path / "run.parquet", columns(signals)), signals


def test_the_same_mapping_in_three_file_formats(tmp_path):
    (tmp_path / "m.toml").write_text(
        'joints = ["a", "b"]\ntime = "t"\nposition = "q{}"\ntorque_constants = [2, "-pi/2"]\n'
        '[units]\nposition = "deg"\n[window]\nrun = [2, 9]\n'
    )
    (tmp_path / "m.json").write_text(
        json.dumps(
            {
                "joints": ["a", "b"],
                "time": "t",
                "position": "q{}",
                "torque_constants": [2, "-pi/2"],
                "units": {"position": "deg"},
                "window": {"run": [2, 9]},
            }
        )
    )
    (tmp_path / "m.yaml").write_text(
        "joints: [a, b]\ntime: t\nposition: 'q{}'\ntorque_constants: [2, -pi/2]\nunits: {position: deg}\n"
        "window: {run: [2, 9]}\n"
    )
    plain = [LogMapping.read(tmp_path / f"m.{suffix}").plain() for suffix in ("toml", "json", "yaml")]
    assert plain[0] == plain[1] == plain[2]
    assert plain[0]["torque_constants"] == [2.0, -np.pi / 2]
    assert LogMapping.read(tmp_path / "m.toml").window_of("some/where/run.parquet") == (2, 9)
    assert LogMapping.read(tmp_path / "m.toml").window_of("other.parquet") is None


def test_units(tmp_path):
    table = {
        "ms": np.arange(20) * 5.0,
        "p1": np.arange(20.0),
        "p2": np.arange(20.0),
        "v1": np.ones(20),
        "v2": np.ones(20),
    }
    table |= {"f1": np.full(20, 3.0), "f2": np.full(20, 3.0)}
    mapping = {
        "time": "ms",
        "position": "p{}",
        "velocity": ["v1", "v2"],
        "torque": "f{}",
        "units": {"time": "ms", "position": ["deg", "mm"], "velocity": ["rpm", "mm/s"], "torque": ["N mm", "kN"]},
    }
    log = read_log(write_csv(tmp_path / "run.csv", table), chain("a", "b", slides=("b",)), mapping)
    np.testing.assert_allclose(log.t[:2], [0.0, 0.005])
    np.testing.assert_allclose(log.q[1], [np.pi / 180, 1e-3])
    np.testing.assert_allclose(log.dq[0], [2 * np.pi / 60, 1e-3])
    np.testing.assert_allclose(log.tau[0], [3e-3, 3e3])
    with pytest.raises(LogError, match="position of the prismatic joint 'b' cannot be in deg"):
        read_log(
            tmp_path / "run.csv", chain("a", "b", slides=("b",)), mapping | {"units": {"time": "ms", "position": "deg"}}
        )


def test_currents_become_torques(tmp_path):
    table = columns(motion())
    for k in (1, 2):
        table[f"i{k}"] = table.pop(f"tau{k}") * 1000.0
    path = write_parquet(tmp_path / "run.parquet", table)
    log = read_log(path, ARM, {"torque_constants": [2.0, -4.0], "units": {"current": "mA"}})
    np.testing.assert_allclose(log.tau, motion()["tau"] * [2.0, -4.0])
    assert log.meta["torque_kind"] == "torque"
    assert log.meta["torque_from"] == "current"
    bare = read_log(path, ARM, {"units": {"current": "mA"}})
    np.testing.assert_allclose(bare.tau, motion()["tau"])
    assert bare.meta["torque_kind"] == "current"
    assert "torque_is_current" in {finding.kind for finding in bare.findings}


def test_torque_constants_select_currents_if_a_file_has_both(tmp_path):
    table = columns(motion()) | {"i1": np.ones(50), "i2": np.ones(50)}
    path = write_parquet(tmp_path / "run.parquet", table)
    np.testing.assert_array_equal(read_log(path, ARM, {"torque_constants": 3.0}).tau, np.full((50, 2), 3.0))
    np.testing.assert_array_equal(read_log(path, ARM).tau, motion()["tau"])
    named = read_log(path, ARM, {"torque": "tau{}", "torque_constants": 3.0})
    np.testing.assert_array_equal(named.tau, motion()["tau"])
    assert "unused_key" in {finding.kind for finding in named.findings}


def test_motor_side(raw):
    path, signals = raw
    log = read_log(path, ARM, {"side": "motor", "gear_ratio": [100, -50]})
    np.testing.assert_allclose(log.q, signals["q"] / [100, -50])
    np.testing.assert_allclose(log.dq, signals["dq"] / [100, -50])
    np.testing.assert_allclose(log.tau, signals["tau"] * [100, -50])
    mixed = read_log(
        path, ARM, {"side": {"position": "joint", "velocity": "joint", "torque": "motor"}, "gear_ratio": 10}
    )
    np.testing.assert_allclose(mixed.q, signals["q"])
    np.testing.assert_allclose(mixed.tau, signals["tau"] * 10)
    there = read_log(path, ARM, {"side": "joint", "gear_ratio": 10})
    np.testing.assert_allclose(there.tau, signals["tau"])
    assert "joint_side" in {finding.kind for finding in there.findings}


def test_a_coupled_wrist(tmp_path):
    """Motor 6 of a Stäubli TX40 turns by 32 (q5 + q6); the conversion preserves power."""
    n = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    rq, rt = np.diag(n), np.diag(n)
    rq[5, 4], rt[4, 5] = 32.0, 32.0
    joint = motion(6)
    motor = {"t": joint["t"], "q": joint["q"] @ rq.T, "dq": joint["dq"] @ rq.T, "tau": joint["tau"]}
    path = write_parquet(tmp_path / "run.parquet", columns(motor))
    c = np.eye(6)
    c[5, 4] = 1.0
    mapping = {
        "side": "motor",
        "gear_ratio": n.tolist(),
        "coupling": c.tolist(),
        "offset": [0, "-pi/2", "pi/2", 0, 0, 0],
    }
    robot = chain(*(f"joint_{k}" for k in range(1, 7)))
    log = read_log(path, robot, mapping)
    np.testing.assert_allclose(log.q, joint["q"] + [0, -np.pi / 2, np.pi / 2, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(log.dq, joint["dq"], atol=1e-12)
    np.testing.assert_allclose(log.tau, motor["tau"] @ rt.T, atol=1e-12)
    power = np.sum(motor["dq"] * motor["tau"], axis=1)
    np.testing.assert_allclose(np.sum(log.dq * log.tau, axis=1), power, atol=1e-9)
    drive = Transmission(c)
    np.testing.assert_allclose(log.dq, drive.joint(motor["dq"] / n), atol=1e-12)
    np.testing.assert_allclose(log.tau, drive.joint_torque(motor["tau"] * n), atol=1e-12)
    currents = read_log(path, robot, mapping | {"current": "tau{}", "torque_constants": n.tolist()})
    np.testing.assert_allclose(currents.tau, log.tau)


def test_signs(raw):
    path, signals = raw
    log = read_log(path, ARM, {"sign": [1, -1]})
    np.testing.assert_array_equal(log.tau, signals["tau"] * [1, -1])
    np.testing.assert_array_equal(log.q, signals["q"])
    log = read_log(path, ARM, {"sign": {"position": [-1, 1], "velocity": -1}})
    np.testing.assert_array_equal(log.q, signals["q"] * [-1, 1])
    np.testing.assert_array_equal(log.dq, -signals["dq"])
    np.testing.assert_array_equal(log.tau, signals["tau"])


def test_joints_are_put_in_the_robots_order(raw):
    path, signals = raw
    log = read_log(path, ARM, {"joints": ["b", "a"], "sign": [1, -1]})
    np.testing.assert_array_equal(log.q, signals["q"][:, ::-1])
    np.testing.assert_array_equal(log.tau, signals["tau"][:, ::-1] * [-1, 1])
    one = read_log(path, chain("b"), {"joints": ["a", "b"], "torque_constants": [1, 2], "current": "tau{}"})
    np.testing.assert_array_equal(one.tau, 2 * signals["tau"][:, 1:])
    assert "extra_joints" in {finding.kind for finding in one.findings}


def test_statements_for_the_caller_are_in_the_meta_data(raw):
    path, _ = raw
    log = read_log(path, ARM, {"gravity": [0, 9.81, 0], "torque_used": ["b"], "velocity": False})
    assert log.meta["gravity"] == [0.0, 9.81, 0.0]
    assert log.meta["torque_used"] == ["b"]
    assert log.dq is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"postion": "q{}"}, "unknown key 'postion'; did you mean 'position'"),
        ({"joints": ["a", "a"]}, "joints: 'a' appears twice"),
        ({"joints": ["a", "b"], "position": ["q1"]}, "position: names 1 columns, but there are 2 joints"),
        ({"position": ["q1"]}, "position names 1 columns, but there are 2 joints"),
        ({"position": "angle"}, "is one column, but there are 2 joints"),
        ({"position": "w{}"}, "no column 'w1'"),
        ({"time": "time"}, "no column 'time'"),
        ({"torque_constants": [1, 2, 3], "current": "tau{}"}, "torque_constants has 3 entries, but there are 2 joints"),
        ({"gear_ratio": 0}, "gear_ratio: 0 makes"),
        ({"side": "left"}, "side: 'left' is unknown; write one of motor, joint"),
        ({"coupling": [[1, 0], [1, 0]]}, "coupling: is singular"),
        ({"coupling": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}, "coupling has 3 columns, but there are 2 joints"),
        ({"coupling": [[1, 0], [1]]}, "coupling: write one row per motor, with one number per joint"),
        ({"units": {"position": "degree"}}, "no unit of position 'degree'. Did you mean 'deg'"),
        ({"units": {"speed": "m/s"}}, "units: unknown key 'speed'"),
        ({"sign": [1, 2]}, "a sign must be 1 or -1"),
        ({"gravity": [0, 0]}, "gravity: has 2 numbers, not 3"),
        ({"torque_used": ["c"]}, "no joint 'c'"),
        ({"window": [0, 10]}, "counted from 1"),
        ({"window": [10, 5]}, "the last row, 5, is before the first, 10"),
        ({"window": {"run": [1, 2, 3]}}, "window: run: has 3 numbers, not 2"),
        ({"window": [1, 51]}, r"the window \[1, 51\] ends after the last row, 50"),
        ({"window": [1, 5]}, "only 5 samples"),
        ({"time": {"rate": -1}}, "must be positive"),
        ({"joints": ["a", "c"]}, "joint 'b' of robot 'chain' is not in the log"),
    ],
)
def test_mistakes_are_named(raw, data, message):
    with pytest.raises(LogError, match=message):
        read_log(raw[0], ARM, data)


def test_a_broken_mapping_file(tmp_path, raw):
    (tmp_path / "m.toml").write_text("joints = [")
    with pytest.raises(LogError, match=r"m\.toml: is not valid TOML"):
        read_log(raw[0], ARM, tmp_path / "m.toml")
    with pytest.raises(LogError, match="there is no such file"):
        read_log(raw[0], ARM, tmp_path / "none.toml")
