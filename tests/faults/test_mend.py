"""What `check --fix` writes undoes the fault: read with that mapping, the log is what it was before."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from log_faults import Change, both, clock, coupled, exchanged, of_position, of_torque, of_velocity
from sound_logs import simulated_base
from typer.testing import CliRunner

from steelyard.check import check_log
from steelyard.check.repair_mapping import as_toml, repair_mapping
from steelyard.cli import app
from steelyard.signals.read import read_log

FAULTS: dict[str, tuple[Change, float]] = {
    # The tolerance is on positions and torques over their largest value; a zero and a scale are estimates.
    "torque turned round": (of_torque(np.negative, 1), 1e-9),
    "positions in degrees": (both(of_position(np.rad2deg), of_velocity(np.rad2deg)), 1e-9),
    "joints exchanged": (exchanged([0, 2, 1, 3, 4, 5]), 1e-9),
    "torques exchanged": (exchanged([0, 2, 1, 3, 4, 5], ("tau",)), 1e-9),
    "coupled wrist, torques": (coupled(False), 1e-9),
    "torque of the wrist twice as large": (of_torque(lambda x: 2.0 * x, 4), 0.2),
    "zero off by 0.3 rad": (of_position(lambda x: x + 0.3, 1), 0.1),
    "zero off by 90°": (of_position(lambda x: x + np.pi / 2, 2), 0.1),
    "torque twice as large": (of_torque(lambda x: 2.0 * x, 1), 0.1),
    "clock twice as slow": (both(clock(2.0), of_velocity(lambda x: x / 2.0)), 1e-9),
    "time in ms": (both(clock(1000.0)), 1e-9),
}


# Each is the twin of another one that runs always.
TWINS = {"torques exchanged", "zero off by 90°", "torque twice as large", "clock twice as slow"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.proof) if n in TWINS else n for n in FAULTS])
def test_a_fault_is_undone_by_the_mapping_that_is_written(name: str, tmp_path: Path) -> None:
    base = simulated_base().case
    robot, (sound,) = base.robot, base.fit
    change, tolerance = FAULTS[name]
    change(sound).save(tmp_path / "run.csv")
    faulty = read_log(tmp_path / "run.csv", robot)
    found = check_log(robot, faulty)
    assert found.complaints
    data, _ = repair_mapping(found, robot, faulty, {})
    again = read_log(tmp_path / "run.csv", robot, tomllib.loads(as_toml(data)))
    assert np.allclose(again.t - again.t[0], sound.t - sound.t[0], rtol=1e-3)
    for x, y in ((again.q, sound.q), (again.tau, sound.tau)):
        assert np.all(np.abs(x - y).max(axis=0) < tolerance * np.abs(y).max(axis=0).clip(min=1.0))
    assert check_log(robot, again).exit_code == 0


def test_the_command_says_by_its_exit_whether_a_log_can_be_used(tmp_path: Path) -> None:
    base = simulated_base().case
    (sound,) = base.fit
    cases = {
        "sound": (sound, 0),
        "turned": (of_torque(np.negative, 1)(sound), 1),
        "still": (of_torque(lambda x: 0 * x)(sound), 2),
    }
    for name, (log, code) in cases.items():
        log.save(tmp_path / f"{name}.npz")
        mapping = tmp_path / f"{name}.toml"
        told = CliRunner().invoke(app, ["check", "ns16", str(tmp_path / f"{name}.npz"), "--fix", str(mapping)])
        assert told.exit_code == code, told.output
    assert tomllib.loads((tmp_path / "turned.toml").read_text()) == {"sign": {"torque": [1, -1, 1, 1, 1, 1]}}


def test_that_positions_may_be_those_of_motors_is_said() -> None:
    base = simulated_base().case
    found = check_log(base.robot, coupled(True)(base.fit[0]))
    data, by_hand = repair_mapping(found, base.robot, base.fit[0], {})
    # Motor 6 rubs at the speed of joint 6, which is what it shows less that of joint 5.
    assert data["coupling"][5] == [0, 0, 0, 0, -1, 1]
    assert any("For motor positions" in text for text in by_hand)


def test_a_channel_that_says_nothing_is_left_out(tmp_path: Path) -> None:
    base = simulated_base().case
    log = of_torque(lambda x: 0.0 * x, 3)(base.fit[0])
    data, _ = repair_mapping(check_log(base.robot, log), base.robot, log, {})
    assert data["torque_used"] == ["q1", "q2", "q3", "q5", "q6"]
