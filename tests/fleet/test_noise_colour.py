"""Poorly known noise of a log is taken from all logs of the type; well-known noise is its own."""

from __future__ import annotations

import numpy as np

from steelyard.fleet._information import NoiseColour

FREEDOM = np.array([3.0, 60.0, 60.0, 60.0, 60.0])  # of each column's noise; the first depends on few frequencies


def estimated(rng: np.random.Generator, logs: int, between: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw estimated and true logarithms of noise, shape (logs, 1, columns)."""
    true = between * rng.normal(size=(logs, 1, 1)) + np.linspace(-0.5, 0.5, len(FREEDOM))
    return true + np.log(rng.chisquare(FREEDOM, (logs, 1, len(FREEDOM))) / FREEDOM), true


def test_pooling_improves_poorly_known_noise() -> None:
    rng = np.random.default_rng(0)
    seen, true = estimated(rng, 400, 0.1)
    usual, known = NoiseColour.of(seen), np.ones_like(seen)
    shift, _ = usual.correct(seen, known, np.full(seen.shape[:2], 20.0))
    after = np.sqrt(np.mean((seen + 2.0 * np.log(shift) - true) ** 2, axis=(0, 1)))
    before = np.sqrt(np.mean((seen - true) ** 2, axis=(0, 1)))
    assert before[0] > 0.9  # a logarithm of χ²/3 has the standard deviation 1.07 or so
    assert after[0] < 0.4 * before[0]
    # There is no bias: it is the mean noise, not the median, which is a quarter lower.
    assert abs(np.mean(seen[..., 0] + 2.0 * np.log(shift[..., 0]) - true[..., 0])) < 0.12
    # The other columns keep their own values, which are known to 18 %.
    assert np.all(np.abs(after[1:] - before[1:]) < 0.05)


def test_a_noise_free_log_is_corrected() -> None:
    seen, _ = estimated(np.random.default_rng(1), 100, 0.1)
    seen[0, 0, 0] = -60.0
    shift, _ = NoiseColour.of(seen).correct(seen[:1], np.ones_like(seen[:1]), np.full((1, 1), 20.0))
    now = seen[0, 0, 0] + 2.0 * np.log(shift[0, 0, 0])
    assert np.exp(now + 0.5) > 0.5  # the true noise of this column is exp(−0.5)


def test_few_logs_are_not_corrected() -> None:
    seen, _ = estimated(np.random.default_rng(2), 5, 0.1)
    shift, _ = NoiseColour.of(seen).correct(seen, np.ones_like(seen), np.full(seen.shape[:2], 20.0))
    np.testing.assert_array_equal(shift, 1.0)
