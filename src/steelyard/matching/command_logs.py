"""Reads command logs and refuses logs that are unsuitable for matching, each with one sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.errors import LogError, SteelyardError
from steelyard.gravity.servo import goal_mapping
from steelyard.ground.arrays import Array
from steelyard.matching.command_stretch import GOAL, CommandStretch
from steelyard.matching.joint_drives import Drives
from steelyard.matching.window_fit import WindowFit
from steelyard.robot.robot import Robot
from steelyard.signals import Log, read_log
from steelyard.signals.as_logs import is_one_log

# Common names of goal columns, in the order of the search.
GOAL_COLUMNS = (
    "goal{}",
    "qref{}",
    "q_ref{}",
    "qdes{}",
    "q_des{}",
    "qd{}",
    "target{}",
    "q_target{}",
    "cmd{}",
    "q_cmd{}",
)
# The goals and positions of a working drive have about the same range. A factor above ten shows different units: it is
# 57 for degrees, 1000 for millimetres, 650 and more for ticks of an encoder.
_OTHER_UNITS = 10.0
# While the torque is at its limit, the position loop is open and the log does not determine its gains; at least a tenth
# of the samples must be below the limit.
_ALWAYS = 0.9
# Drift between the clocks of goals and positions [s]: the delay of a drive changes by less within a run.
_DRIFT = 0.01
_UNITS = ((np.rad2deg(1.0), "degrees"), (1000.0, "millirad or mm"), (4096 / (2 * np.pi), "ticks of 4096 per turn"))


def command_logs(logs: Any, robot: Robot, mapping: Any, goal: str) -> list[Log]:
    """Read logs with their goals as channel "goal".

    Args:
        logs: Logs with this channel, paths, frames or dicts of arrays; one or several.
        robot: Robot.
        mapping: Meaning of the columns, as in `read_log`.
        goal: Columns of the goals, as "goal{}" or names with commas; "" tries the common names.
    """
    several = [logs] if is_one_log(logs) else list(logs)
    if not several:
        raise SteelyardError("The list of logs is empty; give at least one log with goals and positions.")
    return [_command_log(one, robot, mapping, goal) for one in several]


def _command_log(one: Any, robot: Robot, mapping: Any, goal: str) -> Log:
    if isinstance(one, Log):
        if GOAL not in one.channels or one.channels[GOAL].shape != one.q.shape:
            raise LogError(
                f"{one.meta.get('source', 'The log')}: the goals are missing; add them as the channel 'goal' [rad, m], "
                "one column per joint."
            )
        return one
    log = read_log(one, robot, mapping)
    name = str(log.meta.get("source") or (one if isinstance(one, str | os.PathLike) else "The log"))
    columns = set(one) if isinstance(one, Mapping) else None
    goals: Log | None = None
    for pattern in (goal,) if goal else GOAL_COLUMNS:
        if columns is not None and "{" in pattern and pattern.format(1) not in columns:
            continue
        try:
            goals = read_log(one, robot, goal_mapping(mapping, pattern))
            break
        except SteelyardError:
            if goal:
                raise
    if goals is None:
        raise LogError(f"{name}: no column looks like a goal; name them with --goal, such as --goal 'goal{{}}'.")
    rows = np.clip(np.searchsorted(goals.t, log.t + 1e-9, side="right") - 1, 0, len(goals.t) - 1)
    return replace(log, channels={**log.channels, GOAL: goals.q[rows]}, meta={**log.meta, "source": name})


def check_commands(stretches: Sequence[CommandStretch], drives: Drives, robot: Robot) -> tuple[str, ...]:
    """Refuse logs that do not excite the robot; return remarks on single joints.

    Args:
        stretches: Pieces of the logs.
        drives: Stated drives.
        robot: Robot.
    """
    name, names = stretches[0].name, robot.joint_names
    goal = _stds([s.goal for s in stretches])
    q = _stds([s.q for s in stretches])
    still = goal <= 1e-9
    remarks = []
    if still.all():
        raise LogError(f"{name}: no goal ever moves, so inertia and friction are not excited; command a motion.")
    for j in np.flatnonzero(~still):
        _check_units(name, names[j], float(goal[j]), float(q[j]), stretches, int(j))
    if still.any():
        remarks.append(f"The goal of {', '.join(names[j] for j in np.flatnonzero(still))} never moves.")
    full = np.concatenate(
        [np.abs(drives.torque(s.goal, s.q, s.motion.dq, s.feed_forward)) >= drives.limit for s in stretches]
    )
    share = full.mean(axis=0)
    for k, part in enumerate(share):
        if part > _ALWAYS:
            raise LogError(
                f"{name}: the torque of joint '{names[k]}' is at its limit of {drives.limit[k]:g} in "
                f"{100 * part:.0f} % of the samples; check kp and the limit, or command a slower motion."
            )
    return tuple(remarks)


def check_clock(fit: WindowFit) -> None:
    """Refuse logs with a drift between the clocks of goals and positions.

    A lag T changes the position by −T q̇, so the residuals of each window determine its lag behind the simulation.

    Args:
        fit: Fit to windows.
    """
    windows = fit.windows
    lags, times = [], []
    for (k, first), r in zip(windows.places, fit.residuals, strict=True):
        s = windows.stretches[k]
        dq = s.motion.dq[first : first + windows.samples] / fit.noise
        lags.append(-float(np.sum(r / fit.noise * dq) / max(np.sum(dq * dq), 1e-300)))
        times.append(s.motion.t[first])
    if len(lags) < 4 or np.ptp(times) == 0.0:
        return
    t, y = np.array(times), np.array(lags)
    X = np.column_stack([np.ones_like(t), t - t.mean()])
    slope = np.linalg.lstsq(X, y, rcond=None)[0]
    scatter = np.sqrt(np.sum((y - X @ slope) ** 2) / (len(t) - 2) / np.sum(X[:, 1] ** 2))
    drift, error = slope[1] * np.ptp(t), scatter * np.ptp(t)
    if abs(drift) > max(_DRIFT, 2.0 * windows.period, 5.0 * error):
        raise LogError(
            f"{windows.stretches[0].name}: goals and positions run on two clocks (their lag changes by "
            f"{1e3 * drift:.0f} ms within the log); log both with one clock."
        )


def _stds(parts: Sequence[Array]) -> Array:
    return np.asarray(np.std(np.concatenate(parts), axis=0), dtype=np.float64)


def _check_units(name: str, joint: str, goal: float, q: float, stretches: Sequence[CommandStretch], j: int) -> None:
    g, x = (
        np.concatenate([a[:, j] for a in parts]) for parts in ([s.goal for s in stretches], [s.q for s in stretches])
    )
    same = float(np.corrcoef(g, x)[0, 1]) if q > 0.0 else 0.0
    ratio = goal / max(q, 1e-12)
    if abs(same) < 0.5:  # without correlation, the ratio does not depend on the units alone
        return
    if ratio > _OTHER_UNITS or ratio < 1.0 / _OTHER_UNITS:
        size = max(ratio, 1.0 / ratio)
        near = [unit for factor, unit in _UNITS if 0.7 < size / factor < 1.4]
        looks = f" (perhaps {near[0]})" if near else ""
        which = "goal moves" if ratio > 1.0 else "position moves"
        other = "position" if ratio > 1.0 else "goal"
        raise LogError(
            f"{name}: the {which} {size:.0f} times as far as the {other} of joint '{joint}'{looks}; convert both to "
            "rad or m in the mapping."
        )
    if same < 0.0:
        raise LogError(f"{name}: goal and position of joint '{joint}' move in opposite directions; turn one sign.")
