"""`model_to_mjcf`: exports a model as MJCF, the XML of MuJoCo."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import IDENTIFY_POSSIBLE, Body, bodies_of, children_of, impossible_links
from steelyard.export._mjcf_edit import edited_mjcf, is_mjcf
from steelyard.export._simple_terms import SimpleTerms, simple_terms
from steelyard.export._xml_text import comment, number, numbers, tag
from steelyard.export.capability import CAPABILITIES
from steelyard.export.loop_files import equality_lines, site_lines
from steelyard.export.soft_friction import SHARP
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.robot.free import free_mask
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import quaternion_of

# Stiffness per constant torque [1/rad or 1/m]. A constant torque becomes a very soft spring with a distant rest
# position; over a turn its torque changes by six millionths.
_SOFT = 1e-6


def model_to_mjcf(
    model: Model, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None
) -> tuple[str, ...]:
    """Write a model as MJCF; return one sentence for each part that the file leaves out or approximates.

    With an original MJCF, only the inertials of its bodies and the numbers of its joints change. Otherwise a new file
    is written: bodies have the frames of their joints and no geometry, and every independent joint gets a torque
    motor. Mimic joints use equality constraints, which are soft in MuJoCo.

    Rotor inertia becomes `armature`, viscous friction `damping`, dry friction `frictionloss` (sharp or soft, like its
    term), springs `stiffness`, a constant torque a soft spring with a distant rest position.

    Args:
        model: Model to write.
        path: Path of the file.
        source: Original MJCF of the robot, if any.
    """
    text, notes = mjcf_text(model)
    origin, target = None if source is None else Path(source), Path(path)
    if origin is None or not is_mjcf(origin):
        write_whole(target, text)
        return notes
    if target.exists() and target.resolve() == origin.resolve():
        raise ExportError(f"{target}: this is the robot's original description; write the model to another file.")
    terms = simple_terms(model, CAPABILITIES["mjcf"].numbers)
    attributes = [(joint_numbers(terms, k), solver_settings(terms, k)) for k in range(model.robot.dof)]
    head = (*terms.missing, *_about_offsets(terms))
    edited, why_not = edited_mjcf(model, attributes, tendon_lines(model.robot, terms), origin, head)
    write_whole(target, edited or text)
    if why_not:
        return (*notes, why_not)
    more = ["Names of meshes and other files are relative to the folder of the original description."]
    return (*terms.missing, *(more if target.resolve().parent != origin.resolve().parent else []))


def mjcf_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """Return the MJCF of a `model`, and sentences on parts that it leaves out or approximates."""
    robot = model.robot
    impossible = impossible_links(model)
    if impossible:
        raise ExportError(
            f"The inertia of link '{impossible[0]}' is physically impossible, and MuJoCo refuses such bodies; "
            f"{IDENTIFY_POSSIBLE}, or export URDF or C code."
        )
    terms = simple_terms(model, CAPABILITIES["mjcf"].numbers)
    bodies = bodies_of(model)
    notes = list(terms.missing)
    followers = [body for body in bodies if body.follows is not None]
    if followers:
        notes.append("Mimic joints use soft constraints, so they follow only approximately.")
    hosts = [k for k, body in enumerate(bodies) if not body.inertial.massless]
    loops, open_loops = equality_lines(robot, hosts)
    notes += open_loops
    head = [f"The model of robot '{robot.name}', written by Steelyard.", *notes, *_about_offsets(terms)]
    lines = [comment(head), tag("mujoco", {"model": robot.name}, closed=False)]
    lines.append("  " + tag("compiler", {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"}))
    lines.append("  " + tag("option", {"gravity": numbers(robot.gravity)}))
    lines.append("  <worldbody>")
    lines += [f"    {line}" for line in site_lines(robot, -1)]
    for root in children_of(bodies, -1):
        lines += _body_lines(robot, bodies, root, terms, "    ")
    lines.append("  </worldbody>")
    lines += [f"  {line}" for line in tendon_lines(robot, terms)]
    if followers or loops:
        lines += ["  <equality>", *(f"    {_equality(body)}" for body in followers)]
        lines += [*(f"    {line}" for line in loops), "  </equality>"]
    lines += ["  <actuator>", *(f"    {_motor(robot, k)}" for k in _driven(robot)), "  </actuator>", "</mujoco>", ""]
    return "\n".join(lines), tuple(notes)


def _body_lines(robot: Robot, bodies: Sequence[Body], index: int, terms: SimpleTerms, indent: str) -> list[str]:
    """A body with all its children. Massless links share the body of the next link."""
    chain = [index]
    while bodies[chain[-1]].inertial.massless:
        inside = children_of(bodies, chain[-1])
        if len(inside) != 1:
            raise ExportError(
                f"Link '{bodies[chain[-1]].name}' moves but has no mass, which MuJoCo refuses; give it a mass."
            )
        chain.append(inside[0])
    last = bodies[chain[-1]]
    rotation, translation = np.eye(3), np.zeros(3)
    frames: list[tuple[Array, Array]] = []  # of each joint in the parent, with all joints at zero
    for k in chain:
        translation = translation + rotation @ bodies[k].translation
        rotation = rotation @ bodies[k].rotation
        frames.append((rotation, translation))
    place = {"name": last.name, "pos": numbers(translation), "quat": numbers(quaternion_of(rotation))}
    lines = [indent + tag("body", place, closed=False)]
    lines.append(f"{indent}  {_inertial(last)}")
    for k, (r, t) in zip(chain, frames, strict=True):
        axis, anchor = rotation.T @ r @ bodies[k].axis, rotation.T @ (t - translation)
        lines.append(f"{indent}  {_joint(robot, bodies[k], axis, anchor, terms)}")
    lines += [f"{indent}  {line}" for line in site_lines(robot, chain[-1])]
    for child in children_of(bodies, chain[-1]):
        lines += _body_lines(robot, bodies, child, terms, indent + "  ")
    return [*lines, f"{indent}</body>"]


def _inertial(body: Body) -> str:
    i = body.inertial.tensor
    full = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    mass = number(body.inertial.mass)
    return tag("inertial", {"pos": numbers(body.inertial.com), "mass": mass, "fullinertia": numbers(full)})


def _joint(robot: Robot, body: Body, axis: Array, anchor: Array, terms: SimpleTerms) -> str:
    if body.kind == "floating":
        return tag("freejoint", {"name": body.joint})
    kind = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball"}.get(body.kind)
    if kind is None:
        raise ExportError(f"Joint '{body.joint}' is {body.kind}, which MJCF lacks; export URDF.")
    if kind == "ball":
        return tag("joint", {"name": body.joint, "type": kind, **({"pos": numbers(anchor)} if np.any(anchor) else {})})
    attributes = {"name": body.joint, "type": kind, "axis": numbers(axis)}
    if np.any(anchor):
        attributes["pos"] = numbers(anchor)
    if body.follows is None:
        k = robot.joint_index(body.joint)
        limits = robot.joints[k]
        if np.isfinite(limits.lower) and np.isfinite(limits.upper) and limits.lower < limits.upper:
            attributes["range"] = numbers([limits.lower, limits.upper])
        attributes |= {name: number(value) for name, value in joint_numbers(terms, k).items() if value}
        attributes |= solver_settings(terms, k)
    return tag("joint", attributes)


def joint_numbers(terms: SimpleTerms, k: int) -> dict[str, float]:
    """Return the attributes of a joint in SI units, 0 for missing terms.

    Args:
        terms: Numbers of the joints.
        k: Index of the joint.
    """
    stiffness, rest, offset = float(terms.stiffness[k]), float(terms.rest[k]), float(terms.offset[k])
    if offset:
        stiffness = stiffness or _SOFT * abs(offset)
        rest -= offset / stiffness
    return {
        "armature": float(terms.armature[k]),
        "damping": float(terms.damping[k]),
        "frictionloss": float(terms.friction[k]),
        "stiffness": stiffness,
        "springref": rest if stiffness else 0.0,
    }


def _about_offsets(terms: SimpleTerms) -> list[str]:
    """A sentence for the head of a file with constant torques."""
    return ["Constant torques are soft springs with distant rest positions."] if np.any(terms.offset) else []


def solver_settings(terms: SimpleTerms, k: int) -> dict[str, str]:
    """Return the settings of MuJoCo's friction constraint: sharp for dry friction without smoothing.

    By default MuJoCo's dry friction rises over 0.01 rad/s, and over a wider range for joints with little inertia.

    Args:
        terms: Numbers of the joints.
        k: Index of the joint.
    """
    return SHARP if terms.friction[k] and not terms.smooth[k] else {}


def tendon_lines(robot: Robot, terms: SimpleTerms) -> list[str]:
    """Return the section with a fixed tendon for each drive that moves several joints; [] without such drives.

    Args:
        robot: Robot with the joints.
        terms: Numbers of the joints and drives.
    """
    if not terms.coupled:
        return []
    lines = ["<tendon>"]
    for drive in terms.coupled:
        numbers_of = {"damping": drive.damping, "frictionloss": drive.friction, "armature": drive.armature}
        attributes = {"name": f"{drive.name}_drive"} | {key: number(x) for key, x in numbers_of.items() if x}
        attributes |= SHARP if drive.friction and not drive.smooth else {}
        lines.append(f"  {tag('fixed', attributes, closed=False)}")
        lines += [
            f"    {tag('joint', {'joint': joint.name, 'coef': number(weight)})}"
            for joint, weight in zip(robot.joints, drive.weights, strict=True)
            if weight
        ]
        lines.append("  </fixed>")
    return [*lines, "</tendon>"]


def _equality(body: Body) -> str:
    f = body.follows
    assert f is not None
    line = numbers([f.offset, f.ratio, 0.0, 0.0, 0.0])
    return tag("joint", {"joint1": body.joint, "joint2": f.leader, "polycoef": line})


def _driven(robot: Robot) -> list[int]:
    """Return the coordinates that get a motor: all but those of free joints, and of joints that loops move."""
    names = robot.actuated or robot.joint_names
    return [k for k, free in enumerate(free_mask(robot)) if not free and robot.joint_names[k] in names]


def _motor(robot: Robot, k: int) -> str:
    joint = robot.joints[k]
    attributes = {"name": f"{joint.name}_motor", "joint": joint.name}
    if np.isfinite(joint.effort) and joint.effort > 0.0:
        attributes["ctrlrange"] = numbers([-joint.effort, joint.effort])
    return tag("motor", attributes)
