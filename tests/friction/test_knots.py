"""The knots of a friction table are at speeds that the motion reaches in every direction."""

from __future__ import annotations

import numpy as np

from steelyard.friction._table import knots
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff, prepare


def test_knots_end_at_the_top_speed_of_the_slower_direction() -> None:
    t = np.arange(0.0, 20.0, 0.005)
    # Forward in a quarter of the period, backward in three quarters: forward is three times as fast.
    phase = t % 2.0
    dq = np.where(phase < 0.5, 0.9 * np.sin(np.pi * phase / 0.5), -0.3 * np.sin(np.pi * (phase - 0.5) / 1.5))
    q = np.cumsum(dq) * 0.005
    log = Log(("q1",), t, q[:, None], dq=dq[:, None], tau=np.zeros((len(t), 1)))
    settings = Preparation()
    motions = list(prepare(log, settings, chosen_cutoff([log], settings)))
    fastest = knots(motions, 0, "q1")[-1]
    # At most the slower direction's 0.3 rad/s, plus the filter's overshoot.
    assert 0.2 < fastest < 0.35
