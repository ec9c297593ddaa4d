"""Gram matrices of the rows by block of time, for a structure search.

Columns are numbered: first those that all equations share, then each equation's candidates. A structure is the set of
columns of a model.
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

# Added to the scaled normal equations: columns without support in the remaining blocks stay small.
_RIDGE = 1e-9
# A candidate with a smaller remainder (relative, squared) outside the other columns is dependent.
_NEW = 1e-5

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fits:
    """Least squares of a structure for all blocks, and without each of them.

    Attributes:
        x: `(fits, all columns)`, zero for columns outside the structure.
        columns: Columns of the structure.
        inverse: Inverse normal matrices, `(fits, columns, columns)`.
        free: Like `x` over `columns`, without bounds.
        free_inverse: Like `inverse`, without bounds.
    """

    x: Array
    columns: Index
    inverse: Array
    free: Array
    free_inverse: Array

    @classmethod
    def of(cls, free: Array, inverse: Array, columns: Index, bounded: Mask) -> Fits:
        """Move free fits inside the bounds.

        Args:
            free: Least squares without bounds, shape (fits, columns).
            inverse: Inverse of their normal matrices, shape (fits, columns, columns).
            columns: Columns of the structure.
            bounded: Mask over all columns: parameters that cannot be negative.
        """
        x, kept = np.zeros((len(free), len(bounded))), inverse
        x[:, columns] = free
        outside = np.flatnonzero(np.any(bounded[columns] & (free < 0.0), axis=1))
        if outside.size:
            kept = inverse.copy()
        for k in outside:
            x[k, columns], kept[k] = _within_bounds(free[k], inverse[k], bounded[columns])
        return cls(x, columns, kept, free, inverse)

    def less(self, columns: Index, bounded: Mask) -> Fits:
        """Compute the fits without some of their columns from these fits.

        Args:
            columns: Columns to remove.
            bounded: Mask over all columns: parameters that cannot be negative.
        """
        goes = np.isin(self.columns, columns)
        stays = ~goes
        across = self.free_inverse[:, stays][:, :, goes]
        share = np.linalg.solve(self.free_inverse[:, goes][:, :, goes], np.swapaxes(across, 1, 2))
        free = self.free[:, stays] - np.einsum("fg,fgs->fs", self.free[:, goes], share)
        return Fits.of(free, self.free_inverse[:, stays][:, :, stays] - across @ share, self.columns[stays], bounded)


class BlockGrams:
    """[A y]ᵀ[A y] by equation and block, over the shared columns, the equation's candidates, and y.

    Args:
        equations: Equations of the rows, over columns of the parameter vector.
        shared: Columns of the parameter vector to solve for.
        own: Number of candidates of each equation.
        blocks: Number of blocks.
        bounded: Mask over all columns: parameters that cannot be negative.
    """

    def __init__(
        self, equations: Sequence[Equation], shared: Sequence[int], own: Sequence[int], blocks: int, bounded: Mask
    ) -> None:
        self.shared, self.blocks, self.bounded = len(shared), blocks, bounded
        self._columns = [e.among(shared)[1] for e in equations]
        firsts = self.shared + np.concatenate([[0], np.cumsum(own)]).astype(int)
        self.size = int(firsts[-1])
        # For each equation: its candidate columns, and all its columns, in the order of its Gram matrices.
        self.own = [np.arange(a, b) for a, b in pairwise(firsts.tolist())]
        self.every = [np.concatenate([np.arange(self.shared), o]) for o in self.own]
        self.grams = [np.zeros((blocks, len(e) + 1, len(e) + 1)) for e in self.every]
        self.rows, self.sums = np.zeros((2, blocks, len(self.every)))

    def add(self, equation: int, table: Array, candidates: Array, blocks: Index) -> None:
        """Add rows of an equation.

        Args:
            equation: Number of the equation.
            table: [A y] over the equation's columns.
            candidates: Columns of its candidates.
            blocks: Block of each row.
        """
        # Multiply only the equation's columns: those of joints beyond it are zero.
        own = len(self.own[equation])
        places = np.array([*self._columns[equation], *range(self.shared, self.shared + own + 1)])
        part = np.hstack([table[:, :-1], candidates, table[:, -1:]]) if own else table
        order = None if np.all(blocks[:-1] <= blocks[1:]) else np.argsort(blocks, kind="stable")
        part, blocks = (part, blocks) if order is None else (part[order], blocks[order])
        borders = np.searchsorted(blocks, np.arange(self.blocks + 1))
        for b, (first, last) in enumerate(pairwise(borders.tolist())):
            if first == last:
                continue
            mine = part[first:last]
            self.grams[equation][b][places[:, None], places] += mine.T @ mine
            self.rows[b, equation] += len(mine)
            self.sums[b, equation] += mine[:, -1].sum()

    @cached_property
    def deviations(self) -> Array:
        """Compute the standard deviation of every equation's right side, after all rows were added."""
        count = self.rows.sum(axis=0)
        squares = np.array([g[-1, -1] for g in self.totals])
        variance = squares / count - (self.sums.sum(axis=0) / count) ** 2
        # For a constant torque the inverse and its square remain finite.
        return np.asarray(np.sqrt(np.maximum(variance, 1e-60)))

    @cached_property
    def totals(self) -> list[Array]:
        """Compute the Gram matrix of every equation over all blocks, after all rows were added."""
        return [g.sum(axis=0) for g in self.grams]

    def weighted(self, structure: Mask, near: Weighted | None = None) -> Weighted:
        """Weight every equation by its residuals in the fit of a structure to all blocks.

        Args:
            structure: Mask of the columns of the model.
            near: Sums of a similar structure, whose weights are the start.
        """
        count, weights = self.rows.sum(axis=0), 1.0 / self.deviations if near is None else near.weights
        for _ in range(4 if near is None else 2):
            x = Weighted(self, weights).whole(structure).x[0]
            weights = 1.0 / np.sqrt(np.maximum(self.squares(x) / count, 1e-18 * self.deviations**2))
        return Weighted(self, weights)

    def squares(self, x: Array) -> Array:
        """Sum the squared errors of every equation over all blocks.

        Args:
            x: Values of all columns.
        """
        return np.array([_square(g, x[every, None])[0] for g, every in zip(self.totals, self.every, strict=True)])

    def left_out(self, fits: Fits) -> Array:
        """Sum the squared errors on each block of the fit without it, shape (blocks, equations).

        Args:
            fits: Fits to all blocks and without each of them.
        """
        return np.hstack([self.left_out_of(e, fits.x[:, :, None]) for e in range(len(self.every))])

    def left_out_of(self, equation: int, x: Array) -> Array:
        """Sum the squared errors of one equation for several fits each, shape (blocks, fits).

        Args:
            equation: Number of the equation.
            x: Parameters, shape (1 + blocks, columns, fits).
        """
        return _square(self.grams[equation], x[1:, self.every[equation]])


