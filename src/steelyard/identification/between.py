"""Whether several logs tell the same: each log's own answer, and what in it differs from the others, in small matrices.

With H = Σ w²AᵀA and the scores g = Σ w²Aᵀ(y − Aβ), both by log and equation, everything follows without another pass
over the rows. A log i that differs by C δ (one parameter, the torque's scale of a joint, a load) has rows A_i(β + C δ);
with β fitted along, δ = S⁻¹u, u the score of the log along C, S = CᵀH_iC − CᵀH_i H⁻¹ H_iC. This asks of a log nothing
but that it shows C: it need not excite the rest.

How far δ may be off by itself comes from the residuals of each log's own fit, which a log that disagrees does not
widen: the noise's spectrum says it for stationary errors, the scores' scatter from stretch to stretch of the logs for
all that a model lacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.linear.covariance import score_covariances
from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, drawn_to_mean, mean_ratio
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Directions that a log shows less than this part of its largest (of squares, columns scaled) are not seen in it.
_UNSEEN = 1e-10
# A change of which the fit of the others leaves less than this part (of its square) cannot be told from them.
_NEW = 1e-4
# A parameter of which a log shows all but this part has a value of its own there.
_BLURRED = 1e-3
# No torque is known to more digits.
_DIGITS = 1e-6


@dataclass(frozen=True, eq=False)
class LogShift:
    """One question to one log: does it differ along some columns, by how much, and how sure is that?

    Attributes:
        log: its number.
        change: δ of each column, that of the log less that of the others.
        error: its standard error.
        statistic: χ² of the whole change.
        columns: how many directions of it can be told.
        degrees: of freedom of the errors.
        gain: what the log's and the others' weighted sum of squares loses by it.
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
        """The quantile of a Gaussian that is as rare."""
        return f_as_z(self.statistic / max(self.columns, 1), self.columns, self.degrees) if self.columns else 0.0

    @property
    def p(self) -> float:
        """How often chance alone would do as much."""
        return 0.5 * math.erfc(self.z / math.sqrt(2.0))


def f_as_z(f: float, m: float, n: float) -> float:
    """The Gaussian quantile as rare as `f` of the F distribution with `m` and `n` degrees of freedom (Paulson 1942)."""
    a, b, root = 2.0 / (9.0 * m), 2.0 / (9.0 * n), np.cbrt(max(f, 0.0))
    return float(((1.0 - b) * root - (1.0 - a)) / math.sqrt(b * root**2 + a))


