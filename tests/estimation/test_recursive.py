"""Recursive least squares against closed forms: batch least squares, ridge, exponential weights, equations (6)–(8)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from estimation_cases import case
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.errors import SteelyardError
from steelyard.estimation import EstimationError, OrdinaryLeastSquares, Prior, RecursiveLeastSquares
from steelyard.estimation.recursion._information import Information
from steelyard.estimation.recursion.forgetting import Constant, Directional, Variable


def rows(updates: int, m: int, p: int, seed: int = 0, noise: float = 0.1):
    rng = np.random.default_rng(seed)
    A, truth = rng.normal(size=(updates, m, p)), rng.normal(size=p)
    return A, A @ truth + noise * rng.normal(size=(updates, m)), truth


def run(A, y, P0=np.inf, theta0=None, forgetting=None) -> Information:
    state = Information(A.shape[2], A.shape[1])
    state.start(np.zeros(A.shape[2]) if theta0 is None else theta0, P0)
    for a, b in zip(A, y, strict=True):
        if forgetting is None:
            state.update(a, b)
        else:
            state.buffer[:] = 0.0
            state.buffer[:, : A.shape[2]], state.buffer[:, A.shape[2]] = a, b
            forgetting.absorb(state, False)
    return state


def printed(A, y, P, theta):
    """(6)–(8) of Chávez-Olivares et al. 2012, with the missing minus in (7)."""
    for Psi, right in zip(A.transpose(0, 2, 1), y, strict=True):
        inner = np.linalg.inv(np.eye(Psi.shape[1]) + Psi.T @ P @ Psi)
        P = P - P @ Psi @ inner @ Psi.T @ P
        theta = theta + P @ Psi @ (right - Psi.T @ theta)
    return P, theta


@settings(max_examples=40, deadline=None)
@given(m=st.integers(1, 19), p=st.integers(1, 30), seed=st.integers(0, 1000))
@example(m=2, p=20, seed=0)  # residuals of the first rows pass 1e-155, where squares are denormal
@example(m=2, p=21, seed=0)
@example(m=1, p=30, seed=0)
def test_any_shape_ends_at_batch_least_squares(m: int, p: int, seed: int) -> None:
    A, y, _ = rows(3 + 3 * p // m, m, p, seed)
    state = run(A, y)
    W, right = A.reshape(-1, p), y.ravel()
    batch = np.linalg.lstsq(W, right, rcond=None)[0]
    scale = np.linalg.cond(W) ** 2 * 1e-13  # least squares squares the condition where residuals are large
    assert np.allclose(state.theta(), batch, rtol=0.0, atol=max(1e-9, scale))
    assert state.residual**2 == pytest.approx(np.sum((right - W @ batch) ** 2), rel=1e-9, abs=1e-12)
    assert np.allclose(state.R.T @ state.R, W.T @ W, rtol=1e-10, atol=1e-10 * np.abs(W.T @ W).max())
    assert state.weight == right.size


def test_the_solution_of_the_kernel_is_that_of_the_triangle() -> None:
    A, y, _ = rows(60, 6, 58)
    state = run(A, y)
    state.update(A[0], y[0])
    state.buffer[:] = 0.0
    state.absorb(1.0, solve=True)  # rows of zeros change nothing
    assert np.allclose(state.solved, state.theta(), rtol=1e-10, atol=1e-12)


def test_the_printed_equations_with_their_minus() -> None:
    A, y, _ = rows(200, 3, 21)
    start = np.random.default_rng(1).normal(size=21)
    P, theta = printed(A, y, 1e3 * np.eye(21), start)
    state = run(A, y, 1e3, start)
    assert np.allclose(state.theta(), theta, rtol=1e-8, atol=1e-9)  # the printed form loses digits, P0 = 1e3
    assert np.allclose(state.covariance(), P, rtol=1e-6, atol=1e-8 * np.abs(P).max())


@pytest.mark.parametrize("kind", ["number", "diagonal", "matrix"])
def test_P0_is_exactly_a_ridge_towards_theta0(kind: str) -> None:
    A, y, _ = rows(20, 2, 12)
    rng = np.random.default_rng(2)
    start, L = rng.normal(size=12), rng.normal(size=(12, 12))
    P0 = {"number": 0.3, "diagonal": rng.uniform(0.1, 2.0, 12), "matrix": L @ L.T + np.eye(12)}[kind]
    full = P0 if np.ndim(P0) == 2 else np.diag(np.broadcast_to(P0, 12))
    W, right = A.reshape(-1, 12), y.ravel()
    H = W.T @ W + np.linalg.inv(full)
    expected = np.linalg.solve(H, W.T @ right + np.linalg.solve(full, start))
    state = run(A, y, P0, start)
    assert np.allclose(state.theta(), expected, rtol=0.0, atol=1e-10)
    assert np.allclose(state.covariance(), np.linalg.inv(H), rtol=0.0, atol=1e-10)
    assert np.allclose(state.eigenvalues(), np.linalg.eigvalsh(np.linalg.inv(H))[::-1], rtol=1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.99, 0.9995])
def test_forgetting_is_exponential_weighting(factor: float) -> None:
    A, y, _ = rows(300, 3, 10)
    state = run(A, y, 10.0, forgetting=Constant(factor))
    w = factor ** np.arange(299, -1, -1.0)
    H = np.einsum("k,kmi,kmj->ij", w, A, A) + factor**300 * np.eye(10) / 10.0
    expected = np.linalg.solve(H, np.einsum("k,kmi,km->i", w, A, y))
    assert np.allclose(state.theta(), expected, rtol=0.0, atol=1e-10)
    assert state.weight == pytest.approx(3.0 * w.sum())


def test_directional_forgetting_is_its_formula() -> None:
    """Cao & Schwartz: information is removed in the directions of the new rows only, then the rows are added."""
    A, y, _ = rows(40, 2, 7)
    state = run(A, y, 5.0, forgetting=Directional(0.95))
    H, z = np.eye(7) / 5.0, np.zeros(7)
    for a, b in zip(A, y, strict=True):
        theta = np.linalg.solve(H, z)
        H = H - 0.05 * H @ a.T @ np.linalg.solve(a @ H @ a.T, a @ H)
        z = H @ theta + a.T @ b
        H = H + a.T @ a
    assert np.allclose(state.R.T @ state.R, H, rtol=1e-9, atol=1e-9)
    assert np.allclose(state.theta(), np.linalg.solve(H, z), rtol=1e-9, atol=1e-9)


def test_without_excitation_directional_forgetting_bounds_P_and_constant_winds_up() -> None:
    A, y, truth = rows(100, 2, 6, noise=0.0)
    poor = np.zeros((3000, 2, 6))
    poor[:, 0, 0] = 1.0  # only the first parameter is excited; the second row is zero
    A, y = np.concatenate([A, poor]), np.concatenate([y, poor @ truth])
    start = run(A[:100], y[:100], 1.0).eigenvalues()
    directional = run(A, y, 1.0, forgetting=Directional(0.98)).eigenvalues()
    constant = run(A, y, 1.0, forgetting=Constant(0.98)).eigenvalues()
    assert directional[0] < 10.0 * start[0]
    assert directional[-1] > 1e-3 * start[-1]
    assert constant[0] > 1e20 * start[0]  # 0.98⁻³⁰⁰⁰ = 2e26


def test_a_wound_up_P_stays_finite_and_learns_again() -> None:
    A, y, truth = rows(10, 2, 4, noise=0.0)
    nothing = np.zeros((20_000, 2, 4))
    state = run(np.concatenate([A, nothing, A]), np.concatenate([y, nothing[:, :, 0], y]), forgetting=Constant(0.9))
    assert state.paused
    assert np.allclose(state.theta(), truth, atol=1e-9)
    assert np.all(np.isfinite(state.eigenvalues()))


def test_variable_forgetting_is_its_formula_and_follows_a_jump() -> None:
    A, y, truth = rows(2000, 2, 5, noise=0.1)
    y[1000:] += A[1000:] @ np.ones(5)  # the payload changes
    method = Variable(memory=200.0, noise=0.1)
    state = run(A, y, 10.0, forgetting=method)
    P, theta = 10.0 * np.eye(5), np.zeros(5)
    for a, b in zip(A, y, strict=True):
        e, S = b - a @ theta, np.eye(2) + a @ P @ a.T
        K = np.linalg.solve(S, a @ P).T
        theta, P = theta + K @ e, P - K @ a @ P
        P = 0.5 * (P + P.T) / max(1.0 - e @ np.linalg.solve(S, e) / (200.0 * 0.01), 0.5)
    assert np.allclose(state.theta(), theta, atol=1e-7)
    assert np.abs(state.theta() - truth - 1.0).max() < 0.05  # some 200 rows of noise 0.1
    assert np.abs(run(A, y, 1e6).theta() - truth - 1.0).max() > 0.3  # without forgetting the estimate is in between


def test_resetting_keeps_the_estimate() -> None:
    A, y, _ = rows(50, 2, 6)
    state = run(A, y)
    before = state.theta()
    state.reset(4.0)
    assert np.allclose(state.theta(), before, atol=1e-12)
    assert np.allclose(state.covariance(), 4.0 * np.eye(6), atol=1e-12)
    with pytest.raises(EstimationError, match="finite P0"):
        state.reset(np.inf)


def test_undetermined_parameters_are_nan() -> None:
    A, y, _ = rows(4, 2, 10)
    state = run(A, y)
    assert np.all(np.isnan(state.theta()))
    with pytest.raises(EstimationError, match="not finite yet"):
        state.eigenvalues()


def hard_rows(updates: int, p: int, seed: int) -> np.ndarray:
    """Nearly dependent columns over twelve decades, for which the printed (7) becomes indefinite."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(updates, 2, p)) @ (np.eye(p) + 0.999 * (np.ones((p, p)) - np.eye(p)))
    return A * np.logspace(-6, 6, p)


