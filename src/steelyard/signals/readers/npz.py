"""Read NumPy's .npz archive: 1-D arrays are columns, a 2-D array q is the columns q1, q2, …"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from steelyard.errors import LogError
from steelyard.signals.table import Column, Table


def read_npz(path: Path) -> Table:
    """The arrays whose first axis is the samples. An array of names called `joints` names the joints."""
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, AttributeError) as error:
        raise LogError(f"{path}: is not a readable .npz file, or is cut short ({error}).") from None
    joints: tuple[str, ...] = ()
    if "joints" in arrays and arrays["joints"].dtype.kind == "U":
        joints = tuple(str(name) for name in np.atleast_1d(arrays.pop("joints")))
    samples = max((len(a) for a in arrays.values() if a.ndim and a.dtype.kind in "biufM"), default=0)
    if samples == 0:
        raise LogError(f"{path}: holds no array with samples; there are {', '.join(arrays) or 'none'}.")
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        if array.ndim == 0 or array.dtype.kind not in "biufM":
            continue  # a remark, not a signal
        if len(array) != samples:
            if name in ("segments", "gravity", "torque_constants"):
                continue
            raise LogError(f"{path}: the array '{name}' has {len(array)} samples, another has {samples}.")
        if array.ndim > 2:
            raise LogError(
                f"{path}: the array '{name}' has shape {array.shape}; write (samples,) or (samples, joints)."
            )
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}{k + 1}": array[:, k] for k in range(array.shape[1])}
    return Table(str(path), columns, joints=joints)
