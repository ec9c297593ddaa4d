"""Gram matrices of the rows, block of time by block of time: what a search for the structure does its sums with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression.rows import Equation

# Added to the scaled normal equations: columns that a block leaves without any support stay small, not wild.
_RIDGE = 1e-9
# A candidate of which the others leave less than this part (of its square) is one of them in other words.
_NEW = 1e-5

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Structure:
    """Which columns a model has: of those that all equations share, and of each equation's own candidates."""

    shared: NDArray[np.bool_]
    own: tuple[tuple[int, ...], ...]

    def without(self, column: int) -> Structure:
        """Without one of the columns that all equations share."""
        return replace(self, shared=self.shared & (np.arange(len(self.shared)) != column))

    def with_own(self, equation: int, columns: Sequence[int]) -> Structure:
        """With these candidates of the `equation`, and the same of all others."""
        return replace(self, own=tuple(tuple(columns) if e == equation else o for e, o in enumerate(self.own)))


@dataclass(frozen=True, eq=False)
class Solution:
    """The fit of a structure: `x` over its columns, the inverse of its normal matrix, and where columns stand in both
    an equation's Gram matrix (`sources`) and x (`places`). What is `bounded` is not negative."""

    x: Array
    inverse: Array
    places: tuple[Index, ...]
    sources: tuple[Index, ...]
    bounded: NDArray[np.bool_]

    def away(self, equation: int, width: int) -> Array:
        """What a row [A y] of the `equation`, so wide, is multiplied with to give its residual."""
        v = np.zeros(width)
        v[self.sources[equation]] = -self.x[self.places[equation]]
        v[-1] = 1.0
        return v


