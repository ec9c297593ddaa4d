"""What recursive least squares remembers of its way: a few hundred moments, and whether the estimate has settled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.recursion._information import Information, determined
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array, one_blas_thread

# A change of the predictions below this part of them does not show, also where there is no noise at all.
_NOTHING = 1e-6


class History:
    """Moments of an estimation, evenly spread: whenever there are `most`, every second one goes.

    `t`, `updates` and `beta` (moments × parameters) are what was known then; `eigenvalues` those of P, largest first.
    Both are worked out from the triangles when they are asked for; without `eigenvalues` only `beta` is kept, which a
    live watch can afford to write every other second.
    """

    def __init__(self, count: int, most: int = 256, eigenvalues: bool = True) -> None:
        self._most, self._stride, self._whole = most - most % 2, 1, eigenvalues
        self._count = count
        self._moments: list[tuple[float, int, Array]] = []

    def add(self, t: float, state: Information) -> None:
        """Keep this moment if its turn has come."""
        if state.updates % self._stride or not self._most:
            return
        self._moments.append((t, state.updates, state.joined if self._whole else state.theta()))
        if len(self._moments) == self._most:
            self._stride *= 2
            self._moments = [m for m in self._moments if m[1] % self._stride == 0]

    def __len__(self) -> int:
        return len(self._moments)

    @property
    def t(self) -> Array:
        return np.array([m[0] for m in self._moments])

    @property
    def updates(self) -> Array:
        return np.array([m[1] for m in self._moments])

    @property
    def beta(self) -> Array:
        """`(moments, parameters)`; not numbers where not all of them were known yet."""
        if not self._whole:
            return np.array([m[2] for m in self._moments]).reshape(-1, self._count)
        out = np.full((len(self), self._count), np.nan)
        for row, (_, _, joined) in zip(out, self._moments, strict=True):
            if determined(joined[:-1, :-1]):
                row[:] = solve_triangular(joined[:-1, :-1], joined[:-1, -1])
        return out

    @property
    def eigenvalues(self) -> Array:
        """Of P, `(moments, parameters)`; infinite where nothing was known yet."""
        if not self._whole:
            raise EstimationError("This history keeps no eigenvalues; begin it with eigenvalues=True.")
        R = np.array([m[2][:-1, :-1] for m in self._moments]).reshape(-1, self._count, self._count)
        return covariance_eigenvalues(R)

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Where a saved state may differ from that of a new history."""
        most = max(self._most, 1)
        # A state of before there was a choice has triangles in the place of estimates.
        kept = ArrayRule(rows=most, unknown=True, optional=True)
        return {"moments": ArrayRule(rows=most), "beta": kept, "triangles": kept}

    def state(self) -> dict[str, Array]:
        size = self._count + 1
        head = np.array([[m[0], m[1]] for m in self._moments]).reshape(-1, 2)
        kept = {"moments": head, "stride": np.array(self._stride)}
        if not self._whole:
            return {**kept, "beta": self.beta}
        return {**kept, "triangles": np.array([m[2] for m in self._moments]).reshape(-1, size, size)}

    def restore(self, state: Mapping[str, Array]) -> None:
        if not state["stride"] >= 1.0:
            raise EstimationError("the history in the state is damaged.")
        self._stride = int(state["stride"])
        # A state of before there was a choice has triangles, none of them where nothing was kept.
        of_each = state["triangles" if self._whole or "beta" not in state else "beta"]
        rows = zip(state["moments"], of_each, strict=True)
        self._moments = [(float(t), int(updates), kept.copy()) for (t, updates), kept in rows]


def covariance_eigenvalues(R: Array) -> Array:
    """The eigenvalues of P = (RᵀR)⁻¹, largest first, of one triangle `R` or several; infinite if nothing is known."""
    with one_blas_thread():
        values = np.linalg.svd(R, compute_uv=False)[..., ::-1]
    known = values > 1e-150
    return np.asarray(np.divide(1.0, values**2, out=np.full_like(values, np.inf), where=known), dtype=np.float64)


class Settling:
    """Whether the estimate stands still: looked at every `window` updates.

    It does when the last window changed the predictions of all rows so far by less than `tolerance` of the residuals
    (root mean squares), or by nothing that shows beside the rows themselves. A parameter that hardly shows may
    wander on; what the model predicts does not.
    """

    def __init__(self, count: int, window: int, tolerance: float) -> None:
        self.window, self.tolerance = window, tolerance
        self.converged = False
        self._last = np.full(count, np.nan)

    def look(self, state: Information) -> None:
        if state.updates % self.window:
            return
        beta, joined = state.theta(), state.joined
        change = float(np.linalg.norm(joined[:-1, :-1] @ (beta - self._last)))  # NaN where one is not determined
        size = float(np.linalg.norm(joined[:-1, -1]))
        self.converged = change <= max(self.tolerance * state.residual, _NOTHING * size)
        self._last = beta

    def state(self) -> dict[str, Array]:
        return {"last_beta": self._last.copy(), "converged": np.array(self.converged)}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._last = np.array(state["last_beta"])
        self.converged = bool(state["converged"])
