"""`model_to_sdf`: exports a model as SDFormat, the XML of Gazebo and Drake."""

from __future__ import annotations

import itertools
import os

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export._bodies import Body, Inertial, bodies_of, impossible_links
from steelyard.export._simple_terms import SimpleTerms, simple_terms
from steelyard.export._xml_text import comment, number, numbers, tag
from steelyard.export.capability import CAPABILITIES
from steelyard.export.formats import MODEL_FORMATS, ModelFormat
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rpy_of

# Mimic joints need 1.11; without them 1.9 is used, which more programs read.
_VERSION, _WITH_MIMIC = "1.9", "1.11"


def model_to_sdf(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a model as SDFormat; return one sentence for each part that the file leaves out or approximates.

    Links have the frames of their joints and no geometry; the base is fixed to the world. Joints have damping, dry
    friction and springs; SDFormat supports neither rotor inertia nor gravity of a model.

    Args:
        model: Model to write.
        path: Path of the file.
    """
    robot, bodies = model.robot, bodies_of(model)
    terms = simple_terms(model, CAPABILITIES["sdf"].numbers)
    notes = list(terms.missing)
    if impossible := impossible_links(model):
        notes.append(f"The inertia of {', '.join(impossible)} is physically impossible; simulators may refuse it.")
    names = {body.name for body in bodies}
    base = next(n for n in itertools.chain(["base"], (f"base{k}" for k in itertools.count(2))) if n not in names)
    has_mimic = any(body.follows is not None for body in bodies)
    head = [
        f"The model of robot '{robot.name}', written by Steelyard.",
        f"It is valid for gravity {numbers(robot.gravity)} m/s2, which must be set in the world.",
        *notes,
    ]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment(head)]
    lines.append(tag("sdf", {"version": _WITH_MIMIC if has_mimic else _VERSION}, closed=False))
    lines.append(f"  {tag('model', {'name': robot.name}, closed=False)}")
    lines += [f"    {tag('link', {'name': base})}", *(f"    {x}" for x in _fixed(base))]
    for body in bodies:
        parent = bodies[body.parent].name if body.parent >= 0 else base
        lines += [f"    {line}" for line in (*_link(body, parent), *_joint(robot, body, parent, terms))]
    write_whole(path, "\n".join([*lines, "  </model>", "</sdf>", ""]))
    return tuple(notes)


def _element(name: str, text: str, **attributes: str) -> str:
    return f"{tag(name, attributes, closed=False)}{text}</{name}>"


def _text(name: str) -> str:
    """Escape a name for the text of an element."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fixed(base: str) -> list[str]:
    inside = [_element("parent", "world"), _element("child", _text(base))]
    return [tag("joint", {"name": f"{base}_to_world", "type": "fixed"}, closed=False), *inside, "</joint>"]


def _pose(rotation: Array, translation: Array) -> str:
    return f"{numbers(translation)} {numbers(rpy_of(rotation))}"


def _link(body: Body, parent: str) -> list[str]:
    place = _element("pose", _pose(body.rotation, body.translation), relative_to=parent)
    return [
        tag("link", {"name": body.name}, closed=False), f"  {place}", *_inertial(body.inertial), "</link>",
    ]  # fmt: skip


def _inertial(inertial: Inertial) -> list[str]:
    i = inertial.tensor
    entries = {"ixx": i[0, 0], "ixy": i[0, 1], "ixz": i[0, 2], "iyy": i[1, 1], "iyz": i[1, 2], "izz": i[2, 2]}
    return [
        "  <inertial>",
        f"    {_element('pose', f'{numbers(inertial.com)} 0 0 0')}",
        f"    {_element('mass', number(inertial.mass))}",
        f"    <inertia>{''.join(_element(name, number(x)) for name, x in entries.items())}</inertia>",
        "  </inertial>",
    ]


def _joint(robot: Robot, body: Body, parent: str, terms: SimpleTerms) -> list[str]:
    limits = body.limits
    bounds = {"lower": limits.lower, "upper": limits.upper, "effort": limits.effort, "velocity": limits.velocity}
    finite = "".join(_element(name, number(x)) for name, x in bounds.items() if np.isfinite(x))
    lines = [
        tag("joint", {"name": body.joint, "type": body.kind}, closed=False),
        f"  {_element('parent', _text(parent))}",
        f"  {_element('child', _text(body.name))}",
        "  <axis>",
        f"    {_element('xyz', numbers(body.axis))}",
        f"    <limit>{finite}</limit>",
    ]
    if body.follows is None:
        k = robot.joint_index(body.joint)
        values = {"damping": terms.damping[k], "friction": terms.friction[k], "spring_stiffness": terms.stiffness[k]}
        if terms.stiffness[k]:
            values["spring_reference"] = terms.rest[k]
        dynamics = "".join(_element(name, number(x)) for name, x in values.items() if x)
        lines += [f"    <dynamics>{dynamics}</dynamics>"] if dynamics else []
    else:
        f = body.follows
        mimic = {"multiplier": f.ratio, "offset": f.offset, "reference": 0.0}
        inside = "".join(_element(name, number(x)) for name, x in mimic.items())
        lines.append(f"    {_element('mimic', inside, joint=f.leader)}")
    return [*lines, "  </axis>", "</joint>"]


MODEL_FORMATS.register("sdf")(
    ModelFormat(
        "SDFormat, for Gazebo and Drake", lambda model, name, _: {f"{name}.sdf": lambda p: model_to_sdf(model, p)}
    )
)
