"""`held_poses`: poses at rest, from the rows of a table or from the standing phases of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals._layout import NoTimeError
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.mapping import as_mapping
from steelyard.signals.read import AnyMapping
from steelyard.signals.rounding import position_steps

# A joint that moves by less than this [rad, m] is at rest.
_STILL = {"revolute": 0.02, "prismatic": 0.002}
_FEWEST_ROWS = 3
# Rows from which on the way between them is judged, and the share of a motion that is most of it.
_FEWEST_TO_JUDGE, _MOST = 8, 0.5
# No arm moves so slowly that a row per second [s] describes its motion.
_SLOWEST_PERIOD = 1.0
# A joint stands if it stays within this share of `_STILL` for this time [s]; the first part of a phase, in which the
# arm settles, is left out.
_SHARE_OF_STILL, _PHASE, _SETTLING = 0.05, 0.4, 0.2
# A measured velocity of less than this times `_STILL` in a second, 0.01 rad/s, is noise of a robot at rest.
_REST = 0.5


class HeldPosesError(LogError):
    """The rows of a log are poses at rest, where a motion is needed."""


@dataclass(frozen=True, eq=False)
class HeldPoses:
    """Poses at which a robot stands, with the torques that hold it.

    Attributes:
        joints: Names of the joints.
        q: Positions [rad or m], shape (poses, joints).
        tau: Torques [N m or N], shape (poses, joints).
        side: Sign of the last motion of each joint before the pose; 0 if unknown.
        log: Index of the log of each pose.
        row: First row of each pose in its log, from 1.
        samples: Number of rows of each pose.
    """

    joints: tuple[str, ...]
    q: Array
    tau: Array
    side: Array
    log: NDArray[np.int64]
    row: NDArray[np.int64]
    samples: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.q)

    def select(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> HeldPoses:
        """Select poses by their `rows`."""
        return HeldPoses(
            self.joints, self.q[rows], self.tau[rows], self.side[rows], self.log[rows], self.row[rows],
            self.samples[rows],
        )  # fmt: skip


def logs_or_poses(sources: LogsLike, robot: Robot, mapping: AnyMapping = None) -> list[Log]:
    """Convert an argument to logs in memory, as `as_logs` does; tables of poses need no time.

    Args:
        sources: As for `as_logs`.
        robot: Robot of the logs.
        mapping: As for `as_logs`.
    """
    try:
        return as_logs(sources, robot, mapping)
    except NoTimeError:
        stated = as_mapping(mapping)
        files = {name: replace(own, rate=1.0) for name, own in stated.files.items()}
        logs = as_logs(sources, robot, replace(stated, rate=1.0, files=files))
        if not all(rows_are_poses(robot, log) for log in logs):
            raise
        return logs


def rows_are_poses(robot: Robot, log: Log) -> bool:
    """Whether the rows of a log are poses at rest and not samples of a motion.

    Rows are a second or more apart (or the time counts them), or nothing is known of what happens between them; and
    velocities are zero throughout, or without velocities the joints move visibly from row to row.

    Args:
        robot: Robot of the log.
        log: The log.
    """
    if log.joints != robot.joint_names:
        return False
    limits = np.array([_STILL[j.kind] for j in robot.joints])
    if len(log) < _FEWEST_ROWS or not np.any(np.ptp(log.q, axis=0) > limits):
        return False
    if log.dq is None:
        # A motion whose time counts rows, or has the wrong unit, has small steps from row to row; poses have large.
        change = np.abs(np.diff(log.q, axis=0))
        moving, far = (int(np.any(change > x * limits, axis=1).sum()) for x in (_SHARE_OF_STILL, 1.0))
        rest = far > 0.5 * moving
    else:
        rest = bool(np.all(np.abs(log.dq) <= _REST * limits))
    return rest and (bool(np.median(np.diff(log.t)) >= _SLOWEST_PERIOD) or unknown_between_rows(robot, log))


def unknown_between_rows(robot: Robot, log: Log) -> bool:
    """Whether nothing is known between rows.

    Positions have most of their power above half of the Nyquist frequency, or joints stand except for jumps from one
    row to the next, as in a table of poses with several rows each.

    Args:
        robot: Robot of the log.
        log: The log.
    """
    limits = np.array([_STILL[j.kind] for j in robot.joints])
    moved = np.flatnonzero(np.ptp(log.q, axis=0) > limits)
    if len(log) < _FEWEST_TO_JUDGE or not len(moved):
        return False
    if np.median([_share_above_half(log.q[:, k]) for k in moved]) > _MOST:
        return True
    change = np.abs(np.diff(log.q, axis=0)) / limits
    stands = np.concatenate([[True], np.all(change < _SHARE_OF_STILL, axis=1), [True]])
    jumps = np.any(change > 1.0, axis=1) & stands[:-2] & stands[2:]
    return bool(np.sum(change[jumps]) > _MOST * np.sum(change))


def refuse_held_poses(robot: Robot, logs: Iterable[object]) -> None:
    """Refuse logs whose rows are poses at rest, for users that need a motion.

    Args:
        robot: Robot of the logs.
        logs: Logs; those that are read in pieces are no tables of poses.
    """
    for log in logs:
        if isinstance(log, Log) and rows_are_poses(robot, log):
            raise HeldPosesError(
                f"{log.meta.get('source', 'The log')}: the rows are held poses, not samples of a motion, so that they "
                "show gravity only; use `steelyard gravity` (in Python: identify_gravity), or log a motion."
            )


def _share_above_half(x: Array) -> float:
    """Share of a signal's power above half of the Nyquist frequency."""
    # The window keeps a trend from leaking to all frequencies.
    power = np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(x)))) ** 2
    return float(power[len(power) // 2 :].sum() / max(float(power[1:].sum()), 1e-300))


def held_poses(robot: Robot, logs: Sequence[Log], rows: bool | None = None) -> HeldPoses:
    """Collect the poses at rest of logs: their rows, or the phases in which all joints stand.

    Args:
        robot: Robot of the logs.
        logs: Logs with torques.
        rows: Whether each row is a pose; None: each log shows it.
    """
    return join_poses([_poses_of(robot, log, k, rows) for k, log in enumerate(logs)])


def join_poses(parts: Sequence[HeldPoses]) -> HeldPoses:
    """Join poses of one robot; logs with the same index in two of the `parts` become one."""
    q, tau, side = (np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "tau", "side"))
    log, row, samples = (np.concatenate([getattr(p, name) for p in parts]) for name in ("log", "row", "samples"))
    return HeldPoses(parts[0].joints, q, tau, side, log, row, samples)


def _poses_of(robot: Robot, log: Log, index: int, rows: bool | None) -> HeldPoses:
    if log.tau is None:
        name = log.meta.get("source", "The log")
        raise LogError(f"{name}: there is no torque; gravity needs torques, or currents with torque_constants.")
    tolerance = np.array([_SHARE_OF_STILL * _STILL[j.kind] for j in robot.joints])
    each = rows_are_poses(robot, log) if rows is None else rows
    phases = _repeats(log.q, tolerance) if each else _phases(log, tolerance)
    count = len(phases)
    q, tau = (np.array([x[a:b].mean(axis=0) for a, b in phases]).reshape(count, robot.dof) for x in (log.q, log.tau))
    side = np.zeros((count, robot.dof))
    for k, (a, _) in enumerate(phases):
        side[k] = _last_direction(log.q[:a], q[k], 4.0 * tolerance) if a else 0.0
    start = np.array([a + 1 for a, _ in phases], dtype=np.int64)
    samples = np.array([b - a for a, b in phases], dtype=np.int64)
    return HeldPoses(robot.joint_names, q, tau, side, np.full(count, index), start, samples)


def _phases(log: Log, tolerance: Array) -> list[tuple[int, int]]:
    """Find the ranges of rows in which no joint moves, without the time in which the arm settles."""
    width = np.maximum(tolerance, 2.5 * position_steps(log))
    out: list[tuple[int, int]] = []
    for start, stop in log.segments or ((0, len(log)),):
        a = start
        while a < stop:
            # The longest range from here in which every joint stays within its width.
            inside = np.ptp(log.q[a : a + 1], axis=0)
            low, high, b = log.q[a].copy(), log.q[a].copy(), a + 1
            while b < stop:
                low, high = np.minimum(low, log.q[b]), np.maximum(high, log.q[b])
                inside = high - low
                if np.any(inside > width):
                    break
                b += 1
            if log.t[b - 1] - log.t[a] >= _PHASE:
                first = int(np.searchsorted(log.t, log.t[a] + _SETTLING))
                out.append((first, b))
                a = b
            else:
                a += 1 if b < stop else b - a
    return out


def _repeats(q: Array, tolerance: Array) -> list[tuple[int, int]]:
    """Group consecutive rows of the same pose: their mean cancels dry friction if the sides of approach differ."""
    starts = [0]
    for k in range(1, len(q)):
        if np.any(np.abs(q[k] - q[starts[-1]]) > tolerance):
            starts.append(k)
    return list(pairwise([*starts, len(q)]))


def _last_direction(before: Array, here: Array, tolerance: Array) -> Array:
    """Return the sign of the last motion of each joint towards a position; 0 if it did not move."""
    away = here - before
    out = np.zeros(len(here))
    for k in range(len(here)):
        rows = np.flatnonzero(np.abs(away[:, k]) > tolerance[k])
        out[k] = np.sign(away[rows[-1], k]) if len(rows) else 0.0
    return out