class BlockGrams:
    """By block and equation: [A y]ᵀ[A y] over the shared columns, the equation's own candidates, and y.

    Args:
        equations: whose rows come in, over columns of the parameter vector.
        shared: the columns of the parameter vector that are solved for.
        own: for each equation and each of its candidates, whether its parameter cannot be negative.
        blocks: how many blocks there are.
        bounded: which of the shared columns' parameters cannot be negative.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        shared: Sequence[int],
        own: Sequence[Sequence[bool]],
        blocks: int,
        bounded: NDArray[np.bool_],
    ) -> None:
        place = {int(c): k for k, c in enumerate(shared)}
        self.shared, self.blocks = len(shared), blocks
        self._bounded = [np.concatenate([bounded, np.asarray(o, dtype=bool), [False]]) for o in own]
        self._columns = [[place[int(c)] for c in e.columns] for e in equations]
        self.widths = [self.shared + len(o) + 1 for o in own]
        self.grams = [[np.zeros((w, w)) for w in self.widths] for _ in range(blocks)]
        self.rows = np.zeros((blocks, len(self.widths)))
        self.sums = np.zeros((blocks, len(self.widths)))

    def add(self, equation: int, table: Array, candidates: Array, blocks: NDArray[np.int64]) -> None:
        """Take in rows [A y] of an `equation` (its number) and its `candidates` beside them; `blocks` says whose."""
        for b in np.unique(blocks):
            mine = blocks == b
            part = np.zeros((int(mine.sum()), self.widths[equation]))
            part[:, self._columns[equation]] = table[mine, :-1]
            part[:, self.shared : -1] = candidates[mine]
            part[:, -1] = table[mine, -1]
            self.grams[b][equation] += part.T @ part
            self.rows[b, equation] += len(part)
            self.sums[b, equation] += part[:, -1].sum()

    @cached_property
    def total(self) -> list[Array]:
        """Of all blocks together, equation by equation; to be asked for when all rows are in."""
        return [np.asarray(np.sum([g[e] for g in self.grams], axis=0)) for e in range(len(self.widths))]

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of every equation's right side."""
        count = self.rows.sum(axis=0)
        squares = np.array([g[-1, -1] for g in self.total])
        return np.asarray(np.sqrt(np.maximum(squares / count - (self.sums.sum(axis=0) / count) ** 2, 1e-300)))

    def solve(self, grams: Sequence[Array], structure: Structure, weights: Array) -> Solution:
        """Weighted least squares within the bounds; `weights` are 1/σ of the equations."""
        kept = np.flatnonzero(structure.shared)
        n = len(kept) + sum(len(o) for o in structure.own)
        normal, right, bounded = np.zeros((n, n)), np.zeros(n), np.zeros(n, dtype=bool)
        places, sources, first = [], [], len(kept)
        for e, own in enumerate(structure.own):
            place = np.concatenate([np.arange(len(kept)), first + np.arange(len(own))])
            source = np.concatenate([kept, self.shared + np.asarray(own, dtype=np.int64)])
            first += len(own)
            gram = weights[e] ** 2 * grams[e]
            normal[np.ix_(place, place)] += gram[np.ix_(source, source)]
            right[place] += gram[source, -1]
            bounded[place] = self._bounded[e][source]
            places.append(place)
            sources.append(source)
        scale = np.sqrt(np.diag(normal))
        scale[scale == 0.0] = 1.0
        normal /= np.outer(scale, scale)
        normal[np.diag_indices(n)] += _RIDGE
        inverse = np.linalg.inv(normal) / np.outer(scale, scale)
        x, inverse = _within_bounds(inverse @ right, inverse, bounded)
        return Solution(x, inverse, tuple(places), tuple(sources), bounded)

    def weighted(self, structure: Structure, rounds: int = 4) -> tuple[Solution, Array]:
        """The fit to everything, equations weighted by their own residuals, and the weights."""
        grams, count = self.total, self.rows.sum(axis=0)
        weights = 1.0 / self.deviations
        for _ in range(rounds):
            fit = self.solve(grams, structure, weights)
            squares = np.array([self._square(g, fit.away(e, len(g))) for e, g in enumerate(grams)])
            weights = 1.0 / np.sqrt(np.maximum(squares / count, 1e-18 * self.deviations**2))
        return fit, weights

    def left_out(self, structure: Structure, weights: Array) -> tuple[list[Solution], Array]:
        """The fits without each block, and the squared errors on that block, `(blocks, equations)`."""
        total = self.total
        fits, errors = [], np.zeros(self.rows.shape)
        for b, own in enumerate(self.grams):
            fit = self.solve([t - g for t, g in zip(total, own, strict=True)], structure, weights)
            errors[b] = [self._square(g, fit.away(e, len(g))) for e, g in enumerate(own)]
            fits.append(fit)
        return fits, errors

    def extended(self, fits: Sequence[Solution], equation: int, columns: Sequence[int], weight: float) -> Array:
        """The `equation`'s squared errors on each block if it had these `columns` more, from the fits without them.

        By a block of Schur's complement, a trial costs a few products of small matrices. Not a number where the columns
        say nothing new.
        """
        total = self.total[equation]
        more = self.shared + np.asarray(columns, dtype=np.int64)
        out = np.full(self.blocks, np.nan)
        for b, fit in enumerate(fits):
            own = self.grams[b][equation]
            step = self._step(total - own, fit, equation, more, weight)
            if step is not None:
                out[b] = self._square(own, step)
        return out

    def coefficients(self, fit: Solution, equation: int, columns: Sequence[int], weight: float) -> Array | None:
        """What `columns` of the `equation` would be given in the fit to everything; None where they say nothing new."""
        more = self.shared + np.asarray(columns, dtype=np.int64)
        step = self._step(self.total[equation], fit, equation, more, weight)
        return None if step is None else -step[more]

    def _step(self, gram: Array, fit: Solution, equation: int, more: Index, weight: float) -> Array | None:
        """What a row is multiplied with to give its residual after `more` columns joined the fit, within the bounds."""
        place, source = fit.places[equation], fit.sources[equation]
        side = np.zeros((len(fit.x), len(more)))
        side[place] = weight**2 * gram[np.ix_(source, more)]
        moved = fit.inverse @ side
        corner = weight**2 * gram[np.ix_(more, more)]
        rest = corner - side.T @ moved
        if np.any(np.diag(rest) <= _NEW * np.diag(corner)):
            return None
        inner = np.linalg.inv(rest)
        given = inner @ (weight**2 * gram[more, -1] - side.T @ fit.x)
        x = np.concatenate([fit.x - moved @ given, given])
        bounded = np.concatenate([fit.bounded, self._bounded[equation][more]])
        if np.any(x[bounded] < 0.0):
            turned = moved @ inner
            inverse = np.block([[fit.inverse + turned @ moved.T, -turned], [-turned.T, inner]])
            x, _ = _within_bounds(x, inverse, bounded)
        v = np.zeros(len(gram))
        v[source], v[more], v[-1] = -x[place], -x[len(fit.x) :], 1.0
        return v

    @staticmethod
    def _square(gram: Array, v: Array) -> float:
        return max(float(v @ gram @ v), 0.0)


def _within_bounds(x: Array, inverse: Array, bounded: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The fit `x` without what is negative and must not be, the worst first, and its normal matrix's inverse.

    Columns go one by one and do not come back, which is enough to compare structures.
    """
    while np.any(outside := bounded & (x < 0.0)):
        worst = np.flatnonzero(outside)[np.argmin(x[outside] / np.sqrt(np.diag(inverse)[outside]))]
        column = inverse[:, worst] / inverse[worst, worst]
        x = x - column * x[worst]
        inverse = inverse - np.outer(column, inverse[worst])
        x[worst], inverse[worst], inverse[:, worst] = 0.0, 0.0, 0.0
    return x, inverse
