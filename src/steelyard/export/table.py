"""`parameters_to_csv`, `covariance_to_csv`: the numbers of a model, and their errors, as tables for any program."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError, ShapeError
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted import read_text

_COLUMNS = ("name", "unit", "value", "standard_error", "lower", "upper", "of")
# A covariance of a thousand parameters, with all digits, is smaller.
_MOST_BYTES = 32_000_000


def parameters_to_csv(model: Model, path: str | os.PathLike[str], standard_errors: ArrayLike | None = None) -> None:
    """Write to `path` one row per parameter, in the order of `model`'s `theta`, with all digits.

    `lower` and `upper` are the bounds that physics sets (empty where there is none), `of` the link, joint or motor
    that the parameter belongs to. `standard_errors` has one entry per parameter, in the parameter's unit; those
    that are not finite are left empty, as all are where none are given.
    """
    parameters = model.dynamics.parameters
    errors = np.full(len(parameters), np.nan) if standard_errors is None else np.asarray(standard_errors, dtype=float)
    if errors.shape != (len(parameters),):
        raise ShapeError(f"standard_errors has shape {errors.shape}; the model needs ({len(parameters)},).")
    owners = [link.name for link in model.robot.links for _ in range(10)]
    owners += model.terms.per_parameter(lambda _, place: place.name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for p, value, error, owner in zip(parameters, model.theta, errors, owners, strict=True):
        numbers = [_number(x) for x in (float(value), float(error), p.lower, p.upper)]
        writer.writerow([p.name, p.unit, *numbers, owner])
    write_whole(path, text.getvalue())


def covariance_to_csv(names: Sequence[str], covariance: ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write to `path` the `covariance` (SI units) of base parameters called `names`: their names, then a row each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_number(float(x)) for x in row] for row in np.asarray(covariance)])
    write_whole(path, text.getvalue())


def read_covariance(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Array]:
    """The names of base parameters and their covariance, of a file at `path` that `covariance_to_csv` wrote."""
    source = Path(path)
    try:
        names, *rows = csv.reader(io.StringIO(read_text(source, _MOST_BYTES, ExportError, "identify anew")))
        values = np.array([[float(x) if x else np.nan for x in row] for row in rows])
    except (ValueError, csv.Error):
        names, values = [], np.zeros(0)
    if values.shape != (len(names), len(names)) or not names:
        raise ExportError(f"{source}: is no covariance of base parameters as a run of identify has it; identify anew.")
    return tuple(names), values


def _number(value: float) -> str:
    return repr(value + 0.0) if math.isfinite(value) else ""
