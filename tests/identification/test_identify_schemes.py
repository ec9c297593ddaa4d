"""`identify` with every scheme: a model, error bars, scores and a report, whatever the equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from papers.rotradi_experiment import arm, clock, encode, identification_torque, play_torque, validation_torque

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.regression.schemes import SCHEMES, FilteredDynamic


@pytest.fixture(scope="module")
def logs():
    a = arm()
    return [encode(play_torque(a.truth, s, clock(5.0))) for s in (identification_torque(0), validation_torque())]


@pytest.fixture(scope="module")
def found(logs) -> dict[str, Identification]:
    """One of them physically possible, which takes longer."""
    options = {"terms": ("viscous", "coulomb")}
    return {s: identify(arm().robot, logs[0], [logs[1]], scheme=s, physical=s == "energy", **options) for s in SCHEMES}


def test_every_scheme_gives_a_model_that_predicts(found: dict[str, Identification]) -> None:
    assert found["energy"].possible
    for scheme, one in found.items():
        assert one.settings.scheme == scheme
        assert np.isfinite(one.condition_number)
        # Static friction is not in the model and dominates the residual.
        assert np.median([j.nrmse_percent for j in one.validation[0].joints]) < 12.0, scheme
        assert np.all(one.free.standard_errors > 0.0)
        assert len(one.free.residual_std) == (3 if scheme in ("dynamic", "filtered-dynamic", "momentum") else 1)


def test_what_needs_no_acceleration_is_nearer_to_the_truth(found: dict[str, Identification]) -> None:
    a = arm()
    error = {s: float(np.median(a.errors(a.map @ one.free.theta))) for s, one in found.items()}
    for scheme in ("filtered-dynamic", "momentum", "energy", "filtered-power"):
        # The torque was held; it is found, and used by all. Before, power was thirty times as far off.
        assert error[scheme] < min(error["dynamic"], error["power"]), error


def test_a_scalar_scheme_writes_its_run(found: dict[str, Identification], tmp_path: Path) -> None:
    found["energy"].save(tmp_path / "run")
    assert "energy" in (tmp_path / "run" / "report.html").read_text()


def test_options_and_objects_are_remembered(logs) -> None:
    one = identify(arm().robot, logs[0], scheme=FilteredDynamic(cutoff_hz=1.5, order=2), physical=False)
    assert one.settings.scheme == "filtered-dynamic:cutoff_hz=1.5,order=2"


def test_an_unknown_scheme_is_refused(logs) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'filtered-dynamic'"):
        identify(arm().robot, logs[0], scheme="filtered-dynamics")
    with pytest.raises(SteelyardError, match="window of 50 s"):
        identify(arm().robot, logs[0], scheme="momentum:window=50")
