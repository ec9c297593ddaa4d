"""Estimates all suspects together with the parameters: values, error bars and cross-validation gains.

All results are computed from the Gram matrices of the blocks. A suspect is estimated together with all parameters and
all accepted suspects. Error bars come from a jackknife over blocks, which includes correlated noise and model errors
that vary between blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.assumptions.ledger_rows import LedgerRows
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Index

# Added to scaled normal equations, so that unidentifiable parameters stay small.
_RIDGE = 1e-9
# A column is identifiable if the parameters leave at least this share of its square.
LEAST_SHARE = 1e-5


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of all suspects, each together with the parameters and the accepted suspects.

    Attributes:
        value: Estimates; 0 if a suspect is not identifiable.
        error: Standard errors.
        freedom: Degrees of freedom of the errors: effective number of blocks minus 1 (after Satterthwaite 1946).
        share: Share of each squared column that the parameters cannot explain.
        gain: Relative reduction of the squared error on each left-out block, shape (blocks, suspects).
        moves: Negative change of the parameters per unit of each suspect, shape (parameters, suspects).
        fit: Parameters and accepted suspects in their columns; zeros elsewhere.
    """

    value: Array
    error: Array
    freedom: Index
    share: Array
    gain: Array
    moves: Array
    fit: Array

    @property
    def total_gain(self) -> Array:
        """Relative reduction of the squared error on all left-out blocks."""
        return np.asarray(self.gain.sum(axis=0))

    @property
    def gain_doubt(self) -> Array:
        """Standard error of the gain, from the variation between blocks."""
        return doubt_of(self.gain)


def doubt_of(gains: Array) -> Array:
    """Return the standard error of a sum over blocks.

    Args:
        gains: Gains, shape (blocks, …).
    """
    return np.asarray(np.std(gains, axis=0, ddof=1) * np.sqrt(len(gains)))


