"""Files of a run of elastic joints: C code, and an MJCF with rotors and springs.

The C code computes deflections, torques of the springs, and positions of the links. In the MJCF each elastic joint is a
rotor and a spring between rotor and link: the joint of the description moves the rotor. It keeps its name, limits,
friction and actuator, so actuators and sensors stay on the motor side. A joint NAME_spring with the stiffness connects
the rotor to the body of the link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.elasticity.elasticity import Elasticity
from steelyard.elasticity.joint_elasticity import JointElasticity
from steelyard.errors import ExportError
from steelyard.export import model_to_mjcf
from steelyard.export._bodies import impossible_links
from steelyard.export._mjcf_edit import is_mjcf
from steelyard.export._xml_text import Document, comment, number, tag
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.ground.outcome import Content
from steelyard.ground.xml import Element
from steelyard.robot.mjcf import mjcf_elements


def elastic_files(elasticity: Elasticity, name: str) -> dict[str, Content]:
    """Return the files of a run by name; an empty mapping if no stiffness is known.

    Args:
        elasticity: Elastic joints.
        name: Name of the robot, as a file name.
    """
    if not elasticity.known:
        return {}
    prefix = re.sub(r"[^A-Za-z0-9_]", "_", name)
    prefix = prefix if re.match(r"[A-Za-z]", prefix) else f"robot_{prefix}"
    header, source = elastic_c(elasticity, prefix)
    out: dict[str, Content] = {f"{prefix}_elastic.h": header, f"{prefix}_elastic.c": source}

    def write_mjcf(path: Path) -> None:
        elastic_to_mjcf(elasticity, path)

    if _can_be_mjcf(elasticity):
        out[f"{name}_elastic.xml"] = write_mjcf
    return out


def _can_be_mjcf(elasticity: Elasticity) -> bool:
    """Return whether MuJoCo accepts the robot's bodies."""
    if elasticity.source is not None and is_mjcf(elasticity.source):
        return True
    return bool(elasticity.robot.has_inertia) and not impossible_links(Model.nominal(elasticity.robot))


def elastic_c(elasticity: Elasticity, prefix: str) -> tuple[str, str]:
    """Return the header and the source.

    Args:
        elasticity: Elastic joints; joints with unknown stiffness are rigid.
        prefix: Prefix of the functions, a name in C.
    """
    n = elasticity.robot.dof
    header = f"""/* Elastic joints of {_plain(elasticity.robot.name)}, by Steelyard. SI units, over the gears. */
#ifndef {prefix.upper()}_ELASTIC_H
#define {prefix.upper()}_ELASTIC_H
#define {prefix.upper()}_JOINTS {n}
#ifdef __cplusplus
extern "C" {{
#endif
/* Deflections (motor minus link) under torques of the springs. */
void {prefix}_deflection(const double spring[{n}], double deflection[{n}]);
/* Torques of the springs from motion of motors and links; 0 for rigid joints. */
void {prefix}_spring_torque(const double theta[{n}], const double dtheta[{n}], const double q[{n}],
                       const double dq[{n}], double spring[{n}]);
/* Positions of the links from torque and motion of the motors: spring torque = torque - rotor - friction. */
void {prefix}_link_position(const double theta[{n}], const double dtheta[{n}], const double ddtheta[{n}],
                       const double tau[{n}], double q[{n}]);
#ifdef __cplusplus
}}
#endif
#endif
"""
    tables = _tables(elasticity)
    arrays = "\n".join(f"static const double {name}[{n}] = {{{_numbers(x)}}};" for name, x in tables.items())
    source = f"""#include "{prefix}_elastic.h"

/* Compliance 1/K, stiffness, damping, rotor, Coulomb and viscous friction. Rigid joints: compliance, stiffness = 0. */
{arrays}

static double direction(double speed) {{ return (speed > 0.0) - (speed < 0.0); }}

void {prefix}_deflection(const double spring[{n}], double deflection[{n}]) {{
  for (int k = 0; k < {n}; k++) deflection[k] = compliance[k] * spring[k];
}}

void {prefix}_spring_torque(const double theta[{n}], const double dtheta[{n}], const double q[{n}],
                       const double dq[{n}], double spring[{n}]) {{
  for (int k = 0; k < {n}; k++)
    spring[k] = stiffness[k] * (theta[k] - q[k]) + damping[k] * (dtheta[k] - dq[k]);
}}

void {prefix}_link_position(const double theta[{n}], const double dtheta[{n}], const double ddtheta[{n}],
                       const double tau[{n}], double q[{n}]) {{
  for (int k = 0; k < {n}; k++)
    q[k] = theta[k] - compliance[k] * (tau[k] - rotor[k] * ddtheta[k] - viscous[k] * dtheta[k]
                                       - coulomb[k] * direction(dtheta[k]));
}}
"""
    return header, source


def _tables(elasticity: Elasticity) -> dict[str, Array]:
    out = {
        n: np.zeros(elasticity.robot.dof) for n in ("compliance", "stiffness", "damping", "rotor", "coulomb", "viscous")
    }
    for one in elasticity.known:
        k = elasticity.robot.joint_index(one.joint)
        out["compliance"][k], out["stiffness"][k] = one.compliance.value, one.stiffness
        out["damping"][k] = one.damping.value if one.damping is not None and one.damping.low > 0.0 else 0.0
        out["rotor"][k] = one.rotor.value if one.rotor is not None else 0.0
        out["coulomb"][k], out["viscous"][k] = one.friction
    return out


def _numbers(x: Array) -> str:
    return ", ".join(repr(float(v)) for v in x)


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in " -_." else "_" for c in name)


