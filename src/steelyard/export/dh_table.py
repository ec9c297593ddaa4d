"""Write a serial robot as a Denavit–Hartenberg table, whatever its placements: `dh_table`.

The table has the modified convention (Craig): x of frame i lies along the common normal of the axes i and i+1. Frames
of the links in between move along and about their axes; that of the last link stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard.errors import ExportError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import inertia_matrix, move_parameters, rpy_of

# The common normal of axes that are this parallel is numerically meaningless: over a metre their directions differ by a
# thousandth of a micrometre.
_PARALLEL = 1e-9
_TENSOR = (("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2))


def is_serial(robot: Robot) -> bool:
    """Whether each link of a `robot` is mounted on the one before, by an axis along z of its joint frame."""
    return all(link.parent == k - 1 and abs(link.axis[2]) == 1.0 for k, link in enumerate(robot.links))


def dh_table(robot: Robot, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a DH file with the placements of a robot.

    Args:
        robot: Robot; its joints turn about or slide along z of their frames.
        document: Content of the robot's original file; other entries remain unchanged.
    """
    if not is_serial(robot):
        raise ExportError(f"{robot.name}: has branches, which a corrected table cannot state; use the URDF.")
    degrees = document.get("units") == "deg"
    angle = 180.0 / np.pi if degrees else 1.0
    frames = _frames(robot)
    out = {k: v for k, v in document.items() if k not in ("columns", "link_frame", "rows", "convention", "base")}
    out |= {"convention": "modified", "base": _place(*frames[0], angle)}
    rows = []
    for k, (link, old) in enumerate(zip(robot.links, document["rows"], strict=True)):
        row = dict(old) if isinstance(old, Mapping) else {}
        kept = {key: row[key] for key in ("limits",) if key in row}
        numbers = [0.0, 0.0, 0.0, 0.0] if k == 0 else _numbers(frames[k - 1], frames[k])
        numbers = [numbers[0] * angle, numbers[1], numbers[2], numbers[3] * angle]
        joint = robot.joints[link.coordinate].name
        rows.append({
            "joint": joint, "type": link.kind, "dh": numbers, "sign": int(link.axis[2]), **kept,
            "link": _link(link, frames[k]),
        })  # fmt: skip
    return out | {"rows": rows}


_Frame = tuple[Array, Array, Array, Array]  # rotation, origin, and the same of the joint frame, all in the base


def _frames(robot: Robot) -> list[_Frame]:
    """Frames of the table and of the joints in the base, with all joints at zero."""
    own: list[tuple[Array, Array]] = []
    rotation, origin = np.eye(3), np.zeros(3)
    for link in robot.links:
        origin = origin + rotation @ link.translation
        rotation = rotation @ link.rotation
        own.append((rotation, origin))
    out: list[_Frame] = []
    for k, (turn, place) in enumerate(own):
        z, x, foot = turn[:, 2], turn[:, 0], place
        if k + 1 < len(own):
            next_turn, next_place = own[k + 1]
            x, foot = _normal(place, z, x, next_place, next_turn[:, 2])
        out.append((np.column_stack([x, np.cross(z, x), z]), foot, turn, place))
    return out


def _normal(p: Array, z: Array, x: Array, other: Array, direction: Array) -> tuple[Array, Array]:
    """Direction of the common normal of two axes, and its foot on the first one.

    Args:
        p: Point of the first axis.
        z: Direction of the first axis.
        x: Direction perpendicular to the first axis, used if both axes are on one line.
        other: Point of the second axis.
        direction: Direction of the second axis.
    """
    across, between = np.cross(z, direction), other - p
    size = float(np.linalg.norm(across))
    if size < _PARALLEL:
        away = between - z * (z @ between)
        length = float(np.linalg.norm(away))
        return (x if length < _PARALLEL else away / length), p
    # The foot solves (p + s z − other − t d) ⊥ z, d.
    return across / size, p + z * float(np.cross(between, direction) @ across) / size**2


def _numbers(before: _Frame, own: _Frame) -> list[float]:
    """Compute theta, d, a and alpha from one frame to the next."""
    turn = before[0].T @ own[0]
    shift = before[0].T @ (own[1] - before[1])
    alpha = float(np.arctan2(-turn[1, 2], turn[2, 2]))
    theta = float(np.arctan2(-turn[0, 1], turn[0, 0]))
    # X(alpha, a) Z(theta, d): the shift is [a, −d sin alpha, d cos alpha].
    d = float(-np.sin(alpha) * shift[1] + np.cos(alpha) * shift[2])
    return [theta, d, float(shift[0]), alpha]


def _place(rotation: Array, origin: Array, _turn: Array, _joint: Array, angle: float) -> dict[str, list[float]]:
    return {"rpy": [float(angle * x) for x in rpy_of(rotation)], "xyz": [float(x) for x in origin]}


def _link(link: Link, frame: _Frame) -> dict[str, Any]:
    """Name and inertia of a link, in the frame of the table."""
    if link.inertia is None:
        return {"name": link.name}
    p = move_parameters(link.inertia, link.frame_rotation, link.frame_translation)
    p = move_parameters(p, frame[0].T @ frame[2], frame[0].T @ (frame[3] - frame[1]))
    tensor = inertia_matrix(p)
    moments = {name: float(tensor[a, b]) for name, a, b in _TENSOR}
    return {"name": link.name, "mass": float(p[0]), "first_moment": [float(x) for x in p[1:4]],
            "inertia_origin": moments}  # fmt: skip
