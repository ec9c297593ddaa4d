"""`model_to_xacro`: exports inertias and joint friction as xacro macros."""

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
    """Write inertias and friction of a model as macros; return one sentence for each part that they leave out.

    Each link has a macro `inertial_LINK`, each joint `dynamics_JOINT`. Include the file, and call them instead of
    `<inertial>` and `<dynamics>` in the description. Frames are those of the joints, which URDF uses for links.

    Args:
        model: Model to write.
        path: Path of the file.
    """
    robot, terms = model.robot, simple_terms(model, CAPABILITIES["xacro"].numbers)
    macros = {f"inertial_{c_name(body.name)}": inertial_lines(body.inertial) for body in bodies_of(model)}
    dynamics = {
        f"dynamics_{c_name(joint.name)}": [dynamics_tag(float(terms.damping[k]), float(terms.friction[k]))]
        for k, joint in enumerate(robot.joints)
    }
    if len(macros) + len(dynamics) < len(robot.links) + robot.dof:
        raise ExportError(
            f"Some links or joints of '{robot.name}' get the same name in xacro; rename some, or use URDF."
        )
    first = next(iter(macros))
    head = [
        f"Inertias and joint friction of robot '{robot.name}', identified by Steelyard, as macros of xacro.",
        f'<xacro:include filename="…"/>, then <xacro:{first}/> instead of the <inertial> of the link.',
        "The inertia of a moving link includes links fixed to it; remove their own inertia.",
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
