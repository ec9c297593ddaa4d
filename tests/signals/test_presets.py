"""Every preset reads a table with the published names and units of its recorder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lerobot_sets import write_lerobot
from log_files import chain, motion, write_csv

from steelyard.errors import LogError
from steelyard.signals.mapping import as_mapping
from steelyard.signals.presets import PRESETS
from steelyard.signals.read import read_log

SIGNALS = motion(joints=6, samples=80)
ARM = chain(*(f"j{k}" for k in range(6)))
DEGREES = 180.0 / np.pi


def _spread(name: str, x: np.ndarray) -> dict[str, np.ndarray]:
    return {name.format(k, k + 1, ARM.joint_names[k]): x[:, k] for k in range(x.shape[1])}


# Columns by the names of the makers' programs ({0}: from 0, {1}: from 1, {2}: by name), and their signals.
RECORDED = {
    "ur-rtde": [("timestamp", 1.0), ("actual_q_{0}", 1.0), ("actual_qd_{0}", 1.0), ("actual_current_{0}", 1.0)],
    "franka": [("time", 1e3), ("state.q[{0}]", 1.0), ("state.dq[{0}]", 1.0), ("state.tau_J[{0}]", 1.0)],
    "kuka-rsi": [("IPOC", 1e3), ("AIPos.A{1}", DEGREES), None, ("MACur.A{1}", 1.0)],
    "abb-egm": [("header.tm", 1e3), ("feedBack.joints.joints[{0}]", DEGREES), None, None],
    "doosan": [
        ("time_stamp", 1.0), ("actual_joint_position{1}", DEGREES), ("actual_joint_velocity{1}", DEGREES),
        ("actual_joint_torque{1}", 1.0),
    ],
    "kinova": [
        ("time", 1.0), ("actuators[{0}].position", DEGREES), ("actuators[{0}].velocity", DEGREES),
        ("actuators[{0}].torque", 1.0),
    ],
    "ros2-control": [
        ("__time", 1.0), ("/joint_states/{2}/position", 1.0), ("/joint_states/{2}/velocity", 1.0),
        ("/joint_states/{2}/effort", 1.0),
    ],
}  # fmt: skip


def _recorded(path: Path, name: str) -> Path:
    table: dict[str, np.ndarray] = {}
    for signal, entry in zip(("t", "q", "dq", "tau"), RECORDED[name], strict=True):
        if entry is not None:
            column, size = entry
            table |= {column: SIGNALS[signal] * size} if signal == "t" else _spread(column, SIGNALS[signal] * size)
    table |= _spread("cmd.q_d[{0}]", SIGNALS["q"] + 1.0)  # commanded signals are not used
    return write_csv(path, table)


@pytest.mark.parametrize("name", RECORDED)
def test_a_table_with_the_names_of_the_recorder(tmp_path, name):
    path = _recorded(tmp_path / "run.csv", name)
    for mapping in ({"preset": name}, name):
        log = read_log(path, ARM, mapping)
        np.testing.assert_allclose(log.t, SIGNALS["t"], atol=1e-12)
        np.testing.assert_allclose(log.q, SIGNALS["q"], atol=1e-12)
        if RECORDED[name][2]:
            np.testing.assert_allclose(log.dq, SIGNALS["dq"], atol=1e-12)
        if RECORDED[name][3]:
            np.testing.assert_allclose(log.tau, SIGNALS["tau"], atol=1e-12)


def test_every_preset_is_tested_here_and_documented():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "formats.md").read_text(encoding="utf-8")
    assert set(PRESETS) == {*RECORDED, "lerobot"}
    for name, preset in PRESETS.items():
        assert f"`{name}`" in page
        assert preset.source in page
        assert preset.note in page


def test_the_preset_of_lerobot(tmp_path):
    names = [f"{joint}.pos" for joint in ARM.joint_names]
    data = write_lerobot(tmp_path / "set", names, {**SIGNALS, "q": SIGNALS["q"] * DEGREES})
    log = read_log(data, ARM, {"preset": "lerobot", "units": {"position": "deg"}})
    np.testing.assert_allclose(log.q, SIGNALS["q"], atol=1e-12)
    np.testing.assert_allclose(log.tau, SIGNALS["tau"], atol=1e-12)


def test_the_mapping_has_priority_over_its_preset(tmp_path):
    path = _recorded(tmp_path / "run.csv", "doosan")
    stated = {"preset": "doosan", "units": {"velocity": "rad/s"}, "torque": False, "sign": {"position": -1}}
    log = read_log(path, ARM, stated)
    np.testing.assert_allclose(log.dq, SIGNALS["dq"] * DEGREES)
    np.testing.assert_allclose(log.q, -SIGNALS["q"])
    assert log.tau is None


def test_presets_that_do_not_fit_or_do_not_exist(tmp_path):
    path = _recorded(tmp_path / "run.csv", "franka")
    with pytest.raises(LogError, match=r"'kinova' expects 6 columns such as 'actuators\[0\].position'"):
        read_log(path, ARM, "kinova")
    with pytest.raises(LogError, match=r"no preset 'frank'.*Did you mean 'franka'"):
        read_log(path, ARM, "frank")
    (tmp_path / "columns.toml").write_text('preset = "franka"\n')
    assert as_mapping(tmp_path / "columns.toml").preset == "franka"
