"""`Program`: the convex problem of a physically consistent fit, in coordinates in which everything is of size one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class Program:
    """min ½‖G x − g‖² + Σ_i w_i (tr X_i − log det X_i) + Σ_k v_k (s_k − log s_k) + ½‖F x − f‖²

    over x, where X_i(x) − margin·1 ⪰ 0 (4 × 4, linear in x) and C x + c ≥ 0; s = D x + d > 0 are single numbers with
    the same entropic prior as the matrices. `cones[i]` (16 × x) gives X_i. `start` is strictly inside. The rows of G
    count in standard deviations of the noise.
    """

    G: Array
    g: Array
    cones: Array
    cone_weights: Array
    margin: float
    D: Array
    d: Array
    scalar_weights: Array
    C: Array
    c: Array
    F: Array
    f: Array
    start: Array

    @cached_property
    def frame(self) -> tuple[Array, Array]:
        """(B, N) with x = B (g + z) + N n: z = G x − g in standard deviations, n what the data do not show."""
        Q, upper = np.linalg.qr(self.G.T, mode="complete")
        rank = len(self.G)
        B = np.linalg.solve(upper[:rank], Q[:, :rank].T).T
        return B, Q[:, rank:]

    @property
    def transform(self) -> tuple[Array, Array]:
        """(V, v0) with x = v0 + V·(z, n)."""
        B, N = self.frame
        return np.hstack([B, N]), B @ self.g

    def coordinates(self, x: Array) -> Array:
        """(z, n) of x."""
        return np.concatenate([self.G @ x - self.g, self.frame[1].T @ x])

    def matrices(self, x: Array) -> Array:
        """X_i(x), `(links, 4, 4)`."""
        return np.asarray((self.cones @ x).reshape(-1, 4, 4))

    def bare(self, start: Array) -> Program:
        """The constraints alone, without any prior."""
        none = np.zeros((0, self.G.shape[1]))
        return replace(
            self, cone_weights=np.zeros(len(self.cones)), C=np.vstack([self.C, self.D]),
            c=np.concatenate([self.c, self.d]), D=none, d=np.zeros(0), scalar_weights=np.zeros(0), F=none,
            f=np.zeros(0), start=start,
        )  # fmt: skip
