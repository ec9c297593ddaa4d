"""The single axes that stand for the IRp-6 when one of its motors moves alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import steelyard as sy
from steelyard.papers.irp6._lab import AXES, cosine, settled, splines, via
from steelyard.papers.irp6.load import STEP, start_motion

# Joint motion when one motor turns and the others stand: with motor 2 the forearm keeps its direction.
ALONE = ((1.0, 0.0, 0.0), (0.0, 1.0, -1.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize("k", range(3))
def test_an_axis_needs_the_torque_of_the_arm(k: int) -> None:
    arm = sy.Model.nominal(sy.load_robot("irp6"))
    q, dq, ddq = (x[::40] for x in splines((0, 30, -30, 25, 0)))
    along = np.array(ALONE[k])
    # Power is the same however it is counted: torque along the motion.
    expected = arm.torque(q * along, dq * along, ddq * along) @ along
    # X1 and X4 are given to six decimals.
    assert_allclose(AXES[k].truth.torque(q, dq, ddq)[:, 0], expected, atol=1e-4)


@pytest.mark.parametrize("k", range(3))
def test_the_printed_functions_balance_the_energy(k: int) -> None:
    """h X is the work of the torque in every window, so that Xᵀ hᵀh X is the sum of its squares."""
    axis, period = AXES[k], 1e-4
    q, dq, ddq = cosine(np.arange(0.0, 4.0, period))
    power = (axis.truth.torque(q, dq, ddq) * dq)[:, 0]
    work = period * (power[1:] + power[:-1]) / 2.0
    # The trapezoid rule at 0.1 ms.
    assert axis.values @ axis.information(q, dq, period) @ axis.values == pytest.approx(np.sum(work**2), rel=1e-6)


def test_motions_are_their_own_derivatives() -> None:
    period = 1e-3
    quintic = via(np.deg2rad([[0.0, 10.0], [30.0, -20.0]]), 1.0, period)
    for motion, h in ((quintic, period), (start_motion(), STEP)):
        for x, dx in pairwise(motion):
            # Central differences err by h²/6 of a third derivative.
            assert_allclose(np.gradient(x, h, axis=0)[1:-1], dx[1:-1], atol=2e-3 * np.abs(dx).max())


def test_settled_is_the_last_time_outside() -> None:
    t = np.arange(5.0)
    assert settled(t, np.array([np.nan, 2.0, 1.02, 1.2, 1.0]), 1.0, 0.1) == 3.0
    assert settled(t, np.ones(5), 1.0, 0.1) == 0.0
