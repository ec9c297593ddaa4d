"""Numbers, names and comments as they are written into XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from steelyard.robot.spatial import Array


def number(value: float) -> str:
    """All digits of a number, no more than are needed to read the same number back."""
    return repr(float(value) + 0.0)  # + 0.0 turns -0.0 into 0.0


def numbers(values: ArrayLike) -> str:
    return " ".join(number(x) for x in np.ravel(np.asarray(values, dtype=float)))


def tag(name: str, attributes: Mapping[str, str], closed: bool = True) -> str:
    """`<name a="…"/>`, or the opening tag alone."""
    inside = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{name}{inside}{'/' if closed else ''}>"


def comment(lines: Iterable[str], indent: str = "") -> str:
    """A comment of one or more lines; `--`, which XML forbids in comments, is spread out."""
    body = [line.replace("--", "- -").rstrip("-") for line in lines]
    if len(body) == 1:
        return f"{indent}<!-- {body[0]} -->"
    return "\n".join([f"{indent}<!--", *(f"{indent}  {line}" for line in body), f"{indent}-->"])


def rpy_of(rotation: Array) -> Array:
    """Roll, pitch and yaw of URDF: R = Rz(yaw) Ry(pitch) Rx(roll).

    The roll is taken from what is left after the yaw is undone, so that the three together are exact also where
    the pitch is a right angle and roll and yaw turn about the same axis.
    """
    r = rotation
    yaw = np.arctan2(r[1, 0], r[0, 0])
    s, c = np.sin(yaw), np.cos(yaw)
    pitch = np.arctan2(-r[2, 0], c * r[0, 0] + s * r[1, 0])
    roll = np.arctan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    return np.array([roll, pitch, yaw])


def quaternion_of(rotation: Array) -> Array:
    """The unit quaternion w, x, y, z with w ≥ 0, as the eigenvector of Bar-Itzhack 2000, "New method for
    extracting the quaternion from a rotation matrix", which is exact for every angle."""
    r = rotation
    k = np.array(
        [
            [r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1]],
        ]
    )
    q: Array = np.linalg.eigh(k)[1][:, -1]
    return -q if q[0] < 0.0 else q
