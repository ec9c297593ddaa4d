"""Eigenvalues of the covariance P of recursive estimators: against the rows, in files, on the page."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from torque_plants import Plant
from typer.testing import CliRunner

from steelyard import identify
from steelyard.cli import app
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

TERMS = ("viscous", "coulomb")
FILTER = Preparation(cutoff_hz=8.0, torque_between="sampled").for_rows(torques=True, one_by_one=True)


@pytest.fixture(scope="module")
def log():
    return Plant(100.0, duration=6.0).sampled()


def test_at_the_end_they_are_those_of_the_inverse_normal_matrix(log) -> None:
    robot = Plant(100.0).robot
    estimate = identify(robot, log, terms=TERMS, estimator="rls", physical=False, files=False, preparation=FILTER)
    history = estimate.free.parameter_history
    study = Study.of(robot, log, TERMS, estimate.settings.preparation)
    normal = np.zeros((study.base.rank,) * 2)
    for block in study.rows.blocks():
        own, where = study.rows.equations[block.equation].among(study.base.independent)
        normal[np.ix_(where, where)] += block.A[:, own].T @ block.A[:, own]
    # Both use the same rows; the inverse loses digits according to the condition of the matrix.
    expected = np.sort(np.linalg.eigvalsh(np.linalg.inv(normal)))[::-1]
    assert_allclose(history.eigenvalues[-1], expected, rtol=1e-6)
    # Rows only add to RᵀR: every eigenvalue of P decreases from step to step (Weyl).
    assert np.all(np.diff(history.eigenvalues, axis=0) <= 1e-9 * history.eigenvalues[:-1])


@pytest.mark.parametrize("estimator", ["rls", "ekf"])
def test_the_command_writes_and_draws_them(log, tmp_path: Path, estimator: str) -> None:
    log.save(tmp_path / "log.csv")
    words = ["identify", "rotradi", tmp_path / "log.csv", "--terms", "viscous,coulomb", "--free", "--estimator",
             estimator, "-o", tmp_path / "run"]  # fmt: skip
    assert CliRunner().invoke(app, [str(w) for w in words]).exit_code == 0
    with (tmp_path / "run" / "eigenvalues.csv").open() as file:
        heads, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    assert heads[:2] == ["time [s]", "eigenvalue 1 of P"]
    assert len(table) > 3
    assert np.all(np.diff(table[:, 0]) > 0.0)
    assert np.all(np.diff(table[:, 1:], axis=1) <= 0.0)
    assert np.all(table[-1, 1:] < table[0, 1:])
    assert "Eigenvalues of the covariance P" in (tmp_path / "run" / "report.html").read_text()
