"""The check finds short delays, and held or averaged torques, in motions simulated by Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from torque_plants import Plant

from steelyard.check import Check, check_log


def stated_delay(found: Check) -> float:
    """The delay that the check advises [s]; 0 if none."""
    entries = [e for e in found.of("delay") if "--delay" in e.advice]
    return float(entries[0].advice.split("--delay ")[1].split(",")[0]) if entries else 0.0


def check_found(plant: Plant, delay: float) -> None:
    found = check_log(plant.robot, plant.sampled(delay))
    assert stated_delay(found) == pytest.approx(delay, abs=1e-4)
    assert not found.of("torque_between")


@pytest.mark.parametrize(("rate_hz", "delay"), [(1000.0, -0.2e-3), (250.0, 0.7e-3), (500.0, 3e-3), (500.0, 0.0)])
def test_a_short_delay_is_found(rate_hz: float, delay: float) -> None:
    check_found(Plant(rate_hz), delay)


@pytest.mark.parametrize("way", ["held", "averaged"])
def test_torque_between_samples_is_found_and_no_delay(way: str) -> None:
    plant = Plant(500.0, duration=6.0)
    found = check_log(plant.robot, getattr(plant, way)())
    (entry,) = found.of("torque_between")
    assert f"is {way} between samples" in entry.message
    assert not found.of("delay")
    assert found.grade == "good"


@pytest.mark.proof
@pytest.mark.parametrize("rate_hz", [250.0, 500.0, 1000.0])
@pytest.mark.parametrize("delay", [-0.2e-3, 0.2e-3, 0.7e-3, 1.3e-3, 3e-3])
def test_all_delays_at_all_rates(rate_hz: float, delay: float) -> None:
    for seed in range(5):
        check_found(Plant(rate_hz, seed), delay)


@pytest.mark.proof
def test_error_bars_of_delays_hold() -> None:
    """Of forty logs, the errors over their error bars have a mean square near one."""
    from steelyard.regression.torque_between import delay_of
    from steelyard.signals.prepare import Preparation
    from steelyard.study import Study

    off = []
    for seed in range(40):
        plant = Plant(500.0, seed)
        study = Study.of(plant.robot, plant.sampled(0.7e-3), None, Preparation().for_rows(True, True))
        found = delay_of(study.base, tuple(study.motions()))
        assert found is not None
        off.append((found.delay_s - 0.7e-3) / found.error_s)
    # Within a factor of two in standard deviation: thirty stretches and three joints give no closer bound.
    assert 0.5 < float(np.sqrt(np.mean(np.square(off)))) < 2.0
