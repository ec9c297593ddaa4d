"""From a simulated log to a model: the truth comes back, possible, with error bars and files that tools load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.demo import simulated_log
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin
from steelyard.signals.log import Log


@pytest.fixture(scope="module")
def found() -> Identification:
    truth = sy.Model.nominal(builtin("arm7"))
    first, second = (simulated_log(truth, seed) for seed in (1, 2))
    return identify(truth.robot, first, [second])


def test_the_truth_comes_back(found: Identification) -> None:
    truth = sy.Model.nominal(found.robot)
    # The simulated arm has the same terms except the offset, which is zero in truth.
    names = {p.name: v for p, v in zip(truth.dynamics.parameters, truth.theta, strict=True)}
    theta = np.array([names.get(p.name, 0.0) for p in found.base.parameters])
    error = np.abs(found.estimate.beta - found.base.values(theta))
    size = np.maximum(np.abs(found.base.values(theta)), 0.05)
    assert np.median(error / size) < 0.05
    assert max(j.nrmse_percent for j in found.validation[0].joints) < 6.0


def test_the_delivered_model_is_possible(found: Identification) -> None:
    assert found.possible
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (10_000, 7))
    assert np.linalg.eigvalsh(found.model.mass_matrix(poses)).min() > 0.0


def test_the_verdict_has_reasons(found: Identification) -> None:
    assert found.verdict.grade == "good"
    assert "hold-out data" in found.verdict.reasons[0]


def test_the_verdict_says_what_rests_on_the_description(found: Identification) -> None:
    """A description with each link 30 % lighter or heavier changes torque and masses by about the stated amounts.

    Four standard deviations of a sum of random signs, since the statement is to first order.
    """
    share = found.description
    assert share is not None
    assert share.described
    assert share.sentence in found.verdict.remarks
    truth = sy.Model.nominal(builtin("arm7"))
    first, second = (simulated_log(truth, seed) for seed in (1, 2))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(found.robot.links))
    links = [
        replace(link, inertia=link.inertia * np.exp(share.relative_std * sign))
        for link, sign in zip(found.robot.links, signs, strict=True)
    ]
    other = identify(replace(found.robot, links=tuple(links)), first, [second])
    a, b = found.validation[0], other.validation[0]
    change = 100.0 * np.sqrt(np.mean((a.predicted - b.predicted) ** 2, axis=0) / np.var(a.measured, axis=0))
    assert np.all(change < 4.0 * np.array(list(share.torque_percent.values())))
    masses = [model.theta[: found.robot.inertial_count : 10] for model in (found.model, other.model)]
    moved = 100.0 * np.abs(masses[1] / masses[0] - 1.0)
    assert np.all(moved < 4.0 * np.array(list(share.mass_percent.values())))
    assert {found.robot.link_names[0]} <= set(share.links)  # no torque depends on the first link's mass


def test_prediction_is_the_models(found: Identification) -> None:
    q = np.full((3, 7), 0.3)
    assert np.array_equal(found.predict(q, q, q), found.model.torque(q, q, q))


def test_a_run_holds_all_that_was_promised(found: Identification, tmp_path: Path) -> None:
    found.save(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["base_parameters"]["count"] == found.base.rank == len(result["base_parameters"]["list"])
    assert {"name", "formula", "value", "standard_error"} <= set(result["base_parameters"]["list"][0])
    assert result["physically_consistent"] is True
    joint = result["validation"][0]["joints"][0]
    assert {"joint", "rmse", "nrmse_percent", "r2", "relative_error_percent", "raw"} <= set(joint)
    again = found.save(tmp_path / "again")
    for name in ("result.json", "report.html", "arm7.urdf", "parameters.csv"):
        assert (again / name).read_bytes() == (tmp_path / "run" / name).read_bytes()  # same inputs, same bytes


def test_the_exported_urdf_has_the_models_torques(found: Identification, tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")
    found.to_urdf(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    data = model.createData()
    rigid = found.robot.dynamics
    theta = found.formats[0].model.theta[: found.robot.inertial_count]  # what was fitted for this format
    for q, dq, ddq in np.random.default_rng(1).uniform(-2, 2, (5, 3, 7)):
        theirs = pin.rnea(model, data, q, dq, ddq)
        assert np.max(np.abs(rigid.inverse_dynamics(q, dq, ddq, theta) - theirs)) < 1e-9 * np.max(np.abs(theirs))


def test_choices_are_checked() -> None:
    t, any_ = 0.01 * np.arange(100.0), np.random.default_rng(0).normal(size=(100, 7))
    log = Log(builtin("rotradi").joint_names, t, any_[:, :3], tau=any_[:, :3])
    with pytest.raises(sy.SteelyardError, match="Known: dynamic"):
        identify(builtin("rotradi"), log, scheme="dynamics")
    with pytest.raises(sy.SteelyardError, match="Did you mean 'wls'"):
        identify(builtin("rotradi"), log, estimator="wsl")
    with pytest.raises(sy.SteelyardError, match="The log has joints"):
        identify(builtin("szabo3r"), Log(builtin("arm7").joint_names, t, any_, tau=any_))


def _written(path: Path) -> sy.Robot:
    """A log in a file, and the robot it is of."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    robot = builtin("rotradi")
    log = simulated_log(sy.Model.nominal(robot), 1)
    assert log.dq is not None
    assert log.tau is not None
    names = ["t", *(f"{x}{k}" for x in ("q", "dq", "tau") for k in (1, 2, 3))]
    columns = [log.t, *log.q.T, *log.dq.T, *log.tau.T]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path, row_group_size=3000)
    return robot


