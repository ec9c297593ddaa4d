"""Filters, derivatives and the preparation of logs, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import LogError, SteelyardError
from steelyard.signals.excerpt import average_periods
from steelyard.signals.filters import LowPass, derivative, earlier, motion_band
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff, prepare

PERIOD = 0.01
T = PERIOD * np.arange(3000)


def wave(frequency: float, t: np.ndarray = T) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = 2.0 * np.pi * frequency
    return np.sin(w * t)[:, None], (w * np.cos(w * t))[:, None], (-(w**2) * np.sin(w * t))[:, None]


def log_of(q: np.ndarray, dq: np.ndarray | None, t: np.ndarray = T, **more) -> Log:
    return Log(("a",), t, q, dq=dq, tau=np.zeros_like(q), **more)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 20.0), st.integers(1, 8))
def test_a_low_pass_run_both_ways_has_the_squared_gain_and_no_delay(frequency: float, order: int) -> None:
    low_pass = LowPass(5.0, PERIOD, order)
    x = wave(frequency)[0]
    # Gain of a digital Butterworth: 1/√(1 + (tan πfh / tan πf_c h)^2n), squared by the second pass.
    ratio = np.tan(np.pi * frequency * PERIOD) / np.tan(np.pi * 5.0 * PERIOD)
    inner = slice(800, -800)  # away from both ends
    assert np.allclose(low_pass(x)[inner], x[inner] / (1.0 + ratio ** (2 * order)), atol=2e-4)


@pytest.mark.parametrize("how", ["central", "savgol", "spline", "fourier"])
def test_derivatives_of_a_sine_are_its_cosine(how: str) -> None:
    q, dq, _ = wave(0.5)
    # The error of central differences is (wh)²/6, that of the seven-point parabola four times larger, others smaller.
    tolerance = {"central": 2e-4, "savgol": 2e-3, "spline": 1e-5, "fourier": 1e-10}[how]
    inner = slice(5, -5)
    assert np.max(np.abs(derivative(q, PERIOD, how)[inner] - dq[inner])) < tolerance * np.pi  # type: ignore[arg-type]


def test_a_smoothing_spline_differentiates_noisy_samples_better_than_differences() -> None:
    rng = np.random.default_rng(3)
    q, dq, _ = wave(0.5)
    noisy = q + 1e-3 * rng.normal(size=q.shape)
    inner = slice(20, -20)
    errors = {how: np.std((derivative(noisy, PERIOD, how) - dq)[inner]) for how in ("central", "spline")}  # type: ignore[arg-type]
    assert errors["spline"] < 0.2 * errors["central"]


def test_periods_are_averaged() -> None:
    """The noise of the mean of 12 periods is √12 times smaller."""
    rng = np.random.default_rng(4)
    q = wave(0.4)[0]
    noisy = q + 0.01 * rng.normal(size=q.shape)
    mean = average_periods(log_of(noisy, None), 2.5)
    assert mean.meta["periods_averaged"] == 11  # 30 s minus the last sample
    assert len(mean) == 250
    assert np.std(mean.q - q[:250]) == pytest.approx(0.01 / np.sqrt(11), rel=0.15)
    for period, words in ((40.0, "shorter than a period"), (0.01, "only 1 samples"), (-1.0, "positive")):
        with pytest.raises(LogError, match=words):
            average_periods(log_of(noisy, None), period)


def test_the_band_of_a_motion_is_found_under_encoder_noise() -> None:
    rng = np.random.default_rng(0)
    q = 0.5 * wave(0.2)[0] + 0.2 * wave(1.5)[0]
    noisy = np.round(q + 1e-4 * rng.normal(size=q.shape), 4)
    assert motion_band(noisy, PERIOD) == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize("line", [30.0, 45.0])
def test_a_spectral_line_far_above_the_motion_does_not_change_the_band(line: float) -> None:
    """With 1 % of the amplitude at 100 times the frequency, its velocity equals that of the motion."""
    q = wave(0.4)[0]
    assert motion_band(q + 0.01 * wave(line)[0], PERIOD) == pytest.approx(motion_band(q, PERIOD), abs=0.05)


def test_the_fastest_moving_joint_gives_the_band() -> None:
    still = 1e-4 * np.random.default_rng(6).normal(size=(len(T), 1))
    both = np.hstack([wave(0.1)[0], 0.2 * wave(1.2)[0], still])
    assert motion_band(both, PERIOD) == pytest.approx(1.2, abs=0.1)


def test_the_prepared_motion_agrees_with_the_truth() -> None:
    q, dq, ddq = wave(0.5)
    (motion,) = prepare(log_of(q, None), Preparation(), 8.0)
    keep = motion.keep
    assert motion.velocity == "differentiated"
    assert np.max(np.abs(motion.dq[keep] - dq[keep])) < 1e-3 * np.pi
    assert np.max(np.abs(motion.ddq[keep] - ddq[keep])) < 5e-3 * np.pi**2  # mostly at the ends


def test_a_measured_velocity_is_used_where_it_is_better() -> None:
    rng = np.random.default_rng(1)
    q, dq, _ = wave(0.5)
    rough = q + 1e-3 * rng.normal(size=q.shape)
    (good,) = prepare(log_of(rough, dq + 1e-3 * rng.normal(size=q.shape)), Preparation(), 8.0)
    assert good.velocity == "measured"
    (noisy,) = prepare(log_of(q, dq + 0.5 * rng.normal(size=q.shape)), Preparation(), 8.0)
    assert noisy.velocity == "differentiated"
    (wrong,) = prepare(log_of(rough, 2.0 * dq), Preparation(), 8.0)
    assert wrong.velocity == "differentiated"


def test_nothing_is_filtered_across_a_gap() -> None:
    """A step during a gap does not affect the pieces."""
    q, _, _ = wave(0.5)
    stepped = np.concatenate([q[:1500], q[1500:] + 100.0])
    t = np.concatenate([T[:1500], T[1500:] + 5.0])
    log = log_of(stepped, None, t, segments=((0, 1500), (1500, 3000)))
    first, second = prepare(log, Preparation(), 8.0)
    assert np.max(np.abs(first.q)) < 1.01
    assert np.min(second.q) > 98.9


def test_jitter_is_resampled_by_its_time_stamps() -> None:
    rng = np.random.default_rng(2)
    t = np.cumsum(rng.uniform(0.5, 1.5, 3000)) * PERIOD
    q, _, _ = wave(0.5, t)
    (motion,) = prepare(log_of(q, None, t), Preparation(), 8.0)
    truth = wave(0.5, motion.t)[1]
    assert np.max(np.abs(motion.dq[motion.keep] - truth[motion.keep])) < 0.02 * np.pi
    assert np.ptp(np.diff(motion.t)) < 1e-12


def test_the_cut_off_follows_the_motion() -> None:
    slow, fast = (chosen_cutoff([log_of(wave(f)[0], None)], Preparation()) for f in (0.2, 0.6))
    assert fast == pytest.approx(3.0 * slow, rel=0.1)
    assert chosen_cutoff([log_of(wave(0.2)[0], None)], Preparation(cutoff_hz=7.0)) == 7.0
    with pytest.raises(LogError, match="No joint moves"):
        chosen_cutoff([log_of(np.zeros((3000, 1)), None)], Preparation())


def test_impossible_filters_are_refused() -> None:
    with pytest.raises(SteelyardError, match="half the sampling rate"):
        LowPass(60.0, PERIOD)
    with pytest.raises(SteelyardError, match="central, savgol, spline or fourier"):
        derivative(T[:, None], PERIOD, "forward")  # type: ignore[arg-type]
    with pytest.raises(LogError, match="no torque"):
        list(prepare(Log(("a",), T, wave(1.0)[0]), Preparation(), 8.0))


@pytest.mark.parametrize("shift", [-0.5, -0.2, 0.3, 0.5])
def test_a_sine_is_shifted_by_a_fraction_of_a_sample(shift: float) -> None:
    """With ten samples per period the polynomial's error is below 1e-4; it falls with the seventh power."""
    q, late = wave(10.0)[0], wave(10.0, T - shift * PERIOD)[0]
    assert np.max(np.abs(earlier(q, shift) - late)[4:-4]) < 1e-4
    line = np.arange(20.0)[:, None]
    assert np.allclose(earlier(line, shift), line - shift)


@pytest.mark.parametrize("delay", [0.003, 0.013, -0.017])
def test_a_delay_shifts_the_motion_and_not_the_torque(delay: float) -> None:
    q, _, _ = wave(0.5)
    tau = np.random.default_rng(0).normal(size=q.shape)
    (motion,) = prepare(Log(("a",), T, q, tau=tau), Preparation(delay=delay), 10.0)
    inner = slice(100, -100)
    for name, expected in zip(("q", "dq", "ddq"), wave(0.5, motion.t), strict=True):
        # The error of central differences is (ωh)²/6, twice that for the acceleration.
        assert np.max(np.abs(getattr(motion, name) - expected)[inner]) < 5e-4 * np.pi**2, name
    # Each measured torque belongs to the motion at its stamp minus `delay`.
    stamps = motion.t + delay
    assert np.array_equal(motion.tau, tau[np.round(stamps / PERIOD).astype(int)])
