"""The backward pass of Rauch, Tung and Striebel (1965): every state in the light of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from steelyard.estimation.estimate import EstimationError
from steelyard.robot.spatial import Array

# A pass keeps two covariances per sample; more than this is refused.
_MOST_BYTES = 2_000_000_000


@dataclass(eq=False)
class Trail:
    """What the backward pass needs of one run: before and after every step."""

    samples: int
    filtered: list[tuple[Array, Array]] = field(default_factory=list)
    predicted: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def check(self, width: int) -> None:
        need = 16 * width**2 * self.samples
        if need > _MOST_BYTES:
            raise EstimationError(
                f"Smoothing {self.samples} samples of {width} unknowns needs {need / 1e9:.1f} GB; cut the log into "
                "shorter runs or leave `smooth` off (parameters that do not drift gain nothing by it)."
            )

    def smoothed(self) -> tuple[Array, Array]:
        """(parameters and state) `(samples, …)` with their standard deviations."""
        z, P = self.filtered[-1]
        means, spreads = [z], [np.sqrt(np.maximum(np.diag(P), 0.0))]
        p = len(z) - len(self.predicted[0][2]) if self.predicted else 0
        for (before, Pf), (after, Pp, slope) in zip(self.filtered[-2::-1], self.predicted[::-1], strict=True):
            scale = np.sqrt(np.diag(Pp))  # unknowns of very different size would spoil the factorisation
            C = np.hstack([Pf[:, :p], Pf @ slope.T]) / scale
            G = cho_solve(cho_factor(Pp / np.outer(scale, scale), lower=True), C.T).T / scale
            z = before + G @ (z - after)
            P = Pf + G @ (P - Pp) @ G.T
            means.append(z)
            spreads.append(np.sqrt(np.maximum(np.diag(P), 0.0)))
        return np.array(means[::-1]), np.array(spreads[::-1])
