"""Converts Arrow columns of Parquet, Feather and text files to NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.remote import AnyPath
from steelyard.signals.table import MOST_COLUMNS, ColumnValues, TableBlock, numbered

# A column of lists of text with one of these names has the joint names, as in ROS messages.
_JOINTS = ("name", "names", "joints", "joint_names", "joint_name")


class ArrowColumns:
    """The columns of an Arrow table. A column of lists of equal length is split: q becomes q1, q2, …

    Args:
        path: Path of the file, for messages.
        schema: Schema of the table.
        first: First rows, which give the length of the lists; None without rows.
    """

    def __init__(self, path: AnyPath, schema: Any, first: Any) -> None:
        import pyarrow as pa

        self._path = path
        self.joints: tuple[str, ...] = ()
        self._places: dict[str, tuple[str, int, int]] = {}  # source column, index and length of its lists
        self._plain: set[str] = set()
        try:
            names = [str(field.name) for field in schema]
        except UnicodeDecodeError:
            raise LogError(f"{path}: the name of a column is not text; write or copy the file again.") from None
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise LogError(f"{path}: column '{twice}' appears twice; give every column a different name.")
        for field, name in zip(schema, names, strict=True):
            kind = field.type
            if not is_list(kind):
                self._plain.add(name)
                self._places[name] = (name, 0, 1)
                continue
            row = first.column(name)[0].as_py() if first is not None and len(first) else None
            if pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type):
                if name.lower() in _JOINTS and row and len(row) <= MOST_COLUMNS:
                    self.joints = tuple(str(x) for x in row)
                continue
            width = kind.list_size if pa.types.is_fixed_size_list(kind) else len(row or ())
            if not _is_number(kind.value_type) or width == 0:
                continue  # text, images and lists of lists are not signals
            if width > MOST_COLUMNS:
                raise LogError(
                    f"{path}: column '{name}' has lists of {width} numbers; at most {MOST_COLUMNS} are read."
                )
            self._places |= {each: (name, k, width) for k, each in enumerate(numbered(name, width))}
        self.names = tuple(self._places)

    def sources(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of the file that contain `columns`, each once."""
        return list(dict.fromkeys(self._places[name][0] for name in columns))

    def block(self, batch: Any, columns: Sequence[str], row: int) -> TableBlock:
        """Convert columns of a batch.

        Args:
            batch: Arrow record batch.
            columns: Names of the columns.
            row: Row of the file at which the batch begins, from 0.
        """
        arrays = {name: self._array(batch.column(name), name, row) for name in self.sources(columns)}
        pairs = {name: (arrays[source], k) for name in columns for source, k, _ in [self._places[name]]}
        return {name: x[:, k] if x.ndim == 2 else x for name, (x, k) in pairs.items()}

    def _array(self, column: Any, name: str, row: int) -> ColumnValues:
        if name in self._plain:
            return numpy_column(column)
        import pyarrow as pa

        width = next(w for source, _, w in self._places.values() if source == name)
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(np.asarray(lengths) != width) if not pa.types.is_fixed_size_list(column.type) else ()
        empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
        if len(odd) or len(empty):
            at = int(min([*odd[:1], *empty[:1]]))
            raise LogError(
                f"{self._path}: row {row + at + 1}, column '{name}': the list has {int(lengths[at])} numbers, those of "
                f"other rows have {width}."
            )
        return numpy_column(column.flatten()).reshape(-1, width)


def is_list(kind: Any) -> bool:
    """Whether an Arrow column of type `kind` holds lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def numpy_column(column: Any) -> ColumnValues:
    """Convert an Arrow `column` to NumPy: empty cells become NaN in numbers, NaT in time stamps, else None."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if pa.types.is_timestamp(kind):
        stamps = column.cast(pa.timestamp(kind.unit)).to_numpy(zero_copy_only=False)
        return np.asarray(stamps.astype(f"datetime64[{kind.unit}]"))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if (pa.types.is_integer(kind) or pa.types.is_boolean(kind)) and column.null_count:
        column = column.cast(pa.float64())
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count == 0 and len(column):
        # Arrow's conversion would import pandas, which takes half a second.
        return np.asarray(np.from_dlpack(column))
    return np.asarray(column.to_numpy(zero_copy_only=False))
