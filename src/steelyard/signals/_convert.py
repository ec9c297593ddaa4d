"""Turn the columns of a file into the signals of a robot's joints, in SI units."""

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

# s, of a log; and what the largest signed number counts.
_LONGEST, _LARGEST_COUNT = 1e11, 2**63 - 1

_SLACK = 0.02  # what backlash and stretch of tendons may be, as a part of the motion

NAMES = {"position": "q", "velocity": "dq", "acceleration": "ddq", "torque": "tau", "current": "tau"}


def joint_signals(
    table: Table, layout: Layout, mapping: LogMapping, robot: Robot, findings: list[Finding]
) -> dict[str, Array]:
    """q, dq, ddq and tau, those that there are, `(samples, joints)` in the order of the robot's joints.

    On the motor side: drive coordinates are u = x / gear_ratio and q = C⁻¹ u (least squares, where there are more
    motors than joints; `findings` then tell if they disagree); drive torques are τ_u = gear_ratio · torque or
    torque_constants · current, and τ = Cᵀ τ_u. Signs and the offset of the positions come last.
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
    """The time of every row in s, and what the clock showed at its zero, in the file's unit.

    Stamps since some distant day are counted from the first row, or else from `origin`; others stay what they are.
    """
    column = table.column(name)
    size = unit_size("time", mapping.units.get("time", ("s",))[0])
    if column.dtype.kind == "M":
        missing = np.isnat(column)
        if missing.any():
            raise LogError(f"{table.path}: row {table.row_numbers[int(np.argmax(missing))]}, column '{name}': no time.")
        column, size = column.astype("datetime64[ns]").astype(np.int64), 1e-9
    elif column.dtype.kind not in "iu":
        column = table.numbers(name)
    if origin is None:
        first = column[0].item() if len(column) else 0
        origin = first if abs(first) * size > 1e6 else 0
    # Whole numbers are subtracted as such: nanoseconds since 1970 do not fit a float.
    if column.dtype.kind == "u" and len(column) and int(column.max()) > _LARGEST_COUNT:
        raise LogError(f"{table.path}: column '{name}': the clock shows {int(column.max())}, which no clock does.")
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

    def each(numbers: Sequence[float], what: str, default: float = 1.0) -> Array:
        return per_joint(numbers or (default,), count, what, mapping)[list(layout.needed)]

    def each_motor(numbers: Sequence[float], what: str) -> Array:
        return each(numbers, what) if matrix is None else per_joint(numbers or (1.0,), len(matrix), what, mapping)

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
    x.setflags(write=False)  # the log takes it as it is
    return x


def _disagreement(u: Array, explained: Array) -> list[Finding]:
    """More motors than joints must move together; by how much they do not, against how far they move."""
    left = float(np.sqrt(np.mean((u - explained - (u - explained).mean(axis=0)) ** 2)))
    motion = float(np.sqrt(np.mean((u - u.mean(axis=0)) ** 2)))
    if left <= _SLACK * motion:
        return []
    message = f"The motors' positions disagree with the coupling by {100.0 * left / motion:.2g} % of how far they move."
    return [Finding("motors_disagree", "warning", message)]


def side_by_side(table: Table, names: Sequence[str]) -> Array:
    """Columns of numbers as one array `(rows, columns)`, filled column by column: nothing is held twice."""
    out = np.empty((len(table), len(names)))
    for k, name in enumerate(names):
        out[:, k] = table.numbers(name)
    return out


def per_joint(numbers: Sequence[float], count: int, what: str, mapping: LogMapping) -> Array:
    """One number for all joints, or one each."""
    if len(numbers) not in (1, count):
        raise LogError(f"{mapping.source}: {what} has {len(numbers)} entries, but there are {count} joints.")
    return np.broadcast_to(np.asarray(numbers, dtype=float), (count,))


def _check_units(layout: Layout, mapping: LogMapping, robot: Robot) -> None:
    """Degrees of a slide are a mistake, unless they are those of its motor."""
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
                    f"{mapping.source}: units: the {signal} of joint '{joint.name}', which is {joint.kind}, cannot be "
                    f"in {unit}; give one unit per joint."
                )