@pytest.mark.parametrize("factor", [1.0, 0.999])
def test_P_stays_positive_over_1e5_updates(factor: float) -> None:
    stays_positive(100_000, factor)


@pytest.mark.proof
@pytest.mark.parametrize("factor", [1.0, 0.9999])
def test_P_stays_positive_over_1e7_updates(factor: float) -> None:
    stays_positive(10_000_000, factor)


def stays_positive(updates: int, factor: float) -> None:
    p, chunk = 10, 10_000
    state = Information(p, 2)
    scale = np.logspace(-6, 6, p)
    state.start(np.zeros(p), 1e12 / scale**2)
    truth = np.random.default_rng(9).normal(size=p) / scale
    A = hard_rows(chunk, p, 0)
    table = np.zeros((chunk, *state.buffer.shape))
    for k in range(updates // chunk):
        table[:, :, :p] = A[np.random.default_rng(k).permutation(chunk)]
        table[:, :, p] = table[:, :, :p] @ truth
        state.absorb_many(table, np.sqrt(factor))
        assert np.all(state.pivots > 0.0)
    assert state.updates == updates
    P = state.covariance() * scale * scale[:, None]  # in each parameter's own unit
    values = np.linalg.eigvalsh(P)
    assert values[0] > 0.0
    assert np.all(np.isfinite(values))
    # cond ~ 1e4 in own units times accumulated rounding; the bias from P0 is below 1e-9.
    assert np.allclose(scale * state.theta(), scale * truth, rtol=0.0, atol=1e-7)


def test_the_printed_form_becomes_indefinite() -> None:
    """The reason for a square root: the same rows with (7) as printed (corrected)."""
    scale, A = np.logspace(-6, 6, 10), hard_rows(5, 10, 0)
    P0 = 1e9 / scale**2
    P, _ = printed(A, np.zeros((5, 2)), np.diag(P0), np.zeros(10))
    P = P * scale * scale[:, None]
    assert np.linalg.eigvalsh(0.5 * (P + P.T))[0] < -1e6
    ours = run(A, np.zeros((5, 2)), P0).covariance() * scale * scale[:, None]
    assert np.linalg.eigvalsh(ours)[0] > 0.0


# ---------------------------------------------------------------- as an estimator


@cache
def noisy():
    c = case("rotradi")
    return c, c.data(c.noise(np.random.default_rng(1)))


def test_the_estimator_ends_at_ordinary_least_squares() -> None:
    c, data = noisy()
    ours, plain = RecursiveLeastSquares().fit(data, c.base), OrdinaryLeastSquares().fit(data, c.base)
    assert np.allclose(ours.beta, plain.beta, rtol=1e-9, atol=1e-9 * np.abs(plain.beta).max())
    assert np.allclose(ours.standard_errors, plain.standard_errors, rtol=1e-6)
    assert ours.details["updates"] == 1000


def test_the_estimator_forgets_in_the_order_of_time() -> None:
    c, data = noisy()
    estimate = RecursiveLeastSquares(forgetting=0.99).fit(data, c.base)
    y = np.stack([b.y for b in data.blocks()], axis=1)
    w = 0.99 ** (0.5 * np.arange(len(y) - 1, -1, -1.0))[:, None]
    W = (c.A * w[:, :, None]).reshape(-1, c.base.rank)
    assert np.allclose(estimate.beta, np.linalg.lstsq(W, (y * w).ravel(), rcond=None)[0], rtol=1e-6, atol=1e-7)
    assert "With forgetting" in estimate.notes[0]
    assert estimate.details["remembered_rows"] == pytest.approx(300.0, rel=1e-3)  # 3 joints / (1 − 0.99)


def test_a_small_P0_keeps_the_start() -> None:
    c, data = noisy()
    estimate = RecursiveLeastSquares(P0=1e-12).fit(data, c.base, Prior(1.1 * c.theta))
    assert np.allclose(estimate.beta, 1.1 * c.beta, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("factor", [0.0, -0.5, 1.0001, float("nan"), float("inf")])
def test_a_forgetting_factor_outside_its_range_is_refused(factor: float) -> None:
    for make in (Constant, Directional, RecursiveLeastSquares):
        with pytest.raises(EstimationError, match="above 0 and at most 1"):
            make(factor)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(EstimationError, match="threshold"):
        Directional(0.9, threshold=-1.0)
    with pytest.raises(EstimationError, match="memory"):
        Variable(memory=0.0)
    with pytest.raises(EstimationError, match="P0"):
        RecursiveLeastSquares(P0=-1.0)
    state = Information(3, 1)
    for P0, text in ((0.0, "positive"), ([1.0, 2.0], "positive"), (np.zeros((3, 3)), "positive definite"),
                     (np.triu(np.ones((3, 3))), "symmetric")):  # fmt: skip
        with pytest.raises(EstimationError, match=text):
            state.start(np.zeros(3), P0)
    with pytest.raises(SteelyardError, match="shape"):
        state.update(np.zeros((2, 3)), np.zeros(2))
