"""Units of logs and their size in SI."""

from __future__ import annotations

import math
from typing import Literal

from steelyard.errors import UnknownNameError

Dimension = Literal["angle", "length", "other"]

_ANGLES = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi}
_LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6}

# Size in SI of each unit, by signal.
LOG_UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {**_ANGLES, **_LENGTHS},
    "velocity": {
        **{f"{unit}/s": size for unit, size in (_ANGLES | _LENGTHS).items()},
        "rpm": 2.0 * math.pi / 60.0,
    },
    "acceleration": {f"{unit}/s^2": size for unit, size in (_ANGLES | _LENGTHS).items()},
    "torque": {"N m": 1.0, "N mm": 1e-3, "N cm": 1e-2, "mN m": 1e-3, "kN m": 1e3, "N": 1.0, "mN": 1e-3, "kN": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
}
SI = {"time": "s", "current": "A"}


def unit_size(signal: str, unit: str) -> float:
    """Return the size of a unit in SI; spaces and dots are ignored (Nm, N m, N·m).

    Args:
        signal: "position", "torque", …
        unit: Unit.
    """
    return LOG_UNITS[signal][_spelled(signal, unit)]


def unit_dimension(signal: str, unit: str) -> Dimension:
    """Return whether a unit is that of a revolute joint ("angle"), a prismatic joint ("length"), or neither.

    Args:
        signal: "position", "torque", …
        unit: Unit.
    """
    name = _spelled(signal, unit)
    if signal in ("position", "velocity", "acceleration"):
        return "length" if name.split("/")[0] in _LENGTHS else "angle"
    if signal == "torque":
        return "angle" if " " in name else "length"
    return "other"


def _spelled(signal: str, unit: str) -> str:
    compact = _compact(unit)
    for name in LOG_UNITS[signal]:
        if _compact(name) == compact:
            return name
    raise UnknownNameError(f"unit of {signal}", unit, LOG_UNITS[signal])


def _compact(unit: str) -> str:
    for sign, plain in (
        (" ", ""),
        ("·", ""),
        ("*", ""),
        (".", ""),
        ("^", ""),
        ("²", "2"),
        ("µ", "u"),
        ("μ", "u"),
        ("°", "deg"),
    ):
        unit = unit.replace(sign, plain)
    return unit
