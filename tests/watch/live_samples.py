"""Test data: a small arm, samples of it, and lines to send."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.robot.library import builtin
from steelyard.robot.robot import Robot


@cache
def arm() -> Robot:
    return builtin("szabo3r")


@cache
def model() -> Model:
    return Model.nominal(arm())


def samples(count: int, rate: float = 1000.0, start: float = 0.0) -> Array:
    """Smooth motion of the arm with the torques of its model: t, q, dq, tau."""
    t = start + np.arange(count) / rate
    k = 1.0 + np.arange(arm().dof)
    phase = np.outer(t, k)
    q, dq, ddq = np.sin(phase), k * np.cos(phase), -(k**2) * np.sin(phase)
    return np.column_stack([t, q, dq, model().torque(q, dq, ddq)])


def json_lines(rows: Array, joints: bool = False) -> list[bytes]:
    n = arm().dof
    out = []
    for row in rows.tolist():
        data = {"t": row[0], "q": row[1 : 1 + n], "dq": row[1 + n : 1 + 2 * n], "tau": row[1 + 2 * n :]}
        if joints:
            data["joints"] = list(arm().joint_names)
        out.append(json.dumps(data).encode() + b"\n")
    return out


def csv_lines(rows: Array) -> list[bytes]:
    return [",".join(repr(x) for x in row).encode() + b"\n" for row in rows.tolist()]
