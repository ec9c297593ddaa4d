"""The Monte Carlo of Szabó & Szádeczky-Kardoss 2021, Table 2: least squares against weighted least squares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from steelyard.dynamics import Dynamics
from steelyard.estimation import OrdinaryLeastSquares, WeightedLeastSquares
from steelyard.papers.paper import printed_table
from steelyard.parameters import nominal_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.data import RegressionData
from steelyard.robot.library import builtin

NOISE = np.array([0.5, 0.3, 0.7])  # N m
LIMITS = (np.array([2.5, 1.2, 2.5]), 3.0, 12.0)  # rad, rad/s, rad/s²
ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m", "mx", "my", "mz")
# Names in the paper and the symbols of our terms.
SYMBOLS = {"mcy": "my", "tau_sc": "Fsc", "tau_s": "Fs", "tau_v": "Fsv"}


def table() -> dict[str, dict[str, float]]:
    out = {}
    for row in printed_table("szabo3r", "table2").rows:
        key = row["key"]
        for theirs, ours in SYMBOLS.items():
            if key.startswith(theirs):
                key = ours + key.removeprefix(theirs)
                break
        out[key] = {k: float(row[k]) for k in ("exact", "ls_mean", "ls_var", "wls_mean", "wls_var")}
    return out


def fourier(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five harmonics of 0.1 Hz, 10 s at 100 Hz, as large as the limits allow."""
    rng = np.random.default_rng(seed)
    t, w = np.arange(1000) / 100.0, 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, 3)) / np.arange(1, 6)[:, None]
    s, k = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = s @ a - k @ b
    dq = (k * w) @ a + (s * w) @ b
    ddq = -(s * w**2) @ a + (k * w**2) @ b
    scale = np.min([limit / np.abs(x).max(axis=0) for limit, x in zip(LIMITS, (q, dq, ddq), strict=True)], axis=0)
    return q * scale, dq * scale, ddq * scale


class MonteCarlo:
    def __init__(self) -> None:
        robot = builtin("szabo3r")
        terms, values = nominal_terms(robot)
        self.base = base_parameters(robot, terms, order=ORDER)
        theta = np.concatenate([robot.inertial_parameters, values])
        self.beta = self.base.values(theta)
        dynamics = Dynamics(robot, terms)
        motions = [dynamics.torque_regressor(*fourier(seed)) for seed in range(40)]
        # The best conditioned of forty, instead of the paper's optimisation.
        Y = min(motions, key=lambda y: np.linalg.cond(self.base.regressor_columns(y).reshape(-1, self.base.rank)))
        self.A, self.clean, self.robot = self.base.regressor_columns(Y), Y @ theta, robot

    def torques(self, runs: int, seed: int = 0) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        for _ in range(runs):
            yield self.clean + rng.normal(size=self.clean.shape) * NOISE

    def by_hand(self, runs: int, weights: np.ndarray) -> np.ndarray:
        """Least squares of the same draws with fixed weights of the joints."""
        rows = (np.sqrt(weights)[:, None] * self.A).reshape(-1, self.base.rank)
        solve = np.linalg.pinv(rows)
        return np.array([solve @ (np.sqrt(weights) * tau).ravel() for tau in self.torques(runs)])

    def run(self, runs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        ols, wls = [], []
        for tau in self.torques(runs, seed):
            data = RegressionData.from_arrays(
                self.robot.joint_names, self.base.independent, list(self.A.transpose(1, 0, 2)), list(tau.T),
                len(self.base.parameters), 0.01,
            )  # fmt: skip
            ols.append(OrdinaryLeastSquares().free(data, self.base).beta)
            wls.append(WeightedLeastSquares().free(data, self.base).beta)
        return np.array(ols), np.array(wls)


@pytest.fixture(scope="module")
def monte_carlo() -> MonteCarlo:
    return MonteCarlo()


def assert_weighted_is_more_accurate(ols: np.ndarray, wls: np.ndarray) -> None:
    """var(WLS) ≤ var(OLS) for all, within three standard deviations of a ratio of correlated variances."""
    ratio = wls.var(axis=0, ddof=1) / ols.var(axis=0, ddof=1)
    r = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(ols.T, wls.T, strict=True)])
    assert np.all(ratio < 1.0 + 3.0 * np.sqrt(4.0 * (1.0 - r**2) / len(ols)))
    assert np.median(ratio) < 0.95  # 0.76 in the paper


