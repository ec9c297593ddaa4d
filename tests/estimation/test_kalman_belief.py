"""The linear algebra of the filters against a conditioned Gaussian, and sigma points against known moments."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.kalman._belief import CovarianceBelief, NotPositiveDefiniteError, SquareRootBelief
from steelyard.estimation.kalman.filtering import _Trail
from steelyard.estimation.kalman.rules import BySigmaPoints, CentralDifference, Cubature, StepNoise, Unscented

KINDS = [CovarianceBelief, SquareRootBelief]
RULES = [Unscented(), Unscented(alpha=1.0), Cubature(), CentralDifference()]


class Linear:
    """x' = A x + B β + noise with the first coordinate measured: β (3) and x (2) as one Gaussian of all times."""

    def __init__(self, steps: int = 6) -> None:
        rng = np.random.default_rng(0)
        self.A, self.B = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
        self.noise, self.sigma = rng.normal(size=(2, 2)), np.array([0.3])
        root = rng.normal(size=(3, 3))
        self.P0, self.x0, self.state = root @ root.T, np.array([0.5, -0.2]), np.array([0.7, 0.4])
        self.beta0, self.y, self.steps = rng.normal(size=3), rng.normal(size=(steps, 1)), steps

    def posterior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and covariance of β, and the means of x at all times, given all measurements."""
        n, d = self.steps, 3 + 2 + 2 * self.steps  # unknowns: β, x₀, and the noise of every step
        P = np.zeros((d, d))
        P[:3, :3], P[3:5, 3:5] = self.P0, np.diag(self.state**2)
        for k in range(n):
            s = slice(5 + 2 * k, 7 + 2 * k)
            P[s, s] = self.noise @ self.noise.T
        mean = np.concatenate([self.beta0, self.x0, np.zeros(2 * n)])
        maps = [np.hstack([np.zeros((2, 3)), np.eye(2), np.zeros((2, 2 * n))])]
        for k in range(n):
            step = self.A @ maps[-1]
            step[:, :3] += self.B
            step[:, 5 + 2 * k : 7 + 2 * k] += np.eye(2)
            maps.append(step)
        H = np.array([m[0] for m in maps[1:]])
        S = H @ P @ H.T + self.sigma**2 * np.eye(n)
        K = P @ H.T @ np.linalg.inv(S)
        mean, P = mean + K @ (self.y[:, 0] - H @ mean), P - K @ H @ P
        return mean[:3], P[:3, :3], np.array([m @ mean for m in maps])


@pytest.mark.parametrize("kind", KINDS)
def test_filter_and_smoother_are_the_conditioned_gaussian(kind) -> None:
    case = Linear()
    belief = kind(case.beta0, case.P0, case.x0, case.state)
    trail = _Trail(case.steps + 1)
    trail.filtered.append((belief.z.copy(), belief.covariance.copy()))
    for y in case.y:
        x = case.A @ belief.x + case.B @ belief.beta
        belief.propagate(x, case.A, case.B, case.noise)
        trail.predicted.append((belief.z.copy(), belief.covariance.copy(), np.hstack([case.B, case.A])))
        belief.measure(y, case.sigma)
        trail.filtered.append((belief.z.copy(), belief.covariance.copy()))
    mean, covariance, states = case.posterior()
    assert np.allclose(belief.beta, mean, rtol=1e-9)
    assert np.allclose(belief.covariance[:3, :3], covariance, rtol=1e-8, atol=1e-10)
    assert np.allclose(belief.root @ belief.root.T, belief.covariance)
    assert np.allclose(trail.smooth()[0][:, 3:], states, rtol=1e-7)
    assert np.allclose(trail.smooth()[0][:, :3], mean, rtol=1e-7)  # constant parameters do not change


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_run_forgets_the_state_but_not_the_parameters(kind) -> None:
    case = Linear()
    belief = kind(case.beta0, case.P0, case.x0, case.state)
    belief.propagate(case.A @ belief.x + case.B @ belief.beta, case.A, case.B, case.noise)
    belief.measure(case.y[0], case.sigma)
    before = belief.covariance[:3, :3].copy()
    belief.restart(np.zeros(2), np.ones(2))
    expected = np.zeros((5, 5))
    expected[:3, :3], expected[3:, 3:] = before, np.eye(2)
    assert np.allclose(belief.covariance, expected, atol=1e-12)
    belief.drift(np.full(3, 0.25))
    assert np.allclose(belief.covariance[:3, :3], before + 0.25 * np.eye(3))


class Quadratic:
    """A fake transition: x' = (β·x₁, x₁²) and the torque added to the first."""

    dof = 1

    def step(self, x, beta, start, end):
        return np.column_stack([beta[:, 0] * x[:, 1] + start[:, 0], x[:, 1] ** 2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_sigma_points_have_the_mean_of_a_quadratic_exactly(kind, rule) -> None:
    """E[x²] = m² + σ² and, for independent variables, E[βx] = E[β]E[x]; the covariance is exact to first order."""
    belief = kind(np.array([3.0]), np.array([[0.04]]), np.array([0.1, 2.0]), np.array([0.2, 0.5]))
    slope = BySigmaPoints(rule)(
        belief, Quadratic(), np.array([1.0]), np.array([1.0]), StepNoise(np.array([0.3]), np.zeros(2)), sloped=True
    )
    assert np.allclose(belief.x, [3.0 * 2.0 + 1.0, 4.0 + 0.25], rtol=1e-10)
    assert np.allclose(slope, [[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]], atol=1e-9)
    linear = np.array([[0.04 * 4 + 9 * 0.25 + 0.09, 3 * 4 * 0.25], [3 * 4 * 0.25, 16 * 0.25]])
    P = belief.covariance
    assert np.all(np.linalg.eigvalsh(P[1:, 1:] - linear) > -1e-12)
    assert np.abs(P[1:, 1:] - linear).max() < 0.5  # second-order parts: 2σ⁴ = 0.125 and their like, by rule
    assert P[0, 1] == pytest.approx(0.04 * 2.0)


def test_invalid_settings_are_refused() -> None:
    for bad in ({"alpha": 0.0}, {"alpha": 2.0, "beta": 2.0}, {"kappa": -1.0}):
        with pytest.raises(EstimationError, match="alpha"):
            Unscented(**bad)
    with pytest.raises(EstimationError, match="step"):
        CentralDifference(step=0.5)
    with pytest.raises(NotPositiveDefiniteError):
        _ = CovarianceBelief(np.zeros(1), np.array([[-1.0]]), np.zeros(2), np.ones(2)).root
