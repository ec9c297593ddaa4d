"""BAM's logs of a pendulum: one JSON file per run, raw or on a regular time grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.actuators.command_columns import CommandColumns, decode, filled, guess_code
from steelyard.errors import LogError, shortened
from steelyard.ground.untrusted_files import read_json

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array
    from steelyard.ground.field import Field

_SETTINGS = {"mass": "mass", "length": "length", "arm_mass": "arm_mass", "kp": "kp", "vin": "supply"}
# Number of the register in BAM's `load` at the full supply voltage, from the manufacturers' register tables: Dynamixel
# X430 and XL330 "Present PWM" (PWM limit 885), MX with protocol 1 and Feetech STS "Present Load".
_FULL_SCALE = {"xl330": 885, "xc330": 885, "xl430": 885, "xm430": 885, "xm540": 885, "mx64": 1023, "mx106": 1023}
_FEETECH = ("sts", "scs", "feetech", "st3", "hls")
_PER_MILLE = 1000
# A run of an hour at 1 kHz; each entry has about 200 bytes.
_MOST_ENTRIES = 3_600_000


def is_bam(path: Path) -> bool:
    """Whether the name of the file `path` is that of a BAM log."""
    return path.suffix.lower() == ".json" and path.is_file()


def read_bam(path: Path, full_scale: float | None = None) -> CommandColumns:
    """Read a log of BAM.

    Args:
        path: JSON file with `entries`.
        full_scale: Number of the register `load` at full supply voltage; default: the value for the motor, if known.
    """
    document = read_json(path, LogError, "record it again with BAM")
    top = document.entries()
    if "entries" not in top:
        document.fail("has no 'entries', which every log of BAM has; give the log, not the parameters.")
    entries = top["entries"].items("entry", _MOST_ENTRIES)
    numbers = {ours: top[key].number() for key, ours in _SETTINGS.items() if _is_number(top.get(key))}
    words: dict[str, str] = {key: shortened(str(top[key].value), 60) for key in ("motor", "trajectory") if key in top}
    motor = words.get("motor", "")
    if _is_number(top.get("damping")):
        # BAM's eRob control multiplies its damping by √kp; other drives use the damping itself.
        scale = math.sqrt(max(numbers.get("kp", 0.0), 0.0)) if motor.lower().startswith("erob") else 1.0
        numbers["kd"] = top["damping"].number() * scale
    time = _times(entries, top)
    signals = {
        "goal": _column(entries, "goal_position"),
        "position": _column(entries, "position"),
        "velocity": _column(entries, "speed"),
        "voltage": _column(entries, "input_volts"),
        "current": _column(entries, "current"),
    }
    for name in ("goal", "position"):
        if signals[name] is None:
            key = "goal_position" if name == "goal" else name
            document.fail(f"its entries have no '{key}'; only runs with a commanded goal identify an actuator.")
    enabled = _column(entries, "torque_enable")
    notes: list[str] = []
    duty = _duty(_column(entries, "load"), motor, full_scale, notes)
    goal = filled(_need(signals["goal"]))
    if enabled is not None and not np.isfinite(goal).all():
        goal = np.where(np.isfinite(goal), goal, _need(signals["position"]))
    return CommandColumns(
        str(path), motor or "servo", time, goal, _need(signals["position"]), signals["velocity"], duty,
        signals["voltage"], signals["current"], None, None if enabled is None else filled(enabled) > 0.5,
        numbers, words, tuple(notes),
    )  # fmt: skip


def _need(values: Array | None) -> Array:
    assert values is not None  # checked by the caller
    return values


def _is_number(entry: Field | None) -> bool:
    return entry is not None and isinstance(entry.value, int | float) and not isinstance(entry.value, bool)


def _times(entries: Sequence[Field], top: dict[str, Field]) -> Array:
    time = _column(entries, "timestamp")
    if time is not None:
        return time
    if not _is_number(top.get("dt")):
        raise LogError(f"{top['entries'].place}: its entries have no 'timestamp' and the file no 'dt'; record a clock.")
    return np.asarray(np.arange(len(entries)) * top["dt"].positive())


def _column(entries: Sequence[Field], key: str) -> Array | None:
    """Values of a key in all entries, NaN where it is null; None if no entry has it."""
    out = np.full(len(entries), np.nan)
    present = False
    for k, entry in enumerate(entries):
        row = entry.value
        if not isinstance(row, dict):
            entry.fail("is not a table of names and values.")
        value: Any = row.get(key)
        if value is None:
            continue
        if isinstance(value, bool):
            value = float(value)
        if not isinstance(value, int | float):
            entry.inside(value, key).number()  # raises with the place
        if not abs(value) < 1e300:  # an integer of JSON may be larger than any float
            entry.fail(f"{key} is too large; the file may be damaged.")
        out[k], present = float(value), True
    return out if present else None


def _duty(raw: Array | None, motor: str, full_scale: float | None, notes: list[str]) -> Array | None:
    """Signed duty from the register `load`; None, with a note, if its numbers are unreliable."""
    if raw is None or not np.any(raw):  # a register that was not read has only zeros
        return None
    code = guess_code(raw)
    if code is None:
        notes.append(
            "The column 'load' was averaged across the wrap of an unsigned register and is not used; give the raw log."
        )
        return None
    scale = full_scale or _full_scale(motor)
    if scale is None:
        notes.append(
            f"The full scale of 'load' of the motor '{motor}' is not known, so it is not used; state duty_full_scale."
        )
        return None
    duty = decode(raw, code) / scale
    if np.nanmax(np.abs(duty)) > 1.05:  # more than rounding of the register
        notes.append("The column 'load' exceeds its full scale, so it is not used; state duty_full_scale.")
        return None
    return filled(duty)


def _full_scale(motor: str) -> float | None:
    name = motor.lower().replace("-", "").replace("_", "")
    known = next((scale for start, scale in _FULL_SCALE.items() if name.startswith(start)), None)
    return known if known is not None else _PER_MILLE if name.startswith(_FEETECH) else None
