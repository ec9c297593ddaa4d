"""Log-Cholesky coordinates: any ten numbers are a possible body, and conversely."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import SteelyardError
from steelyard.parameters import terms
from steelyard.parameters.inertial import (
    LogCholesky,
    inertial_parameters_of,
    link_coordinates,
    link_parameters,
    smallest_pseudo_eigenvalues,
)
from steelyard.robot.library import builtin

numbers = st.lists(st.floats(-1.5, 1.5), min_size=10, max_size=10).map(np.array)


@given(numbers)
def test_every_ten_numbers_are_one_possible_body(x: np.ndarray) -> None:
    theta, slope = link_parameters(x)
    assert smallest_pseudo_eigenvalues(theta)[0] > 0.0
    assert np.linalg.matrix_rank(slope) == 10
    assert np.allclose(link_coordinates(theta), x, atol=1e-7)  # cond(P) up to e⁶, squared by the product


@given(numbers)
def test_the_derivative_is_the_limit_of_differences(x: np.ndarray) -> None:
    h = 1e-6
    differences = [(link_parameters(x + h * e)[0] - link_parameters(x - h * e)[0]) / (2.0 * h) for e in np.eye(10)]
    assert np.allclose(link_parameters(x)[1], np.column_stack(differences), atol=1e-7)  # h² and 1e-16·|θ|/h


def test_friction_and_rotors_stay_positive_and_offsets_are_free() -> None:
    robot = builtin("szabo3r")
    bound = terms(robot, "rotor", "viscous", "coulomb", "offset")
    made = LogCholesky.of(inertial_parameters_of(robot) + bound.parameters, 3)
    theta = np.concatenate([robot.inertial_parameters, np.linspace(0.1, 0.9, 9), [-1.0, 0.0, 1.0]])
    x = made.coordinates(theta)
    assert np.allclose(made.parameters(x)[0], theta, rtol=1e-9, atol=1e-12)
    far, slope = made.parameters(x - 50.0)
    assert np.all(far[30:39] > 0.0)
    assert np.all(far[39:] < -40.0)
    assert np.count_nonzero(slope - np.diag(np.diag(slope))) <= 3 * 90  # block by block


def test_an_impossible_body_is_refused() -> None:
    with pytest.raises(SteelyardError, match="not positive definite"):
        link_coordinates(np.array([1.0, 5.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1]))