def _square(gram: Array, x: Array) -> Array:
    """Compute squared errors of fits `x` `(…, columns, fits)` on the rows of Gram matrices."""
    away = np.concatenate([-x, np.ones_like(x[..., :1, :])], axis=-2)
    return np.asarray(np.maximum(np.sum(away * (gram @ away), axis=-2), 0.0))


class Weighted:
    """Weighted normal equations over all columns, of all blocks and without each.

    Args:
        grams: Gram matrices by equation and block.
        weights: 1/σ of every equation.
    """

    def __init__(self, grams: BlockGrams, weights: Array) -> None:
        self.grams, self.weights = grams, weights

    @cached_property
    def _normals(self) -> Array:
        """Compute normal matrices `(1 + blocks, …)`: of all blocks, and of all but one each."""
        g = self.grams
        out = np.empty((1 + g.blocks, g.size + 1, g.size + 1))
        out[0] = self._combine(g.totals)
        for b in range(g.blocks):
            out[1 + b] = out[0] - self._combine([gram[b] for gram in g.grams])
        return out

    def _combine(self, grams: Sequence[Array]) -> Array:
        if self.grams.size == self.grams.shared:  # without candidates
            return np.asarray(np.tensordot(self.weights**2, np.array(grams), axes=1))
        out = np.zeros((self.grams.size + 1, self.grams.size + 1))
        first, last = slice(0, self.grams.shared), slice(self.grams.size, None)
        for own, gram, weight in zip(self.grams.own, grams, self.weights, strict=True):
            begin = int(own[0]) if len(own) else self.grams.size
            # Slices, because in-place addition fails for index lists.
            places = ((first, first), (slice(begin, begin + len(own)), slice(first.stop, -1)), (last, slice(-1, None)))
            for to, rows in places:
                for across, columns in places:
                    out[to, across] += weight**2 * gram[rows, columns]
        return out

    def whole(self, structure: Mask) -> Fits:
        """Fit a structure to all blocks by least squares within the bounds.

        Args:
            structure: Mask of the columns of the model.
        """
        return self._solve(self._combine(self.grams.totals)[None], structure)

    def fit(self, structure: Mask) -> Fits:
        """Fit a structure to all blocks, and without each, by least squares within the bounds.

        Args:
            structure: Mask of the columns of the model.
        """
        return self._solve(self._normals, structure)

    def _solve(self, normals: Array, structure: Mask) -> Fits:
        columns = np.flatnonzero(structure)
        inner = normals[:, columns[:, None], columns]
        each = np.arange(len(columns))
        scale = np.sqrt(inner[:, each, each])
        scale[scale == 0.0] = 1.0
        scales = scale[:, :, None] * scale[:, None, :]
        inner /= scales
        inner[:, each, each] += _RIDGE
        inverse = np.linalg.inv(inner) / scales
        free = np.matmul(inverse, normals[:, columns, -1:])[:, :, 0]
        return Fits.of(free, inverse, columns, self.grams.bounded)

    def extended(self, fits: Fits, equation: int, offers: Sequence[Index]) -> tuple[Array, Array]:
        """Extend the fits by one more candidate of an equation, by Schur's complement.

        Args:
            fits: Fits of the present structure.
            equation: Number of the equation whose left-out errors are computed.
            offers: Columns of each candidate.

        Returns:
            `(1 + blocks, all columns, offers)` and `(offers, blocks)`; NaN for dependent candidates.
        """
        out = np.full((len(fits.x), self.grams.size, len(offers)), np.nan)
        single = [k for k, o in enumerate(offers) if len(o) == 1]
        if single:
            self._with_one(fits, np.array(single), np.concatenate([offers[k] for k in single]), out)
        for width in {len(o) for o in offers if len(o) > 1}:
            places = [k for k, o in enumerate(offers) if len(o) == width]
            for f in range(len(out)):
                self._with_several(fits, f, places, np.array([offers[k] for k in places]), out[f])
        return out, self.grams.left_out_of(equation, out).T

    def _with_one(self, fits: Fits, places: Index, more: Index, out: Array) -> None:
        """Extend by single columns, all at once, within the bounds.

        Like `_within_bounds`, but the extended inverse is that of the fit plus a rank-one matrix, of which only the
        removed columns are computed.
        """
        n, bounded, normals = len(fits.columns), self.grams.bounded, self._normals
        side = normals[:, fits.columns[:, None], more]
        moved = fits.inverse @ side
        corner = normals[:, more, more]
        rest = corner - np.sum(side * moved, axis=1)
        # From here on every pair of a fit and a column that is new to it is one column: `fit`, `k`.
        fit, k = np.nonzero(rest > _NEW * corner)
        before, moved, inner = fits.x[fit][:, fits.columns].T, moved[fit, :, k].T, 1.0 / rest[fit, k]
        given = (normals[fit, more[k], -1] - np.sum(side[fit, :, k].T * before, axis=0)) * inner
        # The inverse is [fits.inverse 0; 0 0] + v vᵀ.
        v = np.vstack([-moved, np.ones(len(fit))]) * np.sqrt(inner)
        x = np.vstack([before - moved * given, given])
        mask = np.vstack([np.tile(bounded[fits.columns, None], len(fit)), bounded[more[k]]])
        gone: list[Array] = []
        zero = np.zeros_like(mask)  # removed columns, which rounding must not restore
        variance: Array | None = None
        while np.any(outside := mask & ~zero & (x < 0.0)):
            if variance is None:
                variance = v**2
                variance[:n] += np.diagonal(fits.inverse, axis1=1, axis2=2)[fit].T
            c = np.flatnonzero(outside.any(axis=0))
            sizes = np.sqrt(np.maximum(variance[:, c], 1e-300))
            worst = np.argmin(np.where(outside[:, c], x[:, c] / sizes, np.inf), axis=0)
            column = v[:, c] * v[worst, c]
            column[:n] += np.where(worst < n, fits.inverse[fit[c], :, np.minimum(worst, n - 1)].T, 0.0)
            for other in gone:
                column -= other[:, c] * other[worst, c]
            pivot = column[worst, np.arange(len(c))]
            x[:, c] -= column * (x[worst, c] / pivot)
            zero[worst, c] = True
            x[zero] = 0.0
            gone.append(np.zeros_like(x))
            gone[-1][:, c] = column / np.sqrt(pivot)
            variance -= gone[-1] ** 2
        out[fit, :, places[k]] = 0.0
        out[fit, fits.columns[:, None], places[k]] = x[:n]
        out[fit, more[k], places[k]] = x[n]

    def _with_several(self, fits: Fits, f: int, places: Sequence[int], more: Index, out: Array) -> None:
        """Extend by several columns at once, for every row of `more`; within the bounds one by one."""
        count, width = more.shape
        normal, own, inverse = self._normals[f], fits.x[f, fits.columns], fits.inverse[f]
        side = normal[np.ix_(fits.columns, more.ravel())]
        moved = (inverse @ side).reshape(-1, count, width)
        side = side.reshape(-1, count, width)
        corner = normal[more[:, :, None], more[:, None, :]]
        rest = corner - np.einsum("nki,nkj->kij", side, moved)
        diagonal = np.arange(width)
        new = np.all(rest[:, diagonal, diagonal] > _NEW * corner[:, diagonal, diagonal], axis=1)
        rest[~new] = np.eye(width)
        inner = np.linalg.inv(rest)
        given = np.einsum("kij,kj->ki", inner, normal[more, -1] - np.einsum("nki,n->ki", side, own))
        kept = own[:, None] - np.einsum("nki,ki->nk", moved, given)
        for k in np.flatnonzero(new):
            columns = np.concatenate([fits.columns, more[k]])
            x = np.concatenate([kept[:, k], given[k]])
            if np.any(self.grams.bounded[columns] & (x < 0.0)):
                turned = moved[:, k] @ inner[k]
                whole = np.block([[inverse + turned @ moved[:, k].T, -turned], [-turned.T, inner[k]]])
                x = _within_bounds(x, whole, self.grams.bounded[columns])[0]
            out[:, places[int(k)]] = 0.0
            out[columns, places[int(k)]] = x


def _within_bounds(x: Array, inverse: Array, bounded: Mask) -> tuple[Array, Array]:
    """Remove columns with forbidden negative values from the fit `x` and its inverse, the worst first.

    Removed columns do not return, which suffices to compare structures.
    """
    while np.any(outside := bounded & (x < 0.0)):
        worst = np.flatnonzero(outside)[np.argmin(x[outside] / np.sqrt(np.maximum(np.diag(inverse)[outside], 1e-300)))]
        column = inverse[:, worst] / inverse[worst, worst]
        x = x - column * x[worst]
        inverse = inverse - np.outer(column, inverse[worst])
        x[worst], inverse[worst], inverse[:, worst] = 0.0, 0.0, 0.0
    return x, inverse
