"""Linear and robust estimators against independent results on the tall matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimation_cases import case
from scipy.optimize import least_squares

from steelyard.estimation import (
    OrdinaryLeastSquares,
    Prior,
    Ridge,
    Robust,
    TotalLeastSquares,
    WeightedLeastSquares,
    fit_significant,
    joint_test,
    relative_standard_deviations,
    significance,
)
from steelyard.regression.data import RegressionData


@pytest.fixture(scope="module")
def problem():
    c = case("szabo3r")
    noise = c.noise(np.random.default_rng(2))
    return c, c.data(noise), c.A, c.clean + noise


def tall(A, y, weights=None):
    w = np.ones(A.shape[1]) if weights is None else weights
    return (A * w[:, None]).reshape(-1, A.shape[2]), (y * w).ravel()


def test_ordinary_is_lstsq(problem) -> None:
    c, data, A, y = problem
    estimate = OrdinaryLeastSquares().fit(data, c.base)
    assert np.allclose(estimate.beta, np.linalg.lstsq(*tall(A, y), rcond=None)[0], rtol=1e-8, atol=1e-10)
    assert estimate.cost == pytest.approx(np.sum((y - A @ estimate.beta) ** 2))


def test_error_bars_for_white_noise_are_those_of_the_textbook(problem) -> None:
    """σ²(AᵀA)⁻¹ with n − p degrees of freedom, except for the scatter of the bands."""
    c, data, A, y = problem
    estimate = WeightedLeastSquares().fit(data, c.base)
    W, right = tall(A, y, 1.0 / estimate.residual_std)
    s2 = np.sum((right - W @ estimate.beta) ** 2) / (len(right) - c.base.rank)
    textbook = np.sqrt(s2 * np.diag(np.linalg.inv(W.T @ W)))
    plain = estimate.standard_errors / np.sqrt(estimate.details["inflation"])
    assert np.allclose(plain, textbook, rtol=0.03)


def test_weights_are_the_fixed_point_of_their_own_residuals(problem) -> None:
    c, data, A, y = problem
    estimate = WeightedLeastSquares().fit(data, c.base)
    W, right = tall(A, y, 1.0 / estimate.residual_std)
    assert np.allclose(estimate.beta, np.linalg.lstsq(W, right, rcond=None)[0], rtol=1e-7, atol=1e-9)
    hat = np.einsum("ij,ji->i", W, np.linalg.pinv(W)).reshape(-1, 3).sum(axis=0)
    std = np.sqrt(np.sum((y - A @ estimate.beta) ** 2, axis=0) / (len(y) - hat))
    assert np.allclose(std, estimate.residual_std, rtol=1e-7)
    assert np.allclose(estimate.residual_std, c.sigma, rtol=0.08)  # 1000 rows: 2.2 % each


@pytest.mark.parametrize("loss", ["huber", "bisquare"])
def test_robust_is_the_minimum_of_its_loss(problem, loss: str) -> None:
    c, data, A, y = problem
    estimate = Robust(loss).fit(data, c.base)
    scale = 1.4826 * np.median(np.abs(y - A @ estimate.beta), axis=0)
    assert np.allclose(scale, estimate.residual_std, rtol=1e-4)
    u = (y - A @ estimate.beta) / estimate.residual_std
    psi = np.clip(u, -1.345, 1.345) if loss == "huber" else u * np.clip(1.0 - (u / 4.685) ** 2, 0.0, None) ** 2
    score = np.einsum("tja,tj->a", A / estimate.residual_std[:, None], psi)
    assert np.abs(score * estimate.standard_errors).max() < 1e-3  # the gradient, in standard errors


def test_huber_agrees_with_scipy(problem) -> None:
    c, data, A, y = problem
    estimate = Robust("huber").fit(data, c.base)
    length = np.linalg.norm(A.reshape(-1, c.base.rank), axis=0)
    W, right = tall(A, y, 1.0 / estimate.residual_std)
    scaled = W / length
    theirs = least_squares(lambda x: scaled @ x - right, estimate.beta * length * 0.9, lambda x: scaled, loss="huber",
                           f_scale=1.345, ftol=1e-14, xtol=1e-14, gtol=1e-12).x / length  # fmt: skip
    assert np.all(np.abs(theirs - estimate.beta) < 0.01 * estimate.standard_errors)


def test_spikes_do_not_bias_a_robust_fit() -> None:
    c = case("szabo3r")
    rng = np.random.default_rng(3)
    noise = c.noise(rng)
    hit = rng.random(noise.shape) < 0.05
    noise[hit] += 40.0 * np.broadcast_to(c.sigma, noise.shape)[hit]
    data = c.data(noise)
    clean = WeightedLeastSquares().fit(c.data(c.noise(np.random.default_rng(3))), c.base).standard_errors
    plain = np.abs(WeightedLeastSquares().fit(data, c.base).beta - c.beta) / clean
    estimate = Robust("bisquare").fit(data, c.base)
    robust = np.abs(estimate.beta - c.beta) / clean
    assert np.sqrt(np.mean(robust**2)) < 2.0 < np.sqrt(np.mean(plain**2))
    assert np.mean(np.abs(estimate.beta - c.beta) < 2.0 * estimate.standard_errors) > 0.8


def test_total_least_squares_is_the_smallest_singular_vector(problem) -> None:
    c, data, A, y = problem
    estimate = TotalLeastSquares().fit(data, c.base)
    weights = 1.0 / WeightedLeastSquares().fit(data, c.base).residual_std
    W, right = tall(A, y, weights)
    joined = np.column_stack([W, right])
    length = np.linalg.norm(joined, axis=0)
    last = np.linalg.svd(joined / length, full_matrices=False)[2][-1] / length
    assert np.allclose(estimate.beta, -last[:-1] / last[-1], rtol=1e-6, atol=1e-9)
    near = TotalLeastSquares(column_error=1e-6).fit(data, c.base)
    assert np.allclose(near.beta, WeightedLeastSquares().fit(data, c.base).beta, rtol=1e-6, atol=1e-9)


def test_total_least_squares_removes_the_bias_of_noisy_columns() -> None:
    """Errors of equal relative size in all columns and in the torque, as the method assumes."""
    c = case("rotradi")
    rng = np.random.default_rng(4)
    A = c.A[:, 1, :]
    A = A[:, np.linalg.norm(A, axis=0) > 1e-9][:, :4]
    A = A / np.sqrt(np.mean(A**2, axis=0))
    y = A @ np.array([1.0, -2.0, 3.0, 0.5])
    y = y / np.sqrt(np.mean(y**2))
    truth = np.linalg.lstsq(A, y, rcond=None)[0]
    parameters = len(c.base.parameters)
    base = replace(c.base, independent=(0, 1, 2, 3), matrix=np.eye(4, parameters), formulas=c.base.formulas[:4])
    total, weighted, hits = [], [], []
    for _ in range(40):
        noisy, torque = A + 0.1 * rng.normal(size=A.shape), y + 0.1 * rng.normal(size=len(y))
        data = RegressionData.from_arrays(["joint"], [0, 1, 2, 3], [noisy], [torque], parameters)
        estimate = TotalLeastSquares().fit(data, base)
        total.append(estimate.beta - truth)
        weighted.append(WeightedLeastSquares().fit(data, base).beta - truth)
        hits.append(np.abs(estimate.beta - truth) < 1.96 * estimate.standard_errors)
    assert np.abs(np.mean(total, axis=0)).max() < 0.25 * np.abs(np.mean(weighted, axis=0)).max()
    assert 0.85 < np.mean(hits) < 0.99


@pytest.mark.parametrize("space", ["base", "full"])
def test_ridge_is_least_squares_with_rows_for_the_prior(problem, space: str) -> None:
    c, data, A, y = problem
    prior = Prior(1.2 * c.theta)
    estimate = Ridge(strength=0.01, space=space).fit(data, c.base, prior)
    W, right = tall(A, y, 1.0 / WeightedLeastSquares().fit(data, c.base).residual_std)
    M = np.eye(c.base.rank) if space == "base" else c.base.matrix
    start = c.base.values(prior.theta) if space == "base" else prior.theta
    length = np.linalg.norm(W @ M, axis=0)
    stacked = np.vstack([W @ M, np.diag(0.1 * length)])
    change = np.linalg.lstsq(stacked, np.concatenate([right - W @ M @ start, 0.0 * length]), rcond=None)[0]
    assert np.allclose(estimate.beta, M @ (start + change), rtol=1e-6, atol=1e-8)
    assert np.allclose(c.base.matrix @ estimate.theta, estimate.beta, rtol=1e-9, atol=1e-10)


def test_a_ridge_towards_the_truth_is_exact_for_any_strength(problem) -> None:
    c, _, _, _ = problem
    for space in ("base", "full"):
        estimate = Ridge(strength=10.0, space=space).fit(c.data(), c.base, Prior(c.theta))
        assert np.allclose(estimate.beta, c.beta, rtol=1e-8, atol=1e-10)


def test_insignificant_parameters_are_removed_and_named() -> None:
    c = case("szabo3r")
    data = c.data(10.0 * c.noise(np.random.default_rng(5)))
    whole = WeightedLeastSquares().fit(data, c.base)
    weak = significance(whole).unsupported()
    assert weak
    estimate = fit_significant(WeightedLeastSquares(), data, c.base)
    removed = estimate.details["removed"]
    assert removed
    positions = [c.base.names.index(n) for n in removed]
    assert np.all(estimate.beta[positions] == 0.0)
    assert np.all(estimate.standard_errors[positions] == 0.0)
    assert all(any(n in note for note in estimate.notes) for n in removed)
    assert np.allclose(c.base.matrix @ estimate.theta, estimate.beta, atol=1e-9)
    remaining = [k for k in range(c.base.rank) if k not in positions]
    assert significance(estimate).p[remaining].max() < 0.05
    unchanged = fit_significant(WeightedLeastSquares(), data, c.base, keep=c.base.names)
    assert "removed" not in unchanged.details


def test_f_of_one_parameter_is_t_squared(problem) -> None:
    c, data, _, _ = problem
    estimate = WeightedLeastSquares().fit(data, c.base)
    test = significance(estimate)
    F, p = joint_test(estimate, [c.base.names[3]])
    assert pytest.approx(test.t[3] ** 2) == F
    assert pytest.approx(test.p[3], rel=1e-6) == p
    assert np.allclose(relative_standard_deviations(estimate), 100.0 * estimate.standard_errors / np.abs(estimate.beta))
