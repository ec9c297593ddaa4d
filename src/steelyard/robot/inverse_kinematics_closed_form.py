"""Which arms can be solved in closed form: read off their axes."""

from __future__ import annotations

import numpy as np

from steelyard.robot.inverse_kinematics_parallel import ParallelArm
from steelyard.robot.inverse_kinematics_target import Tip
from steelyard.robot.inverse_kinematics_wrist import WristArm
from steelyard.robot.kinematics import link_poses
from steelyard.robot.spatial import Array

# Axes that miss each other by less than this part of the arm's size, or differ by less than this angle (rad), are
# taken as meeting or parallel: rounding of a description passes, a built-in offset of a tenth of a millimetre does not.
_ROUNDING = 1e-7


def closed_form(tip: Tip) -> WristArm | ParallelArm | None:
    """The closed form for this tip, or None where the arm is of another kind."""
    robot, chain = tip.robot, tip.chain
    links = [robot.links[i] for i in chain]
    plain = all(link.kind == "revolute" and link.ratio == 1.0 for link in links)
    if len(links) != 6 or not plain or [link.coordinate for link in links] != list(range(6)) or robot.dof != 6:
        return None
    rotations, origins = link_poses(robot, np.zeros(6))
    h = np.array([rotations[i] @ robot.links[i].axis for i in chain])
    p = origins[chain]
    near = _ROUNDING * float(np.abs(p - p[0]).max() + 1e-300)
    return _wrist(tip, h, p, near) or _three_parallel(tip, h, p, near)


def _wrist(tip: Tip, h: Array, p: Array, near: float) -> WristArm | None:
    centre = _meeting_point(h[3], p[3], h[4], p[4], near)
    if centre is None or _distance(h[5], p[5], centre) > near or _parallel(h[4], h[5]):
        return None
    if _distance(h[2], p[2], centre) <= near:  # an elbow that does not move the wrist
        return None
    end = _from_tip(tip, centre)
    if _parallel(h[1], h[2]) and not _parallel(h[0], h[1]) and _distance(h[1], p[1], p[2]) > near:
        return WristArm("parallel", h, p[0], p[1] - p[0], p[2] - p[1], centre - p[2], *end)
    shoulder = _meeting_point(h[0], p[0], h[1], p[1], near)
    if shoulder is not None and _distance(h[2], p[2], shoulder) > near:
        return WristArm("meeting", h, shoulder, np.zeros(3), p[2] - shoulder, centre - p[2], *end)
    return None


def _three_parallel(tip: Tip, h: Array, p: Array, near: float) -> ParallelArm | None:
    if not (_parallel(h[1], h[2]) and _parallel(h[1], h[3])) or _parallel(h[0], h[1]) or _parallel(h[3], h[4]):
        return None
    centre = _meeting_point(h[4], p[4], h[5], p[5], near)
    if centre is None or _distance(h[1], p[1], p[2]) <= near or _distance(h[2], p[2], p[3]) <= near:
        return None
    return ParallelArm(h, p[0], p[1] - p[0], p[2] - p[1], p[3] - p[2], centre - p[3], *_from_tip(tip, centre))


def _from_tip(tip: Tip, centre: Array) -> tuple[Array, Array]:
    """The tip's rotation in the zero posture, and a point as seen from the tip."""
    rotation, position = tip.forward(np.zeros(6))
    return rotation, rotation.T @ (centre - position)


def _parallel(a: Array, b: Array) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _ROUNDING


def _distance(axis: Array, on_axis: Array, point: Array) -> float:
    return float(np.linalg.norm(np.cross(axis, point - on_axis)))


def _meeting_point(a: Array, on_a: Array, b: Array, on_b: Array, near: float) -> Array | None:
    """Where two lines meet; None where they are parallel or pass each other."""
    if _parallel(a, b):
        return None
    along = np.linalg.lstsq(np.column_stack([a, -b]), on_b - on_a, rcond=None)[0]
    one, other = on_a + along[0] * a, on_b + along[1] * b
    if float(np.linalg.norm(one - other)) > near:
        return None
    point: Array = (one + other) / 2.0
    return point
