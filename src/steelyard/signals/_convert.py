"""Converts the columns of a file to the signals of a robot's joints, in SI units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals._layout import Layout
from steelyard.signals.log import Finding
from steelyard.signals.mapping import LogMapping
from steelyard.signals.table import Table
from steelyard.signals.units import unit_dimension, unit_size

# Longest duration of a log [s], and the largest signed integer.
_LONGEST, _LARGEST_COUNT = 1e11, 2**63 - 1

_SLACK = 0.02  # backlash and tendon stretch relative to the motion

NAMES = {"position": "q", "velocity": "dq", "acceleration": "ddq", "torque": "tau", "current": "tau"}


def joint_signals(
    table: Table, layout: Layout, mapping: LogMapping, robot: Robot, findings: list[Finding]
) -> dict[str, Array]:
    """Compute q, dq, ddq and tau, as far as the file has them, shape (samples, joints) in the robot's order.

    On the motor side, drive coordinates are u = x / gear_ratio, and q = C⁻¹ u (least squares with more motors than
    joints). Drive torques are τ_u = gear_ratio · torque or torque_constants · current, and τ = Cᵀ τ_u. Signs and the
    offset of the positions are applied last.

    Args:
        table: Columns of the file.
        layout: Signals of the columns.
        mapping: Mapping of the file.
        robot: Robot.
        findings: List to which a disagreement of redundant motors is added.
    """
    _check_units(layout, mapping, robot)
    return {
        NAMES[signal]: _signal(signal, table, layout, mapping, robot, findings)
        for signal in ("position", "velocity", "acceleration", "torque", "current")
        if signal in layout.columns
    }


def seconds(
    table: Table, name: str, mapping: LogMapping, origin: float | int | None = None
) -> tuple[Array, float | int]:
    """Compute the time of every row [s], and the file's clock at zero time, in the file's unit.

    Stamps that count from a distant date are counted from the first row instead, or from `origin`.

    Args:
        table: Columns of the file.
        name: Column of the time.
        mapping: Mapping of the file.
        origin: Clock at zero time, in the file's unit; None chooses it.
    """
    column = table.column(name)
    size = unit_size("time", mapping.units.get("time", ("s",))[0])
    if column.dtype.kind == "M":
        missing = np.isnat(column)
        if missing.any():
            row = table.row_numbers[int(np.argmax(missing))]
            raise LogError(f"{table.path}: row {row}, column '{name}': the time is missing.")
        column, size = column.astype("datetime64[ns]").astype(np.int64), 1e-9
    elif column.dtype.kind not in "iu":
        column = table.numbers(name)
    if origin is None:
        first = column[0].item() if len(column) else 0
        origin = first if abs(first) * size > 1e6 else 0
    # Integers are subtracted as integers: nanoseconds since 1970 exceed the precision of a float.
    if column.dtype.kind == "u" and len(column) and int(column.max()) > _LARGEST_COUNT:
        raise LogError(f"{table.path}: column '{name}': the time {int(column.max())} is impossibly large.")
    counted = column.astype(np.int64) - origin if column.dtype.kind in "iu" else column - origin
    t = counted * size
    if len(t) and not max(t.max(), -t.min()) <= _LONGEST:
        raise LogError(
            f"{table.path}: column '{name}': the log would last longer than {_LONGEST:g} s; state the unit of the time "
            'in the mapping, e.g. units.time = "ns".'
        )
    return t, origin


def _signal(
    signal: str, table: Table, layout: Layout, mapping: LogMapping, robot: Robot, findings: list[Finding]
) -> Array:
    count, motor = len(layout.joints), mapping.on_motor(signal)
    matrix = mapping.coupling_matrix(count) if motor else None

    def each(numbers: Sequence[float], key: str, default: float = 1.0) -> Array:
        return per_joint(numbers or (default,), count, key, mapping)[list(layout.needed)]

    def each_motor(numbers: Sequence[float], key: str) -> Array:
        return each(numbers, key) if matrix is None else per_joint(numbers or (1.0,), len(matrix), key, mapping)

    x = side_by_side(table, layout.columns[signal])
    units = mapping.units.get(signal)
    if units:
        x *= each_motor([unit_size(signal, unit) for unit in units], f"units of {signal}")
    effort = signal in ("torque", "current")
    if signal == "current":
        x *= each_motor(mapping.torque_constants, "torque_constants")
    elif motor and effort:
        x *= each_motor(mapping.gear_ratio, "gear_ratio")
    elif motor:
        x /= each_motor(mapping.gear_ratio, "gear_ratio")
    if matrix is not None:
        # Rows are samples: τ = Cᵀ τ_u is τᵀ = τ_uᵀ C, and q = B u is qᵀ = uᵀ Bᵀ.
        u, x = x, x @ (matrix if effort else mapping.joint_from_motor().T)
        if signal == "position" and len(matrix) > count:
            findings += _disagreement(u, x @ matrix.T)
    key = {"current": "torque", "acceleration": "velocity"}.get(signal, signal)
    if key in mapping.sign:
        x *= each(mapping.sign[key], f"sign of {key}")
    if effort and mapping.torque_scale:
        x *= each(mapping.torque_scale, "torque_scale")
    if signal == "position" and mapping.offset:
        x += each(mapping.offset, "offset", 0.0)
    if len(layout.needed) != robot.dof or mapping.coupling:
        x = x[:, [layout.joints.index(name) for name in robot.joint_names]]
    x.setflags(write=False)  # so that the log need not copy it
    return x


def _disagreement(u: Array, explained: Array) -> list[Finding]:
    """Report by how much redundant motors violate the coupling, relative to their motion."""
    error = float(np.sqrt(np.mean((u - explained - (u - explained).mean(axis=0)) ** 2)))
    motion = float(np.sqrt(np.mean((u - u.mean(axis=0)) ** 2)))
    if error <= _SLACK * motion:
        return []
    message = f"The motors' positions disagree with the coupling by {100.0 * error / motion:.2g} % of their motion."
    return [Finding("motors_disagree", "warning", message)]


def side_by_side(table: Table, names: Sequence[str]) -> Array:
    """Join columns of numbers to one array, shape (rows, columns), column by column to save memory.

    Args:
        table: Columns of a file.
        names: Names of the columns to join.
    """
    out = np.empty((len(table), len(names)))
    for k, name in enumerate(names):
        out[:, k] = table.numbers(name)
    return out


def per_joint(numbers: Sequence[float], count: int, key: str, mapping: LogMapping) -> Array:
    """Expand one number for all joints, or check that there is one for each.

    Args:
        numbers: One number, or one per joint.
        count: Number of joints.
        key: Key of the mapping, for messages.
        mapping: Mapping, for messages.
    """
    if len(numbers) not in (1, count):
        raise LogError(f"{mapping.source}: {key} has {len(numbers)} entries, but there are {count} joints.")
    return np.broadcast_to(np.asarray(numbers, dtype=float), (count,))


def _check_units(layout: Layout, mapping: LogMapping, robot: Robot) -> None:
    """Refuse angles for a prismatic joint and lengths for a revolute one, except on the motor side."""
    for signal in layout.columns:
        units = mapping.units.get(signal, ())
        if signal == "current" or mapping.on_motor(signal):
            continue
        for joint in robot.joints:
            unit = units[layout.joints.index(joint.name) if len(units) > 1 else 0] if units else None
            if unit is None or (signal == "torque" and joint.kind == "prismatic"):
                continue
            if unit_dimension(signal, unit) != ("angle" if joint.kind == "revolute" else "length"):
                raise LogError(
                    f"{mapping.source}: units: the {signal} of the {joint.kind} joint '{joint.name}' cannot be in "
                    f"{unit}; give one unit per joint."
                )