def test_the_24_base_parameters_are_the_papers(monte_carlo: MonteCarlo) -> None:
    paper = table()
    assert set(monte_carlo.base.names) == set(paper)
    for name, value in zip(monte_carlo.base.names, monte_carlo.beta, strict=True):
        assert value == pytest.approx(paper[name]["exact"], abs=6e-4), name  # three printed decimals


def test_weighted_least_squares_is_more_accurate(monte_carlo: MonteCarlo) -> None:
    ols, wls = monte_carlo.run(60)
    assert_weighted_is_more_accurate(ols, wls)
    exact = np.linalg.inv(np.einsum("tja,tjb,j->ab", monte_carlo.A, monte_carlo.A, NOISE**-2.0))
    assert np.median(wls.var(axis=0, ddof=1) / np.diag(exact)) == pytest.approx(1.0, abs=0.2)
    # The unbiased estimate with weights 1/σ² has the smallest variance; deviations from it add to the variance (Gauss,
    # Markov). WLS estimates its weights from 1000 residuals to 4 %, which adds almost nothing, while a wrong weight
    # adds a few percent or more.
    best = monte_carlo.by_hand(60, NOISE**-2.0)

    def added(other: np.ndarray) -> float:
        return float(np.median(np.mean((other - best) ** 2, axis=0) / np.diag(exact)))

    assert added(wls) < 0.003
    for power in (0.0, 1.0, 4.0):
        assert added(monte_carlo.by_hand(60, NOISE**-power)) > 0.02
    # Without Monte Carlo: the exact covariance of ordinary least squares, H⁻¹(Σ σⱼ²AⱼᵀAⱼ)H⁻¹, is larger for all 24.
    outer = np.linalg.inv(np.einsum("tja,tjb->ab", monte_carlo.A, monte_carlo.A))
    plain = outer @ np.einsum("tja,tjb,j->ab", monte_carlo.A, monte_carlo.A, NOISE**2.0) @ outer
    assert np.all(np.diag(exact) <= np.diag(plain) * (1.0 + 1e-9))


@pytest.mark.proof
def test_300_runs_against_table_2(monte_carlo: MonteCarlo) -> None:
    ols, wls = monte_carlo.run(300)
    paper, names = table(), monte_carlo.base.names
    print(f"\n{'':6}{'exact':>8} | {'LS mean':>8} {'var':>9} {'WLS mean':>9} {'var':>9} {'ratio':>6}"
          f" | {'paper LS':>9} {'WLS':>9} {'ratio':>6}")  # fmt: skip
    ours, theirs = [], []
    for k, name in enumerate(names):
        row, a, b = paper[name], ols[:, k].var(ddof=1), wls[:, k].var(ddof=1)
        ours.append(b / a)
        theirs.append(row["wls_var"] / row["ls_var"])
        print(f"{name:6}{monte_carlo.beta[k]:8.3f} | {ols[:, k].mean():8.3f} {a:9.2e} {wls[:, k].mean():9.3f} {b:9.2e}"
              f" {ours[-1]:6.2f} | {row['ls_var']:9.2e} {row['wls_var']:9.2e} {theirs[-1]:6.2f}")  # fmt: skip
    assert_weighted_is_more_accurate(ols, wls)
    for estimate in (ols, wls):  # no bias: means within four standard errors
        assert np.all(np.abs(estimate.mean(axis=0) - monte_carlo.beta) < 4.0 * estimate.std(axis=0) / np.sqrt(300))
    # The paper does not print its motion, and ours is not optimised: variances have the same order of magnitude.
    size = np.array([ols[:, k].var() / paper[n]["ls_var"] for k, n in enumerate(names)])
    print(f"variances over the paper's: median {np.median(size):.2f}, {size.min():.2f} to {size.max():.2f}")
    assert 0.2 < np.median(size) < 5.0
