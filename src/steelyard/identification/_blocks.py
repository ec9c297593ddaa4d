"""Gram matrices of the rows, block of time by block of time: what a search for the structure does its sums with.

Columns are numbered through: first those that all equations share, then each equation's own candidates. A structure is
the set of columns that a model has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression.rows import Equation

# Added to the scaled normal equations: columns that a block leaves without any support stay small, not wild.
_RIDGE = 1e-9
# A candidate of which the others leave less than this part (of its square) is one of them in other words.
_NEW = 1e-5

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fit:
    """The least squares of a structure: `x` over all columns, zero where it has none; its `columns`, and the inverse of
    their normal matrix."""

    x: Array
    columns: Index
    inverse: Array


class BlockGrams:
    """By block and equation: [A y]ᵀ[A y] over the shared columns, the equation's own candidates, and y.

    Args:
        equations: whose rows come in, over columns of the parameter vector.
        shared: the columns of the parameter vector that are solved for.
        own: how many candidates each equation has.
        blocks: how many blocks there are.
        bounded: which of all columns' parameters cannot be negative.
    """

    def __init__(
        self, equations: Sequence[Equation], shared: Sequence[int], own: Sequence[int], blocks: int, bounded: Mask
    ) -> None:
        self.shared, self.blocks, self.bounded = len(shared), blocks, bounded
        self._columns = [e.among(shared)[1] for e in equations]
        firsts = self.shared + np.concatenate([[0], np.cumsum(own)]).astype(int)
        self.size = int(firsts[-1])
        # Of each equation: its own columns, and all of them, in the order of its Gram matrix.
        self.own = [np.arange(a, b) for a, b in pairwise(firsts.tolist())]
        self.every = [np.concatenate([np.arange(self.shared), o]) for o in self.own]
        self.grams = [[np.zeros((len(e) + 1, len(e) + 1)) for e in self.every] for _ in range(blocks)]
        self.rows, self.sums = np.zeros((2, blocks, len(self.every)))

    def add(self, equation: int, table: Array, candidates: Array, blocks: Index) -> None:
        """Take in rows of an equation.

        Args:
            equation: its number.
            table: [A y] over the equation's columns.
            candidates: the columns of its candidates beside them.
            blocks: to which block each row belongs.
        """
        for b in np.unique(blocks):
            mine = blocks == b
            part = np.zeros((int(mine.sum()), len(self.every[equation]) + 1))
            part[:, self._columns[equation]] = table[mine, :-1]
            part[:, self.shared : -1] = candidates[mine]
            part[:, -1] = table[mine, -1]
            self.grams[b][equation] += part.T @ part
            self.rows[b, equation] += len(part)
            self.sums[b, equation] += part[:, -1].sum()

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of every equation's right side; to be asked for when all rows are in."""
        count = self.rows.sum(axis=0)
        squares = np.array([g[-1, -1] for g in self.totals])
        return np.asarray(np.sqrt(np.maximum(squares / count - (self.sums.sum(axis=0) / count) ** 2, 1e-300)))

    @cached_property
    def totals(self) -> list[Array]:
        """The Gram matrix of every equation over all blocks; to be asked for when all rows are in."""
        return [np.sum([g[e] for g in self.grams], axis=0) for e in range(len(self.every))]

    def weighted(self, structure: Mask, rounds: int = 4) -> Weighted:
        """The sums with every equation weighted by its own residuals in the fit of `structure` to everything."""
        count, weights = self.rows.sum(axis=0), 1.0 / self.deviations
        for _ in range(rounds):
            x = Weighted(self, weights).fit(structure).x
            squares = [_square(g, x[every, None])[0] for g, every in zip(self.totals, self.every, strict=True)]
            weights = 1.0 / np.sqrt(np.maximum(squares / count, 1e-18 * self.deviations**2))
        return Weighted(self, weights)

    def squares(self, block: int, x: Array) -> Array:
        """The squared errors of a fit `x` on a block, equation by equation."""
        return np.array([self.square(block, e, x[:, None])[0] for e in range(len(self.every))])

    def square(self, block: int, equation: int, x: Array) -> Array:
        """The same of one equation, for several fits, `x` `(columns, fits)`."""
        return _square(self.grams[block][equation], x[self.every[equation]])


