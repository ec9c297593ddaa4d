"""Trajectories of several joints with different families, and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.excitation.trajectories import (
    Acceleration,
    BSpline,
    Cosines,
    Fourier,
    Idle,
    SplinedQuintic,
    Trajectory,
    TrajectoryError,
    quintic,
)


def mixed():
    families = (quintic(6.0), Fourier(3, 6.0), Idle(6.0, 0.5), SplinedQuintic(6.0, 2))
    size = sum(family.size for family in families)
    return Trajectory(families, np.random.default_rng(0).normal(size=size))


def test_joints_may_have_different_families():
    trajectory = mixed()
    t = np.linspace(0.0, 6.0, 20)
    for order, part in enumerate((*trajectory.sample(t), trajectory.jerk(t))):
        assert part.shape == (20, 4)
        for j, family in enumerate(trajectory.families):
            x = trajectory.coefficients[trajectory.slices[j]]
            B, c = family.basis(t, order)
            np.testing.assert_array_equal(part[:, j], B @ x + c)
    assert np.all(trajectory.sample(t)[0][:, 2] == 0.5)
    assert trajectory.sample(2.0)[0].shape == (4,)


def test_peak_bounds_cover_every_joint():
    trajectory = mixed()
    dense = np.linspace(0.0, 6.0, 20_001)
    for order in range(4):
        peak = np.abs(trajectory.derivative(dense, order)).max(axis=0)
        assert np.all(trajectory.peak_bounds(order) >= peak)
        assert np.all(trajectory.peak_bounds(order) <= peak * 1.005 + 1e-12)


def test_standing_and_other_coefficients():
    still = Trajectory.standing((Fourier(3, 6.0), quintic(6.0)), [0.2, -0.3])
    q, dq, _ = still.sample(np.linspace(0, 6, 5))
    np.testing.assert_allclose(q, np.tile([0.2, -0.3], (5, 1)), atol=1e-14)
    np.testing.assert_allclose(dq, 0.0, atol=1e-14)
    moved = still.with_coefficients(still.coefficients + 1.0)
    assert not np.allclose(moved.sample(3.0)[0], q[0])


def test_a_periodic_motion_is_sampled_without_its_end():
    assert len(Trajectory.standing((Fourier(3, 6.0),), 0.0).times(100.0)) == 600
    assert len(Trajectory.standing((quintic(6.0),), 0.0).times(100.0)) == 601


def test_a_polynomial_is_at_rest_after_its_end():
    move = Trajectory((quintic(1.0, 0.0, 1.0),), np.zeros(0))
    q, dq, ddq = move.sample([-1.0, 1.5])
    np.testing.assert_array_equal(q[:, 0], [0.0, 1.0])
    assert not dq.any()
    assert not ddq.any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fourier(0, 10.0),
        lambda: Fourier(1, 10.0),
        lambda: Fourier(3, -1.0),
        lambda: Fourier(3, float("nan")),
        lambda: BSpline(1.0, spans=1, degree=4),
        lambda: BSpline(1.0, start=0.0, end=1.0, closed=True),
        lambda: SplinedQuintic(1.0, times=(0.5, 0.2)),
        lambda: Acceleration(1.0, samples=2),
        lambda: Acceleration(1.0, samples=3, start=0.0, end=1.0),
        lambda: Cosines(1.0, (1.0, 1.0)),
        lambda: Idle(0.0),
        lambda: Trajectory((), np.zeros(0)),
        lambda: Trajectory((Idle(1.0), Idle(2.0)), np.zeros(0)),
        lambda: Trajectory.from_json("{"),
        lambda: Trajectory.from_json("[]"),
        lambda: Trajectory.from_json(json.dumps({"format": "other"})),
    ],
)
def test_impossible_motions_are_refused(make):
    with pytest.raises(TrajectoryError):
        make()


def test_errors_of_shape_and_name():
    with pytest.raises(ShapeError):
        Trajectory((Fourier(3, 1.0),), np.zeros(2))
    document = {"format": "steelyard-trajectory-1", "joints": [{"family": "furier", "coefficients": []}]}
    with pytest.raises(UnknownNameError, match="fourier"):
        Trajectory.from_json(json.dumps(document))
    document["joints"][0].update(family="idle", speed=1.0)
    with pytest.raises(SteelyardError, match="idle"):
        Trajectory.from_json(json.dumps(document))
