"""Model with the covariance of its run folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import ExportError
from steelyard.export.parameter_tables import covariance_to_csv, read_covariance
from steelyard.watch.uncertain_model import load_uncertain_model


def test_run_folder_gives_covariance_and_torque_variance(identified_arm, tmp_path: Path) -> None:
    identified_arm.save(tmp_path / "run")
    uncertain_model = load_uncertain_model(tmp_path / "run")
    assert uncertain_model.covariance is not None
    np.testing.assert_allclose(uncertain_model.covariance, identified_arm.estimate.covariance, rtol=1e-15)
    q, dq = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 4, uncertain_model.model.robot.dof))
    # Reference: torques of many models drawn from the covariance.
    L = np.linalg.cholesky(uncertain_model.covariance + 1e-18 * np.eye(len(uncertain_model.covariance)))
    rows = uncertain_model.model.dynamics.torque_regressor(q, dq, np.zeros_like(q))[
        ..., list(uncertain_model.base.independent)
    ]
    torques = rows @ (L @ np.random.default_rng(1).normal(size=(len(L), 40_000)))
    # The variance of 40,000 draws has a standard error of 1/√20,000 = 0.7 %; four times that.
    np.testing.assert_allclose(uncertain_model.torque_variance(q, dq), torques.var(axis=-1), rtol=0.03)


def test_model_without_covariance_has_zero_variance(identified_arm) -> None:
    uncertain_model = load_uncertain_model(identified_arm.model)
    assert uncertain_model.covariance is None
    assert not uncertain_model.torque_variance(*np.ones((2, 2, uncertain_model.model.robot.dof))).any()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "a\nx\n", "a,b\n1,2\n3\n"])
def test_invalid_covariance_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "covariance.csv").write_text(text)
    with pytest.raises(ExportError, match="run identify again"):
        read_covariance(tmp_path / "covariance.csv")


def test_covariance_file_round_trip_is_exact(tmp_path: Path) -> None:
    covariance_in = np.random.default_rng(0).normal(size=(3, 3))
    covariance_to_csv(["m, of all", "b", 'c"'], covariance_in, tmp_path / "covariance.csv")
    names, covariance_out = read_covariance(tmp_path / "covariance.csv")
    assert names == ("m, of all", "b", 'c"')
    np.testing.assert_array_equal(covariance_out, covariance_in)
