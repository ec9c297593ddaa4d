"""`Found`: sums of parameters that several experiments gave, with the covariance of all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.robot.spatial import Array

# A number that is said to be exact is known to this part of itself, so that covariances can be inverted.
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class Found:
    """`values` of the sums `functionals` · β, by name."""

    names: tuple[str, ...]
    functionals: Array
    values: Array
    covariance: Array

    @classmethod
    def start(cls, given: Mapping[str, tuple[Array, float, float]], count: int) -> Found:
        """Numbers with standard errors, independent of one another."""
        for name, (_, value, error) in given.items():
            if not (np.isfinite(value) and np.isfinite(error) and error >= 0.0):
                raise EstimationError(f"{name} is known as {value} ± {error}; both must be numbers, the second ≥ 0.")
        rows = np.array([row for row, _, _ in given.values()]).reshape(-1, count)
        values = np.array([value for _, value, _ in given.values()])
        errors = np.array([max(error, _EXACT * abs(value), 1e-300) for _, value, error in given.values()])
        return cls(tuple(given), rows, values, np.diag(errors**2))

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.diag(self.covariance))

    def part(self, names: Sequence[str]) -> Found:
        k = [self.names.index(n) for n in names]
        return Found(tuple(names), self.functionals[k], self.values[k], self.covariance[np.ix_(k, k)])

    def join(
        self, new: Mapping[str, Array], values: Array, own: Array, known: Sequence[int], sensitivity: Array
    ) -> Found:
        """With the values of another experiment, whose errors are its `own` and what the `known` ones pass on.

        A name that was there already is averaged with its new value.
        """
        cross = sensitivity @ self.covariance[list(known)]
        total = own + cross[:, list(known)] @ sensitivity.T
        covariance = np.block([[self.covariance, cross.T], [cross, total]])
        names = (*self.names, *(n for n in new if n not in self.names))
        design = np.array([[float(n == m) for m in names] for n in (*self.names, *new)])
        row_of = {**dict(zip(self.names, self.functionals, strict=True)), **new}
        everything = np.concatenate([self.values, values])
        if len(names) == len(everything):
            return Found(names, np.array([row_of[n] for n in names]), everything, covariance)
        joined, smaller = weighted_mean(design, everything, covariance)
        return Found(names, np.array([row_of[n] for n in names]), joined, smaller)

    def combine(self, row: Array, kept: Sequence[int]) -> tuple[float, float] | None:
        """A sum row · β with its standard error, of the parameters `kept` (the others are zero); None: not found."""
        F, wanted = self.functionals[:, list(kept)], row[list(kept)]
        if not np.any(wanted != 0.0):
            return 0.0, 0.0
        # Averaged where sums overlap: weights that make the sum, of the least variance.
        scale = np.where((size := np.abs(F).max(axis=0, initial=0.0)) > 0.0, size, 1.0)
        share = np.linalg.lstsq((F / scale).T, wanted / scale, rcond=None)[0]
        if np.abs(share @ F - wanted).max() > 1e-9 * np.abs(wanted).max():
            return None
        u, s, _ = np.linalg.svd(F / scale)
        free = u[:, int(np.sum(s > 1e-9 * s[0])) :]  # directions of shares that add nothing
        if free.shape[1]:
            error = 1.0 / self.standard_errors
            C = self.covariance * error * error[:, None]
            Z = free / error[:, None]
            share = share - free @ np.linalg.solve(Z.T @ C @ Z, Z.T @ C @ (share / error))
        return float(share @ self.values), sqrt(max(float(share @ self.covariance @ share), 0.0))


def weighted_mean(design: Array, values: Array, covariance: Array) -> tuple[Array, Array]:
    """Generalised least squares: x of values = design · x, for errors of a given covariance; and x's covariance."""
    scale = 1.0 / np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance * scale * scale[:, None])
    left = np.linalg.solve(root, design * scale[:, None])
    lengths = np.linalg.norm(left, axis=0)
    q, r = np.linalg.qr(left / lengths)
    inverse = np.linalg.inv(r) / lengths[:, None]
    return inverse @ (q.T @ np.linalg.solve(root, values * scale)), inverse @ inverse.T
