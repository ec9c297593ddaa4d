"""Annex B: torques as a regressor times the eight λ."""

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
