"""Criteria and their gradients, against NumPy on dense matrices and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from excitation_cases import central, pendulum, szabo, torque_goal

import steelyard as sy
from steelyard.excitation._motion_rows import SchemeRows, Windows
from steelyard.excitation.criteria import CRITERIA, Linear, MarginalInformation, UnitColumns
from steelyard.excitation.goal import Goal
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Fourier


def some_gram(seed=0, size=6):
    W = np.random.default_rng(seed).normal(size=(20, size)) * np.logspace(0, 1, size)
    return W, W.T @ W


def test_criteria_equal_their_definitions():
    W, G = some_gram()
    inverse = np.linalg.inv(G)
    expected = {
        "cond": np.linalg.cond(W),
        "information": np.linalg.cond(G),
        "frobenius": np.linalg.cond(G, "fro"),
        "d": -np.linalg.slogdet(G)[1],
        "a": np.trace(inverse),
        "e": np.linalg.eigvalsh(G)[0],
        "sigma": np.linalg.svd(W, compute_uv=False)[-1],
    }
    assert set(expected) == set(CRITERIA)
    for name, value in expected.items():
        assert CRITERIA[name](G) == pytest.approx(value, rel=1e-9), name  # G squares the rounding of W


@pytest.mark.parametrize("sharpness", [2.0, 8.0, np.inf])
@pytest.mark.parametrize("name", sorted(CRITERIA))
@pytest.mark.parametrize(
    "view",
    [None, UnitColumns(), MarginalInformation([1, 3], "abcdef"), Linear(np.triu(np.ones((6, 6))), "summed")],
    ids=["natural", "unit", "wanted", "linear"],
)
def test_gradients_with_respect_to_the_information(name, view, sharpness):
    _, G = some_gram(1)
    direction = np.random.default_rng(2).normal(size=G.shape)
    direction = direction + direction.T
    criterion = CRITERIA[name]

    def value(gram):
        return criterion.gradient(gram if view is None else view.forward(gram), sharpness)[0]

    matrix = G if view is None else view.forward(G)
    slope = criterion.gradient(matrix, sharpness)[1]
    if view is not None:
        slope = view.backward(G, slope)
    # Differences of a function of size 10 with steps of 1e-3 are accurate to 1e-9.
    assert np.sum(slope * direction) == pytest.approx(central(value, G, direction, 1e-3), rel=1e-6, abs=1e-9)


def test_parts_of_long_motions_add_up():
    goal, base, sampled = torque_goal(sy.load_robot("szabo3r"), samples=2500)
    x, direction = np.random.default_rng(0).normal(size=(2, sampled.size))
    W = base.regressor_columns(base.structure.dynamics.torque_regressor(*sampled.signals(x))).reshape(-1, base.rank)
    assert np.allclose(goal.gram(x), W.T @ W, rtol=1e-11, atol=1e-11 * np.abs(W.T @ W).max())
    _, gradient = goal.objective(x, 4.0)
    difference = central(lambda y: goal.objective(y, 4.0)[0], x, direction, 1e-4)
    assert gradient @ direction == pytest.approx(difference, rel=1e-6)


def test_objectives_rank_motions_like_their_criteria():
    values = {name: [] for name in CRITERIA}
    objectives = {name: [] for name in CRITERIA}
    for seed in range(8):
        _, G = some_gram(seed)
        for name, criterion in CRITERIA.items():
            sign = -1.0 if criterion.larger_is_better else 1.0
            values[name].append(sign * criterion(G))
            objectives[name].append(criterion.gradient(G)[0])
    for name in CRITERIA:
        assert np.array_equal(np.argsort(values[name]), np.argsort(objectives[name])), name


def test_directions_without_excitation_give_a_bad_criterion_without_failure():
    _, G = some_gram()
    G[0] = G[:, 0] = 0.0
    assert CRITERIA["cond"](G) > 1e7
    with pytest.raises(sy.SteelyardError, match="excites no parameter"):
        CRITERIA["cond"](np.zeros((3, 3)))


@pytest.mark.parametrize("robot", ["szabo3r", "rotradi", "prrrp"])
def test_information_of_a_motion_is_that_of_the_dense_regressor(robot):
    robot = sy.load_robot(robot)
    goal, base, sampled = torque_goal(robot)
    x = np.random.default_rng(0).normal(size=sampled.size)
    W = base.regressor_columns(base.structure.dynamics.torque_regressor(*sampled.signals(x)))
    W = W.reshape(-1, base.rank)
    assert np.allclose(goal.gram(x), W.T @ W, rtol=1e-11, atol=1e-11 * np.abs(W.T @ W).max())  # rounding
    # The error of cond(W) from the eigenvalues of WᵀW is cond² times rounding.
    assert goal.value(x) == pytest.approx(np.linalg.cond(W), rel=1e-6)


@pytest.mark.parametrize("name", sorted(CRITERIA))
def test_gradients_with_respect_to_coefficients(name):
    robot, terms = szabo()
    weights = np.array([1.0, 2.0, 0.5])
    goal, _, sampled = torque_goal(robot, terms, name, weights=weights, prior=1e-3 * np.eye(24))
    rng = np.random.default_rng(3)
    x, direction = rng.normal(size=(2, sampled.size))
    for sharpness in (4.0, np.inf):
        _, gradient = goal.objective(x, sharpness)
        difference = central(lambda y, p=sharpness: goal.objective(y, p)[0], x, direction, 1e-4)
        assert gradient @ direction == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("scheme", ["energy", "momentum"])
def test_integral_schemes_have_exact_gradients(scheme, long):
    robot, terms = szabo()
    base = sy.base_parameters(robot, terms)
    sampled = SampledMotions([Fourier(3, 4.0)] * 3, np.arange(200) / 50.0)
    windows = Windows.along(200, 50.0, 0.1, long)
    rows = SchemeRows(base.structure.dynamics, base.independent, sampled, scheme, [0, 1, 2], windows)
    # A small prior: directions that 39 rows hardly excite would cover the differences with rounding.
    goal = Goal(rows, CRITERIA["d"], base.names, prior=1e-2 * np.eye(base.rank))
    x, direction = np.random.default_rng(4).normal(size=(2, sampled.size))
    _, gradient = goal.objective(x)
    difference = central(lambda y: goal.objective(y)[0], x, direction, 1e-4)
    assert gradient @ direction == pytest.approx(difference, rel=1e-6)


def test_integral_rows_balance_the_work_and_the_impulse_of_the_torques():
    robot = sy.load_robot("szabo3r")
    model = sy.Model.nominal(robot)
    base = sy.base_parameters(robot, model.terms)
    rate, count = 2000.0, 4001
    sampled = SampledMotions([Fourier(2, 2.0)] * 3, np.arange(count) / rate)
    x = np.random.default_rng(5).normal(size=sampled.size)
    q, dq, ddq = sampled.signals(x)
    tau = model.torque(q, dq, ddq)
    windows = Windows.along(count, rate, 0.25, False)
    for scheme, left in (("energy", np.sum(tau * dq, axis=1)[:, None]), ("momentum", tau)):
        rows = SchemeRows(base.structure.dynamics, base.independent, sampled, scheme, [0, 1, 2], windows)
        rows.grams(x)
        predicted = rows._rows @ base.values(model.theta)
        # Trapezoids of 0.5 ms: (Δt)²/12 times the second derivative, with friction that changes sharply at rest.
        assert np.allclose(predicted, windows.integral(left), atol=2e-3 * np.abs(predicted).max())


def test_a_pendulum_has_the_published_energy_rows():
    """Energy rows of one joint are g Δcos q, Δ½q̇² and the friction integrals (Kozłowski & Dutkiewicz 1996, 5.1)."""
    robot = pendulum()
    base = sy.base_parameters(robot, sy.terms(robot, "viscous", "coulomb"))
    sampled = SampledMotions([Fourier(3, 4.0, rest=False)], np.arange(801) / 200.0)
    windows = Windows.along(801, 200.0, 0.005, False)
    rows = SchemeRows(base.structure.dynamics, base.independent, sampled, "energy", [0], windows)
    x = np.random.default_rng(6).normal(size=sampled.size)
    rows.grams(x)
    q, v, _ = (s[:, 0] for s in sampled.signals(x))
    dt = 0.005
    expected = {
        "Izz1": np.diff(0.5 * v**2),
        "mx1": 9.81 * np.diff(np.cos(q)),
        "my1": -9.81 * np.diff(np.sin(q)),
        "Fv1": 0.5 * dt * (v[1:] ** 2 + v[:-1] ** 2),
        "Fc1": 0.5 * dt * (np.abs(v[1:]) + np.abs(v[:-1])),
    }
    assert set(base.names) <= set(expected), base.names
    for k, name in enumerate(base.names):
        assert np.allclose(rows._rows[:, 0, k], expected[name], atol=1e-12), name
