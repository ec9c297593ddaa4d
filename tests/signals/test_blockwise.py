"""The blockwise filter compared with SciPy's recursion and with the Butterworth formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, freqz_sos, sosfiltfilt

from steelyard.signals._blockwise import butterworth
from steelyard.signals.filters import LowPass
from steelyard.signals.source import ahead

# The error of SciPy's direct form grows with the inverse square of the relative cut-off: 4e-12 at 5e-4, by a recursion
# in long doubles; ours has 1e-13. The random cut-offs are above 2e-3; random walks and the order cost one digit.
AGREEMENT = 1e-10


def walk(samples: int, columns: int, seed: int) -> np.ndarray:
    """A signal with a trend and noise."""
    return np.random.default_rng(seed).normal(size=(samples, columns)).cumsum(axis=0)


def recursion(x: np.ndarray, low_pass: LowPass) -> np.ndarray:
    sections = butter(low_pass.order, 2.0 * low_pass.cutoff_hz * low_pass.period, output="sos")
    return sosfiltfilt(sections, x, axis=0, padlen=min(low_pass.memory, len(x) - 1))


@settings(max_examples=80, deadline=None)
@given(
    samples=st.integers(2, 3000),
    columns=st.integers(1, 7),
    ratio=st.floats(2e-3, 0.49),
    order=st.integers(1, 8),
    start=st.integers(0, 300),
    end=st.integers(0, 300),
    step=st.one_of(st.integers(1, 90), st.integers(1000, 1100)),
)
def test_selected_rows_equal_filtering_followed_by_decimation(
    samples: int, columns: int, ratio: float, order: int, start: int, end: int, step: int
) -> None:
    low_pass = LowPass(100.0 * ratio, 0.01, order)
    x = walk(samples, columns, samples)
    rows = slice(start, samples - end, step)
    expected = recursion(x, low_pass)
    found = low_pass(x, rows)
    assert found.shape == expected[rows].shape
    assert np.allclose(found, expected[rows], rtol=0.0, atol=AGREEMENT * np.max(np.abs(expected)))


def test_signals_with_one_column_or_none_keep_their_shape() -> None:
    low_pass = LowPass(5.0, 0.01)
    x = walk(500, 1, 0)[:, 0]
    assert np.allclose(low_pass(x), recursion(x, low_pass), rtol=0.0, atol=AGREEMENT * np.max(np.abs(x)))
    assert low_pass(np.zeros((500, 0))).shape == (500, 0)
    assert low_pass(np.zeros((500, 2, 3)), slice(0, 500, 7)).shape == (72, 2, 3)


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize("ratio", [0.001, 0.03, 0.2, 0.45])
def test_the_frequency_response_is_that_of_a_butterworth_filter(order: int, ratio: float) -> None:
    """c (z − A)⁻¹ b + d on the unit circle equals SciPy's design; both are less accurate at low cut-offs."""
    made = butterworth(order, ratio)
    angles = 2.0 * np.pi * np.minimum(ratio * np.array([0.0, 0.3, 0.9, 1.0, 1.1, 2.0]), 0.499)
    _, expected = freqz_sos(butter(order, 2.0 * ratio, output="sos"), worN=angles)
    found = [made.c @ np.linalg.solve(np.exp(1j * w) * np.eye(order) - made.A, made.b) + made.d for w in angles]
    assert np.allclose(found, expected, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("cutoff_hz", [0.5, 5.0, 30.0])
def test_the_pulse_response_is_symmetric_and_has_the_squared_gain(order: int, cutoff_hz: float) -> None:
    low_pass = LowPass(cutoff_hz, 0.01, order)
    half = 2 * max(low_pass.reach, 100)
    pulse = np.zeros((2 * half + 1, 1))
    pulse[half] = 1.0
    response = low_pass(pulse)[:, 0]
    assert np.allclose(response, response[::-1], rtol=0.0, atol=1e-14)
    _, gain = freqz_sos(butter(order, 2.0 * cutoff_hz * 0.01, output="sos"), worN=7, whole=False)
    w = np.pi / 7.0 * np.arange(7)
    seen = np.exp(1j * np.outer(w, np.arange(-half, half + 1))) @ response
    assert np.allclose(seen, np.abs(gain) ** 2, rtol=0.0, atol=1e-9)  # at most the weight beyond `reach`
    beyond = np.abs(np.arange(-half, half + 1)) > low_pass.reach
    assert np.sum(np.abs(response[beyond])) < 1e-9


def test_a_line_is_unchanged_up_to_its_ends() -> None:
    """Odd reflection continues a line, and both passes start in steady state."""
    low_pass = LowPass(5.0, 0.01)
    t = np.arange(1000.0)[:, None]
    assert np.allclose(low_pass(0.0 * t + 3.0), 3.0, rtol=0.0, atol=1e-12)
    # At the end of the reflection the line becomes constant; after `memory` samples 1e-4 of this change remains.
    assert np.allclose(low_pass(t), t, rtol=0.0, atol=1e-4 * low_pass.memory)


def test_ahead_keeps_the_order_and_raises_errors() -> None:
    made: list[int] = []

    def source(stop: int):
        for k in range(stop):
            made.append(k)
            yield k
        raise ValueError("the end")

    coming = ahead(source(5))
    for k in range(5):
        assert next(coming) == k
        assert len(made) <= k + 2
    with pytest.raises(ValueError, match="the end"):
        next(coming)
    assert list(ahead([])) == []
    first = next(iter(ahead(source(100))))  # the rest is abandoned without waiting
    assert first == 0
