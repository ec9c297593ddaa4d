"""`read_torques`: held poses with the joint torques at rest, from a table of poses."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from steelyard.calibration.pose_table import joint_positions, open_table
from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

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
