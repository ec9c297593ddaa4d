"""Measures of Urrea & Pascal 2017 by hand, and the sweep of a pendulum whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.assessment.sensitivity import agreement_index, residual_standard_deviation, rms, sweep
from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SteelyardError
from steelyard.parameters.terms import Terms
from steelyard.robot.library import builtin
from steelyard.simulation import PD


def test_measures_of_numbers_small_enough_for_paper() -> None:
    o, p = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [5.0]])
    assert rms(o, p) == pytest.approx(np.sqrt(4 / 3))
    assert residual_standard_deviation(o, p) == pytest.approx(np.sqrt(4 / 14))
    # |o − 2| = 1, 0, 1 and |p − 2| = 1, 0, 3: 1 − 4/(4 + 0 + 16)
    assert agreement_index(o, p) == pytest.approx(0.8)
    assert agreement_index(o, o) == pytest.approx(1.0)  # with the printed minus this would be 0/0
    with pytest.raises(ShapeError):
        rms(np.zeros(3), np.zeros(3))


def carriage():
    """The first joint of `prrrp` carries everything, lifted by a constant force: a body on a rail."""
    robot = builtin("prrrp")
    return Model(robot, Terms(robot, ()), robot.inertial_parameters)


def test_a_lifted_mass_moves_as_newton_says() -> None:
    """With m → s·m under a constant force F: d1(t) = (F/(s·m) − g)·t²/2 while nothing else moves."""
    model = carriage()
    total = float(model.theta[::10].sum())
    force = np.array([total * 12.0, 0.0, 0.0, 0.0, -model.theta[40] * 12.0])
    found = sweep(
        model, force, names=["all"], directions=model.theta[None], steps=3, duration=0.5, step=1e-3, record_every=10
    )
    t = np.arange(51) * 0.01
    for share, size in zip(found.shares, found.rms[0, :, 0], strict=True):
        # Every mass scales alike, so all accelerate by (12/s − g) and the tool stays where it is.
        expected = np.sqrt(np.mean((12.0 * (1.0 / share - 1.0) * t**2 / 2) ** 2))
        assert size == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.agreement_index[0, 1, 0] == pytest.approx(1.0)


def test_every_base_parameter_of_a_robot_is_swept_as_one_batch() -> None:
    model = carriage()
    loop = PD.for_model(model, bandwidth_rad_s=20.0)
    goal = np.array([0.1, 0.3, -0.4, 0.2, 0.05])
    found = sweep(model, loop, reference=goal, duration=1.0, step=2e-3, steps=5)
    assert found.rms.shape == (len(found.names), 5, 5)
    assert np.allclose(found.rms[:, 2], 0.0)  # the middle of the sweep is the robot itself
    assert found.completed.all()
    ranking = found.ranking()
    assert set(ranking) == set(found.names)
    assert set(ranking[-2:]) == {"my3", "my4"}  # zero in this robot, so sweeping them changes nothing


def test_robots_that_cannot_be_are_marked_and_others_kept() -> None:
    model = carriage()
    moves = np.vstack([-4.0 * model.theta, 0.1 * model.theta])  # the first ends at −1 times all masses
    found = sweep(model, names=["wild", "tame"], directions=moves, steps=3, duration=0.1, step=1e-3)
    assert found.completed.tolist() == [[True, True, False], [True, True, True]]
    assert np.isnan(found.rms[0, 2]).all()
    assert np.isfinite(found.rms[1]).all()
    assert found.ranking()[0] == "wild"


def test_a_sweep_of_nothing_is_refused() -> None:
    with pytest.raises(SteelyardError, match="at least 2 steps"):
        sweep(carriage(), steps=1, duration=0.1)
    with pytest.raises(ShapeError, match="name"):
        sweep(carriage(), directions=np.ones((2, 50)), names=["one"], duration=0.1)
