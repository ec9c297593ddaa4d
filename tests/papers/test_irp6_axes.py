"""The IRp-6 when one of its motors moves alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import steelyard as sy
from steelyard.papers.irp6._lab import WINDOW, Lab, cosine, settling_time, splines, via
from steelyard.papers.irp6.load import STEP, start_motion

# Joint motion when one motor turns and the others stand: with motor 2 the forearm keeps its direction.
ALONE = ((1.0, 0.0, 0.0), (0.0, -1.0, 1.0), (0.0, 0.0, 1.0))
MOTORS = Lab(True).motors


@pytest.mark.parametrize("k", range(3))
def test_one_joint_with_the_others_idle_needs_the_torque_of_the_arm(k: int) -> None:
    arm = sy.Model.nominal(sy.load_robot("irp6"))
    q, dq, ddq = (x[::40] for x in splines((0, 30, -30, 25, 0)))
    along = np.array(ALONE[k])
    # Power is the same however it is counted: torque along the motion.
    expected = arm.torque(q * along, dq * along, ddq * along) @ along
    assert_allclose(MOTORS[k].alone.torque(q, dq, ddq)[:, 0], expected, atol=1e-9)
    assert_allclose(MOTORS[k].log((q, dq, ddq)).q, q * along, atol=1e-12)


@pytest.mark.parametrize("k", range(3))
def test_the_arms_energy_is_what_the_paper_prints(k: int) -> None:
    """Section 5.1: ½q̇², ∫q̇², ∫|q̇| and g cos q2 (the upper arm) or g sin(q2 + q3) (the forearm), written out."""
    period = 1e-3
    q, dq, ddq = cosine(np.arange(0.0, 4.0, period))
    v = dq[:, 0]
    columns = [np.diff(v**2 / 2.0), *(period * (f[1:] + f[:-1]) / 2.0 for f in (v**2, np.abs(v)))]
    if k:
        columns.append(9.81 * np.diff(np.cos(q[:, 0]) if k == 1 else np.sin(q[:, 0])))
    h = np.stack(columns, axis=1)
    found = MOTORS[k].information((q, dq, ddq), period)
    assert_allclose(found, h.T @ h, rtol=1e-9, atol=1e-9 * np.abs(found).max())
    # h X is the work of the torque in every window, so that Xᵀ hᵀh X is the sum of its squares; trapezoids at 1 ms.
    log = MOTORS[k].log((q, dq, ddq), period=period)
    power = np.sum(np.asarray(log.tau) * np.asarray(log.dq), axis=1)
    work = period * (power[1:] + power[:-1]) / 2.0
    values = MOTORS[k].values
    assert values @ found @ values == pytest.approx(np.sum(work**2), rel=1e-5)


@pytest.mark.parametrize("k", range(3))
def test_a_motion_for_one_joint_shows_on_the_arm_what_it_was_designed_for(k: int) -> None:
    """`excite` writes its own rows; theirs is the condition number that the whole arm has along the motion."""
    plan = MOTORS[k].exciting
    on_the_arm = np.linalg.cond(MOTORS[k].information(plan.trajectory.sample(np.arange(0.0, 4.0, WINDOW))))
    assert plan.violation == 0.0
    assert on_the_arm == pytest.approx(plan.value, rel=1e-4)


def test_motions_are_their_own_derivatives() -> None:
    period = 1e-3
    quintic = via(np.deg2rad([[0.0, 10.0], [30.0, -20.0]]), 1.0, period)
    for motion, h in ((quintic, period), (start_motion(), STEP)):
        for x, dx in pairwise(motion):
            # Central differences err by h²/6 of a third derivative.
            assert_allclose(np.gradient(x, h, axis=0)[1:-1], dx[1:-1], atol=2e-3 * np.abs(dx).max())


def test_settled_is_the_last_time_outside() -> None:
    t = np.arange(5.0)
    assert settling_time(t, np.array([np.nan, 2.0, 1.02, 1.2, 1.0]), 1.0, 0.1) == 3.0
    assert settling_time(t, np.ones(5), 1.0, 0.1) == 0.0
