"""`servo_log`: torques of a servo that logs only its goal and its position.

At rest a servo with proportional control makes the torque τ = K (q* − q): gravity moves it away from its goal q* in
proportion to the torque. An integral part removes this distance, so it must be off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import LogError, ShapeError
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping, as_mapping
from steelyard.signals.read import AnyMapping


def servo_log(log: Log, goal: ArrayLike, stiffness: ArrayLike = 1.0) -> Log:
    """Return a log with the torque K (q* − q) of its servos.

    Args:
        log: Log with positions.
        goal: Goal positions q* [rad or m], shape (samples, joints).
        stiffness: K of each joint [N m/rad or N/m]; 1 leaves the distance to the goal, whose scale `scale_at_rest` or
            `scale_from_model` identifies.
    """
    target = np.asarray(goal, dtype=float)
    if target.shape != log.q.shape:
        raise ShapeError(f"goal has shape {target.shape}; the positions have {log.q.shape}.")
    K = np.asarray(stiffness, dtype=float)
    if K.ndim > 1 or K.size not in (1, log.q.shape[1]) or not np.all(K > 0.0):
        raise ShapeError(f"stiffness must be one positive number, or {log.q.shape[1]} of them.")
    distance = target - log.q
    if not np.any(distance):
        raise LogError(
            f"{log.meta.get('source', 'The log')}: goal and position are the same; log the measured position."
        )
    return replace(log, tau=K * distance)


def goal_mapping(mapping: AnyMapping, columns: str) -> LogMapping:
    """Return a mapping that reads the goal positions as positions.

    Args:
        mapping: Mapping of the log, as in `read_log`.
        columns: Columns of the goals: a pattern such as "goal{}", or names with commas between them.
    """
    names = columns if "{" in columns else tuple(name.strip() for name in columns.split(",") if name.strip())
    stated = as_mapping(cast(LogMapping | None, mapping))
    return replace(stated, position=names, velocity=(), acceleration=(), torque=(), current=())
