"""Physically consistent fits: always possible, equal to the free fit if that is possible, otherwise with notes."""

from __future__ import annotations

import numpy as np
import pytest
from estimation_cases import case

from steelyard.errors import UnknownNameError
from steelyard.estimation import (
    EstimationError,
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    Prior,
    Result,
    WeightedLeastSquares,
)
from steelyard.estimation.possible._formulate import formulate
from steelyard.estimation.possible._solve import reference_response, solve_interior
from steelyard.estimation.possible.reference import default_bodies
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.robot.library import builtin, builtin_names


def measured(name: str, level: float, seed: int = 3):
    c = case(name)
    noise = np.random.default_rng(seed).normal(size=c.clean.shape) * level * np.std(c.clean, axis=0)
    return c, c.data(noise)


def impossible(theta: np.ndarray, links: int) -> bool:
    return smallest_pseudo_eigenvalues(theta[: 10 * links]).min() <= 0.0


@pytest.mark.parametrize("name", ["rotradi", "szabo3r", "arm7", "irp6"])
@pytest.mark.parametrize("level", [1e-4, 0.2])
def test_every_link_is_a_body_and_every_term_within_its_bounds(name: str, level: float) -> None:
    c, data = measured(name, level)
    links = len(c.robot.links)
    assert impossible(WeightedLeastSquares().fit(data, c.base).theta, links)  # the smallest θ is not a possible body
    estimate = PhysicallyConsistent().fit(data, c.base)
    assert estimate.physical
    assert estimate.result in (Result.CONVERGED, Result.BOUNDARY)
    assert not impossible(estimate.theta, links)
    for value, parameter in zip(estimate.theta, c.base.parameters, strict=True):
        assert parameter.lower <= value <= parameter.upper
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, c.robot.dof))
    if c.robot.transmission is None:
        assert np.linalg.eigvalsh(c.dynamics.mass_matrix(q, estimate.theta)).min() > 0.0


@pytest.mark.parametrize("name", ["rotradi", "arm7"])
def test_with_little_noise_it_equals_the_free_fit(name: str) -> None:
    """Noise of 1e-4 of the torque: the free fit is possible, and the log-det term changes it by less than 5 % of σ."""
    c, data = measured(name, 1e-4)
    free = WeightedLeastSquares().fit(data, c.base)
    estimate = PhysicallyConsistent().fit(data, c.base)
    assert estimate.result is Result.CONVERGED
    assert np.all(np.abs(estimate.beta - free.beta) < 0.05 * free.standard_errors)
    plain = PhysicallyConsistent(weighting="ols").fit(data, c.base)
    other = OrdinaryLeastSquares().fit(data, c.base)
    assert np.all(np.abs(plain.beta - other.beta) < 0.05 * other.standard_errors)


def test_an_impossible_free_fit_is_constrained_with_notes() -> None:
    c, data = measured("szabo3r", 0.2)
    estimate = PhysicallyConsistent().fit(data, c.base)
    assert estimate.result is Result.BOUNDARY
    shares = estimate.details["boundary"]
    assert "link 'link2'" in shares
    assert any("Link 'link2'" in note for note in estimate.notes)
    assert any("σ²" in note for note in estimate.notes)
    bare = PhysicallyConsistent(strength=0.0).fit(data, c.base)
    # The shares of the links add up to the total cost, except for omitted ones and the rest of the barrier.
    assert sum(shares.values()) == pytest.approx(bare.details["cost_rise"], abs=0.3)
    assert bare.details["cost_rise"] < estimate.details["cost_rise"]
    assert not impossible(bare.theta, 3)


def test_it_is_at_least_as_near_to_the_truth_as_the_free_fit() -> None:
    """In the metric of the data, projection on a convex set that contains the truth cannot increase the distance to
    it."""
    c = case("szabo3r")
    for seed in range(5):
        _, data = measured("szabo3r", 0.2, seed)
        free = WeightedLeastSquares().fit(data, c.base)
        estimate = PhysicallyConsistent(strength=0.0).fit(data, c.base)
        R = data.factor().combined_triangle(1.0 / free.residual_std, c.base.independent)[:-1, :-1]
        assert np.linalg.norm(R @ (estimate.beta - c.beta)) < np.linalg.norm(R @ (free.beta - c.beta)) + 0.05


@pytest.mark.parametrize(("name", "level"), [("rotradi", 0.02), ("szabo3r", 0.2), ("arm7", 0.2)])
def test_it_agrees_with_clarabel(name: str, level: float) -> None:
    pytest.importorskip("cvxpy", reason="the oracle (pip install cvxpy clarabel)")
    c, data = measured(name, level)
    ours = PhysicallyConsistent().fit(data, c.base)
    theirs = PhysicallyConsistent(solver="clarabel").fit(data, c.base)
    # Clarabel stops at 1e-8 of the objective, which is 1e-4 standard errors of a parameter.
    assert np.all(np.abs(ours.beta - theirs.beta) < 1e-3 * ours.standard_errors)
    assert theirs.details["cost_rise"] == pytest.approx(ours.details["cost_rise"], abs=1e-3)


def test_the_optimum_is_stationary() -> None:
    """Central differences of the cost along random directions, against its size one standard deviation away."""
    c, data = measured("rotradi", 0.05)
    free = WeightedLeastSquares().free(data, c.base)
    program = formulate(c.base, free.triangle[:-1, :-1], free.beta, None, 0.05, 1e-6, None, {}).program

    def cost(x: np.ndarray) -> float:
        X = program.matrices(x)
        entropic = np.trace(X, axis1=1, axis2=2) - np.linalg.slogdet(X)[1]
        return 0.5 * np.sum((program.G @ x - program.g) ** 2) + float(program.cone_weights @ entropic)

    x = solve_interior(program).x
    V, _ = program.transform
    for direction in np.random.default_rng(0).normal(size=(20, V.shape[1])):
        step = 1e-4 * V @ direction
        assert abs(cost(x + step) - cost(x - step)) < 1e-6


