"""Postures for gravity, and motions that complement earlier ones."""

from __future__ import annotations

import numpy as np
import pytest
from excitation_cases import pendulum

import steelyard as sy
from steelyard.excitation import (
    Plane,
    Point,
    SearchSettings,
    earlier_logs,
    excite_next,
    excite_several,
    static_poses,
)
from steelyard.parameters.terms import identification_terms
from steelyard.rehearsal.rehearse import rehearse

QUICK = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=15)
LIMITS = {"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0}
OPTIONS = {"harmonics": 3, "duration": 4.0, "search": QUICK, "limits": LIMITS}


def test_a_pendulum_is_measured_at_right_angles():
    """τ = g (mx cos q − my sin q) in some frame: det(WᵀW) of two readings is g⁴ sin²(q₁ − q₂), largest at 90°."""
    poses = static_poses(pendulum(), 2, limits={"q": 2.0})
    assert len(poses.columns) == 2
    assert abs(poses.q[0, 0] - poses.q[1, 0]) % np.pi == pytest.approx(np.pi / 2, abs=1e-4)
    assert poses.gram == pytest.approx(9.81**2 * np.eye(2), rel=1e-4, abs=1e-2)  # within the search's tolerance
    assert poses.condition_number == pytest.approx(1.0, abs=1e-4)
    assert poses.standard_errors(0.5) == pytest.approx([0.5 / 9.81] * 2, rel=1e-4)


def test_poses_beat_random_ones_within_limits_and_floor():
    robot = sy.load_robot("szabo3r")
    floor = ([Point(robot.link_names[-1])], [Plane.floor(0.5)])
    poses = static_poses(robot, 6, limits=LIMITS, regions=[floor])
    assert np.all(np.abs(poses.q) <= [2.5, 1.2, 2.5])
    from steelyard.robot.kinematics.poses import link_poses

    assert link_poses(robot, poses.q)[1][:, -1, 2].min() >= 0.5 - 1e-9
    base = sy.base_parameters(robot)
    columns = [base.names.index(n) for n in poses.columns]

    def det(q):
        W = base.regressor_columns(robot.torque_regressor(q, 0 * q, 0 * q))[:, :, columns].reshape(-1, len(columns))
        return np.linalg.slogdet(W.T @ W)[1]

    assert det(poses.q) == pytest.approx(np.linalg.slogdet(poses.gram)[1])
    rng = np.random.default_rng(0)
    assert det(poses.q) > max(det(rng.uniform(-1, 1, (6, 3)) * [2.5, 1.2, 2.5]) for _ in range(50))


@pytest.mark.parametrize(
    ("count", "options", "sentence"),
    [
        (1, {}, "too few for 4 gravity parameters"),
        (4, {"limits": {"tau": 1e-3, "q": [(0, 1), (0.5, 1), (0.1, 0.2)]}}, "keep to all limits"),
    ],
)
def test_bad_input_for_poses_is_refused(count, options, sentence):
    with pytest.raises(sy.ExcitationError, match=sentence):
        static_poses(sy.load_robot("szabo3r"), count, **options)


def test_the_next_motion_uses_earlier_logs():
    """Given a log, the next motion adds more information than one that was designed without the log."""
    robot = sy.load_robot("szabo3r")
    terms = identification_terms(robot, ["rotor", "viscous", "coulomb"])
    first = sy.excite(robot, terms=terms, **{**OPTIONS, "limits": {**LIMITS, "q": [0.2, 1.2, 2.5]}})
    log = rehearse(robot, first.trajectory, terms=terms, truth="nominal", seeds=1).logs[0]
    known = earlier_logs(robot, [log], terms)
    # Zero-phase filtering reduces the sensors' noise of 0.1 N m.
    assert np.all((known.sigma > 0.001) & (known.sigma < 0.1))
    plan = excite_next(robot, known, terms=terms, **OPTIONS)
    alone = sy.excite(robot, terms=terms, criterion="d", rate=1.0 / known.period, weights=1.0 / known.sigma, **OPTIONS)
    old = known.factor.combined_triangle(1.0 / known.sigma, sy.base_parameters(robot, terms).independent)[:, :-1]

    def together(p):
        new = sum(g / s**2 for g, s in zip(p.grams, known.sigma, strict=True))
        return -np.linalg.slogdet(old.T @ old + new)[1]

    assert plan.value == pytest.approx(together(plan), rel=1e-9)
    assert plan.value <= together(alone) + 0.3  # two local searches; the same start values
    some = known.of(["q2"])
    assert some.equations == ("q2",)
    with pytest.raises(sy.SteelyardError, match="no equation 'q9'"):
        known.of(["q9"])


def test_several_motions_identify_more_than_a_repeated_one():
    robot = sy.load_robot("szabo3r")
    plans = excite_several(robot, 2, criterion="d", sweeps=1, rate=50.0, **OPTIONS)
    both = plans[0].gram + plans[1].gram
    assert plans[-1].value == pytest.approx(-np.linalg.slogdet(both)[1], rel=1e-9)
    alone = sy.excite(robot, criterion="d", rate=50.0, **OPTIONS)
    assert plans[-1].value < -np.linalg.slogdet(2.0 * alone.gram)[1]
    with pytest.raises(sy.ExcitationError, match="0 motions"):
        excite_several(robot, 0)
