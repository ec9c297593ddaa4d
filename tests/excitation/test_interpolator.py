"""Via-point programs: durations against closed forms, limits at all times, straight lines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.excitation.interpolator import (
    CircleMove,
    JointMove,
    LineMove,
    MotionLimits,
    Pause,
    Program,
    Ramp,
    interpolate,
    profile,
)
from steelyard.excitation.trajectories._pieces import evaluate, piece_extents
from steelyard.robot import load_robot
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose

NS16 = load_robot("ns16")
HOME = np.array([0.1, 0.1, 1.8, 0.2, 0.8, 0.1])  # elbow and wrist bent: far from singular postures
bounds = st.floats(0.05, 50.0)


def limits(jerk=np.inf, acceleration=8.0):
    return MotionLimits.of(NS16, acceleration, jerk=jerk)


def postures(seed, count=5):
    rng = np.random.default_rng(seed)
    low, high = (np.array([getattr(j, side) for j in NS16.joints]) for side in ("lower", "upper"))
    return rng.uniform(0.6 * low, 0.6 * high, (count, 6))


def keeps(motion, bounds):
    """Check exact bounds over all times, to the last digits of rounding."""
    for order, bound in enumerate((bounds.velocity, bounds.acceleration, bounds.jerk), start=1):
        assert np.all(motion.peak_bounds(order) <= bound)


# -------------------------------------------------------------------- profiles


@given(v=bounds, a=bounds)
def test_trapezoids_have_the_textbook_duration(v, a):
    expected = 1 / v + v / a if a >= v * v else 2 / np.sqrt(a)
    assert profile(v, Ramp(a)).duration == pytest.approx(expected, rel=1e-12)


@given(v=bounds, a=bounds, j=bounds)
@example(v=2.0, a=7.5, j=49.18000150985739)  # (a/j)·j rounds below a
def test_s_curves_have_the_textbook_duration(v, a, j):
    """Biagiotti & Melchiorri 2008, section 3.4: the active bounds decide among four formulas."""
    full = a / j + v / a if v * j >= a * a else 2 * np.sqrt(v / j)
    if v * full <= 1:
        expected = 1 / v + full
    elif 2 * a**3 / j**2 <= 1:
        expected = a / j + np.sqrt((a / j) ** 2 + 4 / a)
    else:
        expected = 4 * np.cbrt(1 / (2 * j))
    assert profile(v, Ramp(a, j)).duration == pytest.approx(expected, rel=1e-9)


@given(v=bounds, up=st.tuples(bounds, bounds | st.just(np.inf)), down=st.tuples(bounds, bounds | st.just(np.inf)))
def test_profiles_connect_rest_to_rest_within_their_bounds(v, up, down):
    one = profile(v, Ramp(*up), Ramp(*down))
    table = one.table[:, :, None]
    ends = np.array([0.0, one.duration])
    np.testing.assert_allclose(evaluate(one.breaks, table, ends, 0)[:, 0], [0.0, 1.0], atol=1e-12)
    assert abs(evaluate(one.breaks, table, ends, 1)[1, 0]) < 1e-9 * v
    for order, bound in ((1, (v, v)), (2, (down[0], up[0])), (3, (max(up[1], down[1]),) * 2)):
        low, high = piece_extents(one.breaks, table, order)
        assert low.min() >= -bound[0] * (1 + 1e-9)
        assert high.max() <= bound[1] * (1 + 1e-9)
    # Pieces agree in position and velocity, with finite jerk also in acceleration.
    for order in range(3 if np.isfinite(up[1]) and np.isfinite(down[1]) else 2):
        inner = one.breaks[1:-1]
        jump = _left(one.breaks, table, order)[:-1] - evaluate(one.breaks, table, inner, order)
        scale = np.abs(evaluate(one.breaks, table, one.breaks, order)).max()
        assert np.all(np.abs(jump) <= 1e-9 * max(scale, 1e-12))


def _left(breaks, table, order):
    """Return the values at the end of each piece, from inside it."""
    return np.vstack(
        [evaluate(breaks[k : k + 2], table[k : k + 1], breaks[k + 1 : k + 2], order) for k in range(len(table))]
    )


# -------------------------------------------------------------------- joint moves


def test_the_slowest_joint_sets_the_duration():
    own = limits()
    step = np.array([1.0, 0.3, -0.5, 0.2, 0.1, 2.0])
    motion = interpolate(NS16, Program.through([HOME, HOME + step]), own)
    alone = []
    for d, v, a in zip(np.abs(step), own.velocity, own.acceleration, strict=True):
        alone.append(d / v + v / a if d * a >= v * v else 2 * np.sqrt(d / a))
    assert motion.duration == pytest.approx(max(alone), rel=1e-8)
    # Synchronised: the path in joint space is straight.
    q = motion.sample(np.linspace(0, motion.duration, 50))[0] - HOME
    np.testing.assert_allclose(q, np.outer(q[:, 0] / step[0], step), atol=1e-12)


@pytest.mark.parametrize("jerk", [np.inf, 60.0])
@given(seed=st.integers(0, 2**32 - 1), fly=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=8)
def test_no_limit_is_exceeded_and_rounding_corners_never_costs_time(jerk, seed, fly):
    own, points = limits(jerk), postures(seed)
    motion = interpolate(NS16, Program.through(points, 0.9, fly), own)
    keeps(motion, own)
    stopping = interpolate(NS16, Program.through(points, 0.9, 0.0), own)
    assert motion.duration <= stopping.duration * (1 + 1e-6)
    q = motion.sample(motion.via_times)[0]
    if fly == 0.0:
        np.testing.assert_allclose(q, points[1:], atol=1e-9)
    np.testing.assert_allclose(q[-1], points[-1], atol=1e-9)
    np.testing.assert_allclose(motion.sample([0.0])[0][0], points[0], atol=1e-12)


@pytest.mark.parametrize(("jerk", "smooth"), [(np.inf, 1), (60.0, 2)])
def test_blends_are_continuous(jerk, smooth):
    """Position and velocity (with bounded jerk also acceleration) are continuous where moves overlap."""
    motion = interpolate(NS16, Program.through(postures(3), 0.9, 1.0), limits(jerk))
    for order in range(smooth + 1):
        before = _left(motion.breaks, motion.table, order)[:-1]
        after = np.vstack(
            [
                evaluate(motion.breaks[k : k + 2], motion.table[k : k + 1], motion.breaks[k : k + 1], order)
                for k in range(1, len(motion.table))
            ]
        )
        np.testing.assert_allclose(before, after, atol=1e-8)


def test_flying_by_does_not_stop_without_need():
    """On a straight line, the velocity at the via-point is that of the path."""
    points = np.array([HOME, HOME + 0.5, HOME + 1.0])
    motion = interpolate(NS16, Program.through(points, 0.5, 1.0), limits())
    speed = np.abs(motion.sample(motion.via_times[:1])[1][0]).max()
    assert speed > 0.4 * NS16.joints[0].velocity * 0.5
    stopping = interpolate(NS16, Program.through(points, 0.5), limits())
    assert np.abs(stopping.sample(stopping.via_times[:1])[1]).max() < 1e-9


def test_derivatives_are_consistent():
    motion = interpolate(NS16, Program.through(postures(7), 0.9, 0.7), limits(60.0))
    t, h = np.linspace(0.01, motion.duration - 0.01, 300), 1e-6
    for order in range(2):
        numeric = (motion.derivative(t + h, order) - motion.derivative(t - h, order)) / (2 * h)
        np.testing.assert_allclose(numeric, motion.derivative(t, order + 1), atol=1e-4)


def test_pauses_are_standstill():
    program = Program(HOME, (JointMove(tuple(HOME + 0.2)), Pause(0.5), JointMove(tuple(HOME))))
    motion = interpolate(NS16, program, limits())
    assert motion.via_times[1] - motion.via_times[0] == pytest.approx(0.5)
    standing = motion.via_times[0] + np.linspace(0.01, 0.49, 9)
    np.testing.assert_array_equal(motion.sample(standing)[1], 0.0)
    assert motion.periodic


# -------------------------------------------------------------------- lines and circles


@pytest.fixture(scope="module")
def tip():
    return InverseKinematics.of(NS16).tip


@pytest.mark.parametrize("jerk", [np.inf, 100.0])
def test_lines_are_straight_and_keep_the_joints_limits(tip, jerk):
    start = tip.pose(HOME)
    end = Pose(start.position + np.array([0.1, 0.3, -0.2]), start.rotation)
    own = limits(jerk)
    motion = interpolate(NS16, Program(HOME, (LineMove(end, 0.3),)), own, cycle=0.03)
    keeps(motion, own)
    rotation, place = tip.forward(motion.sample(np.linspace(0, motion.duration, 400))[0])
    way = end.position - start.position
    off = np.cross(place - start.position, way / np.linalg.norm(way))
    # The path's error is at most 0.01 mm between its points; the spline in time may add a little.
    assert np.abs(off).max() < 3e-5
    np.testing.assert_allclose(rotation, np.broadcast_to(start.rotation, rotation.shape), atol=1e-3)
    np.testing.assert_allclose(place[-1], end.position, atol=1e-9)


def test_circles_are_round(tip):
    start = tip.pose(HOME)
    centre = start.position - np.array([0.1, 0, 0])
    via, end = Pose(centre + np.array([0, 0.1, 0])), Pose(centre - np.array([0, 0.1, 0]), start.rotation)
    own = limits(100.0)
    motion = interpolate(NS16, Program(HOME, (CircleMove(via, end, 0.2),)), own, cycle=0.03)
    keeps(motion, own)
    _, place = tip.forward(motion.sample(np.linspace(0, motion.duration, 400))[0])
    np.testing.assert_allclose(np.linalg.norm(place - centre, axis=1), 0.1, atol=3e-5)
    np.testing.assert_allclose(place[-1], end.position, atol=1e-9)
    assert np.min(np.linalg.norm(place - via.position, axis=1)) < 1e-3  # through `via`, not along the short arc


def test_all_kinds_of_moves_combine(tip):
    start = tip.pose(HOME)
    moves = (
        LineMove(Pose(start.position + np.array([0, 0.2, -0.1]), start.rotation), 0.3, fly=0.8),
        JointMove(tuple(HOME), 0.5, fly=0.5),
        JointMove(Pose(start.position + np.array([0, -0.1, 0]), start.rotation), 0.5),
    )
    own = limits(100.0)
    motion = interpolate(NS16, Program(HOME, moves), own, cycle=0.03)
    keeps(motion, own)
    np.testing.assert_allclose(motion.sample([0.0])[0][0], HOME, atol=1e-12)
    reached = tip.pose(motion.sample([motion.duration])[0][0])
    np.testing.assert_allclose(reached.position, start.position + np.array([0, -0.1, 0]), atol=1e-8)
