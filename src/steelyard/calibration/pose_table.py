"""`PoseTable`: joint positions of held poses with the readings of a sensor, from any log format.

`read_torques` reads the joint torques at rest from such a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.column_names import listed, no_joint_column, numbered_joints, plain_name
from steelyard.calibration.measurement import MEASUREMENTS, Measurement
from steelyard.calibration.readings import ReadingColumns, recognise_readings
from steelyard.errors import LogError
from steelyard.ground.arrays import Array, IndexArray, RowSelection
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot
from steelyard.signals.in_memory import memory_reader
from steelyard.signals.log import Log
from steelyard.signals.table import Table, open_reader

_JOINT_UNITS = {"rad": 1.0, "deg": np.pi / 180.0, "m": 1.0, "mm": 1e-3}
_JOINT_COLUMN = re.compile(
    r"^(?:(?:q|d|joint|theta|pos|position|angle)_?)?(.+?)(?:_(?:position|pos|angle))?(?:_(rad|deg|m|mm))?$"
)
# Joints of robots without stops turn a few times at most; larger angles are in degrees.
_MOST_TURNS = 4.0 * np.pi
# A sliding joint that is this many times its stroke away is in millimetres; without limits, no robot has 100 m.
_MOST_STROKES, _LONGEST = 10.0, 100.0


@short_repr
@dataclass(frozen=True, eq=False)
class PoseTable:
    """Held poses.

    Attributes:
        source: File or kind of object, for messages.
        q: Joint positions [rad, m], shape (poses, joints).
        approach: Sign of the last movement of every joint; 0 if unknown.
        measurement: Readings.
        row_numbers: Row of every pose in the file, from 1.
        notes: Remarks on the reading.
    """

    source: str
    q: Array
    approach: Array
    measurement: Measurement
    row_numbers: IndexArray
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.q)

    def rows(self, rows: RowSelection) -> PoseTable:
        """Select poses by index or mask (`rows`); the directions of approach stay those of the whole table."""
        return replace(
            self, q=self.q[rows], approach=self.approach[rows], measurement=self.measurement.rows(rows),
            row_numbers=self.row_numbers[rows],
        )  # fmt: skip

    def split(self, share: float, seed: int = 0) -> tuple[PoseTable, PoseTable]:
        """Divide at random into a table for the fit and a hold-out.

        Args:
            share: Share of the hold-out, 0 to 1.
            seed: Seed.
        """
        order = np.random.default_rng(seed).permutation(len(self))
        cut = len(self) - int(np.ceil(share * len(self) - 1e-9))
        # In the order of the measurement, which shows when the sensor was moved.
        return self.rows(np.sort(order[:cut])), self.rows(np.sort(order[cut:]))


def read_poses(
    source: str | os.PathLike[str] | Any,
    robot: Robot,
    *,
    kind: str = "",
    points: Sequence[str] = (),
    only: Sequence[str] = (),
    sigma: float | None = None,
) -> PoseTable:
    """Read a table of held poses.

    A joint's column has its name or its number: `shoulder`, `q_shoulder_rad`, `q1_rad`, `q1_deg`. The readings are
    recognised by their names (docs/guides/calibration.md). The rows keep the order of the measurement, which determines
    the direction of each joint's last movement.

    Args:
        source: File of any log format, a frame (pandas, polars, …) or a dict of columns.
        robot: Robot.
        kind: Kind of measurement: a name in `MEASUREMENTS`; default: by the columns.
        points: Prefixes of the columns to use, such as p1; default: all.
        only: Columns that must be true (or not 0) in the rows to use, or NAME=VALUE.
        sigma: Standard deviation of the sensor [m]; default: a column sigma_m, or unknown.
    """
    table = open_table(source)
    joint_columns, q = joint_positions(table, robot)
    columns = ReadingColumns(table, tuple(name for name in table.names if name not in joint_columns))
    approach = _approach(q)
    readings, notes = recognise_readings(columns, kind, points)
    sessions = _sessions(columns, len(table))
    measurement = MEASUREMENTS[readings.kind](readings.values, sessions)
    out = PoseTable(str(table.path), q, approach, measurement, np.arange(1, len(table) + 1), tuple(notes))
    for name in only:
        if name.partition("=")[0] not in table.names:
            raise LogError(
                f"{out.source}: has no column '{name.partition('=')[0]}' for --only; columns: {listed(table.names)}."
            )
        out = out.rows(columns.flags(name)[out.row_numbers - 1])
    if sigma is not None:
        if not sigma >= 0.0:
            raise LogError(f"The standard deviation of the sensor is {sigma:g}; give metres, such as 5e-5.")
        own = {**out.measurement.readings, "sigma": np.full(len(out), float(sigma))}
        out = replace(out, measurement=replace(out.measurement, readings=own))
    complete = np.isfinite(out.q).all(axis=1) & _measured(out.measurement)
    if complete.all():
        return out
    if not complete.any():
        raise LogError(
            f"{out.source}: no row has both joint positions and a reading; fill the cells, or change --only."
        )
    note = f"{int(np.sum(~complete))} rows without a joint position or a reading are left out."
    return replace(out.rows(np.asarray(complete)), notes=(*out.notes, note))


def _measured(measurement: Measurement) -> NDArray[np.bool_]:
    """Whether each pose has a reading."""
    groups = [v.reshape(len(v), -1) for name, v in measurement.readings.items() if not name.startswith("sigma")]
    return np.asarray(np.isfinite(groups[0]).any(axis=1))


def open_table(source: str | os.PathLike[str] | Any) -> Table:
    """Read all columns of a `source`: a file of any log format, a frame or a dict of columns."""
    reader = open_reader(source) if isinstance(source, str | os.PathLike) else memory_reader(source)
    table = reader.table(reader.names, reader.blocks(reader.names), 0)
    if len(table) == 0:
        raise LogError(f"{table.path}: has no row; a table of poses has one row per pose.")
    return table


def joint_positions(table: Table, robot: Robot) -> tuple[list[str], Array]:
    """Return the columns of all joints, and their values in rad and m.

    Args:
        table: Table of poses.
        robot: Robot.
    """
    column_units = [_joint_column(table, robot, k) for k in range(robot.dof)]
    q = np.zeros((len(table), robot.dof))
    for k, (name, unit) in enumerate(column_units):
        joint = robot.joints[k]
        values = table.numbers(name) * _JOINT_UNITS[unit or joint.unit]
        if joint.kind == "revolute" and float(np.nanmax(np.abs(values), initial=0.0)) > _MOST_TURNS:
            worst = int(np.nanargmax(np.abs(values)))
            raise LogError(
                f"{table.path}: row {worst + 1}, column '{name}': {values[worst]:.6g} rad is more than two turns; if "
                "the angles are in degrees, name the column with the suffix _deg."
            )
        ends = [abs(x) for x in (joint.lower, joint.upper) if np.isfinite(x)]
        most = _MOST_STROKES * max(ends) if len(ends) == 2 and max(ends) > 0.0 else _LONGEST
        if joint.kind == "prismatic" and float(np.nanmax(np.abs(values), initial=0.0)) > most:
            worst = int(np.nanargmax(np.abs(values)))
            raise LogError(
                f"{table.path}: row {worst + 1}, column '{name}': joint '{joint.name}' cannot slide "
                f"{values[worst]:.6g} m; if the lengths are in millimetres, name the column with the suffix _mm."
            )
        q[:, k] = values
    return [name for name, _ in column_units], q


def _joint_column(table: Table, robot: Robot, k: int) -> tuple[str, str]:
    """Column of a joint, and its unit; "" if not stated."""
    joint = robot.joints[k]
    wanted = plain_name(joint.name)
    for name in table.names:
        plain = plain_name(name)
        if plain == wanted:
            return name, ""
        m = _JOINT_COLUMN.match(plain)
        if m and (m[1] == wanted or plain.removesuffix(f"_{m[2] or ''}") == wanted):
            return name, m[2] or ""
    numbers = numbered_joints(table.names)
    index = k + (0 if 0 in numbers else 1)
    if index in numbers:
        return numbers[index]
    raise no_joint_column(table.path, table.names, joint.name, k + 1, joint.unit)


def _approach(q: Array) -> Array:
    """Signs of the last movements; a joint that did not move keeps its sign."""
    signs = np.zeros_like(q)
    signs[1:] = np.sign(np.diff(q, axis=0))
    for k in range(1, len(signs)):
        signs[k] = np.where(signs[k] == 0.0, signs[k - 1], signs[k])
    return np.nan_to_num(signs)


def _sessions(columns: ReadingColumns, count: int) -> IndexArray:
    name = next((n for n in columns.names if n.lower() in ("session", "setup", "station")), None)
    if name is None:
        return np.zeros(count, dtype=np.intp)
    _, own = np.unique(np.asarray(columns.table.column(name)).astype(str), return_inverse=True)
    return np.asarray(own, dtype=np.intp).ravel()


def as_pose_table(source: PoseTable | Mapping[str, Any] | Any, robot: Robot, **options: Any) -> PoseTable:
    """Return a table of poses.

    Args:
        source: Table, or anything that `read_poses` takes.
        robot: Robot.
        options: Further arguments of `read_poses`.
    """
    return source if isinstance(source, PoseTable) else read_poses(source, robot, **options)


_TORQUE = re.compile(r"^(?:tau|torque|effort)_?(.+?)(?:_(?:Nm|N))?$", re.IGNORECASE)


def read_torques(source: str | os.PathLike[str] | Any, robot: Robot) -> Log:
    """Read a table with a pose at rest in each row: the joints' columns of `read_poses`, and one torque per joint.

    A torque's column has the name or the number of its joint: `tau1_Nm`, `torque_elbow`.

    Args:
        source: What `read_poses` takes.
        robot: Robot.
    """
    table = open_table(source)
    _, q = joint_positions(table, robot)
    columns = {m[1].lower(): name for name in table.names if (m := _TORQUE.match(name))}
    first = 0 if "0" in columns else 1
    tau = np.zeros_like(q)
    for k, name in enumerate(robot.joint_names):
        own = columns.get(name.lower()) or columns.get(str(k + first))
        if own is None:
            raise LogError(f"{table.path}: has no torque of joint '{name}'; name its column tau{k + 1}_Nm.")
        tau[:, k] = table.numbers(own)
    complete = np.isfinite(q).all(axis=1) & np.isfinite(tau).all(axis=1)
    q, tau = q[complete], tau[complete]
    return Log(robot.joint_names, np.arange(len(q), dtype=float), q, dq=np.zeros_like(q), tau=tau)
