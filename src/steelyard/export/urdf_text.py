"""The elements of a URDF that an export writes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard.export.bodies import Inertial
from steelyard.export.xml_text import number, numbers, rpy_of, tag
from steelyard.robot.spatial import Array

# URDF's own parsers want limits where none are known, and do not all understand "inf".
UNLIMITED = 1e9

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def inertial_lines(body: Inertial) -> list[str]:
    t = body.tensor
    entries = {"ixx": t[0, 0], "ixy": t[0, 1], "ixz": t[0, 2], "iyy": t[1, 1], "iyz": t[1, 2], "izz": t[2, 2]}
    return [
        "<inertial>",
        f"  {tag('origin', {'xyz': numbers(body.com), 'rpy': '0 0 0'})}",
        f"  {tag('mass', {'value': number(body.mass)})}",
        f"  {tag('inertia', {name: number(value) for name, value in entries.items()})}",
        "</inertial>",
    ]


def origin_tag(rotation: Array, translation: Array) -> str:
    return tag("origin", {"xyz": numbers(translation), "rpy": numbers(rpy_of(rotation))})


def dynamics_tag(damping: float, friction: float, others: Mapping[str, str] | None = None) -> str:
    return tag("dynamics", {**(others or {}), "damping": number(damping), "friction": number(friction)})


def gravity_is_standard(gravity: Array) -> bool:
    return bool(np.array_equal(gravity, STANDARD_GRAVITY))
