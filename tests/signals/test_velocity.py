"""The source of the velocity is chosen per joint; a delayed one is corrected, a wrong one is not used."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, prepare
from steelyard.signals.velocity import VelocityPlan, plan_velocity

PERIOD = 1e-3
T = np.arange(20_000) * PERIOD


def wave(rate: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Positions and exact velocities of two joints."""
    phase = 2.0 * np.pi * rate * T[:, None] + np.array([0.0, 1.0])
    return np.sin(phase), 2.0 * np.pi * rate * np.cos(phase)


def noisy(x: np.ndarray, size: float, seed: int = 0) -> np.ndarray:
    return x + size * np.random.default_rng(seed).normal(size=x.shape)


@pytest.mark.parametrize("late", [0.0, 0.0065, 0.032, -0.004])
def test_a_delayed_velocity_is_used_and_its_delay_estimated(late: float) -> None:
    q, _ = wave()
    _, shifted = wave()
    angle = 2.0 * np.pi * 0.5 * (T[:, None] - late) + np.array([0.0, 1.0])
    shifted = np.pi * np.cos(angle)
    plan = plan_velocity([(noisy(q, 1e-4), noisy(shifted, 1e-3, 1), PERIOD)])
    assert plan.measured == (True, True)
    # Noise of 1e-3 in 20,000 samples of π causes 1 µs; Taylor's second term at 32 ms causes (ω T)²/6 of the delay.
    assert plan.delay_s == pytest.approx((late, late), abs=2e-5 + 0.01 * abs(late))


def test_joints_may_have_different_sources() -> None:
    q, dq = wave()
    dq[:, 1] *= 1.3  # another unit or ratio
    plan = plan_velocity([(noisy(q, 1e-4), noisy(dq, 1e-3, 1), PERIOD)])
    assert plan.measured == (True, False)
    assert plan.text == "measured (joints 1), else differentiated"


def test_a_velocity_that_is_noisier_than_the_derivative_is_not_used() -> None:
    q, dq = wave()
    assert not any(plan_velocity([(noisy(q, 1e-6), noisy(dq, 0.1, 1), PERIOD)]).measured)


def test_disagreement_above_the_motion_does_not_reject_a_good_velocity() -> None:
    """Noise of the position makes the error of the derivative larger than its size; below twice the band of
    the motion both agree."""
    q, dq = wave()
    rough = noisy(q, 5e-3)
    assert np.std(np.gradient(rough[:, 0], PERIOD) - dq[:, 0]) > np.std(dq[:, 0])
    assert all(plan_velocity([(rough, noisy(dq, 1e-2, 1), PERIOD)]).measured)


def test_a_corrected_velocity_agrees_with_its_position() -> None:
    q, _ = wave()
    late = 0.02
    dq = np.pi * np.cos(2.0 * np.pi * 0.5 * (T[:, None] - late) + np.array([0.0, 1.0]))
    log = Log(("a", "b"), T, noisy(q, 1e-4), dq=dq, tau=np.ones_like(q))
    (motion,) = prepare(log, Preparation(cutoff_hz=10.0), 10.0)
    inner = motion.keep
    exact = np.pi * np.cos(2.0 * np.pi * 0.5 * T[:, None] + np.array([0.0, 1.0]))
    # Without correction the error would be ω T = 6 % of its amplitude.
    assert np.max(np.abs(motion.dq[inner] - exact[inner])) < 0.005 * np.pi


def test_a_stated_source_is_used() -> None:
    q, dq = wave()
    log = Log(("a", "b"), T, q, dq=1.3 * dq, tau=np.ones_like(q))
    (motion,) = prepare(log, Preparation(cutoff_hz=10.0, velocity="measured"), 10.0)
    assert motion.velocity == "measured"
    assert np.std(motion.dq[motion.keep]) == pytest.approx(1.3 * np.std(dq[motion.keep]), rel=1e-3)


def test_a_uniform_plan_has_no_delay() -> None:
    assert VelocityPlan.uniform(3, True).late(0.0) == {}
