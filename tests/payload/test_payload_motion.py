"""Motions for payload identification with a wrist sensor: the traced regressor, and the gain of a designed motion."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.errors import SteelyardError
from steelyard.excitation.search import SearchSettings
from steelyard.payload.excite import WRENCH_NOISE, _Sensor, excite_payload
from steelyard.payload.sensor import wrench_regressor
from steelyard.robot import load_robot

ROBOT = load_robot("irp6-wrist")
KINEMATICS = FrameKinematics(ROBOT, ROBOT.frame())
LENGTH = 1.83


def test_the_traced_regressor_is_the_wrench_regressor() -> None:
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 20, 5))
    traced = Evaluator(_Sensor(ROBOT, "").function("torque_regressor"))({"q": q, "dq": dq, "ddq": ddq})
    expected = wrench_regressor(KINEMATICS(q, dq, ddq))
    np.testing.assert_allclose(np.asarray(traced).reshape(20, 6, 10), expected, atol=1e-13)


def papers_move(t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Section 5.3 of Kozłowski & Dutkiewicz 1996 (angles in degrees: errata)."""
    start, end = (np.deg2rad(x) for x in ([-40, 10, -30, 30, -150.0], [30, -20, 40, -10, -10.0]))
    s, d = (t / LENGTH)[:, None], end - start
    speed, pull = (30 * s**2 - 60 * s**3 + 30 * s**4) / LENGTH, (60 * s - 180 * s**2 + 120 * s**3) / LENGTH**2
    return start + (10 * s**3 - 15 * s**4 + 6 * s**5) * d, speed * d, pull * d


def figures(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> tuple[float, np.ndarray]:
    K = wrench_regressor(KINEMATICS(q, dq, ddq))
    weighted = np.einsum("nij,nik,i->jk", K, K, 1.0 / np.array(WRENCH_NOISE) ** 2)
    return float(np.linalg.cond(np.einsum("nij,nik->jk", K, K))), np.sqrt(np.diag(np.linalg.inv(weighted)))


def test_a_designed_motion_of_the_same_length() -> None:
    t = np.arange(0.0, LENGTH + 1e-9, 0.032)
    before, bars = figures(*papers_move(t))
    assert before == pytest.approx(410, rel=0.02)  # p. 8 of the verified specification
    quick = SearchSettings(starts=3, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=40)
    plan = excite_payload(ROBOT, duration=LENGTH, rate=31.25, criterion="information", search=quick)
    assert plan.violation == 0.0
    after, better = figures(*plan.trajectory.sample(t))
    # The paper went from 90,830 to 3,000, a factor of 30; the arm's own limits allow single figures.
    assert after < before / 20.0
    assert np.all(bars[4:] / better[4:] > 2.0)
    np.testing.assert_allclose(plan.standard_errors(WRENCH_NOISE), better, rtol=0.05)  # one sample more or less


def test_bad_input_of_the_design_is_refused() -> None:
    with pytest.raises(SteelyardError, match="noise of every axis"):
        excite_payload(ROBOT, noise=0.0)
    with pytest.raises(SteelyardError, match="no frame 'hand'"):
        excite_payload(ROBOT, "hand")


def test_parameters_that_no_motion_identifies_are_named() -> None:
    """All axes of the robot are parallel, so only some parameters affect the wrench."""
    with pytest.raises(SteelyardError, match=r"identifies the whole payload .*Ixx.* are not identifiable"):
        excite_payload(load_robot("prrrp"))
