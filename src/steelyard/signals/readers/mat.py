"""MATLAB's .mat files: versions 5 to 7, and version 7.3 (HDF5) by h5py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.signals._arrays import ArrayColumns, StoredArray
from steelyard.signals._matlab import HEADER, read_matlab
from steelyard.signals.readers.hdf5 import Hdf5Reader
from steelyard.signals.table import MOST_COLUMNS, READERS, LogReader, TableBlock

_JOINTS = ("joints", "joint_names", "names")
# Largest file of versions up to 7, which cannot be read in part; MATLAB's limit for their variables is lower.
_LARGEST = 4 << 30


@READERS.register("mat")
class MatReader(LogReader):
    """Reads the arrays of a file and of its structures; objects (timeseries, tables) and functions are ignored.

    Files up to version 7 are read whole.
    """

    suffixes = (".mat",)
    description = (
        "arrays `(samples,)`, `(samples, joints)` or `(joints, samples)`, also inside a structure (`log.q`); a cell "
        "array of text `joints` names the joints; version 7.3 needs h5py"
    )
    magic = b"MATLAB "

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with path.open("rb") as file:
            start = file.read(HEADER)
        source: ArrayColumns | Hdf5Reader
        if start.startswith((b"MATLAB 7.3", Hdf5Reader.magic)):
            source = Hdf5Reader(path, topic)
            self.joints = source.joints
        else:
            if (size := path.stat().st_size) > _LARGEST:
                raise LogError(f"{path}: has {size / 1e9:.3g} GB; save it with -v7.3, which can be read in part.")
            source = ArrayColumns(path, list(self._flat(read_matlab(path))))
        self._source = source
        self.names, self.row_count, self.findings = source.names, source.row_count, source.findings

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        return self._source.blocks(columns, start)

    def _flat(self, data: Mapping[str, Any], above: str = "") -> Iterator[StoredArray]:
        """Yield the arrays; their prefix is the structure's name and a dot, except in a single structure."""
        for name, x in data.items():
            full = f"{above}.{name}" if above else name
            if isinstance(x, Mapping):
                yield from self._flat(x, "" if len(data) == 1 and not above else full)
            elif name in _JOINTS and isinstance(x, list) and all(isinstance(each, str) for each in x):
                self.joints = tuple(each.strip() for each in x)[:MOST_COLUMNS]
            elif isinstance(x, np.ndarray):
                yield StoredArray(full, x.shape, x.dtype.kind, x)
