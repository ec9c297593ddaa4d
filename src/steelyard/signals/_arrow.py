"""Arrow's columns as NumPy's, whatever file they come from: Parquet, Feather, text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.remote import AnyPath
from steelyard.signals.table import MOST_COLUMNS, ColumnValues, TableBlock, numbered

# A column of lists of text so called names the joints, as in ROS's messages.
_JOINTS = ("name", "names", "joints", "joint_names", "joint_name")


class ArrowColumns:
    """The columns of a table of Arrow's; one of lists, all of one length, is as many columns: q becomes q1, q2, …

    Args:
        path: of the file, for messages.
        schema: of the table.
        first: its first rows, which tell how long the lists are; None where there are none.
    """

    def __init__(self, path: AnyPath, schema: Any, first: Any) -> None:
        import pyarrow as pa

        self._path = path
        self.joints: tuple[str, ...] = ()
        self._places: dict[str, tuple[str, int, int]] = {}  # source, which of how many
        self._plain: set[str] = set()
        try:
            every = [str(field.name) for field in schema]
        except UnicodeDecodeError:
            raise LogError(f"{path}: the name of a column is not text; write or copy it again.") from None
        if len(set(every)) < len(every):
            twice = next(name for name in every if every.count(name) > 1)
            raise LogError(f"{path}: column '{twice}' appears twice; give every column its own name.")
        for field, name in zip(schema, every, strict=True):
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
                continue  # text, pictures, lists of lists: no signal
            if width > MOST_COLUMNS:
                raise LogError(f"{path}: column '{name}' has lists of {width} numbers; {MOST_COLUMNS} are read.")
            self._places |= {each: (name, k, width) for k, each in enumerate(numbered(name, width))}
        self.names = tuple(self._places)

    def sources(self, columns: Sequence[str]) -> list[str]:
        """The columns of the file that the named `columns` are parts of, each once."""
        return list(dict.fromkeys(self._places[name][0] for name in columns))

    def block(self, batch: Any, columns: Sequence[str], row: int) -> TableBlock:
        """The `columns` of a `batch`, whose first row is number `row` of the file, from 0."""
        held = {name: self._held(batch.column(name), name, row) for name in self.sources(columns)}
        found = {name: (held[source], k) for name in columns for source, k, _ in [self._places[name]]}
        return {name: x[:, k] if x.ndim == 2 else x for name, (x, k) in found.items()}

    def _held(self, column: Any, name: str, row: int) -> ColumnValues:
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
                f"{self._path}: row {row + at + 1}, column '{name}': a list of {int(lengths[at])} numbers, where "
                f"others have {width}."
            )
        return numpy_column(column.flatten()).reshape(-1, width)


def is_list(kind: Any) -> bool:
    """Whether a column of Arrow's type `kind` holds lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def numpy_column(column: Any) -> ColumnValues:
    """A batch's Arrow `column` as NumPy's: empty cells become NaN in numbers, NaT in time stamps, None elsewhere."""
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
        # Arrow's own way to NumPy loads Pandas where it is installed, which takes half a second.
        return np.asarray(np.from_dlpack(column))
    return np.asarray(column.to_numpy(zero_copy_only=False))
