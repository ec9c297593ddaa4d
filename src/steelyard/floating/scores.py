"""Scores of rows outside of a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.floating.result import RowScore
from steelyard.floating.row_information import row_sums, varying
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData


def row_score(
    name: str, parts: Sequence[RegressionData], base: BaseParameters, theta: Array, described: Array | None
) -> RowScore:
    """Score parameters on rows.

    Args:
        name: Name of the rows.
        parts: The rows.
        base: Base parameters of their columns.
        theta: Identified parameters.
        described: Parameters of the description; None without one.
    """
    factor = parts[0].reduction().factor.merge(*(part.reduction().factor for part in parts[1:]))
    rows = np.maximum(np.array(factor.rows, dtype=float), 1.0)
    whole = sum(float(r[:, -1] @ r[:, -1]) for r in factor.triangles)

    def error(values: Array | None) -> tuple[float, tuple[float, ...]]:
        if values is None:
            return float("inf"), ()
        sums = row_sums(factor, base, values)
        return 100.0 * float(np.sqrt(sums.sum() / max(whole, 1e-300))), tuple(np.sqrt(sums / rows).tolist())

    (own, rms), (other, other_rms) = error(theta), error(described)
    return RowScore(name, own, other, own / varying(parts), rms, other_rms)
