"""Families of motion: derivatives, rest, linearity and bounds, against closed forms and denser grids."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline
from scipy.interpolate import BSpline as ScipySpline

from steelyard.excitation.trajectories import (
    Acceleration,
    BSpline,
    Cosines,
    Fourier,
    Idle,
    SplinedQuintic,
    Trajectory,
    cubic,
    free_quintic,
    quintic,
)

FAMILIES = {
    "fourier": Fourier(5, 10.0),
    "fourier moving": Fourier(4, 7.0, period=3.0, rest=False),
    "fourier about 0.3": Fourier(3, 10.0, offset=0.3),
    "fourier from 0.3": Fourier(3, 10.0, period=5.0, start=0.3),
    "szabo": Fourier.szabo(),
    "cubic": cubic(3.0),
    "quintic": quintic(3.0, start=-0.4),
    "free quintic": free_quintic(2.0),
    "splined quintic": SplinedQuintic(8.0, times=(1.0, 2.5, 6.0), start=0.2, end=-0.1),
    "closed splined quintic": SplinedQuintic(8.0, times=3, closed=True),
    "b-spline": BSpline(10.0, spans=7, start=0.1),
    "cubic b-spline": BSpline(10.0, spans=9, degree=4, closed=True),
    "cosines": Cosines(6.4, (1.3, 2.1, 5.5)),
    "cosines from rest": Cosines(6.4, (1.3, 2.1, 5.5), rest=True),
    "accelerations": Acceleration(5.0, samples=12),
    "accelerations back home": Acceleration(5.0, samples=12, start=0.5, closed=True),
    "idle": Idle(10.0, 0.7),
    "idle anywhere": Idle(10.0, None),
}
AT_REST = [name for name, f in FAMILIES.items() if name not in ("fourier moving", "free quintic", "cosines", "cubic")]
every = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def coefficients(family, seed=0):
    return np.random.default_rng(seed).normal(size=family.size)


@lru_cache(maxsize=4)
def dense_basis(family, order):
    """Return the basis on a grid some hundred times denser than that of the bounds."""
    return family.basis(np.linspace(0.0, family.duration, 50_001), order)


def values(family, x, t, derivative):
    B, c = family.basis(np.asarray(t, dtype=float), derivative)
    assert B.shape == (len(t), family.size)
    assert c.shape == (len(t),)
    return B @ x + c


@every
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_are_those_of_the_order_below(family, order):
    # Central differences at times away from knots, where a third derivative may jump.
    t = np.linspace(0.013, 0.987, 157) * family.duration
    x, h = coefficients(family), 1e-5
    kinks = np.abs(t[:, None] - getattr(family, "breaks", np.zeros(0))).min(axis=1, initial=np.inf) < 2 * h
    t = t[~kinks]
    below = [values(family, x, t + s * h, order - 1) for s in (-1, 1)]
    numeric = (below[1] - below[0]) / (2 * h)
    exact = values(family, x, t, order)
    scale = max(np.abs(exact).max(), np.abs(below[0]).max(), 1.0)
    # h² truncation (1e-10 of the fifth derivative) and 1e-16/h rounding: both below 1e-8 of the scale.
    np.testing.assert_allclose(numeric, exact, atol=3e-8 * scale)


@pytest.mark.parametrize("name", AT_REST)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_motions_start_at_rest_whatever_the_coefficients(name, seed):
    family = FAMILIES[name]
    x = coefficients(family, seed)
    for order in (1, 2):
        assert abs(values(family, x, [0.0], order)[0]) < 1e-12
        if name not in ("cosines from rest", "szabo"):
            assert abs(values(family, x, [family.duration], order)[0]) < 1e-12 * max(1.0, np.abs(x).max(initial=0.0))


def test_a_fourier_series_rests_again_after_every_period():
    family = Fourier.szabo()
    x = coefficients(family)
    for order in (1, 2):
        # sin(2π l) is 1e-15, times ω² l² and the amplitudes.
        assert abs(values(family, x, [10.0], order)[0]) < 1e-12


@every
def test_the_motion_is_linear_in_its_coefficients(family):
    t = np.linspace(0.0, family.duration, 11)
    x, y = coefficients(family, 1), coefficients(family, 2)
    for order in range(4):
        both = values(family, 2.0 * x - y, t, order)
        apart = 2.0 * values(family, x, t, order) - values(family, y, t, order)
        np.testing.assert_allclose(both, apart, atol=1e-10 * max(1.0, np.abs(apart).max()))


@every
def test_no_coefficient_is_idle(family):
    """The null space is eliminated: every coefficient changes the motion, none twice."""
    B, _ = family.basis(np.linspace(0.0, family.duration, 400), 0)
    assert np.linalg.matrix_rank(B) == family.size


@every
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4)
def test_bounds_hold_on_a_far_denser_grid_and_are_tight(family, seed):
    x = coefficients(family, seed)
    for order in range(4):
        B, c = dense_basis(family, order)
        dense = B @ x + c
        low, high = family.extent(x, order)
        assert low <= dense.min()
        assert dense.max() <= high
        # Documented accuracy: too wide by less than 0.5 % of the range (or of the peak if the motion hardly changes).
        size = max(np.ptp(dense), np.abs(dense).max())
        assert (high - low) - np.ptp(dense) <= 5e-3 * size + 1e-12


@every
def test_standstill_is_among_the_motions(family):
    position = next(
        (p for p in (getattr(family, k, None) for k in ("start", "offset", "position")) if p is not None), 0.4
    )
    x = family.hold(position)
    if getattr(family, "end", None) in (None, position):
        np.testing.assert_allclose(values(family, x, np.linspace(0, family.duration, 9), 0), position, atol=1e-12)


@every
def test_families_survive_json(family):
    trajectory = Trajectory((family,), coefficients(family))
    again = Trajectory.from_json(trajectory.to_json())
    assert again.families == trajectory.families
    assert np.array_equal(again.coefficients, trajectory.coefficients)


@every
def test_only_smoothly_repeating_motions_are_periodic(family):
    x = coefficients(family, 3)
    ends = np.array([[values(family, x, [t], k)[0] for t in (0.0, family.duration)] for k in range(3)])
    meets = np.allclose(ends[:, 0], ends[:, 1], atol=1e-10)
    assert family.periodic == meets


def test_fourier_series_is_that_of_swevers():
    family = Fourier(2, 10.0, rest=False)
    w = 2 * np.pi / 10
    t = np.linspace(0, 10, 31)
    q0, a, b = 0.3, [0.5, -0.2], [0.1, 0.7]
    by_hand = q0 + sum(a[k] / (w * (k + 1)) * np.sin(w * (k + 1) * t) for k in range(2))
    by_hand -= sum(b[k] / (w * (k + 1)) * np.cos(w * (k + 1) * t) for k in range(2))
    np.testing.assert_allclose(values(family, np.array([q0, *a, *b]), t, 0), by_hand, atol=1e-14)


def test_szabos_boundary_conditions():
    family = Fourier.szabo()
    q0, a, b = family.series(coefficients(family))
    number = np.arange(1, 6)
    assert abs(a.sum()) < 1e-14
    assert abs(number @ b) < 1e-13
    start = values(family, coefficients(family), [0.0], 0)[0]
    assert start == pytest.approx(q0 - np.sum(b / (2 * np.pi * 0.1 * number)), abs=1e-13)


def test_cubic_and_quintic_are_the_textbook_ones():
    t = np.linspace(0.0, 3.0, 50)
    s = t / 3.0
    np.testing.assert_allclose(values(cubic(3.0, 1.0, 3.0), np.zeros(0), t, 0), 1 + 2 * (3 * s**2 - 2 * s**3))
    quint = 1 + 2 * (10 * s**3 - 15 * s**4 + 6 * s**5)
    np.testing.assert_allclose(values(quintic(3.0, 1.0, 3.0), np.zeros(0), t, 0), quint)


def test_quintic_peaks_are_the_textbook_ones():
    """Unit move in unit time: velocity 15/8, acceleration 10/√3, jerk 60."""
    move = Trajectory((quintic(1.0, 0.0, 1.0),), np.zeros(0))
    for order, peak in ((1, 15 / 8), (2, 10 / np.sqrt(3)), (3, 60.0)):
        assert peak <= move.peak_bounds(order)[0] <= peak * 1.001


def test_splined_quintic_is_scipys_hermite_interpolant():
    family = FAMILIES["splined quintic"]
    x = coefficients(family)
    knots = [[0.2, 0.0, 0.0], *x.reshape(-1, 3), [-0.1, 0.0, 0.0]]
    theirs = BPoly.from_derivatives(family.breaks, knots)
    t = np.linspace(0.0, 8.0, 60)
    for order in range(4):
        np.testing.assert_allclose(values(family, x, t, order), theirs(t, order), atol=1e-10)


def test_b_spline_is_scipys():
    family = BSpline(10.0, spans=4, degree=5)
    x = coefficients(family)
    control = np.concatenate([np.full(2, x[0]), x, np.full(2, x[-1])])
    knots = np.concatenate([np.zeros(5), np.linspace(0, 10, 5), np.full(5, 10.0)])
    t = np.linspace(0.0, 10.0, 60)
    for order in range(4):
        theirs = ScipySpline(knots, control, 5)(t, nu=order)
        np.testing.assert_allclose(values(family, x, t, order), theirs, atol=1e-10)


def test_acceleration_is_linear_between_its_samples_and_integrated_exactly():
    family = Acceleration(5.0, samples=12, start=0.5)
    x = coefficients(family)
    a = values(family, x, family.breaks, 2)
    t = np.linspace(0.0, 5.0, 300)
    np.testing.assert_allclose(values(family, x, t, 2), np.interp(t, family.breaks, a), atol=1e-12)
    # A cubic Hermite spline through its own positions and velocities is the exact double integral.
    q, v = (values(family, x, family.breaks, k) for k in (0, 1))
    np.testing.assert_allclose(values(family, x, t, 0), CubicHermiteSpline(family.breaks, q, v)(t), atol=1e-12)
    assert q[0] == pytest.approx(0.5, abs=1e-14)


def test_cosines_pass_through_the_printed_start_trajectory():
    """Joint 1 of the load motion of Kozłowski & Dutkiewicz: degrees, α = 2π(i/200 − 1), 32 ms."""
    i = np.arange(200)
    alpha = 2 * np.pi * (i / 200 - 1)
    printed = 12 - 0.7 * np.cos(0.4 * np.pi + 1.7 * alpha) + 0.8 * np.sin(0.1 * np.pi + 0.8 * alpha)
    rate = 2 * np.pi / (200 * 0.032)
    terms = [
        (-0.7, 1.7 * rate, 0.4 * np.pi - 1.7 * 2 * np.pi),
        (0.8, 0.8 * rate, 0.1 * np.pi - 0.8 * 2 * np.pi - np.pi / 2),
    ]
    family, x = Cosines.through(6.4, 12.0, terms)
    np.testing.assert_allclose(values(family, x, i * 0.032, 0), printed, atol=1e-12)
