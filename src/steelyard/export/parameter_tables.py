"""`parameters_to_csv`, `covariance_to_csv`: write the parameters of a model and their covariance as tables."""

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
from steelyard.ground.untrusted_files import read_text

_COLUMNS = ("name", "unit", "value", "standard_error", "lower", "upper", "of")
# [bytes]; enough for the covariance of a thousand parameters.
_MOST_BYTES = 32_000_000


def parameters_to_csv(model: Model, path: str | os.PathLike[str], standard_errors: ArrayLike | None = None) -> None:
    """Write one row per parameter, in the order of `theta`, with all digits.

    The columns `lower` and `upper` are physical bounds (empty without one), `of` is the link, joint or motor.

    Args:
        model: Model to write.
        path: Path of the table.
        standard_errors: Standard errors in the units of the parameters; values that are not finite are left empty.
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
    """Write a covariance matrix: the names, then one row per parameter.

    Args:
        names: Names of the base parameters.
        covariance: Covariance in SI units.
        path: Path of the table.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_number(float(x)) for x in row] for row in np.asarray(covariance)])
    write_whole(path, text.getvalue())


def read_covariance(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Array]:
    """Read names and covariance from a file at `path` written by `covariance_to_csv`."""
    source = Path(path)
    try:
        names, *rows = csv.reader(io.StringIO(read_text(source, _MOST_BYTES, ExportError, "run identify again")))
        values = np.array([[float(x) if x else np.nan for x in row] for row in rows])
    except (ValueError, csv.Error):
        names, values = [], np.zeros(0)
    if values.shape != (len(names), len(names)) or not names:
        raise ExportError(f"{source}: is not a covariance of base parameters from identify; run identify again.")
    return tuple(names), values


def _number(value: float) -> str:
    return repr(value + 0.0) if math.isfinite(value) else ""
