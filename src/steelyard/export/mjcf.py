"""`model_to_mjcf`: the identified model as MJCF, the XML of MuJoCo."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import Body, bodies_of, children_of, impossible_links
from steelyard.export._simple_terms import ARMATURE, DAMPING, FRICTION, STIFFNESS, SimpleTerms, simple_terms
from steelyard.export._xml_text import comment, number, numbers, tag
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import quaternion_of


def model_to_mjcf(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write `model` as MJCF to `path`; returns, one sentence each, what the file leaves out or only approximates.

    Bodies stand in the frames of their joints and have no geometry. Rotor inertia becomes `armature`, viscous
    friction `damping`, dry friction `frictionloss`, springs `stiffness`; every joint that moves on its own gets a
    torque motor. Joints that follow others are tied by equality constraints, which MuJoCo holds softly.
    """
    text, notes = mjcf_text(model)
    write_whole(path, text)
    return notes


def mjcf_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """What `model_to_mjcf` writes of `model`, and what that leaves out or only approximates."""
    robot = model.robot
    impossible = impossible_links(model)
    if impossible:
        raise ExportError(
            f"The inertia of link '{impossible[0]}' is not physically possible, and MuJoCo refuses such bodies; "
            f"identify with physical=True, or export URDF or C code."
        )
    terms = simple_terms(model, (DAMPING, FRICTION, ARMATURE, STIFFNESS))
    bodies = bodies_of(model)
    notes = list(terms.missing)
    followers = [body for body in bodies if body.follows is not None]
    if followers:
        notes.append("Joints that follow others are held by soft constraints, not exactly.")
    head = [f"The model of robot '{robot.name}', written by Steelyard.", *notes]
    lines = [comment(head), tag("mujoco", {"model": robot.name}, closed=False)]
    lines.append("  " + tag("compiler", {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"}))
    lines.append("  " + tag("option", {"gravity": numbers(robot.gravity)}))
    lines.append("  <worldbody>")
    for root in children_of(bodies, -1):
        lines += _body_lines(robot, bodies, root, terms, "    ")
    lines.append("  </worldbody>")
    if followers:
        lines += ["  <equality>", *(f"    {_equality(body)}" for body in followers), "  </equality>"]
    lines += ["  <actuator>", *(f"    {_motor(robot, k)}" for k in range(robot.dof)), "  </actuator>", "</mujoco>", ""]
    return "\n".join(lines), tuple(notes)


def _body_lines(robot: Robot, bodies: Sequence[Body], index: int, terms: SimpleTerms, indent: str) -> list[str]:
    """A body with everything that hangs on it. Links without mass share the body of the link they carry."""
    chain = [index]
    while bodies[chain[-1]].inertial.massless:
        inside = children_of(bodies, chain[-1])
        if len(inside) != 1:
            raise ExportError(
                f"Link '{bodies[chain[-1]].name}' moves but has no mass, which MuJoCo refuses; give it some."
            )
        chain.append(inside[0])
    last = bodies[chain[-1]]
    rotation, translation = np.eye(3), np.zeros(3)
    feet: list[tuple[Array, Array]] = []  # of each joint in the parent, all joints at zero
    for k in chain:
        translation = translation + rotation @ bodies[k].translation
        rotation = rotation @ bodies[k].rotation
        feet.append((rotation, translation))
    place = {"name": last.name, "pos": numbers(translation), "quat": numbers(quaternion_of(rotation))}
    lines = [indent + tag("body", place, closed=False)]
    lines.append(f"{indent}  {_inertial(last)}")
    for k, (r, t) in zip(chain, feet, strict=True):
        axis, anchor = rotation.T @ r @ bodies[k].axis, rotation.T @ (t - translation)
        lines.append(f"{indent}  {_joint(robot, bodies[k], axis, anchor, terms)}")
    for child in children_of(bodies, chain[-1]):
        lines += _body_lines(robot, bodies, child, terms, indent + "  ")
    return [*lines, f"{indent}</body>"]


def _inertial(body: Body) -> str:
    i = body.inertial.tensor
    full = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    mass = number(body.inertial.mass)
    return tag("inertial", {"pos": numbers(body.inertial.com), "mass": mass, "fullinertia": numbers(full)})


def _joint(robot: Robot, body: Body, axis: Array, anchor: Array, terms: SimpleTerms) -> str:
    kind = "hinge" if body.kind == "revolute" else "slide"
    attributes = {"name": body.joint, "type": kind, "axis": numbers(axis)}
    if np.any(anchor):
        attributes["pos"] = numbers(anchor)
    if body.follows is None:
        k = robot.joint_index(body.joint)
        limits = robot.joints[k]
        if np.isfinite(limits.lower) and np.isfinite(limits.upper) and limits.lower < limits.upper:
            attributes["range"] = numbers([limits.lower, limits.upper])
        named = {"armature": terms.armature, "damping": terms.damping, "frictionloss": terms.friction}
        attributes |= {name: number(values[k]) for name, values in named.items() if values[k]}
        if terms.stiffness[k]:
            attributes |= {"stiffness": number(terms.stiffness[k]), "springref": number(terms.rest[k])}
    return tag("joint", attributes)


def _equality(body: Body) -> str:
    f = body.follows
    assert f is not None
    line = numbers([f.offset, f.ratio, 0.0, 0.0, 0.0])
    return tag("joint", {"joint1": body.joint, "joint2": f.leader, "polycoef": line})


def _motor(robot: Robot, k: int) -> str:
    joint = robot.joints[k]
    attributes = {"name": f"{joint.name}_motor", "joint": joint.name}
    if np.isfinite(joint.effort) and joint.effort > 0.0:
        attributes["ctrlrange"] = numbers([-joint.effort, joint.effort])
    return tag("motor", attributes)
