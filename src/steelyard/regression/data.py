"""`RegressionData`: the rows y = A θ of a log, equation by equation, in chunks that can be gone through again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import StructureError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Equation

# Rows up to this size are kept between passes; beyond it they are computed again each time.
_KEPT_BYTES = 700_000_000


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of one equation: y = A θ[columns] + noise, free of gaps in time."""

    equation: int
    A: Array
    y: Array


@dataclass(frozen=True, eq=False)
class RegressionData:
    """Rows over `columns` of the parameter vector, one group per equation (joint).

    `source()` starts a new pass over the blocks; memory holds one block at a time. `period` (s) is the time
    between rows of an equation.
    """

    equations: tuple[Equation, ...]
    parameters: int
    source: Callable[[], Iterable[Block]]
    period: float
    _kept: list[list[Block]] = field(default_factory=list)
    _factor: list[Factor] = field(default_factory=list)

    @classmethod
    def from_arrays(
        cls, names: Sequence[str], columns: ArrayLike, A: Sequence[Array], y: Sequence[Array], parameters: int,
        period: float = 1.0,
    ) -> RegressionData:  # fmt: skip
        """From one matrix and one right side per equation, all over the same columns."""
        shared = np.asarray(columns, dtype=np.int64)
        blocks = [
            Block(e, np.asarray(a, float), np.asarray(b, float)) for e, (a, b) in enumerate(zip(A, y, strict=True))
        ]
        return cls(tuple(Equation(n, shared) for n in names), parameters, lambda: blocks, period)

    def blocks(self) -> Iterator[Block]:
        """All blocks. A first pass that fits into memory is kept for the next ones."""
        if self._kept:
            yield from self._kept[0]
            return
        kept: list[Block] | None = []
        size = 0
        for block in self.source():
            size += block.A.nbytes + block.y.nbytes
            if kept is not None:
                kept.append(block)
                if size > _KEPT_BYTES:
                    kept = None
            yield block
        if kept is not None:
            self._kept.append(kept)

    def factor(self, weigh: Callable[[Block], Array] | None = None) -> Factor:
        """The triangles of all rows; `weigh(block)` gives the square root of a weight for each row of a block."""
        if weigh is None and self._factor:
            return self._factor[0]
        widths = [e.width for e in self.equations]
        triangles = [np.zeros((w, w)) for w in widths]
        rows = np.zeros(len(widths), dtype=int)
        with one_blas_thread():
            for block in self.blocks():
                both = np.column_stack([block.A, block.y])
                if weigh is not None:
                    both = both * weigh(block)[:, None]
                e = block.equation
                triangles[e] = triangle(np.vstack([triangles[e], both]))
                rows[e] += len(block.y)
        if not rows.any():
            raise StructureError("There is no row to estimate from: every sample was cut away or masked.")
        made = Factor(self.equations, tuple(triangles), int(rows.max()), self.parameters, "qr", tuple(rows.tolist()))
        if weigh is None:
            self._factor.append(made)
        return made

    def residuals(self, theta: ArrayLike) -> list[list[Array]]:
        """y − A θ of every block, by equation; θ is the full vector of parameters."""
        full = np.asarray(theta, dtype=float)
        out: list[list[Array]] = [[] for _ in self.equations]
        for block in self.blocks():
            out[block.equation].append(block.y - block.A @ full[self.equations[block.equation].columns])
        return out
