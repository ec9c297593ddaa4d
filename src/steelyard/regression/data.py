"""`RegressionData`: the rows y = A θ of a log by equation, and their `Reduction` in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import StructureError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.short_repr import short_repr
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Equation
from steelyard.regression.spectra import Spectra

# A pass that reduces rows also stores them if they are few (`check` uses them again).
_FEW_BYTES = 50_000_000
# Iterative estimators store the rows up to this size; beyond it they recompute them in each pass.
_KEPT_BYTES = 700_000_000
# Number of rows that each QR step adds to the triangle of an equation; a step for a few rows takes as long as for many.
_AT_ONCE = 2048
# Triangles of a log's stretches, for comparing its parts: maximum number (long logs have at least half), and the number
# of rows of the first ones.
_STRETCHES = 16
_SHORTEST = 64


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of one equation: y = A θ[columns] + noise, without gaps in time.

    For filtered and decimated rows, `unfiltered` is the Gram matrix of the same rows before the filter, and `samples`
    their original number. Rows of a joint at standstill are missing around a `partial` block, so sums over it do not
    show all errors of a model.
    """

    equation: int
    A: Array
    y: Array
    unfiltered: Array | None = None
    samples: int = 0
    partial: bool = False


@dataclass(frozen=True, eq=False)
class Reduction:
    """The result of one pass over the rows: everything for a linear fit, its error bars and its scores.

    `factor` holds a triangle per equation, `spectra` the Gram matrices of [A y] by frequency, `sums` Σy per equation.
    `unfiltered` are Gram matrices of the same rows before any filter, if available. The rows were selected from
    `samples` samples. `stretches` are the growing triangles of each equation after each stretch of the log.
    """

    factor: Factor
    spectra: Spectra
    sums: Array
    unfiltered: tuple[Array, ...] = ()
    samples: int = 0
    stretches: tuple[tuple[Array, ...], ...] = ()

    def merge(self, *others: Reduction) -> Reduction:
        """Combine with `others` of the same equations."""
        every = (self, *others)
        return Reduction(
            self.factor.merge(*(o.factor for o in others)),
            self.spectra.merge(*(o.spectra for o in others)),
            np.sum([r.sums for r in every], axis=0),
        )


