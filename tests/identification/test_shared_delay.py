"""A common delay of all joints is estimated and corrected by default; delays of single joints are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from torque_plants import Plant

from steelyard import identify
from steelyard.identification.identification import Identification
from steelyard.regression import delay as delays
from steelyard.regression.delay import DelayEstimate
from steelyard.signals.filters import delayed
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

LATE = 6e-3  # s: a bus and two cycles of a controller at 500 Hz


def identified(plant: Plant, log: Log, delay: float | None = None) -> Identification:
    preparation = Preparation(delay=delay)
    return identify(plant.robot, log, preparation=preparation, plain=True, check=False, files=False)


def test_a_clock_that_is_off_is_found_and_taken_off() -> None:
    """Commands that are logged before they act, torques that arrive after the positions (a plant of Pinocchio)."""
    for planted in (-LATE, LATE):
        plant = Plant(500.0, duration=8.0)
        found = identified(plant, plant.sampled(planted))
        assert found.delay is not None
        assert found.settings.preparation.delay == found.delay.delay_s
        # Three standard errors: one plant in four hundred is outside.
        assert abs(found.delay.delay_s - planted) < 3.0 * found.delay.error_s < 0.1 * LATE
        assert ("ahead of" if planted < 0.0 else "behind") in found.delay_sentence
        # The same as a log without a delay, up to noise; as it was logged it is several times worse.
        left = found.estimate.residual_std
        assert np.all(left < 1.05 * identified(plant, plant.sampled()).estimate.residual_std)
        # The parts of the error bars add up, that of the delay among them.
        parts = [
            np.array(found.estimate.details[f"{name}_error"]) for name in ("noise", "motion", "structure", "delay")
        ]
        assert np.all(parts[3] >= 0.0)
        assert parts[3].max() > 0.0
        assert np.hypot.reduce(parts) == pytest.approx(found.estimate.standard_errors)
        stated = identified(plant, plant.sampled(planted), 0.0)
        assert stated.delay is None
        assert np.all(stated.estimate.residual_std > 1.5 * left)


def test_a_long_delay_converges_on_every_joint() -> None:
    """A step of the linearisation is 20 ms at most."""
    plant = Plant(500.0, duration=8.0)
    found = identified(plant, plant.sampled(0.12)).delay
    assert found is not None
    assert np.all(np.abs(found.by_joint_s - 0.12) < 4.0 * found.errors_s + 1e-3)


def test_one_joint_that_is_late_is_no_clock() -> None:
    plant = Plant(500.0, duration=8.0)
    log, late = plant.sampled(), plant.sampled(LATE)
    assert log.tau is not None
    assert late.tau is not None
    tau = log.tau.copy()
    tau[:, 1] = late.tau[:, 1]
    assert identified(plant, replace(log, tau=tau)).delay is None


def test_a_delay_needs_the_agreement_of_the_joints() -> None:
    alike = DelayEstimate(-3e-3, 1e-4, (0, 1), np.array([-3e-3, -3e-3]), np.array([1e-4, 1e-4]), 5e-4)
    assert alike.is_shared
    assert not replace(alike, spread_s=2e-3).is_shared
    assert not replace(alike, error_s=2e-3).is_shared
    # One joint alone: friction that remembers and slow drives look late, nothing but a clock looks early.
    assert replace(alike, joints=(0,), spread_s=0.0).is_shared
    assert not replace(alike, joints=(0,), spread_s=0.0, delay_s=3e-3).is_shared


def test_a_predicted_log_has_the_delay_of_the_logs() -> None:
    """`predict` gives the torque of a log, `model.torque` that of the robot; both from Pinocchio's motion."""
    plant = Plant(500.0, duration=8.0)
    found = identified(plant, plant.sampled(LATE))
    assert found.delay is not None
    t = np.arange(0.5, 3.0, 2e-3)
    states = plant.motion(t)
    late, own = found.predict(*states, 2e-3), found.model.torque(*states, 2e-3)
    inner = slice(20, -20)  # beyond the ends of the motion the delayed one stands still
    earlier = found.model.torque(*plant.motion(t - found.delay.delay_s), 2e-3)
    # Lagrange's polynomial over a sample of 2 ms of a motion of 1.3 Hz errs by 1e-9; friction turns steeply at rest.
    assert np.max(np.abs(late - earlier)[inner]) < 1e-4 * np.max(np.abs(own))
    assert np.max(np.abs(late - own)[inner]) > 1e-2 * np.max(np.abs(own))


@pytest.mark.parametrize("samples", [-7.0, -0.4, 0.0, 0.5, 3.25])
def test_a_smooth_signal_is_delayed(samples: float) -> None:
    k = np.arange(400.0)
    out = delayed(np.sin(0.05 * k)[:, None], samples)[:, 0]
    # The polynomial through neighbouring samples is that of the sine to far below 1e-6 at 125 samples in a period.
    assert np.allclose(out[20:-20], np.sin(0.05 * (k - samples))[20:-20], atol=1e-6)


def test_an_iteration_that_does_not_converge_ends_at_its_shortest_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left there is part of the error; steps at their limit may grow, and one step alone."""
    steps = iter([-0.025, -0.030, -0.006, -0.008, -0.003, -0.005, -0.006])

    def fit(*_: object) -> DelayEstimate:
        return DelayEstimate(next(steps), 0.004, (0,), np.zeros(1), np.ones(1))

    monkeypatch.setattr(delays, "_fit", fit)
    found = delays.estimate_delay(None, None, [])  # type: ignore[arg-type]
    assert found is not None
    assert found.delay_s == pytest.approx(-0.020 - 0.020 - 0.006 - 0.008 - 0.003)
    assert found.error_s == pytest.approx(np.hypot(0.004, 0.003))
