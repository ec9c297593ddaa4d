"""Tests whether logs have different parameters, from their normal equations, without another pass over the rows.

A log i that differs by C δ (one parameter, the torque scale of a joint, a payload) has rows A_i(β + C δ). With β fitted
as well, δ = S⁻¹u, where u is the score of the log along C and S = CᵀH_iC − CᵀH_i H⁻¹ H_iC. The log must excite C only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.linear.log_sums import LogSums
from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, mean_ratio, widening_factor
from steelyard.ground.arrays import Array
from steelyard.regression.normal_matrix import NormalMatrix

# A change is testable if the fit of the other logs leaves at least this share of its square.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class LogShift:
    """Result of a test whether one log differs from the others along some columns.

    Attributes:
        log: Index of the log.
        change: δ of each column: value of this log minus value of the others.
        error: Standard error of `change`.
        statistic: χ² of the whole change.
        columns: Number of testable directions.
        degrees: Degrees of freedom of the errors.
        gain: Reduction of the weighted sum of squares of all logs.
    """

    log: int
    change: Array
    error: Array
    statistic: float
    columns: int
    degrees: float
    gain: float

    @cached_property
    def z(self) -> float:
        """Gaussian quantile with the same p-value."""
        return f_as_z(self.statistic / max(self.columns, 1), self.columns, self.degrees) if self.columns else 0.0

    @property
    def p(self) -> float:
        """One-sided p-value."""
        return 0.5 * math.erfc(self.z / math.sqrt(2.0))


def f_as_z(f: float, m: float, n: float) -> float:
    """Convert an F statistic to the Gaussian quantile with the same p-value (Paulson 1942).

    Args:
        f: F statistic.
        m: Degrees of freedom of the numerator.
        n: Degrees of freedom of the denominator.
    """
    a, b, root = 2.0 / (9.0 * m), 2.0 / (9.0 * n), np.cbrt(max(f, 0.0))
    return float(((1.0 - b) * root - (1.0 - a)) / math.sqrt(b * root**2 + a))


class LogDifferences(LogSums):
    """Comparisons between logs by their sums."""

    def tests(self, library: Array, nuisance: Sequence[Array], groups: Sequence[Sequence[int]]) -> list[list[LogShift]]:
        """Test for every log whether it differs along each group of changes.

        Args:
            library: Changes of the parameters of each equation, shape (equations, rank, changes).
            nuisance: For each log, the changes that are fitted as well, shape (equations, rank, unknowns).
            groups: Indices of the changes that are tested together.
        """
        w2, D = self.weights**2, np.array(nuisance)
        inverse, fitted = self._fitted(D)
        sums = [self._nuisance_sums(D, C) for C in (self.noise, self.scatter)]
        out = []
        for i in range(self.logs):
            ZH = np.einsum("e,epk,epq->ekq", w2, library, self.H[i])
            ZZ = np.einsum("ekq,eql->kl", ZH, library)
            ZN = np.einsum("ekq,eqa->ka", ZH, D[i])
            K = ZN @ inverse
            S = ZZ - K @ ZN.T
            u = np.einsum("e,epk,ep->k", w2, library, self.b[i]) - ZN @ fitted
            noise, scatter = (
                self._variance(library, D[i], K, own[i], whole)
                for own, whole in zip((self.noise, self.scatter), sums, strict=True)
            )
            out.append(self._grouped(i, groups, (ZZ, S, u, noise, scatter)))
        return out

    def _fitted(self, D: Array) -> tuple[Array, Array]:
        w2 = self.weights**2
        inverse = NormalMatrix.of(np.einsum("e,iepa,iepb->ab", w2, D, self.H @ D)).inverse
        return inverse, inverse @ np.einsum("e,iepa,iep->a", w2, D, self.b)

    def squared_errors(self, nuisance: Sequence[Array]) -> Array:
        """Return the squared error of every log and equation in a fit of `nuisance`, shape (logs, equations)."""
        D = np.array(nuisance)
        way = np.concatenate([-D @ self._fitted(D)[1], np.ones((*D.shape[:2], 1))], axis=-1)
        return np.asarray(np.einsum("iep,iepq,ieq->ie", way, self.grams, way))

    def _nuisance_sums(self, D: Array, C: Array) -> Array:
        return np.asarray(np.einsum("iepa,iepq,ieqb->ab", D, C, D, optimize=True))

    def _variance(self, library: Array, D: Array, K: Array, own: Array, whole: Array) -> Array:
        """Return the variance of the score u: of the log along L = C − D Kᵀ, and of the others along D Kᵀ."""
        CD = np.einsum("epk,epq,eqa->ka", library, own, D, optimize=True)
        CC = np.einsum("epk,epq,eql->kl", library, own, library, optimize=True)
        return np.asarray(CC - CD @ K.T - K @ CD.T + K @ whole @ K.T)

    def _grouped(
        self, log: int, groups: Sequence[Sequence[int]], sums: tuple[Array, Array, Array, Array, Array]
    ) -> list[LogShift]:
        ZZ, S, u, noise, scatter = sums
        degrees = self.degrees(log)
        testable = np.diag(S) > _LEAST_SHARE * np.diag(ZZ)
        common = mean_ratio(np.diag(scatter)[testable] / np.maximum(np.diag(noise)[testable], 1e-300), degrees)
        alone = np.diag(noise) * widening_factor(np.diag(scatter) / np.maximum(np.diag(noise), 1e-300), common, degrees)
        total_degrees, out = degrees + DEGREES_OF_MEAN, []
        for group in groups:
            mine = [k for k in group if testable[k]]
            change, error = np.zeros(len(group)), np.full(len(group), np.inf)
            if len(group) == 1 and mine:
                k = mine[0]
                test = LogShift(log, u[[k]] / S[k, k], np.sqrt(alone[[k]]) / S[k, k], float(u[k] ** 2 / alone[k]), 1,
                            total_degrees, float(u[k] ** 2 / S[k, k]))  # fmt: skip
                out.append(test)
                continue
            every = np.ix_(mine, mine)
            basis = _testable_directions(S[every], ZZ[every])
            m = basis.shape[1]
            if not m:
                out.append(LogShift(log, change, error, 0.0, 0, total_degrees, 0.0))
                continue
            part, V, W = (basis.T @ x[every] @ basis for x in (S, noise, scatter))
            score = basis.T @ u[mine]
            V = V * widening_factor(float(np.trace(np.linalg.solve(V, W))) / m, common, degrees)
            step = np.linalg.solve(part, score)
            where = [list(group).index(k) for k in mine]
            change[where] = basis @ step
            if m == len(mine):  # Otherwise single changes are not identifiable.
                spread = np.linalg.solve(part, np.linalg.solve(part, V).T)
                error[where] = np.sqrt(np.einsum("ka,ab,kb->k", basis, spread, basis))
            out.append(LogShift(log, change, error, float(score @ np.linalg.solve(V, score)), m, total_degrees,
                            float(score @ step)))  # fmt: skip
        return out


def _testable_directions(S: Array, ZZ: Array) -> Array:
    """Return the directions of some changes that other parameters cannot explain, shape (changes, directions)."""
    if not len(S):
        return np.zeros((0, 0))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(ZZ), 1e-300))
    values, vectors = np.linalg.eigh(S * scale * scale[:, None])
    return np.asarray(scale[:, None] * vectors[:, values > _LEAST_SHARE])
