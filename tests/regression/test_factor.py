"""The streamed triangular factor equals that of the tall matrix, for any blocks, threads and order."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import relative, states

from steelyard.dynamics import Dynamics
from steelyard.errors import ShapeError, SteelyardError, StructureError
from steelyard.parameters import nominal_terms
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import reduce
from steelyard.regression.rows import Rows
from steelyard.robot.library import builtin


class Case:
    """A robot, noisy data, and the tall matrix that the package never stores."""

    def __init__(self, name: str, samples: int) -> None:
        robot = builtin(name)
        terms, values = nominal_terms(robot)
        self.dynamics = Dynamics(robot, terms)
        self.s = states(robot, samples)
        theta = np.concatenate([robot.inertial_parameters, values])
        noise = np.random.default_rng(9).normal(size=self.s.q.shape)
        self.tau = self.dynamics.inverse_dynamics(self.s.q, self.s.dq, self.s.ddq, theta) + noise
        self.W = self.dynamics.torque_regressor(self.s.q, self.s.dq, self.s.ddq)
        flat = self.W.reshape(-1, self.W.shape[-1])
        length = np.linalg.norm(flat, axis=0)
        length[length < 1e-12 * length.max()] = np.inf  # zero by a trigonometric identity, up to rounding
        r = np.linalg.qr(flat / length, mode="r")
        self.base = np.flatnonzero(np.abs(np.diag(r)) > 1e-8)

    def data(self, part: slice = slice(None)):
        return self.s.q[part], self.s.dq[part], self.s.ddq[part], self.tau[part]


@pytest.fixture(scope="module")
def case() -> Case:
    return Case("ns16", 1000)


def gram(case: Case, columns, weights=None) -> np.ndarray:
    w = np.ones(case.W.shape[1]) if weights is None else weights
    tall = np.concatenate([case.W[:, :, columns], case.tau[:, :, None]], axis=2) * w[:, None]
    tall = tall.reshape(-1, len(columns) + 1)
    return tall.T @ tall


@pytest.mark.parametrize("method", ["qr", "normal"])
@pytest.mark.parametrize("samples", [1, 63, 64, 65, 1000])
def test_the_factor_squares_to_the_gram_matrix(case: Case, method: str, samples: int) -> None:
    small = Case("ns16", samples)
    rows = Rows(small.dynamics, case.base, pad=4)
    r = reduce(rows, *small.data(), method=method).combined_triangle(columns=case.base)
    assert relative(r.T @ r, gram(small, case.base)) < 1e-12
    assert np.array_equal(r, np.triu(r))


@pytest.mark.parametrize("method", ["qr", "normal"])
def test_weighted_least_squares_needs_no_second_pass(case: Case, method: str) -> None:
    weights = np.array([0.1, 0.2, 0.5, 1.0, 2.0, 3.0])
    factor = reduce(Rows(case.dynamics, case.base, pad=4), *case.data(), method=method)
    ours = factor.solve(weights)
    tall = (case.W[:, :, case.base] * weights[:, None]).reshape(-1, len(case.base))
    theirs = np.linalg.lstsq(tall, (case.tau * weights).ravel(), rcond=None)[0]
    # Least squares by QR loses cond(A) ~ 1e3 of 16 digits, the normal equations its square.
    assert relative(ours, theirs) < (1e-11 if method == "qr" else 1e-8)
    residual = case.tau - case.W[:, :, case.base] @ ours
    assert np.allclose(factor.residual_sums(ours), np.sum(residual**2, axis=0), rtol=1e-8)


def test_factors_of_parts_merge_to_the_factor_of_the_whole(case: Case) -> None:
    rows = Rows(case.dynamics)
    whole = reduce(rows, *case.data())
    parts = [reduce(rows, *case.data(slice(a, b))) for a, b in ((0, 300), (300, 301), (301, 1000))]
    merged = parts[2].merge(parts[0], parts[1])
    assert merged.samples == 1000
    assert relative(merged.solve(columns=case.base), whole.solve(columns=case.base)) < 1e-10


def test_threads_and_order_of_samples_change_only_rounding(case: Case) -> None:
    big = Case("ns16", 20_000)
    rows = Rows(big.dynamics, case.base, pad=4)
    for method in ("qr", "normal"):
        one = reduce(rows, *big.data(), method=method, threads=1).solve()
        two = reduce(rows, *big.data(), method=method, threads=3).solve()
        reverse = reduce(rows, *big.data(slice(None, None, -1)), method=method).solve()
        assert relative(two, one) < 1e-9
        assert relative(reverse, one) < 1e-9


def test_all_columns_kept_allow_any_choice_of_columns_later(case: Case) -> None:
    factor = reduce(Rows(case.dynamics), *case.data())
    chosen = reduce(Rows(case.dynamics, case.base), *case.data())
    assert relative(factor.solve(columns=case.base), chosen.solve()) < 1e-10


def test_joints_with_unused_torque_give_no_equation() -> None:
    arm = builtin("arm7")
    used = [arm.joint_names[0], arm.joint_names[2]]
    rows = Rows(Dynamics(arm.with_torque_used(used)))
    assert [e.name for e in rows.equations] == used


def test_memory_does_not_grow_with_the_number_of_samples() -> None:
    rows = Rows(builtin("arm7").dynamics)
    _ = rows.evaluator.kernel
    peaks, sizes = [], []
    for samples in (20_000, 200_000):
        data = np.random.default_rng(0).normal(size=(4, samples, 7))
        sizes.append(data.nbytes)
        reduce(rows, *data, threads=1)
        tracemalloc.start()
        reduce(rows, *data, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # A copy of one of the 28 columns would be 3.6 % of what the data grew by; small objects of Python are 0.1 %.
    assert peaks[1] - peaks[0] < 0.01 * (sizes[1] - sizes[0])


def test_dependent_columns_are_refused(case: Case) -> None:
    factor = reduce(Rows(case.dynamics), *case.data())
    with pytest.raises(StructureError, match="dependent"):
        factor.solve()


def test_bad_data_are_named(case: Case) -> None:
    rows = Rows(case.dynamics, case.base)
    q, dq, ddq, tau = case.data()
    with pytest.raises(ShapeError, match="tau has shape"):
        reduce(rows, q, dq, ddq, tau[:, :5])
    with pytest.raises(SteelyardError, match="no sample"):
        reduce(rows, q[:0], dq[:0], ddq[:0], tau[:0])
    with pytest.raises(SteelyardError, match="'qr' or 'normal'"):
        reduce(rows, q, dq, ddq, tau, method="cholesky")  # type: ignore[arg-type]
    other = reduce(Rows(case.dynamics), q, dq, ddq, tau)
    with pytest.raises(StructureError, match="cannot be merged"):
        reduce(rows, q, dq, ddq, tau).merge(other)


@given(st.integers(1, 20_000), st.integers(0, 100))
def test_stretches_of_a_log_are_triangles_of_its_beginnings(rows: int, seed: int) -> None:
    """Growing triangles: each is the Gram matrix of the rows so far, of at most 16 stretches of the same length."""
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(rows, 3)), rng.normal(size=rows)
    reduction = RegressionData.from_arrays(["a"], [0, 1, 2], [A], [y], 3).reduction()
    (growing,) = reduction.stretches
    assert 1 <= len(growing) <= 16
    assert len(growing) >= min(7, rows // 64)
    length = rows if len(growing) == 1 else next(64 << k for k in range(12) if rows // (64 << k) < 16)
    both = np.column_stack([A, y])
    for k, r in enumerate(growing, start=1):
        so_far = both[: rows if k == len(growing) else k * length]
        np.testing.assert_allclose(r.T @ r, so_far.T @ so_far, rtol=1e-9, atol=1e-9 * rows)
    np.testing.assert_array_equal(growing[-1], reduction.factor.triangles[0])
