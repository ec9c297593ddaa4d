"""Linear conditions on coefficients, eliminated: what is left is free."""

from __future__ import annotations

import numpy as np

from steelyard.excitation.trajectories.family import TrajectoryError
from steelyard.robot.spatial import Array


def eliminate(A: Array, b: Array, what: str) -> tuple[Array, Array]:
    """(Z, y0) such that y = Z x + y0 runs through all solutions of A y = b; Z is orthonormal, y0 the shortest.

    By Householder QR of Aᵀ rather than by SVD: the signs are the same on every machine.
    """
    # Rows of unit length, so that conditions in rad, rad/s and rad/s² weigh the same in the rank test.
    lengths = np.linalg.norm(A, axis=1)
    rows, right = A / lengths[:, None], b / lengths
    Q, R = np.linalg.qr(rows.T, mode="complete")
    count = len(rows)
    if count > rows.shape[1] or np.min(np.abs(np.diag(R)[:count]), initial=1.0) < 1e-9:
        raise TrajectoryError(f"{what}: too few coefficients for the conditions it has to meet; give it more.")
    y0: Array = Q[:, :count] @ np.linalg.solve(R[:count].T, right) if count else np.zeros(rows.shape[1])
    return Q[:, count:], y0
