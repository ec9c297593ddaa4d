"""Writes a new URDF from a model: links without geometry, joints, inertias, friction."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export._bodies import Body, Inertial, bodies_of
from steelyard.export._simple_terms import SimpleTerms
from steelyard.export._xml_text import comment, number, numbers, tag
from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element
from steelyard.robot.robot import FREE_WIDTHS, UNLIMITED, Robot
from steelyard.robot.spatial import rotation_from_rpy, rpy_of

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


def new_urdf(model: Model, terms: SimpleTerms, notes: Sequence[str]) -> str:
    """Return the text of the URDF; the frame of a link is that of its joint."""
    robot, bodies = model.robot, bodies_of(model)
    names = {body.name for body in bodies}
    base = next(n for n in itertools.chain(["base"], (f"base{k}" for k in itertools.count(2))) if n not in names)
    gravity = numbers(robot.gravity)
    head = [
        f"The model of robot '{robot.name}', written by Steelyard.",
        "The frame of a link is that of its joint. Unknown limits are written as 1e9.",
        f"The model is valid for gravity {gravity} m/s2; URDF has no element for it (for MuJoCo see below).",
        *notes,
    ]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment(head), tag("robot", {"name": robot.name}, closed=False)]
    lines += [f"  {line}" for line in mujoco_lines(robot)]
    lines += [f"  {tag('link', {'name': base})}"]
    for body in bodies:
        lines.append(f"  {tag('link', {'name': body.name}, closed=False)}")
        lines += [f"    {line}" for line in inertial_lines(body.inertial)]
        lines.append("  </link>")
    for body in bodies:
        parent = bodies[body.parent].name if body.parent >= 0 else base
        lines += [f"  {line}" for line in _joint_lines(robot, body, parent, terms)]
    return "\n".join([*lines, "</robot>", ""])


def mujoco_lines(robot: Robot) -> list[str]:
    """Settings for MuJoCo: gravity, and no inertia for links without <inertial>."""
    inside = [tag("compiler", {"inertiafromgeom": "false"})]
    if not gravity_is_standard(robot.gravity):
        inside.append(tag("option", {"gravity": numbers(robot.gravity)}))
    return ["<mujoco>", *(f"  {line}" for line in inside), "</mujoco>"]


def _joint_lines(robot: Robot, body: Body, parent: str, terms: SimpleTerms) -> list[str]:
    limits = body.limits
    if body.kind in FREE_WIDTHS:
        return [
            tag("joint", {"name": body.joint, "type": body.kind}, closed=False),
            f"  {origin_tag(body.rotation, body.translation)}",
            f"  {tag('parent', {'link': parent})}",
            f"  {tag('child', {'link': body.name})}",
            f"  {tag('axis', {'xyz': numbers(body.axis)})}",
            "</joint>",
        ]
    free = not np.isfinite(limits.lower) and not np.isfinite(limits.upper)
    # A mimic joint stays revolute, because some programs do not support continuous mimic joints.
    kind = "continuous" if body.kind == "revolute" and free and body.follows is None else body.kind
    lines = [
        tag("joint", {"name": body.joint, "type": kind}, closed=False),
        f"  {origin_tag(body.rotation, body.translation)}",
        f"  {tag('parent', {'link': parent})}",
        f"  {tag('child', {'link': body.name})}",
        f"  {tag('axis', {'xyz': numbers(body.axis)})}",
    ]
    bounds = {} if kind == "continuous" else {"lower": limits.lower, "upper": limits.upper}
    every = {**bounds, "effort": limits.effort, "velocity": limits.velocity}
    # URDF parsers require limits, and some do not accept "inf".
    finite = {name: number(np.clip(value, -UNLIMITED, UNLIMITED)) for name, value in every.items()}
    lines.append(f"  {tag('limit', finite)}")
    if body.follows is not None:
        f = body.follows
        mimic = {"joint": f.leader, "multiplier": number(f.ratio), "offset": number(f.offset)}
        lines.append(f"  {tag('mimic', mimic)}")
    else:
        k = robot.joint_index(body.joint)
        if terms.damping[k] or terms.friction[k]:
            lines.append(f"  {dynamics_tag(terms.damping[k], terms.friction[k])}")
    return [*lines, "</joint>"]


def joint_end(joint: Element, side: str) -> str:
    """Return the link at one end of a joint of a URDF.

    Args:
        joint: The joint.
        side: "parent" or "child".
    """
    element = joint.find(side)
    assert element is not None  # the reader refuses a joint without parent or child
    return element.attributes["link"]


def joint_origin(joint: Element) -> tuple[Array, Array]:
    """Return the rotation and the translation [m] of a joint of a URDF relative to its parent link."""
    origin, zero = joint.find("origin"), (0.0, 0.0, 0.0)
    if origin is None:
        return np.eye(3), np.zeros(3)
    return rotation_from_rpy(*origin.vector("rpy", 3, zero)), origin.vector("xyz", 3, zero)
