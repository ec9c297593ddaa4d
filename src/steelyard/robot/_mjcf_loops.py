"""Closed loops of an MJCF document: its equality constraints, at the initial configuration of MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element
from steelyard.robot._mjcf_document import Defaults
from steelyard.robot._tree import joints_between
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.loop_constraints import CLOSINGS, FramePair, JointCurve, Loop, unlocked_loops
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, rotation_from_quaternion

_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class ClosingElement:
    """An equality constraint that closes a loop.

    Attributes:
        place: File, element and problem.
        element: <connect>, <weld> or <joint>, with its defaults.
        ends: Frames of the two bodies or sites.
        joints: Names of the joints of a curve.
        curve: Coefficients of the curve.
    """

    place: str
    element: Element
    ends: tuple[LinkFrame, LinkFrame] = field(default_factory=lambda: (LinkFrame(), LinkFrame()))
    joints: tuple[str, str] = ("", "")
    curve: tuple[float, ...] = ()


def with_loops(robot: Robot, loops: Sequence[Loop], closing: Sequence[ClosingElement]) -> Robot:
    """Return `robot` with its closed loops.

    Args:
        robot: Tree, with the initial configuration in `start`.
        loops: Loops without a constraint.
        closing: Elements that close loops.
    """
    q = start_position(robot)
    rotations, origins = link_poses(robot, q)
    own = [_loop(robot, one, rotations, origins) for one in closing]
    return replace(robot, loops=unlocked_loops([*loops, *own], robot.joint_names))


def start_position(robot: Robot) -> Array:
    """Return the positions of the description of `robot` [rad, m]."""
    return np.array([robot.start.get(name, 0.0) for name in robot.joint_names])


def _loop(robot: Robot, one: ClosingElement, rotations: Array, origins: Array) -> Loop:
    if one.curve:
        links = {link.joint: link for link in robot.links}
        names = tuple(dict.fromkeys(robot.joint_names[links[name].coordinate] for name in one.joints))
        label = f"curve {one.joints[0]}–{one.joints[1]}"
        return Loop(one.place, names, name=label, constraint=JointCurve(*one.joints, one.curve))
    pair = _pair(one, rotations, origins)
    names = joints_between(robot.links, robot.joints, one.ends[0].host, one.ends[1].host)
    of = [one.element.attributes.get(f"{kind}{end}", "world") for end in "12" for kind in _kind(one.element, end)]
    label = one.element.attributes.get("name") or f"{one.element.tag} {of[0]}–{of[1]}"
    return Loop(one.place, names, name=label, constraint=pair)


def _kind(element: Element, end: str) -> tuple[str]:
    return ("site",) if f"site{end}" in element.attributes else ("body",)


def _pair(one: ClosingElement, rotations: Array, origins: Array) -> FramePair:
    """Return the frames that coincide: of sites, or those of bodies at the initial configuration."""
    element, (first, second) = one.element, one.ends
    rows = CLOSINGS["point" if element.tag == "connect" else "pose"]
    if "site1" in element.attributes:
        return FramePair(first, second, rows)
    if element.tag == "connect":
        point = first.at(np.eye(3), element.vector("anchor", 3))
        return FramePair(point, _seen_from(point, second.host, rotations, origins), rows)
    anchor = second.at(np.eye(3), element.vector("anchor", 3, _ZERO))
    relpose = element.vector("relpose", 7, (*_ZERO, *_ZERO, 0.0))
    if np.any(relpose[3:]):
        return FramePair(first.at(rotation_from_quaternion(*relpose[3:]), relpose[:3]), anchor, rows)
    return FramePair(_seen_from(anchor, first.host, rotations, origins), anchor, rows)


def _seen_from(frame: LinkFrame, host: int, rotations: Array, origins: Array) -> LinkFrame:
    """Return the frame on another link that coincides with `frame` at the initial configuration."""
    R, p = _pose(frame.host, rotations, origins)
    turn, place = R @ frame.rotation, p + R @ frame.translation
    Q, o = _pose(host, rotations, origins)
    return LinkFrame(host, Q.T @ turn, Q.T @ (place - o))


def _pose(host: int, rotations: Array, origins: Array) -> tuple[Array, Array]:
    return (np.eye(3), np.zeros(3)) if host < 0 else (rotations[host], origins[host])


def actuated_joints(root: Element, robot: Robot, defaults: Defaults) -> tuple[str, ...]:
    """Return the joints of `robot` with an actuator, in the order of the robot.

    Args:
        root: Document.
        robot: Robot.
        defaults: Default classes of the document.
    """
    names = set()
    for section in root.all("actuator"):
        for child in section.children:
            element = defaults.apply(child, None)
            names |= {element.attributes[key] for key in ("joint", "jointinparent") if key in element.attributes}
    moved = {robot.joint_names[link.coordinate] for link in robot.links if link.joint in names}
    return tuple(name for name in robot.joint_names if name in moved)
