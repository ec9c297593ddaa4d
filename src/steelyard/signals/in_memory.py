"""Reader of logs in memory: frames of pandas, polars and xarray, Arrow tables, dicts of arrays.

Their columns are recognised and mapped like those of a file. None of these libraries is imported: the module of its
class identifies an object, and most of them support the Arrow protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, shortened
from steelyard.signals.recognise import recognise_time
from steelyard.signals.table import MOST_COLUMNS, ColumnValues, LogReader, TableBlock, numbered

_JOINT_NAMES = "joints"  # entry of a dict or a dataset with the joint names
_UNNAMED_INDEX = "__index_level_0__"  # Arrow's name for the unnamed index of a pandas frame
_KINDS = "biufmMOUST"  # NumPy kinds of arrays that may be columns; text in place of a number is refused with its row


class MemoryReader(LogReader):
    """A reader of columns in memory.

    Args:
        called: Name for messages, in place of a path.
        arrays: Arrays (samples,), or (samples, joints) or (joints, samples), which are split: q becomes q1, q2, …
        joints: Joint names in the order of numbered columns; () if the columns have them.
    """

    suffixes = ()
    description = "columns in memory"

    def __init__(self, called: str, arrays: Mapping[str, Any], joints: Sequence[str] = ()) -> None:
        super().__init__(Path(called))
        self.joints = tuple(joints)
        self._columns = _columns(called, {str(name): _array(called, name, x) for name, x in arrays.items()})
        self.names = tuple(self._columns)
        self.row_count = len(next(iter(self._columns.values())))

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        yield {name: self._columns[name][start:] for name in columns}


def memory_reader(data: Any) -> LogReader:
    """Return a reader of an object in memory (`data`); one without column names is refused."""
    library = type(data).__module__.partition(".")[0]
    called = f"the {type(data).__name__}"
    if isinstance(data, np.ndarray) and data.dtype.names:
        return MemoryReader(called, {name: data[name] for name in data.dtype.names})
    if library == "xarray":  # before mappings, since its datasets are mappings
        return _of_xarray(called, data)
    if isinstance(data, Mapping):
        return _of_mapping(called, data)
    if library == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if library == "pandas" and getattr(getattr(data, "columns", None), "nlevels", 1) > 1:
        data = data.set_axis(["/".join(str(part) for part in name if str(part)) for name in data.columns], axis=1)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_arrow(called, data)
    advice = '; its columns have no names, give a dict: {"t": …, "q": …, "tau": …}' * isinstance(data, np.ndarray)
    raise LogError(
        "A log is given as path, Log, frame (pandas, polars, xarray, Arrow) or dict of arrays, not as "
        f"'{type(data).__name__}'{advice}."
    )


def _of_mapping(called: str, data: Mapping[Any, Any]) -> LogReader:
    """Read a dict of arrays; a nested dict such as {"q": {"shoulder": …}} has joint names."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        flat |= {f"{name}/{inner}": x for inner, x in value.items()} if isinstance(value, Mapping) else {name: value}
    joints = flat.pop(_JOINT_NAMES, ())
    return MemoryReader(called, flat, [str(name) for name in joints])


def _of_arrow(called: str, data: Any) -> LogReader:
    """Read a frame with the Arrow protocol: pandas, polars, DuckDB, Arrow tables."""
    import pyarrow as pa

    from steelyard.signals._arrow import ArrowColumns

    try:
        table = pa.table(data).combine_chunks()
        batch = next(iter(table.to_batches()), None)
        columns = ArrowColumns(Path(called), table.schema, batch)
        arrays = {} if batch is None else dict(columns.block(batch, columns.names, 0))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise LogError(f"{called}: cannot be read as a table ({shortened(str(error).splitlines()[0], 120)}).") from None
    index = arrays.pop(_UNNAMED_INDEX, None)
    # An integer index has the numbers of selected rows, so it is not a time.
    if index is not None and index.dtype.kind in "fmM" and recognise_time(list(arrays)) is None:
        arrays = {"time": index, **arrays}
    return MemoryReader(called, arrays, columns.joints)


def _of_xarray(called: str, data: Any) -> LogReader:
    """Read a dataset, or an array whose second coordinate has the names of its columns."""
    if not hasattr(data, "data_vars"):
        if data.ndim != 2:
            raise LogError(f"{called}: has {data.ndim} dimensions; give one with samples and columns, or a Dataset.")
        data = data.to_dataset(dim=data.dims[1])
    first = next(iter(data.data_vars.values()), None)
    if first is None or not first.dims:
        raise LogError(f"{called}: holds no variable with samples.")
    every = {str(name): x for name, x in {**data.coords, **data.data_vars}.items()}
    along = recognise_time([str(name) for name in data.sizes]) or first.dims[0]
    arrays: dict[str, Any] = {}
    for name, x in every.items():
        if along not in x.dims or x.ndim > 2:
            continue
        values = x.transpose(along, ...).values
        other = next((d for d in x.dims if d != along), None)
        labels: Any = data.coords[other].values if other in data.coords else np.empty(0)
        if labels.dtype.kind in "OUT":
            arrays |= {f"{name}/{label}": values[:, k] for k, label in enumerate(labels)}
        else:
            arrays[name] = values
    return MemoryReader(called, arrays)


def _array(called: str, name: Any, data: Any) -> ColumnValues:
    try:
        x = np.asarray(data)
    except ValueError:  # lists of different lengths
        raise LogError(f"{called}: '{name}' is not an array; give one number per sample, or per joint.") from None
    if x.dtype.kind == "m":  # durations become dates since 1970
        x = np.datetime64(0, "ns") + x
    if x.dtype.kind not in _KINDS or x.ndim not in (1, 2):
        raise LogError(
            f"{called}: '{name}' has shape {x.shape} and type {x.dtype}; give numbers (samples,) or (samples, joints)."
        )
    return x


def _columns(called: str, arrays: dict[str, ColumnValues]) -> dict[str, ColumnValues]:
    """Split arrays into columns; the axis of the samples has the length of the time, or else the largest length."""
    time = recognise_time([name for name, x in arrays.items() if x.ndim == 1])
    rows = len(arrays[time]) if time is not None else max((max(x.shape) for x in arrays.values()), default=0)
    if rows == 0 or not any(x.size for x in arrays.values()):
        raise LogError(f"{called}: holds no samples; give arrays such as t, q and tau.")
    out: dict[str, ColumnValues] = {}
    for name, x in arrays.items():
        if rows not in x.shape:
            length = x.shape[0] if x.ndim == 1 else " × ".join(str(n) for n in x.shape)
            raise LogError(f"{called}: '{name}' has {length} samples, '{time or 'the longest'}' has {rows}.")
        if x.ndim == 1:
            out[name] = x
            continue
        x = x if x.shape[0] == rows else x.T
        if x.shape[1] > MOST_COLUMNS:
            raise LogError(f"{called}: '{name}' has {x.shape[1]} columns; at most {MOST_COLUMNS} are read.")
        out |= dict(zip(numbered(name, x.shape[1]), x.T, strict=True))
    return out