def test_a_log_too_long_to_hold_gives_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, only the rows at the pieces' ends are lost."""
    from steelyard.identification.identify_files import identify_files
    from steelyard.signals import source

    robot = _written(tmp_path / "run.parquet")
    whole = identify_files(robot, [tmp_path / "run.parquet"], terms=("viscous", "coulomb"), cutoff_hz=10.0)
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 5000)
    monkeypatch.setattr(source, "PIECE_ROWS", 6000)
    pieces = identify_files(robot, [tmp_path / "run.parquet"], terms=("viscous", "coulomb"), cutoff_hz=10.0)
    assert 0 < whole.identification[0].samples - pieces.identification[0].samples < 600
    # The rows lost are a few percent, so the estimates differ by a fraction of their uncertainty.
    change = np.abs(pieces.estimate.beta - whole.estimate.beta) / whole.estimate.standard_errors
    assert np.max(change) < 1.0


@pytest.mark.parametrize("hold_out", [{"holdout": 0.3}, {"holdout_blocks": "5:3"}])
def test_a_hold_out_of_a_long_log_is_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold_out: dict[str, Any]
) -> None:
    """The result is that of the log in memory, except at the pieces' ends; memory holds one piece at a time."""
    from steelyard.identification.identify_files import identify_files
    from steelyard.signals import source

    robot = _written(tmp_path / "run.parquet")
    how = {"terms": ("viscous", "coulomb"), "cutoff_hz": 10.0, "physical": False, "check": False, **hold_out}
    whole = identify_files(robot, [tmp_path / "run.parquet"], **how)
    sizes: list[int] = []
    chunks = source.log_chunks

    def watched(*given: Any, **options: Any) -> Iterator[Log]:
        for piece in chunks(*given, **options):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 5000)
    monkeypatch.setattr(source, "PIECE_ROWS", 6000)
    monkeypatch.setattr(source, "log_chunks", watched)
    monkeypatch.delattr(source, "read_log")  # nothing is read at once
    pieces = identify_files(robot, [tmp_path / "run.parquet"], **how)
    assert len(sizes) >= 3
    assert max(sizes) <= 9000
    lost = 1.0 - pieces.identification[0].samples / whole.identification[0].samples
    assert 0.0 < lost < 0.1
    # What a share of the rows says moves an estimate by its root in standard errors, of ten parameters none by four.
    change = np.abs(pieces.estimate.beta - whole.estimate.beta) / whole.estimate.standard_errors
    assert np.max(change) < 4.0 * np.sqrt(lost)
    for a, b in zip(whole.validation[0].joints, pieces.validation[0].joints, strict=True):
        assert b.nrmse_percent == pytest.approx(a.nrmse_percent, rel=0.1)
