"""Turn an Arrow column into a NumPy one: numbers, text or time stamps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from steelyard.signals.table import Column


def numpy_column(column: Any) -> Column:
    """Empty cells become NaN in numbers, NaT in time stamps and None elsewhere."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if pa.types.is_timestamp(kind):
        return np.asarray(column.cast(pa.timestamp(kind.unit)).to_numpy().astype(f"datetime64[{kind.unit}]"))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if (pa.types.is_integer(kind) or pa.types.is_boolean(kind)) and column.null_count:
        column = column.cast(pa.float64())
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count == 0 and len(column):
        # Arrow's own way to NumPy loads Pandas where it is installed, which takes half a second.
        return np.concatenate([np.from_dlpack(part) for part in getattr(column, "chunks", [column]) if len(part)])
    return np.asarray(column.to_numpy())
