"""`GpuReduction`: triangular factors of many logs at once, by the Gram kernel of a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.dynamics.cuda.grams import GpuGrams
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import one_blas_thread
from steelyard.regression.factor import Factor, gram_root
from steelyard.regression.rows import Rows


class GpuReduction:
    """Reduces logs for one set of rows, like `reduce(…, method="normal")`, on a GPU.

    Args:
        rows: Traced equations.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.grams = GpuGrams(rows.function, [int(x) for x in rows.firsts], [e.width for e in rows.equations])

    def __call__(self, logs: Sequence[Mapping[str, Any]]) -> list[Factor]:
        """Compute the factor of each log.

        Args:
            logs: `q`, `dq`, `ddq` and `tau` of each, `(samples, joints)`.
        """
        counts = [len(log["tau"]) for log in logs]
        if not all(counts):
            raise SteelyardError("The logs contain no samples; give logs with data.")
        found = self.grams(logs)
        with one_blas_thread():
            triangles = [tuple(gram_root(gram) for gram in grams) for grams in found]
        rows = self.rows
        return [
            Factor(rows.equations, made, count, rows.parameters, "normal")
            for made, count in zip(triangles, counts, strict=True)
        ]
