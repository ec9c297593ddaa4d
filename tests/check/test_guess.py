"""The guess finds the names, units, clocks, sides and signs that a test planted."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.check.columns import guess_columns
from steelyard.cli.app import app
from steelyard.errors import LogError
from steelyard.export import model_to_urdf
from steelyard.signals.families import families, stated_unit

ARM = sy.load_robot("rotradi")
T = 0.002 * np.arange(3000)
WAVES = np.array([1.3, 2.1, 3.7])
Q = 0.8 * np.sin(T[:, None] * WAVES + [0.1, 0.7, 1.9])
DQ = 0.8 * WAVES * np.cos(T[:, None] * WAVES + [0.1, 0.7, 1.9])
DDQ = -(WAVES**2) * Q
DEGREES = 180.0 / np.pi


@pytest.fixture(scope="module")
def torque():
    return sy.Model.nominal(ARM).torque(Q, DQ, DDQ)


def _written(path, table):
    rows = np.column_stack(list(table.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(table), comments="", fmt="%.9g")
    return path


def _each(name, x):
    return {name.format(k, k + 1): x[:, k] for k in range(3)}


def _same(log, torque, tolerance=1e-4):
    scale = np.abs(torque).max()
    np.testing.assert_allclose(log.q, Q, atol=tolerance)
    np.testing.assert_allclose(log.tau, torque, atol=tolerance * scale)


def test_odd_names_units_and_clock(tmp_path, torque):
    """Milliseconds, degrees, rpm and newton millimetres under uncommon names."""
    table = {
        "Zeit [ms]": 1e3 * T,
        **_each("Achse{1}_IstPos [deg]", DEGREES * Q),
        **_each("Achse{1}_SollPos [deg]", DEGREES * (Q + 0.1)),
        **_each("Achse{1}_Speed", DQ * 60.0 / (2.0 * np.pi)),
        **_each("Achse{1}_Torque [Nmm]", 1e3 * torque),
    }
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table), ARM)
    assert guessed.keys["units"] == {"time": "ms", "position": "deg", "velocity": "rpm", "torque": "N mm"}
    log = sy.read_log(tmp_path / "run.csv", ARM, guessed.keys)
    _same(log, torque)
    np.testing.assert_allclose(log.dq, DQ, atol=1e-4)
    assert log.t[-1] == pytest.approx(T[-1])


def test_units_that_no_name_states(tmp_path, torque):
    """Degrees follow from the limits (or the range), speeds from positions, microseconds from the clock."""
    table = {"stamp": 1e6 * T, **_each("pos_{0}", DEGREES * Q), **_each("vel_{0}", DQ), **_each("effort_{0}", torque)}
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table), ARM)
    assert guessed.keys["units"]["time"] == "us"
    assert guessed.keys["units"]["position"] == "deg"
    assert guessed.keys["units"]["velocity"] == "rad/s"
    _same(sy.read_log(tmp_path / "run.csv", ARM, guessed.keys), torque)


def test_a_sign_that_needs_the_robot(tmp_path, torque):
    """The torque of the second joint has the wrong sign: the model shows it, and the guess asks."""
    turned = torque * [1.0, -1.0, 1.0]
    table = {"t": T, **_each("q{1}", Q), **_each("dq{1}", DQ), **_each("tau{1}", turned)}
    path = _written(tmp_path / "run.csv", table)
    guessed = sy.guess_mapping(path, ARM)
    assert guessed.keys["sign"]["torque"] == [1, -1, 1]
    (question,) = guessed.questions
    assert "sign" in question.question
    _same(sy.read_log(path, ARM, guessed.keys), torque)
    left = guessed.answered(question, "keep the value of the log")
    assert "sign" not in left.keys
    assert not left.questions


def test_a_speed_against_the_positions(tmp_path, torque):
    table = {"t": T, **_each("q{1}", Q), **_each("dq{1}", DQ * [1.0, 1.0, -1.0]), **_each("tau{1}", torque)}
    guessed = guess_columns(_written(tmp_path / "run.csv", table), ARM)
    assert guessed.keys["sign"]["velocity"] == [1, 1, -1]
    np.testing.assert_allclose(sy.read_log(tmp_path / "run.csv", ARM, guessed.keys).dq, DQ, atol=1e-6)


def test_a_speed_of_the_motors_is_asked_about_and_left_out(tmp_path, torque):
    table = {"t": T, **_each("q{1}", Q), **_each("dq{1}", 100.0 * DQ), **_each("tau{1}", torque)}
    guessed = guess_columns(_written(tmp_path / "run.csv", table), ARM)
    (question,) = guessed.questions
    assert "100 times the derivative" in question.why
    assert guessed.keys["velocity"] is False
    assert guessed.exit_code == 1
    kept = guessed.answered(question, "keep it")
    assert (kept.exit_code, kept.keys["velocity"]) == (0, ["dq1", "dq2", "dq3"])


def test_two_equal_families_raise_a_question(tmp_path, torque):
    table = {"t": T, **_each("left.q{1}", Q), **_each("right.q{1}", Q + 1.0), **_each("tau{1}", torque)}
    guessed = guess_columns(_written(tmp_path / "run.csv", table), ARM)
    question = guessed.questions[0]
    assert set(question.choices) == {"left.q{}", "right.q{}"}
    assert guessed.answered(question, "right.q{}").keys["position"] == ["right.q1", "right.q2", "right.q3"]


def test_without_a_robot_and_without_a_clock(tmp_path):
    guessed = guess_columns(_written(tmp_path / "run.csv", {**_each("q{1}", Q), **_each("cur{1}_mA", 500 * Q)}))
    assert guessed.keys["joints"] == ["joint1", "joint2", "joint3"]
    assert guessed.keys["units"]["current"] == "mA"
    assert [gap.key for gap in guessed.missing] == ["time.rate", "", "torque_constants"]
    told = guessed.filled(guessed.missing[0], [500.0])
    told = told.filled(told.missing[1], [1.0, 2.0, 3.0])
    assert told.keys["time"] == {"rate": 500.0}
    assert told.keys["torque_constants"] == [1.0, 2.0, 3.0]
    with pytest.raises(LogError, match="must be positive"):
        guessed.filled(guessed.missing[0], [-1.0])
    assert guessed.exit_code == 1


def test_a_recorder_is_known_by_its_columns(tmp_path, torque):
    table = {"time": 1e3 * T, **_each("state.q[{0}]", Q), **_each("state.q_d[{0}]", Q), **_each("state.dq[{0}]", DQ),
             **_each("state.tau_J[{0}]", torque), **_each("cmd.tau_J_d[{0}]", torque)}  # fmt: skip
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table), ARM)
    assert "libfranka" in guessed.guesses[0].why
    assert guessed.exit_code == 0
    _same(sy.read_log(tmp_path / "run.csv", ARM, guessed.keys), torque)


CONSTANTS = np.array([12.0, 9.5, -7.25])


def _rtde(torque, **more):
    # Commanded currents contain friction that commanded torques lack, as those of a controller that compensates it.
    current = torque / CONSTANTS
    return {
        "timestamp": T, **_each("actual_q_{0}", Q), **_each("actual_qd_{0}", DQ),
        **_each("actual_current_{0}", current + 0.01), **more,
    }  # fmt: skip


def test_constants_follow_from_commanded_torque_and_current(tmp_path, torque):
    """Dry friction is a tenth of the largest current; it is fitted, so that only the few rows of reversals err."""
    commanded = torque / CONSTANTS + 0.1 * np.abs(torque / CONSTANTS).max(axis=0) * np.sign(DQ)
    table = _rtde(torque, **_each("target_moment_{0}", torque), **_each("target_current_{0}", commanded))
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table), ARM)
    np.testing.assert_allclose(guessed.keys["torque_constants"], CONSTANTS, rtol=2e-3)
    assert not [gap for gap in guessed.missing if gap.key == "torque_constants"]
    (guess,) = [guess for guess in guessed.questions if guess.key == "torque_constants"]
    assert "torque_constants" not in guessed.answered(guess, "unknown").keys


def test_a_current_that_the_torque_does_not_explain_gives_no_constant(tmp_path, torque):
    commanded = torque / CONSTANTS
    commanded[:, 1] = torque[::-1, 1] / 9.5
    table = _rtde(torque, **_each("target_moment_{0}", torque), **_each("target_current_{0}", commanded))
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table), ARM)
    assert "torque_constants" not in guessed.keys
    (gap,) = [gap for gap in guessed.missing if gap.key == "torque_constants"]
    assert "commanded current of q2" in gap.text
    assert "torque_constants = [12, ?, -7.25]" in gap.lines


def test_the_written_mapping_has_the_lines_to_fill_in(tmp_path, torque):
    """Filled in as the comments say, the file gives torques."""
    log, mapping = _written(tmp_path / "run.csv", _rtde(torque)), tmp_path / "columns.toml"
    model_to_urdf(sy.Model.nominal(ARM), tmp_path / "arm.urdf")
    shown = CliRunner().invoke(app, ["map", str(log), str(tmp_path / "arm.urdf"), "-o", str(mapping)])
    assert shown.exit_code == 1, shown.output
    text = mapping.read_text("utf-8")
    assert "# torque_constants = [?, ?, ?]" in text
    assert "Universal Robots: record target_moment" in text
    assert "KUKA" not in text  # the recorder is known
    mapping.write_text(text.replace("# torque_constants = [?, ?, ?]", "torque_constants = [12, 9.5, -7.25]"), "utf-8")
    np.testing.assert_allclose(sy.read_log(log, ARM, mapping).tau, torque + 0.01 * CONSTANTS, atol=1e-6)


def test_nothing_that_looks_like_positions(tmp_path):
    with pytest.raises(LogError, match="no column looks like the joints' positions"):
        guess_columns(_written(tmp_path / "run.csv", {"t": T, "foo": T, "bar": T}), ARM)
    with pytest.raises(LogError, match=r"there are 2 columns of positions \(q1, q2\), but the robot has 3 joints"):
        guess_columns(_written(tmp_path / "few.csv", {"t": T, "q1": T, "q2": T}), ARM)


def test_words_and_units_in_names():
    stems = ("MotorCurrentJ{} (mA)", "q_target_{}", "J{}_temp")
    found = {family.pattern: family for family in families([stem.format(k) for stem in stems for k in (1, 2)])}
    assert (found["MotorCurrentJ{} (mA)"].signal, found["MotorCurrentJ{} (mA)"].unit) == ("current", "mA")
    assert found["MotorCurrentJ{} (mA)"].motor
    assert found["q_target_{}"].command
    assert found["J{}_temp"].signal == "temperature"
    said = {"x [N·m]": "N m", "x (deg/s)": "deg/s", "x_rad": "rad", "x[3]": "", "q1": ""}
    assert {name: stated_unit(name) for name in said} == said


def test_frames_and_robots_of_any_kind(torque):
    """A dict of arrays, and a robot by its name."""
    table = {"t": T, "q": DEGREES * Q, "dq": DQ, "tau": torque}
    guessed = sy.guess_mapping(table, "rotradi")
    assert guessed.keys["units"]["position"] == "deg"
    _same(sy.read_log(table, ARM, guessed.keys), torque)


def test_goals_and_duties_are_channels_for_drives(tmp_path):
    """A servo's log has no torque; its goals and its duty identify its drives."""
    table = {"t": T, **_each("goal_position_{1}", Q + 0.1), **_each("present_position_{1}", Q), **_each("pwm_{1}", DQ)}
    guessed = sy.guess_mapping(_written(tmp_path / "run.csv", table))
    assert guessed.keys["position"] == [f"present_position_{k}" for k in (1, 2, 3)]
    assert guessed.keys["channels"] == {
        "goal": [f"goal_position_{k}" for k in (1, 2, 3)],
        "duty": [f"pwm_{k}" for k in (1, 2, 3)],
    }
    assert any("steelyard actuator" in gap.text for gap in guessed.missing)
    log = sy.read_log(tmp_path / "run.csv", ARM, {**guessed.keys, "joints": list(ARM.joint_names)})
    np.testing.assert_allclose(log.channels["goal"] - log.q, 0.1, atol=1e-6)
