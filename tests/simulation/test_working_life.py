"""Weeks of a robot at work: what its controller reports is what a robot could do."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics import Model
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver

ARM = Model.nominal(builtin("rotradi"))


def test_a_robot_sets_out_works_and_stands_all_night_without_a_leap() -> None:
    life = WorkingLife(ARM, nights=True, begins_s=60.0, shift_s=120.0, day_s=300.0, noise=0.0, ripple=0.0, cold=0.0)
    t, q, dq, tau = (np.concatenate(x) for x in zip(*life.blocks(0, 2), strict=True))
    assert np.allclose(np.diff(t), 0.01)
    assert len(t) == 60_000
    # Positions are the integral of velocities; trapezoids of 10 ms are exact to a part in 10⁴.
    assert np.abs(np.diff(q, axis=0) / 0.01 - 0.5 * (dq[1:] + dq[:-1])).max() < 1e-4 * np.abs(dq).max()
    stands = np.all(dq == 0.0, axis=1)
    assert np.mean(stands) > 0.59
    assert np.ptp(q[stands], axis=0).max() < 1e-9
    # While it moves nothing but the model acts on it, and an observer of momentum sees nothing.
    seen = MomentumObserver(ARM).observe(SampleBatch(t, q, dq, tau, fresh=True))
    moves = ~stands & ~np.roll(stands, 1)
    assert np.abs(seen.e[moves]).max() < 2e-3 * np.abs(tau).max()
    assert np.median(np.abs(seen.e[moves])) < 1e-3 * np.abs(tau).max()
