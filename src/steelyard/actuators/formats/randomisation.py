"""Randomisation: correlated draws of the parameters and of the numbers of simulators."""

from __future__ import annotations

import math

import numpy as np

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.simulator_drive import SIMULATOR_NUMBERS, SimulatorDrive, parameter_draws
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import json_text

# Typical number of environments in one training run; each row is one drive.
_ROWS = 1000


def draws_table(drive: SimulatorDrive, count: int = _ROWS) -> tuple[list[str], np.ndarray]:
    """Return names and rows of correlated draws: the numbers of simulators, then the parameters of the drive.

    Args:
        drive: Drive at one setting.
        count: Number of rows.
    """
    numbers = {name: drive.draws[name][:count] for name in SIMULATOR_NUMBERS if math.isfinite(drive[name])}
    count = min([count, *(len(v) for v in numbers.values())])
    parameters = parameter_draws(drive.model, count)
    columns = {name: v[:count] for name, v in numbers.items()}
    columns |= {f"drive.{name}": v for name, v in parameters.items()}
    return list(columns), np.column_stack(list(columns.values()))


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    if not drive.draws:
        return WrittenDrive({})
    names, rows = draws_table(drive)
    text = csv_text([names, *([f"{x:.8g}" for x in row] for row in rows)])
    unknown = [name for name, x in drive.numbers.items() if not x.known and math.isfinite(x.value) and x.value]
    notes = tuple(f"The data do not determine {name}; the events do not randomise it." for name in unknown)
    ranges = {**drive.to_json(), "joint": target.joint, "rows": len(rows),
              "about": "ranges are 95 % intervals; the rows of randomisation.csv are drawn jointly"}  # fmt: skip
    return WrittenDrive({"randomisation.csv": text, "randomisation.json": json_text(ranges)}, notes)


ACTUATOR_FORMATS.register("randomisation")(
    ActuatorFormat("correlated draws of the drive, as CSV, and ranges as JSON", _write)
)
