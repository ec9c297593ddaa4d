"""The recursive estimate of a payload equals least squares over all rows with the prior."""

from __future__ import annotations

import numpy as np

from steelyard.payload import RecursivePayload, expected_payload

RNG = np.random.default_rng(3)
JOINTS, OWN = 3, 2
UNIT = np.concatenate([expected_payload(5.0, 0.2), RNG.uniform(0.5, 2.0, JOINTS * OWN)])


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of every joint: ten columns of the payload, two of its own, and the right side."""
    A = RNG.normal(size=(JOINTS, 40, 10 + OWN))
    return A, RNG.normal(size=(JOINTS, 40, 1))


def dense(A: np.ndarray) -> np.ndarray:
    """Rows of all joints over all unknowns."""
    out = np.zeros((JOINTS, 40, len(UNIT)))
    for j in range(JOINTS):
        out[j, :, :10], out[j, :, 10 + OWN * j : 10 + OWN * (j + 1)] = A[j, :, :10], A[j, :, 10:]
    return out


def test_sums_of_joints_give_the_fit_to_all_rows() -> None:
    estimate, sigma = RecursivePayload(UNIT, JOINTS), np.array([0.3, 1.0, 2.0])
    N, b = np.diag(UNIT**-2.0), np.zeros(len(UNIT))
    for _ in range(3):
        A, y = rows()
        wide = np.concatenate([A, y], axis=2)
        gram = np.swapaxes(wide, 1, 2) @ wide
        estimate.add(*estimate.sums(gram, sigma**-2.0))
        N += np.einsum("jra,jrb,j->ab", dense(A), dense(A), sigma**-2.0)
        b += np.einsum("jra,jr,j->a", dense(A), y[..., 0], sigma**-2.0)
    theta = np.linalg.solve(N, b)
    np.testing.assert_allclose(estimate.unit * estimate.x, theta, rtol=1e-9)
    np.testing.assert_allclose(estimate.parameters, theta[:10], rtol=1e-9)
    np.testing.assert_allclose(estimate.covariance, np.linalg.inv(N)[:10, :10], rtol=1e-9)
    left = y[..., 0] - dense(A) @ theta
    np.testing.assert_allclose(estimate.residuals(gram), np.sum(left**2, axis=1), rtol=1e-9)


def test_information_fades_towards_the_prior() -> None:
    estimate = RecursivePayload(expected_payload(5.0, 0.2))
    A = RNG.normal(size=(6, 10))
    estimate.add(A.T @ A, A.T @ np.ones(6))
    b = np.linalg.solve(estimate.P, estimate.x)
    estimate.fade(0.7)
    N = 0.7 * (np.eye(10) + A.T @ A) + 0.3 * np.eye(10)
    np.testing.assert_allclose(np.linalg.inv(estimate.P), N, atol=1e-9)
    np.testing.assert_allclose(N @ estimate.x, 0.7 * b, atol=1e-9)
    for _ in range(200):
        estimate.fade(0.7)
    np.testing.assert_allclose(estimate.P, np.eye(10), atol=1e-12)
    np.testing.assert_allclose(estimate.x, 0.0, atol=1e-12)
