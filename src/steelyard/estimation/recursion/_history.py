"""The history of recursive least squares: a few hundred steps, and a convergence test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.recursion._information import Information, determined
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array, one_blas_thread

# Changes of the predictions below this share are negligible, even without noise.
_NEGLIGIBLE_CHANGE = 1e-6


class History:
    """Steps of an estimation, evenly spaced; when `most` are stored, every second one is removed.

    `t`, `updates` and `beta` (steps × parameters) are the state at these steps; `eigenvalues` those of P, largest
    first. Both are computed from the triangles on request. Without `eigenvalues` only `beta` is stored, which is small
    enough for a live monitor to write it every two seconds.
    """

    def __init__(self, count: int, most: int = 256, eigenvalues: bool = True) -> None:
        self._most, self._stride, self._has_triangles = most - most % 2, 1, eigenvalues
        self._count = count
        self._steps: list[tuple[float, int, Array]] = []

    def add(self, t: float, state: Information) -> None:
        """Store the `state` at time `t` if it is due."""
        if state.updates % self._stride or not self._most:
            return
        self._steps.append((t, state.updates, state.triangle if self._has_triangles else state.theta()))
        if len(self._steps) == self._most:
            self._stride *= 2
            self._steps = [m for m in self._steps if m[1] % self._stride == 0]

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def t(self) -> Array:
        return np.array([m[0] for m in self._steps])

    @property
    def updates(self) -> Array:
        return np.array([m[1] for m in self._steps])

    @property
    def beta(self) -> Array:
        """Estimates (steps, parameters); NaN for steps at which not all parameters were determined."""
        if not self._has_triangles:
            return np.array([m[2] for m in self._steps]).reshape(-1, self._count)
        out = np.full((len(self), self._count), np.nan)
        for row, (_, _, Ry) in zip(out, self._steps, strict=True):
            if determined(Ry[:-1, :-1]):
                row[:] = solve_triangular(Ry[:-1, :-1], Ry[:-1, -1])
        return out

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of P (steps, parameters); infinite for undetermined directions."""
        if not self._has_triangles:
            raise EstimationError("This history has no eigenvalues; create it with eigenvalues=True.")
        R = np.array([m[2][:-1, :-1] for m in self._steps]).reshape(-1, self._count, self._count)
        return covariance_eigenvalues(R)

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Allowed differences of a saved state from a new history."""
        most = max(self._most, 1)
        # States of older versions always have triangles.
        estimates = ArrayRule(rows=most, unknown=True, optional=True)
        return {"moments": ArrayRule(rows=most), "beta": estimates, "triangles": estimates}

    def state(self) -> dict[str, Array]:
        size = self._count + 1
        head = np.array([[m[0], m[1]] for m in self._steps]).reshape(-1, 2)
        saved = {"moments": head, "stride": np.array(self._stride)}
        if not self._has_triangles:
            return {**saved, "beta": self.beta}
        return {**saved, "triangles": np.array([m[2] for m in self._steps]).reshape(-1, size, size)}

    def restore(self, state: Mapping[str, Array]) -> None:
        if not state["stride"] >= 1.0:
            raise EstimationError("the history in the state is damaged.")
        self._stride = int(state["stride"])
        # States of older versions always have triangles.
        arrays = state["triangles" if self._has_triangles or "beta" not in state else "beta"]
        rows = zip(state["moments"], arrays, strict=True)
        self._steps = [(float(t), int(updates), array.copy()) for (t, updates), array in rows]


def covariance_eigenvalues(R: Array) -> Array:
    """Compute the eigenvalues of P = (RᵀR)⁻¹, largest first, of one triangle `R` or several; infinite if
    undetermined."""
    with one_blas_thread():
        values = np.linalg.svd(R, compute_uv=False)[..., ::-1]
    known = values > 1e-150
    return np.asarray(np.divide(1.0, values**2, out=np.full_like(values, np.inf), where=known), dtype=np.float64)


class ConvergenceTest:
    """Tests every `window` updates whether the estimate has converged.

    It has if the last window changed the predictions of all rows by less than `tolerance` of the residuals (root mean
    squares), or by a negligible part of the rows. Parameters with little influence may still change; predictions do
    not.
    """

    def __init__(self, count: int, window: int, tolerance: float) -> None:
        self.window, self.tolerance = window, tolerance
        self.converged = False
        self._last = np.full(count, np.nan)

    def update(self, state: Information) -> None:
        if state.updates % self.window:
            return
        beta, Ry = state.theta(), state.triangle
        change = float(np.linalg.norm(Ry[:-1, :-1] @ (beta - self._last)))  # NaN if undetermined
        size = float(np.linalg.norm(Ry[:-1, -1]))
        self.converged = change <= max(self.tolerance * state.residual, _NEGLIGIBLE_CHANGE * size)
        self._last = beta

    def state(self) -> dict[str, Array]:
        return {"last_beta": self._last.copy(), "converged": np.array(self.converged)}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._last = np.array(state["last_beta"])
        self.converged = bool(state["converged"])
