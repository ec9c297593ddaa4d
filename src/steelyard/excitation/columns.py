"""Which columns a design is about: those that the moving joints and the chosen equations can show at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.excitation.error import ExcitationError
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.spatial import Array

# What is left of a unit column when the earlier ones are taken away, squared. Base columns of random motions leave
# 1e-7 or more; dependent ones leave rounding, 1e-13 or less.
_INDEPENDENT = 1e-10


def independent_of(gram: Array) -> list[int]:
    """The columns, in order, that are no combination of earlier ones: Cholesky's pivots of the scaled Gram matrix."""
    scale = np.sqrt(np.diag(gram))
    seen = scale > 1e-12 * scale.max(initial=0.0)
    left = gram / np.outer(np.where(seen, scale, 1.0), np.where(seen, scale, 1.0))
    kept: list[int] = []
    for k in range(len(gram)):
        if seen[k] and left[k, k] > _INDEPENDENT:
            kept.append(k)
            left = left - np.outer(left[:, k], left[k]) / left[k, k]
    return kept


def named_columns(base: BaseParameters, names: Sequence[str] | None) -> list[int]:
    """Positions among the base parameters of those with these names (default: all)."""
    if names is None:
        return list(range(base.rank))
    for name in names:
        if name not in base.names:
            raise UnknownNameError("base parameter", name, base.names)
    chosen = sorted({base.names.index(name) for name in names})
    if not chosen:
        raise ExcitationError("No parameter is asked for; leave `parameters` out to design for all of them.")
    return chosen
