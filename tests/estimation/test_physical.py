"""Physically consistent fits: always possible, as good as the free fit where that is possible, honest where not."""

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
from steelyard.estimation.possible._solve import solve_interior
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
    assert impossible(WeightedLeastSquares().fit(data, c.base).theta, links)  # the smallest θ is nobody's body
    found = PhysicallyConsistent().fit(data, c.base)
    assert found.physical
    assert found.result in (Result.CONVERGED, Result.BOUNDARY)
    assert not impossible(found.theta, links)
    for value, parameter in zip(found.theta, c.base.parameters, strict=True):
        assert parameter.lower <= value <= parameter.upper
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, c.robot.dof))
    if c.robot.transmission is None:
        assert np.linalg.eigvalsh(c.dynamics.mass_matrix(q, found.theta)).min() > 0.0


@pytest.mark.parametrize("name", ["rotradi", "arm7"])
def test_where_the_data_are_good_it_is_the_free_fit(name: str) -> None:
    """Noise of 1e-4 of the torque: the free fit is possible, and the log-det term moves it by less than 5 % of σ."""
    c, data = measured(name, 1e-4)
    free = WeightedLeastSquares().fit(data, c.base)
    found = PhysicallyConsistent().fit(data, c.base)
    assert found.result is Result.CONVERGED
    assert np.all(np.abs(found.beta - free.beta) < 0.05 * free.standard_errors)
    plain = PhysicallyConsistent(weighting="ols").fit(data, c.base)
    other = OrdinaryLeastSquares().fit(data, c.base)
    assert np.all(np.abs(plain.beta - other.beta) < 0.05 * other.standard_errors)


def test_an_impossible_free_fit_is_brought_back_and_said_so() -> None:
    c, data = measured("szabo3r", 0.2)
    found = PhysicallyConsistent().fit(data, c.base)
    assert found.result is Result.BOUNDARY
    shares = found.details["boundary"]
    assert "link 'link2'" in shares
    assert any("Link 'link2'" in note for note in found.notes)
    assert any("σ²" in note for note in found.notes)
    bare = PhysicallyConsistent(strength=0.0).fit(data, c.base)
    # What the links cost separately is what they cost together, but for the unnamed ones and the barrier's rest.
    assert sum(shares.values()) == pytest.approx(bare.details["cost_rise"], abs=0.3)
    assert bare.details["cost_rise"] < found.details["cost_rise"]
    assert not impossible(bare.theta, 3)


def test_it_is_nearer_to_the_truth_than_the_free_fit() -> None:
    """In the metric of the data, a projection on a convex set that holds the truth cannot go away from it."""
    c = case("szabo3r")
    for seed in range(5):
        _, data = measured("szabo3r", 0.2, seed)
        free = WeightedLeastSquares().fit(data, c.base)
        found = PhysicallyConsistent(strength=0.0).fit(data, c.base)
        R = data.factor().joined(1.0 / free.residual_std, c.base.independent)[:-1, :-1]
        assert np.linalg.norm(R @ (found.beta - c.beta)) < np.linalg.norm(R @ (free.beta - c.beta)) + 0.05


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
    program = formulate(c.base, free.joined[:-1, :-1], free.beta, None, 0.05, 1e-6, None, {}).program

    def cost(x: np.ndarray) -> float:
        X = program.matrices(x)
        entropic = np.trace(X, axis1=1, axis2=2) - np.linalg.slogdet(X)[1]
        return 0.5 * np.sum((program.G @ x - program.g) ** 2) + float(program.cone_weights @ entropic)

    x = solve_interior(program).x
    V, _ = program.transform
    for direction in np.random.default_rng(0).normal(size=(20, V.shape[1])):
        step = 1e-4 * V @ direction
        assert abs(cost(x + step) - cost(x - step)) < 1e-6


def test_what_the_data_do_not_show_comes_from_the_prior() -> None:
    """Masses split between links are invisible: with the right prior all of θ is right, not only β."""
    c, data = measured("arm7", 1e-4)
    found = PhysicallyConsistent().fit(data, c.base, Prior(c.theta))
    hidden = np.abs(found.theta - c.theta) < 0.02 * np.maximum(np.abs(c.theta), 1e-2)
    assert hidden.all()
    heavier = PhysicallyConsistent().fit(data, c.base, Prior(np.concatenate([1.3 * c.theta[:70], c.theta[70:]])))
    assert heavier.theta[0] == pytest.approx(1.3 * c.theta[0], rel=0.01)  # the first link's mass never shows
    assert np.all(np.abs(heavier.beta - found.beta) < 0.05 * found.standard_errors)


def test_an_impossible_prior_is_set_aside_and_said_so() -> None:
    c, data = measured("rotradi", 0.02)
    theta = c.theta.copy()
    theta[14] = -1.0
    found = PhysicallyConsistent().fit(data, c.base, Prior(theta))
    assert any("link2" in note and "default body" in note for note in found.notes)
    assert not impossible(found.theta, 3)


def test_masses_stay_within_what_is_known() -> None:
    c, data = measured("rotradi", 0.02)
    total = float(c.theta[[0, 10, 20]].sum())
    found = PhysicallyConsistent(total_mass=(0.99 * total, 1.01 * total)).fit(data, c.base)
    assert found.theta[[0, 10, 20]].sum() == pytest.approx(total, rel=0.011)
    name = c.robot.link_names[2]
    found = PhysicallyConsistent(masses={name: (2.0, 2.2)}).fit(data, c.base)
    assert 2.0 <= found.theta[20] <= 2.2
    with pytest.raises(UnknownNameError):
        PhysicallyConsistent(masses={"hand": (1.0, 2.0)}).fit(data, c.base)
    with pytest.raises(EstimationError, match="interval"):
        PhysicallyConsistent(total_mass=(3.0, 2.0)).fit(data, c.base)


@pytest.mark.parametrize("name", builtin_names())
def test_default_bodies_are_bodies(name: str) -> None:
    bodies = default_bodies(builtin(name))
    assert smallest_pseudo_eigenvalues(bodies).min() > 0.0
    assert bodies[:, 0].sum() == pytest.approx(1.0)


def test_the_log_det_term_does_not_bias_what_the_data_show() -> None:
    """Mean shift against the free fit over noise draws, for what is known to better than a third of its size."""
    c = case("rotradi")
    shifts = []
    for seed in range(10):
        data = c.data(c.noise(np.random.default_rng(seed)))
        free = WeightedLeastSquares().fit(data, c.base)
        found = PhysicallyConsistent().fit(data, c.base)
        shifts.append((found.beta - free.beta) / free.standard_errors)
    known = free.standard_errors < np.abs(free.beta) / 3.0
    bias = np.abs(np.mean(shifts, axis=0))[known]
    assert np.median(bias) < 0.02
    assert bias.max() < 0.1  # standard errors; 0.05 as measured
