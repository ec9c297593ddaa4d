"""`parameters_to_csv`: the numbers of a model as a table that any program reads."""

from __future__ import annotations

import csv
import io
import math
import os

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError
from steelyard.ground.files import write_whole

_COLUMNS = ("name", "unit", "value", "standard_error", "lower", "upper", "of")


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


def _number(value: float) -> str:
    return repr(value + 0.0) if math.isfinite(value) else ""
