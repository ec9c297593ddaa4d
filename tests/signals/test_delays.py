"""Torques with delays of fractions of a sample (plants: Pinocchio)."""

from __future__ import annotations

import numpy as np
import pytest
from torque_plants import Plant

from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

DELAYS = (-0.2e-3, 0.2e-3, 0.7e-3, 1.3e-3, 3e-3)


def parameter_error(plant: Plant, log: Log, delay: float) -> float:
    """Relative error of the base parameters of weighted least squares."""
    study = Study.of(plant.robot, log, ("viscous", "coulomb"), Preparation(delay=delay).for_rows(True, True))
    truth = study.base.values(plant.truth)
    return float(np.linalg.norm(study.base.values(study.quick_fit()[0].theta) - truth) / np.linalg.norm(truth))


def check_delay(rate_hz: float, delay: float) -> None:
    """With the right delay the error equals that of a log without delay; else it is several times larger."""
    plant = Plant(rate_hz)
    log, best = plant.sampled(delay), parameter_error(plant, plant.sampled(), 0.0)
    # Both logs have the same noise; the tolerance allows for different samples at the ends.
    assert parameter_error(plant, log, delay) < 1.25 * best
    assert parameter_error(plant, log, 0.0) > 2.0 * best


@pytest.mark.parametrize(("rate_hz", "delay"), [(250.0, 0.7e-3), (500.0, -0.2e-3), (1000.0, 1.3e-3)])
def test_a_delay_between_samples(rate_hz: float, delay: float) -> None:
    check_delay(rate_hz, delay)


@pytest.mark.proof
@pytest.mark.parametrize("rate_hz", [250.0, 500.0, 1000.0])
@pytest.mark.parametrize("delay", DELAYS)
def test_all_delays_at_all_rates(rate_hz: float, delay: float) -> None:
    check_delay(rate_hz, delay)
