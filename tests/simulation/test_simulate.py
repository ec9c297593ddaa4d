"""`steelyard simulate`: the motion agrees with physics, and its logs can be read and replayed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from model_uses import ARM, MODEL, run

import steelyard as sy
from steelyard.errors import SimulationError
from steelyard.parameters.terms import Terms
from steelyard.signals.read import read_log
from steelyard.simulation import simulate_model
from steelyard.simulation.torque_signal import read_torque_signal

WAVES = """
duration: 1.5
limits: [20, 9, 20]
waves:
  - {joint: q2, amplitude: 12, rate: 3, other_rate: 0.5, decay: 0.3}
  - {joint: q3, amplitude: 2, rate: 4, phase: pi/2}
"""


def test_a_free_fall_without_friction_keeps_its_energy() -> None:
    bare = sy.Model(ARM, Terms(ARM, ()), ARM.inertial_parameters)
    fallen = simulate_model(bare, duration=1.0, start=[0.3, 0.5, -0.4]).runs[0]
    energy = bare.energy(fallen.q, fallen.dq)
    kinetic = np.ptp(energy - bare.energy(fallen.q, 0.0 * fallen.dq))
    assert kinetic > 1.0  # J: it does fall
    assert np.ptp(energy) < 1e-6 * kinetic  # Runge–Kutta 4 at 1 ms


def test_a_carriage_falls_by_half_g_t_squared() -> None:
    """The first joint of this robot is a vertical slide without friction."""
    fallen = simulate_model(sy.Model.nominal(sy.load_robot("prrrp")), duration=0.5).runs[0]
    assert np.allclose(fallen.q[:, 0], -0.5 * 9.81 * fallen.t**2, atol=1e-9)


def test_a_motion_is_followed_and_its_log_is_readable(designed_motion: Path, tmp_path: Path) -> None:
    process = run(
        "simulate",
        "szabo3r",
        "--motion",
        designed_motion,
        "--noise",
        "0.05,0.1,0.02",
        "--seed",
        3,
        "-o",
        tmp_path / "s",
    )
    assert process.exit_code == 0
    result = json.loads((tmp_path / "s" / "result.json").read_text())
    # Computed torque with the true model at 4 kHz has only the error of one control period.
    assert all(j["tracking_rms"] < 1e-3 for j in result["runs"][0]["joints"])
    log = read_log(tmp_path / "s" / "log.csv", ARM)
    assert len(log) == 2001
    again = simulate_model(MODEL, motions=[_first(designed_motion)])
    noise = np.asarray(log.tau) - again.runs[0].tau
    assert np.allclose(np.std(noise, axis=0), [0.05, 0.1, 0.02], rtol=0.1)  # 2001 samples give σ within 1.6 %
    page = (tmp_path / "s" / "report.html").read_text()
    assert all(f"<h3>{title}</h3>" in page for title in ("Positions", "Velocities", "Torques"))


def _first(designed_motion: Path):
    from steelyard.excitation.motion_design import read_design

    return read_design(designed_motion, ARM).trajectories[0]


def test_a_pd_controller_has_a_larger_tracking_error(designed_motion: Path, tmp_path: Path) -> None:
    (tmp_path / "pd.yaml").write_text("kind: pd\nkp: [400, 900, 300]\nkd: [40, 60, 20]\nrate: 2000\n")
    process = run("simulate", "szabo3r", "--motion", designed_motion, "--controller", tmp_path / "pd.yaml", "--json")
    assert process.exit_code == 0
    errors = [j["tracking_rms"] for j in json.loads(process.stdout)["runs"][0]["joints"]]
    assert 1e-3 < max(errors) < 0.1  # PD lags by friction and gravity over its gain: some 10 N m over 900
    refused = run(
        "simulate", "szabo3r", "--motion", designed_motion, "--controller", tmp_path / "pd.yaml", "--rate", 900
    )
    assert refused.exit_code == 2
    assert "2000 Hz is not a multiple of the log's 900 Hz" in refused.output


def test_waves_are_applied_as_torques_and_their_log_can_be_replayed(tmp_path: Path) -> None:
    (tmp_path / "waves.yaml").write_text(WAVES)
    assert run("simulate", "szabo3r", "--torque", tmp_path / "waves.yaml", "-o", tmp_path / "a").exit_code == 0
    log = read_log(tmp_path / "a" / "log.csv", ARM)
    t = log.t
    swing = 12.0 * np.exp(-0.3 * t) * np.cos(3.0 * t) * np.cos(0.5 * t)
    expected = np.column_stack([0.0 * t, np.clip(swing, -9.0, 9.0), -2.0 * np.sin(4.0 * t)])
    assert np.allclose(log.tau, expected, atol=1e-12)
    assert run("simulate", "szabo3r", "--torque", tmp_path / "a" / "log.csv", "-o", tmp_path / "b").exit_code == 0
    again = read_log(tmp_path / "b" / "log.csv", ARM)
    assert np.allclose(again.q, log.q, atol=1e-9)  # the same torques, steps and start


def test_phases_depend_on_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "waves.toml"
    path.write_text('duration = 1\nseed = 4\nwaves = [{joint = "q1", amplitude = 2, phase = [0, 6.28]}]\n')
    tables = [read_torque_signal(path, ARM, seed)[0].table(np.zeros(1)) for seed in (None, 4, 5)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])


def test_joints_stick_or_creep_below_their_friction() -> None:
    model = sy.Model.nominal(sy.load_robot("rotradi", gravity=(0.0, 0.0, 0.0)))
    weak = sy.TorqueSignal(joints=3, waves=(sy.Wave(joint=0, amplitude=1e-3, rate=6.0),))
    stuck, creeping = (
        simulate_model(model, torque=weak, duration=0.2, rate=200.0, friction=friction).runs[0].q[-1, 0]
        for friction in ("stick", "smooth")
    )
    assert stuck == 0.0
    assert creeping != 0.0


def test_a_diverging_simulation_names_time_and_reason(designed_motion: Path, tmp_path: Path) -> None:
    (tmp_path / "wild.yaml").write_text("kind: pd\nkp: 1e8\n")
    out = tmp_path / "out"
    process = run("simulate", "szabo3r", "--motion", designed_motion, "--controller", tmp_path / "wild.yaml", "-o", out)
    assert process.exit_code == 2
    assert "The simulation diverged at t = 0." in process.output
    assert "lower the torques or gains" in " ".join(process.output.split())
    assert not out.exists()
    impossible = sy.Model(ARM, MODEL.terms, np.concatenate([-ARM.inertial_parameters, MODEL.theta[30:]]))
    with pytest.raises(SimulationError, match="not positive definite"):
        simulate_model(impossible, duration=0.1)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ([], "Give one input for the model"),
        (["--duration", "1", "--motion", "none"], "Give one input for the model"),
        (["--duration", "1", "--controller", "none"], "--controller needs a --motion"),
        (["--duration", "1", "--friction", "dry"], "--friction is 'dry'; choose smooth or stick"),
        (["--duration", "1", "--start", "0,1"], "--start is '0,1'; give 3 finite numbers"),
        (["--duration", "1e6"], "lower the duration or the rate"),
        (["--duration", "0.3", "--rate", "0.5"], "are less than two samples"),
        (["--torque", "none.csv", "--duration", "1"], "a log is played over its whole length"),
    ],
)
def test_contradictory_options_are_refused(typed: list[str], message: str) -> None:
    process = run("simulate", "szabo3r", *typed)
    assert process.exit_code == 2
    assert message in " ".join(process.output.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("joint: q3", "joint: q9", "waves: entry 2: unknown joint 'q9'; use one of: q1, q2, q3."),
        ("phase:", "phse:", "waves: entry 2: unknown key 'phse'; did you mean 'phase'?"),
        ("decay: 0.3", "decay: -1", "waves: entry 1: decay must be zero or more"),
        ("amplitude: 2", "amplitude: high", "waves: entry 2: amplitude"),
        ("amplitude: 2", "amplitude: null", "waves: entry 2: A wave needs finite numbers"),
        ("pi/2", "[1, 2, 3]", "waves: entry 2: phase: has 3 entries, not 2."),
        ("[20, 9, 20]", "[20, 9]", "limits needs 3 positive torques"),
        ("1.5", "-1", "duration must be a positive number"),
        ("duration: 1.5", "", "'duration' is missing"),
    ],
)
def test_an_error_in_a_file_of_waves_names_its_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "waves.yaml"
    path.write_text(WAVES.replace(old, new))
    with pytest.raises(SimulationError) as refused:
        read_torque_signal(path, ARM)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))
