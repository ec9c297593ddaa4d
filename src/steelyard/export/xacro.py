"""`model_to_xacro`: inertias and joint friction as xacro macros, for a description that is made of macros itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import bodies_of
from steelyard.export._simple_terms import simple_terms
from steelyard.export._urdf_new import dynamics_tag, inertial_lines
from steelyard.export._xml_text import comment, tag
from steelyard.export.capability import CAPABILITIES
from steelyard.export.formats import MODEL_FORMATS, ModelFormat, c_name
from steelyard.ground.files import write_whole

_NAMESPACE = "http://www.ros.org/wiki/xacro"


def model_to_xacro(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write inertias and friction of `model` as macros to `path`; returns what they leave out, one sentence each.

    For every link a macro `inertial_LINK`, for every joint `dynamics_JOINT`. Include the file, and call them where the
    description has its `<inertial>` and `<dynamics>`. Frames are those of the joints, which are the links' in URDF.
    """
    robot, terms = model.robot, simple_terms(model, CAPABILITIES["xacro"].numbers)
    macros = {f"inertial_{c_name(body.name)}": inertial_lines(body.inertial) for body in bodies_of(model)}
    dynamics = {
        f"dynamics_{c_name(joint.name)}": [dynamics_tag(float(terms.damping[k]), float(terms.friction[k]))]
        for k, joint in enumerate(robot.joints)
    }
    if len(macros) + len(dynamics) < len(robot.links) + robot.dof:
        raise ExportError(
            f"Links or joints of '{robot.name}' have names that are one in xacro; rename some, or take URDF."
        )
    first = next(iter(macros))
    head = [
        f"Inertias and joint friction of robot '{robot.name}', identified by Steelyard, as macros of xacro.",
        f'<xacro:include filename="…"/>, then <xacro:{first}/> where the link has its <inertial>.',
        "The inertia of links that are fixed to a moving one is part of that link's; take out their own.",
        *terms.missing,
    ]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment(head)]
    lines.append(tag("robot", {"xmlns:xacro": _NAMESPACE}, closed=False))
    for name, inside in (macros | dynamics).items():
        lines += [f"  {line}" for line in _macro(name, inside)]
    write_whole(path, "\n".join([*lines, "</robot>", ""]))
    return terms.missing


def _macro(name: str, inside: Sequence[str]) -> list[str]:
    return [tag("xacro:macro", {"name": name}, closed=False), *(f"  {line}" for line in inside), "</xacro:macro>"]


MODEL_FORMATS.register("xacro")(
    ModelFormat(
        "macros of inertias and friction, for xacro",
        lambda model, name, _: {f"{name}_identified.xacro": lambda p: model_to_xacro(model, p)},
    )
)
