"""The model of a watch, with the errors that its run folder holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import ExportError
from steelyard.export.table import covariance_to_csv, read_covariance
from steelyard.watch.model import watched_model


def test_a_run_folder_gives_its_covariance_and_so_the_error_of_any_torque(arm_found, tmp_path: Path) -> None:
    arm_found.save(tmp_path / "run")
    watched = watched_model(tmp_path / "run")
    assert watched.covariance is not None
    np.testing.assert_allclose(watched.covariance, arm_found.estimate.covariance, rtol=1e-15)
    q, dq = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 4, watched.model.robot.dof))
    # By the definition: the torque of many models, drawn from the covariance.
    L = np.linalg.cholesky(watched.covariance + 1e-18 * np.eye(len(watched.covariance)))
    rows = watched.model.dynamics.torque_regressor(q, dq, np.zeros_like(q))[..., list(watched.base.independent)]
    drawn = rows @ (L @ np.random.default_rng(1).normal(size=(len(L), 40_000)))
    # 40,000 draws know a variance to 1/√20,000 = 0.7 %; four of that.
    np.testing.assert_allclose(watched.torque_variance(q, dq), drawn.var(axis=-1), rtol=0.03)


def test_a_model_alone_has_no_errors_to_tell(arm_found) -> None:
    watched = watched_model(arm_found.model)
    assert watched.covariance is None
    assert not watched.torque_variance(*np.ones((2, 2, watched.model.robot.dof))).any()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "a\nx\n", "a,b\n1,2\n3\n"])
def test_a_covariance_that_is_none_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "covariance.csv").write_text(text)
    with pytest.raises(ExportError, match="identify anew"):
        read_covariance(tmp_path / "covariance.csv")


def test_a_covariance_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    given = np.random.default_rng(0).normal(size=(3, 3))
    covariance_to_csv(["m, of all", "b", 'c"'], given, tmp_path / "covariance.csv")
    names, found = read_covariance(tmp_path / "covariance.csv")
    assert names == ("m, of all", "b", 'c"')
    np.testing.assert_array_equal(found, given)
