"""What one log knows badly of its noise is taken from its kin; what it knows well is its own."""

from __future__ import annotations

import numpy as np

from steelyard.fleet._noise_colour import NoiseColour

FREEDOM = np.array([3.0, 60.0, 60.0, 60.0, 60.0])  # of each column's noise: the first feels a handful of frequencies


def estimated(rng: np.random.Generator, logs: int, between: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of noise as logs estimate it, `(logs, 1, columns)`, and the true ones."""
    true = between * rng.normal(size=(logs, 1, 1)) + np.linspace(-0.5, 0.5, len(FREEDOM))
    return true + np.log(rng.chisquare(FREEDOM, (logs, 1, len(FREEDOM))) / FREEDOM), true


def test_noise_that_a_log_knows_badly_is_known_better_by_all() -> None:
    rng = np.random.default_rng(0)
    seen, true = estimated(rng, 400, 0.1)
    usual, known = NoiseColour.of(seen), np.ones_like(seen)
    shift, _ = usual.correct(seen, known, np.full(seen.shape[:2], 20.0))
    after = np.sqrt(np.mean((seen + 2.0 * np.log(shift) - true) ** 2, axis=(0, 1)))
    before = np.sqrt(np.mean((seen - true) ** 2, axis=(0, 1)))
    assert before[0] > 0.9  # a logarithm of χ²/3 has the standard deviation 1.07 or so
    assert after[0] < 0.4 * before[0]
    # Without a bias: the mean noise, not the median, which lies a quarter below it.
    assert abs(np.mean(seen[..., 0] + 2.0 * np.log(shift[..., 0]) - true[..., 0])) < 0.12
    # The others keep to what they say themselves: they are known to 18 % each.
    assert np.all(np.abs(after[1:] - before[1:]) < 0.05)


def test_a_log_that_happens_to_have_no_noise_is_not_believed() -> None:
    seen, _ = estimated(np.random.default_rng(1), 100, 0.1)
    seen[0, 0, 0] = -60.0
    shift, _ = NoiseColour.of(seen).correct(seen[:1], np.ones_like(seen[:1]), np.full((1, 1), 20.0))
    now = seen[0, 0, 0] + 2.0 * np.log(shift[0, 0, 0])
    assert np.exp(now + 0.5) > 0.5  # the true noise of this column is exp(−0.5)


def test_a_handful_of_logs_says_nothing_of_each_other() -> None:
    seen, _ = estimated(np.random.default_rng(2), 5, 0.1)
    shift, _ = NoiseColour.of(seen).correct(seen, np.ones_like(seen), np.full(seen.shape[:2], 20.0))
    np.testing.assert_array_equal(shift, 1.0)