@short_repr
@dataclass(frozen=True, eq=False)
class RegressionData:
    """Rows over `columns` of the parameter vector, one group per equation (joint).

    Memory holds one block at a time.

    Args:
        equations: Equations, with their columns.
        parameters: Length of the parameter vector.
        source: Starts a new pass over the blocks.
        period: Time between rows of an equation [s].
        parts: Data of several logs, if joined from them.
        beginning: Number of rows of each equation that the reducing pass of a long log stores.
        spectral: Compute the spectra for error bars; without them a fit is faster.
        stretched: Compute the triangles of stretches; without them a fit is faster.
        names: Names of the equations.
        columns: Columns of the parameter vector.
        A, y: Rows of each equation.
        blocks: Blocks of rows.
        factor: Triangles.
    """

    equations: tuple[Equation, ...]
    parameters: int
    source: Callable[[], Iterable[Block]]
    period: float
    parts: tuple[RegressionData, ...] = ()
    beginning: int = 0
    spectral: bool = True
    stretched: bool = True
    _kept: list[list[Block]] = field(default_factory=list)
    _first: list[Block] = field(default_factory=list)
    _reduction: list[Reduction] = field(default_factory=list)

    @classmethod
    def from_arrays(
        cls, names: Sequence[str], columns: ArrayLike, A: Sequence[Array], y: Sequence[Array], parameters: int,
        period: float = 1.0,
    ) -> RegressionData:  # fmt: skip
        """Create data from one `A` and one `y` per equation."""
        shared = np.asarray(columns, dtype=np.int64)
        blocks = [
            Block(e, np.asarray(a, float), np.asarray(b, float)) for e, (a, b) in enumerate(zip(A, y, strict=True))
        ]
        return cls(tuple(Equation(n, shared) for n in names), parameters, lambda: blocks, period)

    def with_blocks(self, blocks: Sequence[Block], columns: ArrayLike) -> RegressionData:
        """Return the same equations with other blocks over other columns."""
        shared = np.asarray(columns, dtype=np.int64)
        equations = tuple(replace(e, columns=shared) for e in self.equations)
        return RegressionData(equations, self.parameters, lambda: blocks, self.period)

    @classmethod
    def concatenate(cls, parts: Sequence[RegressionData]) -> RegressionData:
        """Join the data of several logs, given by `parts`, which remain accessible."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        return cls(
            first.equations,
            first.parameters,
            lambda: chain.from_iterable(part.blocks() for part in parts),
            first.period,
            tuple(parts),
        )

    @classmethod
    def from_factor(cls, factor: Factor, period: float = 1.0) -> RegressionData:
        """Create data from triangles instead of rows: enough for a fit, but not for its error bars."""
        made = cls(factor.equations, factor.parameters, lambda: (), period)
        made._reduction.append(Reduction(factor, Spectra(factor.equations), np.zeros(len(factor.equations))))
        return made

    def blocks(self) -> Iterator[Block]:
        """Iterate over all blocks; a first pass that fits into memory is stored."""
        return self._pass(_KEPT_BYTES)

    def _pass(self, most: int, first: bool = False) -> Iterator[Block]:
        """Iterate over all blocks; store them up to `most` bytes, else none or only the `first` ones."""
        if self._kept:
            yield from self._kept[0]
            return
        kept: list[Block] = []
        size = 0
        for block in self.source():
            size += block.A.nbytes + block.y.nbytes
            if size <= most:
                kept.append(block)
            elif not first:
                kept.clear()
            yield block
        if size <= most:
            self._kept.append(kept)
        elif first:
            self._first[:] = kept

    def first_blocks(self) -> Sequence[Block]:
        """Return blocks of the beginning, or all if they are few; none before `reduction`."""
        return self._kept[0] if self._kept else self._first

    def reduction(self) -> Reduction:
        """Reduce the rows in one pass; they are stored only if they are few."""
        if not self._reduction and self.parts:
            first, *others = (part.reduction() for part in self.parts)
            self._reduction.append(first.merge(*others))
        if not self._reduction:
            triangles = _Triangles(self.equations, self.stretched)
            spectra = Spectra(self.equations)
            sums = np.zeros(len(self.equations))
            unfiltered = [np.zeros((e.width, e.width)) for e in self.equations]
            samples = np.zeros(len(self.equations), dtype=int)
            partial = False
            with one_blas_thread():
                few = 8 * self.beginning * sum(e.width for e in self.equations)
                for block in self._pass(few or _FEW_BYTES, first=few > 0):
                    e = block.equation
                    partial |= block.partial
                    both = np.column_stack([block.A, block.y])
                    triangles.add(e, both)
                    if self.spectral:
                        spectra.add(e, both)
                    sums[e] += block.y.sum()
                    if block.unfiltered is not None:
                        unfiltered[e] += block.unfiltered
                        samples[e] += block.samples
                factor = triangles.factor(self.parameters)
            whole = tuple(unfiltered) if not partial and 0 < samples.min() == samples.max() else ()
            made = Reduction(factor, spectra, sums, whole, int(samples.min()), triangles.stretches())
            self._reduction.append(made)
        return self._reduction[0]

    def factor(self, weigh: Callable[[Block], Array] | None = None) -> Factor:
        """Compute the triangles of all rows; `weigh` returns square roots of the weights of a block's rows."""
        if weigh is None and self._reduction:
            return self._reduction[0].factor
        triangles = _Triangles(self.equations, self.stretched)
        with one_blas_thread():
            for block in self.blocks():
                both = np.column_stack([block.A, block.y])
                triangles.add(block.equation, both if weigh is None else both * weigh(block)[:, None])
            return triangles.factor(self.parameters)

    def residuals(self, theta: ArrayLike) -> list[list[Array]]:
        """Compute y − A θ of every block, by equation; `theta` is the full parameter vector."""
        full = np.asarray(theta, dtype=float)
        out: list[list[Array]] = [[] for _ in self.equations]
        for block in self.blocks():
            out[block.equation].append(block.y - block.A @ full[self.equations[block.equation].columns])
        return out


class _Triangles:
    """Reflects rows [A y] of several equations into one triangle each."""

    def __init__(self, equations: tuple[Equation, ...], stretched: bool = True) -> None:
        self.equations = equations
        self._triangles = [np.zeros((e.width, e.width)) for e in equations]
        self._waiting: list[list[Array]] = [[] for _ in equations]
        self._rows = [0] * len(equations)
        self._stretches: list[list[Array]] = [[] for _ in equations]
        self._stretch = [_SHORTEST if stretched else _AT_ONCE] * len(equations)  # rows of each
        self._since = [0] * len(equations)  # rows since the end of the last stretch

    def add(self, equation: int, rows: Array) -> None:
        self._rows[equation] += len(rows)
        while len(rows):
            most = min(self._stretch[equation], _AT_ONCE) - sum(map(len, self._waiting[equation]))
            self._waiting[equation].append(rows[:most])
            if len(rows) >= most:
                self._reflect(equation)
            rows = rows[most:]

    def _reflect(self, equation: int) -> None:
        waiting, done = self._waiting[equation], self._stretches[equation]
        self._triangles[equation] = triangle(np.vstack([self._triangles[equation], *waiting]))
        self._since[equation] += sum(map(len, waiting))
        self._waiting[equation] = []
        if self._since[equation] >= self._stretch[equation]:
            self._since[equation] = 0
            done.append(self._triangles[equation])
            if len(done) == _STRETCHES:  # stretches twice as long from here on
                del done[::2]
                self._stretch[equation] *= 2

    def stretches(self) -> tuple[tuple[Array, ...], ...]:
        """Return each equation's triangle after each stretch of rows; a shorter last stretch is included."""
        return tuple((*done[:-1], last) for done, last in zip(self._stretches, self._triangles, strict=True))

    def factor(self, parameters: int) -> Factor:
        if not any(self._rows):
            raise StructureError("No rows remain: every sample was trimmed or masked; lower the trim or the mask.")
        for equation, rows in enumerate(self._waiting):
            if rows:
                self._reflect(equation)
        return Factor(self.equations, tuple(self._triangles), max(self._rows), parameters, "qr", tuple(self._rows))
