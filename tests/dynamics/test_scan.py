"""A function with a state, run over samples, in one piece and in many, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.function import trace
from steelyard.dynamics.native.scan import Scan, flat_entries
from steelyard.errors import ShapeError


def leaky_sum() -> Scan:
    """y ← 0.5 y + a b, for samples (a, b); with y² and a structural zero as further results."""

    def step(sample, state):
        y = 0.5 * state[0] + sample[0] * sample[1]
        return flat_entries([[y], [y * y, 0.0]])

    return Scan(trace("leaky", {"sample": 2, "state": 1}, step, (3,)))


def test_a_scan_is_a_loop() -> None:
    given = np.random.default_rng(0).normal(size=(50, 2))
    y, expected = 0.0, []
    for a, b in given:
        y = 0.5 * y + a * b
        expected.append([y * y, 0.0])
    whole = leaky_sum()
    np.testing.assert_allclose(whole(given), expected, rtol=1e-14)
    pieces = leaky_sum()
    parts = [pieces(part) for part in np.split(given, [1, 7, 7, 30])]
    np.testing.assert_array_equal(np.concatenate(parts), leaky_sum()(given))
    np.testing.assert_array_equal(pieces.state, whole.state)


def test_samples_of_another_width_and_functions_of_other_inputs_are_refused() -> None:
    with pytest.raises(ShapeError, match="samples, 2"):
        leaky_sum()(np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="inputs sample and state"):
        Scan(trace("f", {"q": 1}, lambda q: {(0,): q[0]}, (1,)))
