"""Annexes A and B: the inertia matrix from the eight λ, and torques as a regressor times them."""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array

G = 9.81


def regressor(q: Array, dq: Array, ddq: Array, *, as_printed: bool = False) -> Array:
    """`(samples, 5, 8)`; `as_printed` has 2(θ̇4 + θ̇3θ̇4) in row 3 of (B.9), where 2(θ̇2θ̇4 + θ̇3θ̇4) belongs."""
    _, _, q3, q4, _ = q.T
    _, v2, v3, v4, _ = dq.T
    d1, a2, a3, a4, d5 = ddq.T
    c3, s3, c4, s4, c34, s34 = np.cos(q3), np.sin(q3), np.cos(q4), np.sin(q4), np.cos(q3 + q4), np.sin(q3 + q4)
    a23, a234 = a2 + a3, a2 + a3 + a4
    wrist = (2.0 * a23 + a4) * c4 - (2.0 * (v2 + v3) * v4 + v4**2) * s4
    swing, elbow = a2 * c34 + v2**2 * s34, a2 * c3 + v2**2 * s3
    Y = np.zeros((len(q), 5, 8))
    Y[:, 0, 0], Y[:, 0, 7], Y[:, 4, 7] = d1 + G, d1 - d5 + G, d5 - d1 - G
    Y[:, 1, 1], Y[:, 1, 2], Y[:, 1, 4], Y[:, 1, 6] = a2, a23, a234, wrist
    Y[:, 1, 3] = (2.0 * a2 + a3) * c3 - (2.0 * v2 * v3 + v3**2) * s3
    Y[:, 1, 5] = (2.0 * a2 + a3 + a4) * c34 - ((v2 + v3 + v4) ** 2 - v2**2) * s34
    Y[:, 2, 2], Y[:, 2, 3], Y[:, 2, 4], Y[:, 2, 5], Y[:, 2, 6] = a23, elbow, a234, swing, wrist
    Y[:, 3, 4], Y[:, 3, 5], Y[:, 3, 6] = a234, swing, a23 * c4 + (v2 + v3) ** 2 * s4
    if as_printed:
        Y[:, 2, 6] += 2.0 * (v2 - 1.0) * v4 * s4
    return Y


def inertia(q: Array, values: Array) -> Array:
    """M(q) of (A.1)–(A.10) for states and λ of the same number, `(n, 5, 5)`."""
    l1, l2, l3, l4, l5, l6, l7, l8 = values.T
    _, _, q3, q4, _ = q.T
    elbow, swing, wrist = l4 * np.cos(q3), l6 * np.cos(q3 + q4), l7 * np.cos(q4)
    M = np.zeros((len(q), 5, 5))
    M[:, 0, 0], M[:, 4, 4] = l1 + l8, l8
    M[:, 0, 4] = M[:, 4, 0] = -l8
    M[:, 1, 1] = l2 + l3 + l5 + 2.0 * (elbow + swing + wrist)
    M[:, 1, 2] = M[:, 2, 1] = l3 + l5 + elbow + swing + 2.0 * wrist
    M[:, 1, 3] = M[:, 3, 1] = l5 + swing + wrist
    M[:, 2, 2], M[:, 3, 3] = l3 + l5 + 2.0 * wrist, l5
    M[:, 2, 3] = M[:, 3, 2] = l5 + wrist
    return M