class LogSums:
    """The sums of every log by equation over the base columns: what all comparisons are made from.

    Args:
        parts: the rows of each log.
        base: whose columns are looked at.
        beta: the parameters of the fit to all logs.
        residual_std: of each equation in the fit to all logs, as a first guess of the weights.
    """

    def __init__(self, parts: Sequence[RegressionData], base: BaseParameters, beta: Array, residual_std: Array) -> None:
        self.base, self.beta, self.logs = base, beta, len(parts)
        p = base.rank
        made = [part.reduction() for part in parts]
        places = [e.among(base.independent) for e in parts[0].equations]
        self.rows = np.array([r.factor.rows for r in made], dtype=float)
        # By log and equation: the Gram matrices of all stretches over [A y].
        self.stretches: list[list[Array]] = []
        for r in made:
            mine = []
            for growing, (own, where) in zip(r.stretches, places, strict=True):
                grams = np.array([t.T @ t for t in growing])
                grams[1:] -= grams[:-1].copy()
                out, inner, outer = np.zeros((len(grams), p + 1, p + 1)), [*own, -1], [*where, p]
                out[np.ix_(range(len(grams)), outer, outer)] = grams[np.ix_(range(len(grams)), inner, inner)]
                mine.append(out)
            self.stretches.append(mine)
        self.grams = np.array([[g.sum(axis=0) for g in mine] for mine in self.stretches])
        self.H, self.b = self.grams[:, :, :p, :p], self.grams[:, :, :p, p]
        self.weights = 1.0 / np.maximum(residual_std, 1e-300)
        # The power of noise that torques have at least, by their digits.
        least = _DIGITS**2 * self.grams[:, :, p, p].sum(axis=0) / np.maximum(self.rows.sum(axis=0), 1.0)
        for _ in range(3):  # by what each log's own fit leaves: a log that disagrees says nothing of the noise
            self.own = [self._own_fit(i) for i in range(self.logs)]
            left = sum(self.squares(i, x) for i, (x, _) in enumerate(self.own))
            free = np.maximum(self.freedom.sum(axis=0), 1.0)
            self.weights = 1.0 / np.sqrt(np.maximum(left / free, least + 1e-300))
        self.own = [self._own_fit(i) for i in range(self.logs)]
        # Covariances of the scores w²Aᵀu by log and equation: as the noise's spectrum, and the scatter, tell.
        self.noise = np.array([score_covariances(r.spectra, base, x, self.weights, inverse)
                               for r, (x, inverse) in zip(made, self.own, strict=True)])  # fmt: skip
        self.noise += (self.weights**4 * least)[:, None, None] * self.H
        self.scatter = np.array([[self._scatter(i, e) for e in range(len(places))] for i in range(self.logs)])
        self.counts = np.array([[len(g) for g in mine] for mine in self.stretches])

    def normal(self, log: int) -> Array:
        """H of a `log`, by its number."""
        return np.asarray(np.einsum("e,epq->pq", self.weights**2, self.H[log]))

    def squares(self, log: int, x: Array) -> Array:
        """The squared errors of the parameters `x` on a `log`, by equation."""
        way = np.append(-x, 1.0)
        return np.asarray(np.maximum(np.einsum("p,epq,q->e", way, self.grams[log], way), 0.0))

    def _own_fit(self, log: int) -> tuple[Array, Array]:
        """A log's own parameters, and the inverse of its H; what it does not show stays as `beta` has it."""
        H, b = self.normal(log), np.einsum("e,ep->p", self.weights**2, self.b[log])
        inverse = pseudo_inverse(H)
        return self.beta + inverse @ (b - H @ self.beta), inverse

    @property
    def freedom(self) -> Array:
        """Degrees of freedom that the logs' own fits leave, by log and equation."""
        inverses = np.array([inverse for _, inverse in self.own])
        return np.asarray(self.rows - np.einsum("e,iepq,iqp->ie", self.weights**2, self.H, inverses))

    def stretch_scores(self, log: int, equation: int) -> Array:
        """The scores of an equation in each stretch, less their mean, at the log's own fit, `(stretches, rank)`; their
        squares add up to their scatter.

        Args:
            log: its number.
            equation: its number.
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
        """Of every log, whether it differs along each of `groups`.

        Args:
            library: changes, `(equations, rank, changes)`: what each adds to the parameters of an equation's rows.
            nuisance: by log, what is fitted along, `(equations, rank, unknowns)`.
            groups: which of the changes are asked about together.
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

    def left(self, nuisance: Sequence[Array]) -> Array:
        """The squared error of every log and equation in a fit of `nuisance`, `(logs, equations)`."""
        D = np.array(nuisance)
        way = np.concatenate([-D @ self._fitted(D)[1], np.ones((*D.shape[:2], 1))], axis=-1)
        return np.asarray(np.einsum("iep,iepq,ieq->ie", way, self.grams, way))

    def _degrees(self, log: int) -> float:
        """Of freedom that the scatter from stretch to stretch of a log has."""
        return max(float(np.median(self.counts[log])) - 1.0, 1.0)

    def _nuisance_sums(self, D: Array, C: Array) -> Array:
        return np.asarray(np.einsum("iepa,iepq,ieqb->ab", D, C, D, optimize=True))

    def _variance(self, library: Array, D: Array, K: Array, own: Array, whole: Array) -> Array:
        """Of the score u: that of the log itself along L = C − D Kᵀ, of the others along D Kᵀ."""
        CD = np.einsum("epk,epq,eqa->ka", library, own, D, optimize=True)
        CC = np.einsum("epk,epq,eql->kl", library, own, library, optimize=True)
        return np.asarray(CC - CD @ K.T - K @ CD.T + K @ whole @ K.T)

    def _grouped(
        self, log: int, groups: Sequence[Sequence[int]], sums: tuple[Array, Array, Array, Array, Array]
    ) -> list[LogShift]:
        ZZ, S, u, noise, scatter = sums
        degrees = self._degrees(log)
        told = np.diag(S) > _NEW * np.diag(ZZ)
        common = mean_ratio(np.diag(scatter)[told] / np.maximum(np.diag(noise)[told], 1e-300), degrees)
        alone = np.diag(noise) * _shrunk(np.diag(scatter) / np.maximum(np.diag(noise), 1e-300), common, degrees)
        believed, out = degrees + DEGREES_OF_MEAN, []
        for group in groups:
            mine = [k for k in group if told[k]]
            change, error = np.zeros(len(group)), np.full(len(group), np.inf)
            if len(group) == 1 and mine:
                k = mine[0]
                test = LogShift(log, u[[k]] / S[k, k], np.sqrt(alone[[k]]) / S[k, k], float(u[k] ** 2 / alone[k]), 1,
                            believed, float(u[k] ** 2 / S[k, k]))  # fmt: skip
                out.append(test)
                continue
            every = np.ix_(mine, mine)
            basis = _seen(S[every], ZZ[every])
            m = basis.shape[1]
            if not m:
                out.append(LogShift(log, change, error, 0.0, 0, believed, 0.0))
                continue
            part, V, W = (basis.T @ x[every] @ basis for x in (S, noise, scatter))
            score = basis.T @ u[mine]
            V = V * _shrunk(float(np.trace(np.linalg.solve(V, W))) / m, common, degrees)
            step = np.linalg.solve(part, score)
            where = [list(group).index(k) for k in mine]
            change[where] = basis @ step
            if m == len(mine):  # what is seen in part only has no number of its own
                spread = np.linalg.solve(part, np.linalg.solve(part, V).T)
                error[where] = np.sqrt(np.einsum("ka,ab,kb->k", basis, spread, basis))
            out.append(LogShift(log, change, error, float(score @ np.linalg.solve(V, score)), m, believed,
                            float(score @ step)))  # fmt: skip
        return out

    def own_answers(self) -> tuple[Array, Array]:
        """Of every log its own parameters and their standard errors, `(logs, rank)`; not a number where it shows none.

        What varies from stretch to stretch is in the errors as it is in those of `tests`.
        """
        values, errors = np.full((2, self.logs, self.base.rank), np.nan)
        for i, (own, inverse) in enumerate(self.own):
            seen = np.abs(np.diag(inverse @ self.normal(i)) - 1.0) < _BLURRED
            V, W = (np.diag(inverse @ x[i].sum(axis=0) @ inverse)[seen] for x in (self.noise, self.scatter))
            ratio, degrees = W / np.maximum(V, 1e-300), self._degrees(i)
            values[i, seen] = own[seen]
            errors[i, seen] = np.sqrt(V * _shrunk(ratio, mean_ratio(ratio, degrees), degrees))
        return values, errors


def _shrunk(own: Array | float, common: float, degrees: float) -> Array:
    """What errors are wider by than noise explains; never narrower."""
    return np.maximum(drawn_to_mean(own, common, degrees), 1.0)


def _seen(S: Array, ZZ: Array) -> Array:
    """The directions of some changes that the fit of everything else leaves, `(changes, directions)`."""
    if not len(S):
        return np.zeros((0, 0))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(ZZ), 1e-300))
    values, vectors = np.linalg.eigh(S * scale * scale[:, None])
    return np.asarray(scale[:, None] * vectors[:, values > _NEW])


def pseudo_inverse(H: Array) -> Array:
    """`H`⁻¹ of what H shows, columns scaled to one; zero along what it does not show."""
    size = np.sqrt(np.diag(H))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    kept = values > _UNSEEN * values[-1]
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T * scale * scale[:, None])
