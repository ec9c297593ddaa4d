"""Elasticity from the encoder of the motor alone: antiresonance and resonance of joints that MuJoCo moves."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_plants import ElasticArm, Recording, excited, log_of, record
from log_files import write_parquet
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.elasticity import identify_elasticity
from steelyard.errors import SteelyardError


def columns(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns t, q1, tau1, …."""
    out = {"t": x["t"]}
    for k in range(x["theta"].shape[1]):
        out |= {f"q{k + 1}": x["theta"][:, k], f"tau{k + 1}": x["tau"][:, k]}
    return out


def link_inertia(arm: ElasticArm) -> float:
    """Inertia of the last link about its axis."""
    m, length = arm.numbers()["mass"][-1], arm.numbers()["length"][-1]
    return float(m * length**2 / 12 + 1e-3 + m * (0.25 * length**2 + 0.03**2))


def test_two_masses_come_back() -> None:
    arm = ElasticArm(1)
    x = excited(arm, torque_noise=0.1, position_noise=1e-5)
    one = identify_elasticity(arm.robot(), columns(x), resonance=True)["joint1"]
    n, link = arm.numbers(), link_inertia(arm)
    K, D, Ia = (float(n[name][0]) for name in ("K", "D", "Ia"))
    true = {"rotor": Ia, "link": link, "damping": D}
    assert one.known
    assert one.source == "resonance"
    # The intervals hold noise alone; another law of friction than MuJoCo's shifts the numbers by half a percent.
    assert abs(one.stiffness / K - 1.0) < 2.0 * one.compliance.half_width * K + 0.005
    for name, value in true.items():
        found = getattr(one, name)
        assert abs(found.value - value) < 2.0 * found.half_width + 0.005 * value, name
    for found, value in zip(one.frequencies, (K / link, K / link + K / Ia), strict=True):
        assert abs(found.value - np.sqrt(value) / (2 * np.pi)) < 2.0 * found.half_width


def test_a_resonance_out_of_reach_is_not_known() -> None:
    arm = ElasticArm(1, stiffness=2e6)  # its antiresonance is at 258 Hz, the excitation ends at 50 Hz
    result = identify_elasticity(arm.robot(), columns(excited(arm, seconds=6.0, rate=500.0)), resonance=True)
    assert not result.known
    assert "the excitation reaches" in result["joint1"].unknown
    assert result.headline().kind == "bad"


def test_slow_motions_reach_no_resonance() -> None:
    arm = ElasticArm(1)
    x = record(arm, Recording(seconds=8.0, fastest=0.5))
    result = identify_elasticity(arm.robot(), columns(x), resonance=True)
    assert not result.known
    assert "the excitation" in result["joint1"].unknown


def test_joints_are_excited_one_at_a_time(tmp_path) -> None:
    arm = ElasticArm(2)
    with pytest.raises(SteelyardError, match="moves along with"):
        identify_elasticity(arm.robot(), log_of(arm, Recording(seconds=3.0)), resonance=True)
    x = excited(arm, seconds=4.0, axis=1)
    with pytest.raises(SteelyardError, match="No log excites joint 'joint1'"):
        identify_elasticity(arm.robot(), columns(x), resonance=True, joints=["joint1"])
    write_parquet(tmp_path / "log.parquet", columns(x))
    (tmp_path / "arm.urdf").write_text(arm.urdf())
    outcome = CliRunner().invoke(
        app, ["elastic", str(tmp_path / "arm.urdf"), str(tmp_path / "log.parquet"), "--resonance", "--json"]
    )
    assert outcome.exit_code == 0, outcome.output
    assert '"joint2"' in outcome.output
