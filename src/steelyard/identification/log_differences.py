"""Tests whether logs have different parameters, from their normal equations, without another pass over the rows.

H = Σ w²AᵀA and the scores g = Σ w²Aᵀ(y − Aβ) are stored by log and equation. A log i that differs by C δ (one
parameter, the torque scale of a joint, a payload) has rows A_i(β + C δ). With β fitted as well, δ = S⁻¹u, where u is
the score of the log along C and S = CᵀH_iC − CᵀH_i H⁻¹ H_iC. The log must excite C only.

The covariance of δ comes from the residuals of each log's own fit, so that a log that disagrees does not inflate it. It
combines the spectrum of stationary noise with the variation of the scores between stretches, which covers model errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.linear.covariance import score_covariances
from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, mean_ratio, shrink_to_mean
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Eigenvalues below this share of the largest are treated as zero (columns scaled).
_LEAST_EIGENVALUE = 1e-10
# A change is testable if the fit of the other logs leaves at least this share of its square.
_LEAST_SHARE = 1e-4
# A parameter is identifiable from a log alone if at most this share is missing.
_MISSING = 1e-3
# Relative resolution of torques.
_RESOLUTION = 1e-6


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


class LogSums:
    """Sums of each log and equation over the base columns, for comparisons between logs.

    Args:
        parts: Rows of each log.
        base: Base parameters of the columns.
        beta: Parameters of the fit to all logs.
        residual_std: Residual standard deviation of each equation in that fit; first guess of the weights.
    """

    def __init__(self, parts: Sequence[RegressionData], base: BaseParameters, beta: Array, residual_std: Array) -> None:
        self.base, self.beta, self.logs = base, beta, len(parts)
        p = base.rank
        reductions = [part.reduction() for part in parts]
        columns = [e.among(base.independent) for e in parts[0].equations]
        self.rows = np.array([r.factor.rows for r in reductions], dtype=float)
        # By log and equation: the Gram matrices of all stretches over [A y].
        self.stretches: list[list[Array]] = []
        for r in reductions:
            mine = []
            for growing, (own, where) in zip(r.stretches, columns, strict=True):
                grams = np.array([t.T @ t for t in growing])
                grams[1:] -= grams[:-1].copy()
                out, inner, outer = np.zeros((len(grams), p + 1, p + 1)), [*own, -1], [*where, p]
                out[np.ix_(range(len(grams)), outer, outer)] = grams[np.ix_(range(len(grams)), inner, inner)]
                mine.append(out)
            self.stretches.append(mine)
        self.grams = np.array([[g.sum(axis=0) for g in mine] for mine in self.stretches])
        self.H, self.b = self.grams[:, :, :p, :p], self.grams[:, :, :p, p]
        self.weights = 1.0 / np.maximum(residual_std, 1e-300)
        # Minimum noise power of torques with limited resolution.
        least = _RESOLUTION**2 * self.grams[:, :, p, p].sum(axis=0) / np.maximum(self.rows.sum(axis=0), 1.0)
        for _ in range(3):  # Residuals of each log's own fit, so that a log that disagrees does not inflate them.
            self.own = [self._own_fit(i) for i in range(self.logs)]
            squares = sum(self.squares(i, x) for i, (x, _) in enumerate(self.own))
            free = np.maximum(self.freedom.sum(axis=0), 1.0)
            self.weights = 1.0 / np.sqrt(np.maximum(squares / free, least + 1e-300))
        self.own = [self._own_fit(i) for i in range(self.logs)]
        # Covariances of the scores w²Aᵀu by log and equation, from the noise spectrum and from the scatter.
        self.noise = np.array([score_covariances(r.spectra, base, x, self.weights, inverse)
                               for r, (x, inverse) in zip(reductions, self.own, strict=True)])  # fmt: skip
        self.noise += (self.weights**4 * least)[:, None, None] * self.H
        self.scatter = np.array([[self._scatter(i, e) for e in range(len(columns))] for i in range(self.logs)])
        self.counts = np.array([[len(g) for g in mine] for mine in self.stretches])

    def normal(self, log: int) -> Array:
        """Return H of a `log` by its index."""
        return np.asarray(np.einsum("e,epq->pq", self.weights**2, self.H[log]))

    def squares(self, log: int, x: Array) -> Array:
        """Return the squared error of each equation.

        Args:
            log: Index of the log.
            x: Parameters.
        """
        way = np.append(-x, 1.0)
        return np.asarray(np.maximum(np.einsum("p,epq,q->e", way, self.grams[log], way), 0.0))

    def _own_fit(self, log: int) -> tuple[Array, Array]:
        """Return a log's own parameters and the inverse of its H; unidentifiable directions keep `beta`."""
        H, b = self.normal(log), np.einsum("e,ep->p", self.weights**2, self.b[log])
        inverse = pseudo_inverse(H)
        return self.beta + inverse @ (b - H @ self.beta), inverse

    @property
    def freedom(self) -> Array:
        """Residual degrees of freedom of the logs' own fits, by log and equation."""
        inverses = np.array([inverse for _, inverse in self.own])
        return np.asarray(self.rows - np.einsum("e,iepq,iqp->ie", self.weights**2, self.H, inverses))

    def stretch_scores(self, log: int, equation: int) -> Array:
        """Return the scores of each stretch minus their mean, at the log's own fit, shape (stretches, rank).

        The sum of their squares is the scatter.

        Args:
            log: Index of the log.
            equation: Index of the equation.
        """
        grams = self.stretches[log][equation]
        way = np.append(-self.own[log][0], 1.0)
        scores = self.weights[equation] ** 2 * (grams[:, :-1] @ way)
        scores = scores - scores.mean(axis=0)
        return np.asarray(scores * math.sqrt(len(grams) / max(len(grams) - 1, 1)))

    def _scatter(self, log: int, equation: int) -> Array:
        scores = self.stretch_scores(log, equation)
        return np.asarray(scores.T @ scores)

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
        inverse = pseudo_inverse(np.einsum("e,iepa,iepb->ab", w2, D, self.H @ D))
        return inverse, inverse @ np.einsum("e,iepa,iep->a", w2, D, self.b)

    def squared_errors(self, nuisance: Sequence[Array]) -> Array:
        """Return the squared error of every log and equation in a fit of `nuisance`, shape (logs, equations)."""
        D = np.array(nuisance)
        way = np.concatenate([-D @ self._fitted(D)[1], np.ones((*D.shape[:2], 1))], axis=-1)
        return np.asarray(np.einsum("iep,iepq,ieq->ie", way, self.grams, way))

    def _degrees(self, log: int) -> float:
        """Return the degrees of freedom of a log's scatter between stretches."""
        return max(float(np.median(self.counts[log])) - 1.0, 1.0)

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
        degrees = self._degrees(log)
        testable = np.diag(S) > _LEAST_SHARE * np.diag(ZZ)
        common = mean_ratio(np.diag(scatter)[testable] / np.maximum(np.diag(noise)[testable], 1e-300), degrees)
        alone = np.diag(noise) * _shrunk(np.diag(scatter) / np.maximum(np.diag(noise), 1e-300), common, degrees)
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
            V = V * _shrunk(float(np.trace(np.linalg.solve(V, W))) / m, common, degrees)
            step = np.linalg.solve(part, score)
            where = [list(group).index(k) for k in mine]
            change[where] = basis @ step
            if m == len(mine):  # Otherwise single changes are not identifiable.
                spread = np.linalg.solve(part, np.linalg.solve(part, V).T)
                error[where] = np.sqrt(np.einsum("ka,ab,kb->k", basis, spread, basis))
            out.append(LogShift(log, change, error, float(score @ np.linalg.solve(V, score)), m, total_degrees,
                            float(score @ step)))  # fmt: skip
        return out

    def separate_estimates(self) -> tuple[Array, Array]:
        """Return the parameters of each log and their standard errors, both of shape (logs, rank).

        The errors include the variation between stretches. Values that a log cannot identify are NaN.
        """
        values, errors = np.full((2, self.logs, self.base.rank), np.nan)
        for i, (own, inverse) in enumerate(self.own):
            identifiable = np.abs(np.diag(inverse @ self.normal(i)) - 1.0) < _MISSING
            V, W = (np.diag(inverse @ x[i].sum(axis=0) @ inverse)[identifiable] for x in (self.noise, self.scatter))
            ratio, degrees = W / np.maximum(V, 1e-300), self._degrees(i)
            values[i, identifiable] = own[identifiable]
            errors[i, identifiable] = np.sqrt(V * _shrunk(ratio, mean_ratio(ratio, degrees), degrees))
        return values, errors


def _shrunk(own: Array | float, common: float, degrees: float) -> Array:
    """Return the variance ratio to noise, shrunk to the common ratio; at least 1."""
    return np.maximum(shrink_to_mean(own, common, degrees), 1.0)


def _testable_directions(S: Array, ZZ: Array) -> Array:
    """Return the directions of some changes that other parameters cannot explain, shape (changes, directions)."""
    if not len(S):
        return np.zeros((0, 0))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(ZZ), 1e-300))
    values, vectors = np.linalg.eigh(S * scale * scale[:, None])
    return np.asarray(scale[:, None] * vectors[:, values > _LEAST_SHARE])


def pseudo_inverse(H: Array) -> Array:
    """Return the pseudo-inverse of `H` with scaled columns."""
    size = np.sqrt(np.diag(H))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    nonzero = values > _LEAST_EIGENVALUE * values[-1]
    return np.asarray((vectors[:, nonzero] / values[nonzero]) @ vectors[:, nonzero].T * scale * scale[:, None])