_SPRING = "_spring"
# Attributes of a body that place it in its parent.
_PLACE = ("pos", "quat", "axisangle", "xyaxes", "zaxis", "euler")
# Attributes of a joint that define its axis.
_AXIS = ("type", "axis", "pos", "class", "group")
# MuJoCo requires mass and inertia of every moving body. These values are negligible next to the reflected inertia.
_MASS, _INERTIA = 1e-6, 1e-9


def elastic_to_mjcf(
    elasticity: Elasticity, path: str | os.PathLike[str], source: str | os.PathLike[str] | Model | None = None
) -> tuple[str, ...]:
    """Write the known elastic joints into an MJCF; return a sentence for each omitted element.

    Args:
        elasticity: Elastic joints.
        path: Path of the file.
        source: MJCF to edit, or a model; default: the description of the elasticity if it is an MJCF, else its robot.
    """
    target = Path(path)
    origin = elasticity.source if source is None else source
    if isinstance(origin, Model) or origin is None or not is_mjcf(Path(origin)):
        model = origin if isinstance(origin, Model) else Model.nominal(elasticity.robot)
        if not model.robot.has_inertia and not np.any(model.theta):
            raise ExportError(f"'{model.robot.name}' lacks the inertias that MuJoCo needs; identify a model first.")
        notes = model_to_mjcf(model, target)
        document = Document(target)
    else:
        if target.exists() and target.resolve() == Path(origin).resolve():
            raise ExportError(f"{target}: this is the robot's original description; write to another file.")
        notes, document = (), Document(Path(origin))
    data, more = _edited(document, elasticity)
    write_whole(target, data)
    return (*notes, *more)


def _edited(document: Document, elasticity: Elasticity) -> tuple[bytes, tuple[str, ...]]:
    root = document.root
    if any(e.attributes.get("inertiafromgeom") == "true" for e in root.all("compiler")):
        raise ExportError(
            f'{document.path}: <compiler inertiafromgeom="true"> ignores inertias of rotors without geometry; '
            'set it to "auto" and write the inertias of the bodies.'
        )
    places = mjcf_elements(root)
    parents = {id(child): e for e in root.walk() for child in e.children}
    notes, excluded = [], []
    for one in elasticity.joints:
        if not one.known:
            notes.append(f"Joint '{one.joint}' is exported as rigid, because {one.unknown}.")
            continue
        joint = places.joints.get(one.joint)
        if joint is None:
            raise ExportError(f"{document.path}: there is no joint '{one.joint}'; give the description of this robot.")
        body = places.bodies[places.carriers[one.joint]]
        if len(body.all("joint")) + len(body.all("freejoint")) > 1:
            notes.append(f"Joint '{one.joint}' is exported as rigid, because its body has several joints.")
            continue
        _split(document, body, joint, one)
        above = parents[id(body)]
        if above.tag == "body" and "name" in above.attributes:
            excluded.append((above.attributes["name"], body.attributes["name"]))
    lines = []
    if excluded:  # MuJoCo skips contacts of a body with its parent, which is now the rotor
        lines = ["<contact>", *(f"  {tag('exclude', {'body1': a, 'body2': b})}" for a, b in excluded), "</contact>"]
    frames = root.all("keyframe")
    for element in frames:
        document.remove(element)
    if frames:
        notes.append("Keyframes are left out, because springs add coordinates.")
    head = [f"Elastic joints were identified by Steelyard: {', '.join(x.joint for x in elasticity.known) or 'none'}."]
    document.insert_first(root, [*comment([*head, *notes]).splitlines(), *lines])
    return document.edited(), tuple(notes)


def _split(document: Document, body: Element, joint: Element, one: JointElasticity) -> None:
    """Insert a rotor between a body and its parent."""
    name = body.attributes["name"]
    place = {k: v for k, v in body.attributes.items() if k in (*_PLACE, "childclass")}
    rotor_joint = {**joint.attributes, "name": one.joint, **_numbers_of_rotor(one)}
    spring = {k: v for k, v in joint.attributes.items() if k in _AXIS}
    spring |= {"name": f"{one.joint}{_SPRING}", "limited": "false", "armature": "0", "frictionloss": "0", "ref": "0"}
    spring |= {"stiffness": number(one.stiffness), "damping": number(_damping(one)), "springref": "0"}
    inertial = {"pos": "0 0 0", "mass": number(_MASS), "diaginertia": " ".join([number(_INERTIA)] * 3)}
    indent = document.indent(body)
    lines = [
        tag("body", {"name": f"{one.joint}_rotor", **place}, closed=False),
        f"{indent}  {tag('inertial', inertial)}",
        f"{indent}  {tag('joint', rotor_joint)}",
        indent + tag("body", {k: v for k, v in body.attributes.items() if k not in _PLACE} | {"name": name}, False),
    ]
    document.replace_tag(body, "\n".join(lines))
    document.replace(joint, tag("joint", spring))
    document.insert_after(body, f"\n{indent}</body>")


def _numbers_of_rotor(one: JointElasticity) -> Mapping[str, str]:
    """Return the attributes of the motor's joint; without an estimate the description's values stay."""
    out = {"stiffness": "0"}
    if one.rotor is not None and one.rotor.value > 0.0:
        out["armature"] = number(one.rotor.value)
    coulomb, viscous = one.friction
    if coulomb > 0.0:
        out["frictionloss"] = number(coulomb)
    if viscous > 0.0:
        out["damping"] = number(viscous)
    return out


def _damping(one: JointElasticity) -> float:
    """Return the damping of the spring; 0 unless it is significantly positive."""
    return one.damping.value if one.damping is not None and one.damping.low > 0.0 else 0.0
