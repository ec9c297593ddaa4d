"""Held, sampled and averaged torques are detected and used, on robots simulated with Pinocchio."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from torque_plants import Plant

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Result
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.regression.delay import DelayEstimate
from steelyard.regression.schemes import SCHEMES
from steelyard.regression.torque_between import choose_between
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

WAYS = ("held", "sampled", "averaged")


@cache
def log_of(plant: Plant, way: str) -> Log:
    return getattr(plant, way)()


def identified(plant: Plant, way: str, between: str = "auto", **options: Any) -> Identification:
    settings = Preparation(torque_between=between)  # type: ignore[arg-type]
    return identify(
        plant.robot, log_of(plant, way), terms=("viscous", "coulomb"), physical=False, check=False,
        preparation=settings, **{"prior": "none", **options},
    )  # fmt: skip


def error_of(plant: Plant, found: Identification) -> float:
    """Relative error of the base parameters."""
    truth = found.base.values(plant.truth)
    return float(np.linalg.norm(found.estimate.beta - truth) / np.linalg.norm(truth))


def check_way(plant: Plant, way: str, **options: Any) -> None:
    """The way is found, the error is that of the stated one, and the others cost several times that."""
    found = identified(plant, way, **options)
    assert found.between is not None
    assert found.between.name == found.settings.preparation.torque_between == way
    assert found.between.sure > 0.95
    errors = {other: error_of(plant, identified(plant, way, other, **options)) for other in WAYS}
    assert error_of(plant, found) <= 1.5 * errors[way]
    assert all(errors[other] > 3.0 * errors[way] for other in WAYS if other != way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", ["dynamic", "energy"])
def test_schemes_use_what_the_log_shows(way: str, scheme: str) -> None:
    check_way(Plant(500.0, duration=6.0), way, scheme=scheme)


@pytest.mark.proof
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("rate_hz", [250.0, 500.0, 1000.0])
def test_all_schemes_at_all_rates(way: str, scheme: str, rate_hz: float) -> None:
    check_way(Plant(rate_hz), way, scheme=scheme)


@pytest.mark.proof
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("estimator", ["ml", "ekf", "ukf"])
def test_estimators_use_what_the_log_shows(way: str, estimator: str) -> None:
    check_way(Plant(500.0, duration=6.0), way, estimator=estimator)


@pytest.mark.proof
@pytest.mark.parametrize("rate_hz", [250.0, 500.0, 1000.0])
def test_the_way_is_found_in_nearly_all_logs(rate_hz: float) -> None:
    """At least 95 % of 60 logs at each rate."""
    hits = []
    for seed in range(20):
        plant = Plant(rate_hz, 100 + seed)
        for way in WAYS:
            study = Study.of(plant.robot, getattr(plant, way)(), None, Preparation().for_rows(True, True))
            found = study.with_torque_between().between
            hits.append(found is not None and found.name == way)
    assert np.mean(hits) >= 0.95


def test_a_filter_from_the_prior_is_right_under_held_torque() -> None:
    """Where the filter took the torque for linear, its parameters were wrong by many times their errors."""
    plant = Plant(250.0, duration=6.0)
    found = identified(plant, "held", estimator="ekf:start=prior", prior="nominal")
    assert found.estimate.result is Result.CONVERGED
    # A right filter is at 0.03 %, one that takes the torque for linear at 2 %.
    assert error_of(plant, found) < 2e-3


def test_a_scheme_with_a_rule_of_its_own_keeps_it() -> None:
    plant = Plant(500.0, duration=6.0, torque_noise=0.01)
    found = identified(plant, "held", scheme="momentum:torque=held")
    assert found.between is None
    alike = identified(plant, "held", scheme="momentum")
    # The shifted trapezoid is exact for held momentum; the rest is noise.
    assert error_of(plant, alike) < 1.5 * error_of(plant, found)
    with pytest.raises(SteelyardError, match="state one of them"):
        identified(plant, "held", "sampled", scheme="momentum:torque=held")


def test_a_delay_that_is_none_of_the_ways_is_left_alone() -> None:
    plant = Plant(500.0, duration=6.0)
    log = plant.sampled(1.5e-3)
    study = Study.of(plant.robot, log, None, Preparation().for_rows(True, True)).with_torque_between()
    assert study.between is not None
    assert study.between.name == study.preparation.torque_between == "auto"
    mended = Study.of(plant.robot, log, None, Preparation(delay=1.5e-3).for_rows(True, True)).with_torque_between()
    assert mended.preparation.torque_between == "sampled"


def test_an_uncertain_delay_chooses_nothing() -> None:
    delay = DelayEstimate(-1e-3, 2e-5, (0,), np.array([-1e-3]), np.array([2e-5]))
    assert choose_between(delay, 2e-3).name == "held"
    assert choose_between(replace(delay, error_s=1e-3), 2e-3).name == "auto"
    assert choose_between(None, 2e-3).name == "auto"


def test_other_words_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="torque between samples"):
        Preparation(torque_between="linear")  # type: ignore[arg-type]
