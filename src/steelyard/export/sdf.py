"""`model_to_sdf`: the identified model as SDFormat, the XML of Gazebo and Drake."""

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

# Mimic joints came with 1.11; what has none says 1.9, which more programs read.
_VERSION, _WITH_MIMIC = "1.9", "1.11"


def model_to_sdf(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write `model` as SDFormat to `path`; returns, one sentence each, what the file leaves out or only approximates.

    Links stand in the frames of their joints and have no looks; the base is fixed to the world. Joints have damping,
    dry friction and springs; rotor inertia has no place in SDFormat. Gravity belongs to a world, not to a model.
    """
    robot, bodies = model.robot, bodies_of(model)
    terms = simple_terms(model, CAPABILITIES["sdf"].numbers)
    notes = list(terms.missing)
    if impossible := impossible_links(model):
        notes.append(f"The inertia of {', '.join(impossible)} is not physically possible; simulators may refuse it.")
    taken = {body.name for body in bodies}
    base = next(n for n in itertools.chain(["base"], (f"base{k}" for k in itertools.count(2))) if n not in taken)
    following = any(body.follows is not None for body in bodies)
    head = [
        f"The model of robot '{robot.name}', written by Steelyard.",
        f"It holds for gravity {numbers(robot.gravity)} m/s2, which a world says.",
        *notes,
    ]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment(head)]
    lines.append(tag("sdf", {"version": _WITH_MIMIC if following else _VERSION}, closed=False))
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
    """A name as the text of an element."""
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
    said = "".join(_element(name, number(x)) for name, x in bounds.items() if np.isfinite(x))
    lines = [
        tag("joint", {"name": body.joint, "type": body.kind}, closed=False),
        f"  {_element('parent', _text(parent))}",
        f"  {_element('child', _text(body.name))}",
        "  <axis>",
        f"    {_element('xyz', numbers(body.axis))}",
        f"    <limit>{said}</limit>",
    ]
    if body.follows is None:
        k = robot.joint_index(body.joint)
        known = {"damping": terms.damping[k], "friction": terms.friction[k], "spring_stiffness": terms.stiffness[k]}
        if terms.stiffness[k]:
            known["spring_reference"] = terms.rest[k]
        given = "".join(_element(name, number(x)) for name, x in known.items() if x)
        lines += [f"    <dynamics>{given}</dynamics>"] if given else []
    else:
        f = body.follows
        how = {"multiplier": f.ratio, "offset": f.offset, "reference": 0.0}
        inside = "".join(_element(name, number(x)) for name, x in how.items())
        lines.append(f"    {_element('mimic', inside, joint=f.leader)}")
    return [*lines, "  </axis>", "</joint>"]


MODEL_FORMATS.register("sdf")(
    ModelFormat(
        "SDFormat, for Gazebo and Drake", lambda model, name, _: {f"{name}.sdf": lambda p: model_to_sdf(model, p)}
    )
)