def test_unidentifiable_parameters_come_from_the_prior() -> None:
    """The distribution of mass between links is not identifiable: with the right prior all of θ is right, not only
    β."""
    c, data = measured("arm7", 1e-4)
    estimate = PhysicallyConsistent().fit(data, c.base, Prior(c.theta))
    hidden = np.abs(estimate.theta - c.theta) < 0.02 * np.maximum(np.abs(c.theta), 1e-2)
    assert hidden.all()
    heavier = PhysicallyConsistent().fit(data, c.base, Prior(np.concatenate([1.3 * c.theta[:70], c.theta[70:]])))
    assert heavier.theta[0] == pytest.approx(1.3 * c.theta[0], rel=0.01)  # the first link's mass is not identifiable
    assert np.all(np.abs(heavier.beta - estimate.beta) < 0.05 * estimate.standard_errors)


@pytest.mark.parametrize(("name", "level"), [("arm7", 0.02), ("szabo3r", 0.2)])
def test_the_response_to_the_reference_bodies_is_that_of_refits(name: str, level: float) -> None:
    """Two refits per link, with its described body 1 % lighter and 1 % heavier; the third order remains, 1e-4."""
    c, data = measured(name, level)
    response = PhysicallyConsistent().fit(data, c.base, Prior(c.theta)).details["reference_response"]
    refit = PhysicallyConsistent(shares=False)
    for k in range(len(c.robot.links)):
        both = []
        for sign in (1.0, -1.0):
            theta = c.theta.copy()
            theta[10 * k : 10 * k + 10] *= np.exp(0.01 * sign)
            both.append(refit.fit(data, c.base, Prior(theta)).theta)
        links = slice(0, 10 * len(c.robot.links))
        slope = (both[0] - both[1])[links] / 0.02
        assert response[k, links] == pytest.approx(slope, abs=2e-3 * np.abs(slope).max())


def test_a_solution_on_the_boundary_has_a_response() -> None:
    """Rounding may leave a solution a hair outside the possible set, where the Newton matrix does not exist."""
    c, data = measured("rotradi", 0.05)
    free = WeightedLeastSquares().free(data, c.base)
    program = formulate(c.base, free.triangle[:-1, :-1], free.beta, None, 0.05, 1e-6, None, {}).program
    x = solve_interior(program).x
    inner, outer = 0.0, 1e6
    for _ in range(200):  # the boundary on the way from the start through the solution and beyond
        middle = 0.5 * (inner + outer)
        least = np.linalg.eigvalsh(program.matrices(program.start + middle * (x - program.start))).min()
        inner, outer = (middle, outer) if least > program.margin else (inner, middle)
    assert outer < 1e6
    outside = program.start + (1.0 + 1e-9) * outer * (x - program.start)
    assert np.all(np.isfinite(reference_response(program, outside)))


def test_an_impossible_prior_is_replaced_with_a_note() -> None:
    c, data = measured("rotradi", 0.02)
    theta = c.theta.copy()
    theta[14] = -1.0
    estimate = PhysicallyConsistent().fit(data, c.base, Prior(theta))
    assert any("link2" in note and "default body" in note for note in estimate.notes)
    assert not impossible(estimate.theta, 3)


def test_masses_stay_within_their_bounds() -> None:
    c, data = measured("rotradi", 0.02)
    total = float(c.theta[[0, 10, 20]].sum())
    estimate = PhysicallyConsistent(total_mass=(0.99 * total, 1.01 * total)).fit(data, c.base)
    assert estimate.theta[[0, 10, 20]].sum() == pytest.approx(total, rel=0.011)
    name = c.robot.link_names[2]
    estimate = PhysicallyConsistent(masses={name: (2.0, 2.2)}).fit(data, c.base)
    assert 2.0 <= estimate.theta[20] <= 2.2
    with pytest.raises(UnknownNameError):
        PhysicallyConsistent(masses={"hand": (1.0, 2.0)}).fit(data, c.base)
    with pytest.raises(EstimationError, match="interval"):
        PhysicallyConsistent(total_mass=(3.0, 2.0)).fit(data, c.base)


@pytest.mark.parametrize("name", builtin_names())
def test_default_bodies_are_bodies(name: str) -> None:
    bodies = default_bodies(builtin(name))
    assert smallest_pseudo_eigenvalues(bodies).min() > 0.0
    assert bodies[:, 0].sum() == pytest.approx(1.0)


def test_the_log_det_term_does_not_bias_identifiable_parameters() -> None:
    """Mean shift relative to the free fit over noise draws, for parameters with less than 33 % standard error."""
    c = case("rotradi")
    shifts = []
    for seed in range(10):
        data = c.data(c.noise(np.random.default_rng(seed)))
        free = WeightedLeastSquares().fit(data, c.base)
        estimate = PhysicallyConsistent().fit(data, c.base)
        shifts.append((estimate.beta - free.beta) / free.standard_errors)
    known = free.standard_errors < np.abs(free.beta) / 3.0
    bias = np.abs(np.mean(shifts, axis=0))[known]
    assert np.median(bias) < 0.02
    assert bias.max() < 0.1  # standard errors; 0.05 as measured
