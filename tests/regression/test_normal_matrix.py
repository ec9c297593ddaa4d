"""Normal equations with directions that are not identifiable, against NumPy's pseudo-inverse and determinant."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.regression import NormalMatrix

RNG = np.random.default_rng(4)


def matrices() -> np.ndarray:
    """Two matrices: of full rank, and with a zero column and two columns that only appear together."""
    A = RNG.normal(size=(2, 30, 5))
    A[1, :, 4], A[1, :, 2] = 0.0, A[1, :, 1]
    return np.swapaxes(A, 1, 2) @ A


def test_inverse_and_roots_on_the_identifiable_subspace() -> None:
    H = matrices()
    normal = NormalMatrix.of(H)
    # Columns of length 1, as in the class, because the pseudo-inverse depends on their scale.
    scale = 1.0 / np.where(normal.size > 0.0, normal.size, 1.0)
    both = scale[:, :, None] * scale[:, None, :]
    np.testing.assert_allclose(normal.inverse, np.linalg.pinv(H * both, rcond=1e-10, hermitian=True) * both, atol=1e-12)
    np.testing.assert_allclose(normal.root @ np.swapaxes(normal.root, 1, 2), H, atol=1e-9)
    np.testing.assert_allclose(
        np.swapaxes(normal.root_inverse, 1, 2) @ normal.root_inverse, normal.inverse, rtol=1e-9, atol=1e-12
    )
    assert normal.rank.tolist() == [5, 3]
    assert normal.identifiable.tolist() == [[True] * 5, [True, False, False, True, False]]
    assert NormalMatrix.of(H[0]).log_determinant == pytest.approx(np.linalg.slogdet(H[0])[1], rel=1e-9)
