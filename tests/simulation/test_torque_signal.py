"""Open-loop torques: the formula, random phases, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from papers.rotradi_experiment import LIMITS, identification_torque, validation_torque

from steelyard.errors import SimulationError
from steelyard.simulation.torque_signal import TorqueSignal, Wave

T = np.linspace(0.0, 3.0, 301)


def test_the_papers_validation_torques() -> None:
    """(40)–(42) of Chávez-Olivares et al. 2012."""
    expected = np.stack(
        [
            30 * np.sin(2.4 * np.pi * T) - 6 * np.cos(0.4 * np.pi * T),
            -29 * np.cos(2.1 * np.pi * T),
            3 * np.cos(1.8 * np.pi * T),
        ],
        axis=1,
    )
    assert_allclose(validation_torque().table(T), expected, atol=1e-12)


def test_phases_stay_in_their_ranges_and_amplitudes_in_the_limits() -> None:
    """(31) at t = 0: −28 + 30 + 10 sin ran3 + 7.5 sin ran4 + 15 sin ran5, where every term has its range."""
    first = np.array([identification_torque(seed).table(T[:1])[0, 1] for seed in range(200)])
    sine = lambda low, high: np.sin(np.deg2rad([low, high]))  # noqa: E731
    low, high = 2 + 10 * sine(-50, 0) + 7.5 * sine(40, 90) + 15 * sine(5, 35)
    assert low <= first.min() < low + 2
    assert high - 2 < first.max() <= high
    clipped = TorqueSignal(joints=1, waves=(Wave(joint=0, amplitude=9.0, rate=2.0),), limits=(5.0,)).table(T)
    assert np.abs(clipped).max() == 5.0
    assert np.all(np.abs(identification_torque(3, "sample").table(T)) <= LIMITS)


def test_phases_are_drawn_per_run_or_per_sample_and_repeat() -> None:
    run, sample = (identification_torque(7, draw) for draw in ("run", "sample"))
    assert np.array_equal(run.table(T), identification_torque(7).table(T))
    assert not np.array_equal(run.table(T), identification_torque(8).table(T))
    jumps = [float(np.abs(np.diff(s.table(T)[:, 0])).mean()) for s in (run, sample)]
    assert jumps[1] > 3.0 * jumps[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"waves": (Wave(joint=2, amplitude=1.0),)}, "joint 2"),
        ({"draw": "day"}, "per"),
        ({"limits": (1.0, 2.0)}, "1 positive"),
        ({"limits": (0.0,)}, "positive"),
    ],
)
def test_wrong_signals_are_refused(options: dict, words: str) -> None:
    with pytest.raises(SimulationError, match=words):
        TorqueSignal(**{"joints": 1, "waves": (), **options})


def test_a_wave_is_made_of_numbers() -> None:
    with pytest.raises(SimulationError, match="finite"):
        Wave(joint=0, amplitude=np.nan)