class Normals:
    """Normal equations of parameters and suspects, by block.

    Args:
        rows: Rows of the fit.
        weights: 1/σ of every equation; None: from the residuals of the fit.
    """

    def __init__(self, rows: LedgerRows, weights: Array | None = None) -> None:
        self.rows = rows
        if weights is not None:
            vars(self)["weights"] = weights

    @cached_property
    def weights(self) -> Array:
        """1/σ of every equation, from the residuals of the fit."""
        size = np.array([e.total[-1, -1] / e.count for e in self.rows.equations])
        weights = 1.0 / np.sqrt(np.maximum(size, 1e-60))
        for _ in range(3):
            matrix, right = self._joined([e.total for e in self.rows.equations], weights)
            x = solved(matrix[: self.rows.rank, : self.rows.rank], right[: self.rows.rank, None])[:, 0]
            squares = [_squared_error(e.total, e.columns, x) / e.count for e in self.rows.equations]
            weights = 1.0 / np.sqrt(np.maximum(squares, 1e-18 * size + 1e-60))
        return np.asarray(weights)

    def _joined(self, grams: Sequence[Array], weights: Array) -> tuple[Array, Array]:
        size = self.rows.size
        matrix, right = np.zeros((size, size)), np.zeros(size)
        for equation, gram, w in zip(self.rows.equations, grams, weights, strict=True):
            c = equation.columns
            matrix[np.ix_(c, c)] += w**2 * gram[:-1, :-1]
            right[c] += w**2 * gram[:-1, -1]
        return matrix, right

    @cached_property
    def blocks(self) -> tuple[Array, Array, Array]:
        """Matrices, right sides and squares of every block."""
        parts = [self._joined([e.grams[b] for e in self.rows.equations], self.weights) for b in range(self.rows.blocks)]
        squares = sum(w**2 * e.grams[:, -1, -1] for w, e in zip(self.weights, self.rows.equations, strict=True))
        return np.array([m for m, _ in parts]), np.array([r for _, r in parts]), np.asarray(squares)

    def estimates(self, accepted: Sequence[int] = ()) -> Estimates:
        """Estimate every suspect together with the parameters and some other suspects.

        Args:
            accepted: Indices of the suspects that are included in the fit.
        """
        rank = self.rows.rank
        matrices, rights, _ = self.blocks
        whole, right = matrices.sum(axis=0), rights.sum(axis=0)
        always = np.concatenate([np.arange(rank), rank + np.asarray(accepted, dtype=int)]).astype(int)
        others = np.setdiff1d(np.arange(rank, self.rows.size), always)
        full = _extended(whole, right, always, others)
        count = len(self.rows.suspects)
        value, share = np.zeros(count), np.zeros(count)
        value[others - rank], share[others - rank] = full.value, full.share
        # An accepted suspect is estimated together with the other accepted ones.
        value[always[rank:] - rank] = full.fixed[rank:]
        share[always[rank:] - rank] = 1.0
        drops = np.zeros((self.rows.blocks, count))
        for b in range(self.rows.blocks):
            less = _extended(whole - matrices[b], right - rights[b], always, others)
            drops[b, others - rank], drops[b, always[rank:] - rank] = less.value, less.fixed[rank:]
        blocks = self.rows.blocks
        error = np.sqrt((blocks - 1) / blocks * np.sum((drops - drops.mean(axis=0)) ** 2, axis=0))
        gain = np.zeros((blocks, count))
        gain[:, others - rank] = self._gains(whole, right, always, others)
        moves = np.zeros((rank, count))
        moves[:, others - rank] = full.moves[:rank]
        fit = np.zeros(self.rows.size)
        fit[always] = full.fixed
        freedom = np.full(count, blocks - 1)
        freedom[others - rank] = self._freedom(always, others, full.moves)
        return Estimates(value, error, freedom, share, gain, moves, fit)

    def _freedom(self, always: Index, others: Index, moves: Array) -> Index:
        """Return the effective number of blocks for each suspect minus 1; it is small if few blocks dominate."""
        matrices = self.blocks[0]
        information = np.empty((self.rows.blocks, len(others)))
        for b, matrix in enumerate(matrices):
            side = matrix[np.ix_(always, others)]
            inner = matrix[np.ix_(always, always)] @ moves - 2.0 * side
            information[b] = matrix[others, others] + np.sum(moves * inner, axis=0)
        information = np.maximum(information, 0.0)
        squares = np.sum(information**2, axis=0)
        effective = np.where(
            squares > 0.0, np.sum(information, axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0), 2.0
        )
        return np.maximum(np.floor(effective).astype(np.int64) - 1, 1)

    @cached_property
    def rms(self) -> Array:
        """RMS error of every equation in a fit of the parameters with their own weights."""
        weights = Normals(self.rows).weights
        matrix, right = self._joined([e.total for e in self.rows.equations], weights)
        x = solved(matrix[: self.rows.rank, : self.rows.rank], right[: self.rows.rank, None])[:, 0]
        return np.sqrt([max(_squared_error(e.total, e.columns, x), 0.0) / e.count for e in self.rows.equations])

    @property
    def log_share(self) -> float:
        """Mean logarithm over the equations of the residual share of their power."""
        power = np.array([e.total[-1, -1] / e.count for e in self.rows.equations])
        return float(np.mean(np.log(np.maximum(self.rms**2 / np.maximum(power, 1e-300), 1e-12))))

    @cached_property
    def left_out(self) -> Array:
        """Weighted squared error on each block of the parameters fitted without its fold."""
        return self._left_out(self.blocks[1])

    @property
    def disagreement(self) -> Array:
        """Error of one fit to all equations over that of a fit to each alone, on left-out blocks.

        All joints share the parameters of the links. It is mostly below 1, since shared parameters are better known.
        """
        rank, (matrices, rights, _) = self.rows.rank, self.blocks
        power = np.array([e.total[-1, -1] for e in self.rows.equations])
        squares = np.tile(1e-12 * power, (2, 1))
        for fold in np.unique(self.rows.folds):
            mine = self.rows.folds == fold
            x = solved(matrices[~mine, :rank, :rank].sum(axis=0), rights[~mine, :rank].sum(axis=0)[:, None])[:, 0]
            for e, equation in enumerate(self.rows.equations):
                own = np.flatnonzero(equation.columns < rank)
                rest, alone = equation.grams[~mine].sum(axis=0), np.zeros(rank)
                alone[equation.columns[own]] = solved(rest[np.ix_(own, own)], rest[own, -1:])[:, 0]
                left = equation.grams[mine].sum(axis=0)
                squares[:, e] += [max(_squared_error(left, equation.columns, z), 0.0) for z in (x, alone)]
        return np.sqrt(np.where(power > 0.0, squares[0], 1.0) / np.where(power > 0.0, squares[1], 1.0))

    def with_other_sign(self, equation: int) -> tuple[Array, Array]:
        """Return the cross-validation errors and parameters if the torque of an equation had the other sign.

        Args:
            equation: Index of the equation.
        """
        e, rights = self.rows.equations[equation], self.blocks[1].copy()
        rights[:, e.columns] -= 2.0 * self.weights[equation] ** 2 * e.grams[:, :-1, -1]
        always = np.arange(self.rows.rank)
        whole = self.blocks[0][:, : self.rows.rank, : self.rows.rank].sum(axis=0)
        return self._left_out(rights), solved(whole, rights[:, always].sum(axis=0)[:, None])[:, 0]

    def share_with_other_sign(self, equation: int, parameters: Array) -> float:
        """Return the share of a torque's power that parameters leave if it had the other sign.

        Args:
            equation: Index of the equation.
            parameters: The parameters.
        """
        e = self.rows.equations[equation]
        return float(_squared_error(e.total, e.columns, -parameters) / max(float(e.total[-1, -1]), 1e-300))

    def _left_out(self, rights: Array) -> Array:
        rank = self.rows.rank
        matrices, squares = self.blocks[0][:, :rank, :rank], self.blocks[2]
        rights = rights[:, :rank]
        whole, right = matrices.sum(axis=0), rights.sum(axis=0)
        out = np.zeros(self.rows.blocks)
        for fold in np.unique(self.rows.folds):
            mine = np.flatnonzero(self.rows.folds == fold)
            x = solved(whole - matrices[mine].sum(axis=0), (right - rights[mine].sum(axis=0))[:, None])[:, 0]
            for b in mine:
                out[b] = squares[b] - x @ (2.0 * rights[b] - matrices[b] @ x)
        return out

    def _gains(self, whole: Array, right: Array, always: Index, others: Index) -> Array:
        """Return the reduction of each block's squared error by each suspect, fitted without the block's fold."""
        matrices, rights, squares = self.blocks
        out, before = np.zeros((self.rows.blocks, len(others))), np.zeros(self.rows.blocks)
        for fold in np.unique(self.rows.folds):
            mine = np.flatnonzero(self.rows.folds == fold)
            less = _extended(whole - matrices[mine].sum(axis=0), right - rights[mine].sum(axis=0), always, others)
            step = np.zeros((self.rows.size, len(others)))
            step[always], step[others, np.arange(len(others))] = -less.moves * less.value, less.value
            for b in mine:
                rest = rights[b] - matrices[b][:, always] @ less.fixed
                before[b] = squares[b] - less.fixed @ (rights[b][always] + rest[always])
                out[b] = 2.0 * rest @ step - np.sum(step * (matrices[b] @ step), axis=0)
        return np.asarray(out / max(float(before.sum()), 1e-300))


