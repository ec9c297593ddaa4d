"""`steelyard validate`: models against a plant, on logs, and what their parameters do."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from use_cases import ARM, MODEL, Swing, run

from steelyard.assessment.validation_ways import validate
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path
from steelyard.use import let_move, validate_on_logs, validate_on_plant


def off_by(share: float) -> Model:
    return replace(MODEL, theta=(1.0 + share) * MODEL.theta)


def errors(trial, way: int) -> np.ndarray:
    found = trial.ways[way].errors
    assert found is not None
    return np.array(found)


def test_torque_errors_grow_with_the_parameters_and_the_true_model_has_none() -> None:
    """Torque is linear in the parameters: twice as far off is twice the error."""
    true, near, far = (validate_on_plant(off_by(share), MODEL, [Swing()]).trials[0] for share in (0.0, 0.05, 0.1))
    assert errors(true, 0).max() < 1e-9
    assert errors(true, 1).max() < 1e-9
    assert np.allclose(errors(far, 0), 2.0 * errors(near, 0), rtol=1e-6)
    assert np.all(errors(far, 2) > errors(near, 2))
    assert [way.name for way in far.ways] == ["torque prediction", "open loop", "feed-forward", "computed torque"]


@pytest.mark.filterwarnings("ignore::steelyard.simulation.SimulationWarning")
def test_it_is_the_four_ways_of_the_library_motion_by_motion() -> None:
    found = validate_on_plant(off_by(0.1), MODEL, [Swing(), Swing()], horizon=0.2)
    # This arm's friction is steep: the steps are as short as they get.
    expected = validate(off_by(0.1), MODEL, Swing(), duration=1.0, horizon=0.2, step=1e-3 / 64)
    assert [trial.name for trial in found.trials] == ["motion 1", "motion 2"]
    for trial in found.trials:
        for way, told in zip(trial.ways, expected.ways, strict=True):
            assert way == told


def test_on_a_log_the_true_model_has_the_error_of_the_noise() -> None:
    log = let_move(MODEL, motions=[Swing()], noise=0.2).logs[0]
    true, wrong = (validate_on_logs(model, [log], horizon=0.1).trials[0] for model in (MODEL, off_by(0.2)))
    assert np.all(errors(true, 0) < 0.2)  # N m: a filter leaves a part of the noise
    assert np.all(errors(wrong, 0) > 2.0 * errors(true, 0))
    assert np.all(errors(wrong, 1)[1:] > errors(true, 1)[1:])  # joint 1 carries no weight


def test_an_impossible_model_is_told_of_before_its_errors() -> None:
    impossible = replace(MODEL, theta=np.concatenate([-MODEL.theta[:30], MODEL.theta[30:]]))
    log = let_move(MODEL, motions=[Swing()]).logs[0]
    found = validate_on_logs(impossible, [log])
    assert any("not positive definite" in warning for warning in found.warnings)
    assert found.trials[0].ways[1].errors is None
    assert found.trials[0].ways[0].errors is not None


def test_a_sweep_ranks_what_the_motion_depends_on() -> None:
    found = validate_on_plant(MODEL, None, [Swing()], sweep_share=0.2).swept
    assert found is not None
    rows = found.rows
    ranked = [row["closed_loop_percent"] for row in rows if row["closed_loop_percent"] is not None]
    assert ranked == sorted(ranked, reverse=True)
    assert len(rows) == len(found.loop.names)
    by_name = {row["name"]: row for row in rows}
    # Open loop, gravity's load of the upper arm moves it more than the friction of the slow first joint moves that.
    assert by_name["mx2"]["open_loop_percent"] > by_name["Fsv1"]["open_loop_percent"]


def test_the_command_judges_an_exported_model(motion: Path, tmp_path: Path) -> None:
    model_to_urdf(off_by(0.1), tmp_path / "arm.urdf")
    model_to_sidecar(off_by(0.1), sidecar_path(tmp_path / "arm.urdf"))
    judged = run(
        "validate", tmp_path / "arm.urdf", "--against", "szabo3r", "--motion", motion, "--sweep", 0.1,
        "-o", tmp_path / "v",
    )  # fmt: skip
    assert judged.exit_code == 0
    assert "computed torque" in judged.output
    result = json.loads((tmp_path / "v" / "result.json").read_text())
    assert [way["way"] for way in result["trials"][0]["ways"]][2:] == ["feed-forward", "computed torque"]
    assert result["sensitivity"]["share"] == 0.1
    errors = list(csv.DictReader((tmp_path / "v" / "errors.csv").read_text().splitlines()))
    assert [float(row["q2"]) for row in errors] == [way["rms"][1] for way in result["trials"][0]["ways"]]
    ranked = list(csv.DictReader((tmp_path / "v" / "sensitivity.csv").read_text().splitlines()))
    assert [row["name"] for row in ranked] == [row["name"] for row in result["sensitivity"]["parameters"]]
    assert "What each parameter does" in (tmp_path / "v" / "report.html").read_text()
    log = tmp_path / "log.csv"
    let_move(MODEL, motions=[Swing()]).logs[0].save(log)
    on_log = run("validate", tmp_path / "arm.urdf", "--log", log, "--horizon", 0.2, "-o", tmp_path / "l")
    assert on_log.exit_code == 0
    assert "open loop, 0.2 s" in on_log.output
    assert "Measured and predicted torque" in (tmp_path / "l" / "report.html").read_text()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "Give a --motion to play on a plant (--against), or a --log"),
        (["--motion", "none"], "Say what the model is judged --against"),
        (["--log", "none", "--against", "szabo3r"], "go with a --motion, not with a log"),
        (["--log", "none.csv"], "none.csv"),
    ],
)
def test_what_makes_no_sense_is_refused(typed: list[str], said: str) -> None:
    done = run("validate", "szabo3r", *typed)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_another_robot_is_no_plant() -> None:
    other = replace(MODEL, robot=replace(ARM, joints=tuple(replace(j, name=f"{j.name}x") for j in ARM.joints)))
    with pytest.raises(SteelyardError, match="must be of the same robot"):
        validate_on_plant(MODEL, other, [Swing()])


def test_the_measures_of_the_paper_are_printed_beside_the_errors(tmp_path: Path) -> None:
    """RSD and Willmott's index of agreement, written out once more from the signals that were compared."""
    log = let_move(MODEL, motions=[Swing()], noise=0.2).logs[0]
    found = validate_on_logs(off_by(0.1), [log], horizon=0.1)
    trial = found.trials[0]
    assert trial.score is not None
    way, o, p = trial.ways[0], trial.score.measured, trial.score.predicted
    ai = 1.0 - np.sum((o - p) ** 2, 0) / np.sum((np.abs(o - o.mean(0)) + np.abs(p - o.mean(0))) ** 2, 0)
    assert way.agreement_index == pytest.approx(ai, rel=1e-9)
    # The signals that are kept are every few samples of those that were scored.
    assert way.rsd == pytest.approx(np.sqrt(np.sum((o - p) ** 2, 0) / np.sum(o**2, 0)), rel=0.05)
    told = found.to_json()["trials"][0]["ways"]
    assert told[0]["rsd"] == list(way.rsd or ())
    assert told[1]["rsd"] is None  # replays are many, and have no signal of their own
    plant = validate_on_plant(off_by(0.1), MODEL, [Swing()]).trials[0].ways[0]
    assert plant.rsd == pytest.approx([0.1] * ARM.dof, rel=1e-6)  # all of the torque is a tenth too large
    assert all(0.98 < x < 1.0 for x in plant.agreement_index or ())
    log.save(tmp_path / "log.csv")
    model_to_urdf(MODEL, tmp_path / "arm.urdf")
    model_to_sidecar(MODEL, sidecar_path(tmp_path / "arm.urdf"))
    printed = run("validate", tmp_path / "arm.urdf", "--log", tmp_path / "log.csv", "--horizon", 0.2).output
    assert "RSD" in printed
    assert "agreement index" in printed
