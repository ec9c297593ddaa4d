"""`steelyard validate`: models against a plant and against logs, and the influence of their parameters."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model_uses import ARM, MODEL, Swing, run

from steelyard.assessment import validate_on_logs, validate_on_plant
from steelyard.assessment.validation_ways import validate
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path
from steelyard.simulation import simulate_model


def off_by(share: float) -> Model:
    return replace(MODEL, theta=(1.0 + share) * MODEL.theta)


def errors(trial, way: int) -> np.ndarray:
    result = trial.ways[way].errors
    assert result is not None
    return np.array(result)


def test_torque_errors_are_proportional_to_the_deviation() -> None:
    """Torque is linear in the parameters: twice the deviation gives twice the error."""
    true, near, far = (validate_on_plant(off_by(share), MODEL, [Swing()]).trials[0] for share in (0.0, 0.05, 0.1))
    assert errors(true, 0).max() < 1e-9
    assert errors(true, 1).max() < 1e-9
    assert np.allclose(errors(far, 0), 2.0 * errors(near, 0), rtol=1e-6)
    assert np.all(errors(far, 2) > errors(near, 2))
    assert [way.name for way in far.ways] == ["torque prediction", "open loop", "feed-forward", "computed torque"]


@pytest.mark.filterwarnings("ignore::steelyard.simulation.SimulationWarning")
def test_the_tests_equal_those_of_the_library_for_each_motion() -> None:
    result = validate_on_plant(off_by(0.1), MODEL, [Swing(), Swing()], horizon=0.2)
    # This arm's friction is steep, so the steps are the shortest.
    expected = validate(off_by(0.1), MODEL, Swing(), duration=1.0, horizon=0.2, step=1e-3 / 64)
    assert [trial.name for trial in result.trials] == ["motion 1", "motion 2"]
    for trial in result.trials:
        for way, expected_way in zip(trial.ways, expected.ways, strict=True):
            assert way == expected_way


def test_on_a_log_the_true_model_has_the_error_of_the_noise() -> None:
    log = simulate_model(MODEL, motions=[Swing()], noise=0.2).logs[0]
    true, wrong = (validate_on_logs(model, [log], horizon=0.1).trials[0] for model in (MODEL, off_by(0.2)))
    assert np.all(errors(true, 0) < 0.2)  # N m; the filter leaves a part of the noise
    assert np.all(errors(wrong, 0) > 2.0 * errors(true, 0))
    assert np.all(errors(wrong, 1)[1:] > errors(true, 1)[1:])  # joint 1 carries no weight


def test_an_impossible_model_gets_a_warning() -> None:
    impossible = replace(MODEL, theta=np.concatenate([-MODEL.theta[:30], MODEL.theta[30:]]))
    log = simulate_model(MODEL, motions=[Swing()]).logs[0]
    result = validate_on_logs(impossible, [log])
    assert any("not positive definite" in warning for warning in result.warnings)
    assert result.trials[0].ways[1].errors is None
    assert result.trials[0].ways[0].errors is not None


def test_a_sweep_ranks_the_parameters_by_influence() -> None:
    result = validate_on_plant(MODEL, None, [Swing()], sweep_share=0.2).swept
    assert result is not None
    rows = result.rows
    ranked = [row["closed_loop_percent"] for row in rows if row["closed_loop_percent"] is not None]
    assert ranked == sorted(ranked, reverse=True)
    assert len(rows) == len(result.loop.names)
    by_name = {row["name"]: row for row in rows}
    # Open loop, the gravity load of the upper arm has more influence than the friction of the slow first joint.
    assert by_name["mx2"]["open_loop_percent"] > by_name["Fsv1"]["open_loop_percent"]


def test_the_command_validates_an_exported_model(designed_motion: Path, tmp_path: Path) -> None:
    model_to_urdf(off_by(0.1), tmp_path / "arm.urdf")
    model_to_sidecar(off_by(0.1), sidecar_path(tmp_path / "arm.urdf"))
    validated = run(
        "validate", tmp_path / "arm.urdf", "--against", "szabo3r", "--motion", designed_motion, "--sweep", 0.1,
        "-o", tmp_path / "v",
    )  # fmt: skip
    assert validated.exit_code == 0
    assert "computed torque" in validated.output
    result = json.loads((tmp_path / "v" / "result.json").read_text())
    assert [way["way"] for way in result["trials"][0]["ways"]][2:] == ["feed-forward", "computed torque"]
    assert result["sensitivity"]["share"] == 0.1
    errors = list(csv.DictReader((tmp_path / "v" / "errors.csv").read_text().splitlines()))
    assert [float(row["q2"]) for row in errors] == [way["rms"][1] for way in result["trials"][0]["ways"]]
    ranked = list(csv.DictReader((tmp_path / "v" / "sensitivity.csv").read_text().splitlines()))
    assert [row["name"] for row in ranked] == [row["name"] for row in result["sensitivity"]["parameters"]]
    assert "Influence of each parameter" in (tmp_path / "v" / "report.html").read_text()
    log = tmp_path / "log.csv"
    simulate_model(MODEL, motions=[Swing()]).logs[0].save(log)
    on_log = run("validate", tmp_path / "arm.urdf", "--log", log, "--horizon", 0.2, "-o", tmp_path / "l")
    assert on_log.exit_code == 0
    assert "open loop, 0.2 s" in on_log.output
    assert "Measured and predicted torque" in (tmp_path / "l" / "report.html").read_text()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ([], "Give either a --motion for a plant (--against) or a --log"),
        (["--motion", "none"], "Give a plant to compare --against"),
        (["--log", "none", "--against", "szabo3r"], "need a --motion, not a log"),
        (["--log", "none.csv"], "none.csv"),
    ],
)
def test_contradictory_options_are_refused(typed: list[str], message: str) -> None:
    process = run("validate", "szabo3r", *typed)
    assert process.exit_code == 2
    assert message in " ".join(process.output.split())


def test_a_plant_must_be_the_same_robot() -> None:
    other = replace(MODEL, robot=replace(ARM, joints=tuple(replace(j, name=f"{j.name}x") for j in ARM.joints)))
    with pytest.raises(SteelyardError, match="must be of the same robot"):
        validate_on_plant(MODEL, other, [Swing()])


def test_rsd_and_agreement_index_equal_their_definition(tmp_path: Path) -> None:
    """RSD and Willmott's index of agreement, computed here from the compared signals."""
    log = simulate_model(MODEL, motions=[Swing()], noise=0.2).logs[0]
    result = validate_on_logs(off_by(0.1), [log], horizon=0.1)
    trial = result.trials[0]
    assert trial.score is not None
    way, o, p = trial.ways[0], trial.score.measured, trial.score.predicted
    ai = 1.0 - np.sum((o - p) ** 2, 0) / np.sum((np.abs(o - o.mean(0)) + np.abs(p - o.mean(0))) ** 2, 0)
    assert way.agreement_index == pytest.approx(ai, rel=1e-9)
    # The stored signals are a subset of the scored samples.
    assert way.rsd == pytest.approx(np.sqrt(np.sum((o - p) ** 2, 0) / np.sum(o**2, 0)), rel=0.05)
    ways = result.to_json()["trials"][0]["ways"]
    assert ways[0]["rsd"] == list(way.rsd or ())
    assert ways[1]["rsd"] is None  # there are several replays, without one signal
    plant = validate_on_plant(off_by(0.1), MODEL, [Swing()]).trials[0].ways[0]
    assert plant.rsd == pytest.approx([0.1] * ARM.dof, rel=1e-6)  # the whole torque is a tenth too large
    assert all(0.98 < x < 1.0 for x in plant.agreement_index or ())
    log.save(tmp_path / "log.csv")
    model_to_urdf(MODEL, tmp_path / "arm.urdf")
    model_to_sidecar(MODEL, sidecar_path(tmp_path / "arm.urdf"))
    printed = run("validate", tmp_path / "arm.urdf", "--log", tmp_path / "log.csv", "--horizon", 0.2).output
    assert "RSD" in printed
    assert "agreement index" in printed