@dataclass(frozen=True, eq=False)
class _Extended:
    """A fit of some columns, and of these columns with each of the others.

    Attributes:
        fixed: Fit without the others.
        value: Coefficient of each of the others.
        share: Share of each column that the fixed ones cannot explain.
        moves: Negative change of the fixed ones per unit of each other.
    """

    fixed: Array
    value: Array
    share: Array
    moves: Array


def _extended(matrix: Array, right: Array, always: Index, others: Index) -> _Extended:
    side = matrix[np.ix_(always, others)]
    both = solved(matrix[np.ix_(always, always)], np.column_stack([side, right[always]]))
    moves, fixed = both[:, :-1], both[:, -1]
    own = matrix[others, others]
    rest = own - np.sum(side * moves, axis=0)
    share = np.where(own > 0.0, rest / np.where(own > 0.0, own, 1.0), 0.0)
    new = share > LEAST_SHARE
    value = np.where(new, (right[others] - moves.T @ right[always]) / np.where(new, rest, 1.0), 0.0)
    return _Extended(fixed, value, np.maximum(share, 0.0), moves)


def solved(matrix: Array, right: Array) -> Array:
    """Solve scaled normal equations; directions that they do not determine stay small.

    Args:
        matrix: Normal equations.
        right: Right sides, shape (unknowns, cases).
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    scaled = matrix / scale / scale[:, None]
    scaled[np.diag_indices_from(scaled)] += _RIDGE
    return np.asarray(np.linalg.solve(scaled, right / scale[:, None]) / scale[:, None])


def _squared_error(gram: Array, columns: Index, x: Array) -> float:
    """Return the squared error of parameters `x` on an equation's rows, without suspects."""
    own = columns < len(x)
    way = np.zeros(len(gram))
    way[:-1][own], way[-1] = -x[columns[own]], 1.0
    return float(way @ gram @ way)