def _square(gram: Array, x: Array) -> Array:
    """The squared errors of fits `x` `(columns, fits)` on the rows of a Gram matrix."""
    away = np.vstack([-x, np.ones((1, x.shape[1]))])
    return np.asarray(np.maximum(np.einsum("ik,ik->k", away, gram @ away), 0.0))


class Weighted:
    """Normal equations of all columns and every block, with `weights` (1/σ) of the equations of `grams`."""

    def __init__(self, grams: BlockGrams, weights: Array) -> None:
        self.grams, self._weights = grams, weights

    @cached_property
    def _whole(self) -> Array:
        return self._joined(self.grams.totals)

    @cached_property
    def _without(self) -> list[Array]:
        """Of all blocks but one each."""
        return [self._whole - self._joined(block) for block in self.grams.grams]

    def _joined(self, grams: Sequence[Array]) -> Array:
        out = np.zeros((self.grams.size + 1, self.grams.size + 1))
        first, last = slice(0, self.grams.shared), slice(self.grams.size, None)
        for own, gram, weight in zip(self.grams.own, grams, self._weights, strict=True):
            begin = int(own[0]) if len(own) else self.grams.size
            # Slices, which are added in place, as lists of places are not.
            places = ((first, first), (slice(begin, begin + len(own)), slice(first.stop, -1)), (last, slice(-1, None)))
            for to, rows in places:
                for across, columns in places:
                    out[to, across] += weight**2 * gram[rows, columns]
        return out

    def fit(self, structure: Mask, without: int | None = None) -> Fit:
        """Least squares within the bounds, to all blocks or `without` one."""
        normal = self._normal(without)
        columns = np.flatnonzero(structure)
        inner = normal[np.ix_(columns, columns)]
        scale = np.sqrt(np.diag(inner))
        scale[scale == 0.0] = 1.0
        inner = inner / np.outer(scale, scale)
        inner[np.diag_indices(len(inner))] += _RIDGE
        inverse = np.linalg.inv(inner) / np.outer(scale, scale)
        x, inverse = _within_bounds(inverse @ normal[columns, -1], inverse, self.grams.bounded[columns])
        return Fit(self._spread_out(columns, x), columns, inverse)

    def left_out(self, structure: Mask) -> tuple[list[Fit], Array]:
        """The fits without each block, and their squared errors on that block, `(blocks, equations)`."""
        fits = [self.fit(structure, b) for b in range(self.grams.blocks)]
        return fits, np.array([self.grams.squares(b, fit.x) for b, fit in enumerate(fits)])

    def extended(self, fits: Sequence[Fit], equation: int, offers: Sequence[Index]) -> Array:
        """The equation's squared errors on each block if it had one of `offers` more, `(offers, blocks)`.

        Each of them are columns; `fits` are those without each block. Not a number where they say nothing new.
        """
        if not offers:
            return np.zeros((0, len(fits)))
        return np.column_stack(
            [self.grams.square(b, equation, self.with_more(fit, offers, b)) for b, fit in enumerate(fits)]
        )

    def with_more(self, fit: Fit, offers: Sequence[Index], without: int | None = None) -> Array:
        """The fit with each of `offers` more columns, by Schur's complement, `(columns, offers)`.

        Not a number where they say nothing new. `without` is the block that the fit was made without.
        """
        normal = self._normal(without)
        out = np.full((self.grams.size, len(offers)), np.nan)
        single = [k for k, o in enumerate(offers) if len(o) == 1]
        if single:
            self._with_one(fit, normal, single, np.concatenate([offers[k] for k in single]), out)
        for width in {len(o) for o in offers if len(o) > 1}:
            places = [k for k, o in enumerate(offers) if len(o) == width]
            self._with_several(fit, normal, places, np.array([offers[k] for k in places]), out)
        return out

    def _with_one(self, fit: Fit, normal: Array, places: Sequence[int], more: Index, out: Array) -> None:
        """Single columns, all at once, within the bounds.

        As `_within_bounds` does it, but the inverse with one column more is that of the fit and a square of a vector,
        of which only the columns that go are written out.
        """
        n, bounded = len(fit.columns), self.grams.bounded
        side = normal[np.ix_(fit.columns, more)]
        moved = fit.inverse @ side
        corner = normal[more, more]
        rest = corner - np.einsum("ik,ik->k", side, moved)
        new = np.flatnonzero(rest > _NEW * corner)
        more, moved, inner = more[new], moved[:, new], 1.0 / rest[new]
        given = (normal[more, -1] - side[:, new].T @ fit.x[fit.columns]) * inner
        # The inverse is [fit.inverse 0; 0 0] + v vᵀ.
        v = np.vstack([-moved, np.ones(len(new))]) * np.sqrt(inner)
        x = np.vstack([fit.x[fit.columns, None] - moved * given, given])
        mask = np.vstack([np.tile(bounded[fit.columns, None], len(new)), bounded[more]])
        variance = v**2
        variance[:n] += np.diag(fit.inverse)[:, None]
        gone: list[Array] = []
        zero = np.zeros_like(mask)  # what is gone, which rounding must not bring back
        while np.any(outside := mask & ~zero & (x < 0.0)):
            k = np.flatnonzero(outside.any(axis=0))
            sizes = np.sqrt(np.maximum(variance[:, k], 1e-300))
            worst = np.argmin(np.where(outside[:, k], x[:, k] / sizes, np.inf), axis=0)
            column = v[:, k] * v[worst, k]
            column[:n] += np.where(worst < n, fit.inverse[:, np.minimum(worst, n - 1)], 0.0)
            for other in gone:
                column -= other[:, k] * other[worst, k]
            each = np.arange(len(k))
            pivot = column[worst, each]
            x[:, k] -= column * (x[worst, k] / pivot)
            zero[worst, k] = True
            x[zero] = 0.0
            gone.append(np.zeros_like(x))
            gone[-1][:, k] = column / np.sqrt(pivot)
            variance -= gone[-1] ** 2
        for here, place in enumerate(places[int(i)] for i in new):
            out[:, place] = 0.0
            out[fit.columns, place], out[more[here], place] = x[:n, here], x[n, here]

    def _with_several(self, fit: Fit, normal: Array, places: Sequence[int], more: Index, out: Array) -> None:
        """As many columns at once as `more` has, for every one of its rows; within the bounds one by one."""
        count, width = more.shape
        side = normal[np.ix_(fit.columns, more.ravel())]
        moved = (fit.inverse @ side).reshape(-1, count, width)
        side = side.reshape(-1, count, width)
        corner = normal[more[:, :, None], more[:, None, :]]
        rest = corner - np.einsum("nki,nkj->kij", side, moved)
        diagonal = np.arange(width)
        new = np.all(rest[:, diagonal, diagonal] > _NEW * corner[:, diagonal, diagonal], axis=1)
        rest[~new] = np.eye(width)
        inner = np.linalg.inv(rest)
        given = np.einsum("kij,kj->ki", inner, normal[more, -1] - np.einsum("nki,n->ki", side, fit.x[fit.columns]))
        kept = fit.x[fit.columns, None] - np.einsum("nki,ki->nk", moved, given)
        for k in np.flatnonzero(new):
            columns = np.concatenate([fit.columns, more[k]])
            x = np.concatenate([kept[:, k], given[k]])
            if np.any(self.grams.bounded[columns] & (x < 0.0)):
                turned = moved[:, k] @ inner[k]
                inverse = np.block([[fit.inverse + turned @ moved[:, k].T, -turned], [-turned.T, inner[k]]])
                x = _within_bounds(x, inverse, self.grams.bounded[columns])[0]
            out[:, places[int(k)]] = self._spread_out(columns, x)

    def _normal(self, without: int | None) -> Array:
        return self._whole if without is None else self._without[without]

    def _spread_out(self, columns: Index, x: Array) -> Array:
        out = np.zeros(self.grams.size)
        out[columns] = x
        return out


def _within_bounds(x: Array, inverse: Array, bounded: Mask) -> tuple[Array, Array]:
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
