"""Writes a model into the original MJCF of its robot: only numbers change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export._bodies import Inertial, inertials_of
from steelyard.export._xml_text import Document, comment, number, numbers, tag
from steelyard.ground.xml import Element, parse_xml
from steelyard.robot.mjcf import MjcfElements, mjcf_elements, read_mjcf_with_loops
from steelyard.robot.robot import FREE_WIDTHS, Robot

# Largest difference between joints of the file and of the model: rounding when a robot is read.
_SAME = 2e-11
# Compiler settings; other values would change the written masses.
_NO_CHANGE = {"inertiafromgeom": "false", "boundmass": "0", "boundinertia": "0", "balanceinertia": "false"}


def is_mjcf(source: Path) -> bool:
    """Whether the file `source` is an MJCF."""
    return source.suffix.lower() == ".xml" and source.is_file() and parse_xml(source).tag == "mujoco"


def edited_mjcf(
    model: Model,
    joints: Sequence[tuple[dict[str, float], dict[str, str]]],
    tendons: Sequence[str],
    source: Path,
    notes: Sequence[str],
) -> tuple[bytes, str]:
    """Return the bytes of an MJCF with the numbers of a model, or the reason why it cannot be edited.

    Args:
        model: Model to write.
        joints: Numbers (SI units) and MuJoCo solver settings of each joint.
        tendons: Lines of the section for drives that move several joints.
        source: Original description of the robot.
        notes: Unsupported parts of the model, for a comment at the head.
    """
    why_not = _obstacle(model, source)
    if why_not:
        return b"", why_not
    document = Document(source)
    places = mjcf_elements(document.root)
    inertials = inertials_of(model)
    for k, link in enumerate(model.robot.links):
        body = places.carriers[link.joint]
        if link.name == body:  # last joint of its body; links between joints of one body have no mass
            _inertial(document, places.bodies[body], inertials[k], places.anchors[link.joint])
        if link.kind in FREE_WIDTHS:
            continue
        leads = model.robot.joints[link.coordinate].name == link.joint
        values, settings = joints[link.coordinate] if leads else (dict.fromkeys(joints[0][0], 0.0), {})
        _joint(document, places, link.joint, link.kind == "revolute", values, settings)
    merged = [e for body in places.welded for e in body.all("inertial")]
    for element in merged:
        document.replace(element, comment(["inertia merged into the body that carries this one"]))
    if tendons:
        document.insert_first(document.root, tendons)
    _settings(document, model.robot)
    head = ["Inertias and joint numbers in this file were identified by Steelyard; the rest is unchanged.", *notes]
    document.insert_first(document.root, comment(head).splitlines())
    return document.edited(), ""


def _obstacle(model: Model, source: Path) -> str:
    """The reason why a source cannot be edited, else ""."""
    root = parse_xml(source)
    if any(element.tag == "include" for element in root.walk()):
        return f"{source.name} includes other files, so a new description is written."
    whole, robot = read_mjcf_with_loops(source), model.robot
    if set(whole.joint_names) != set(robot.joint_names) or set(whole.link_names) != set(robot.link_names):
        return f"{source.name} has other joints than the model, so a new description is written."
    theirs = {link.name: link for link in whole.links}
    places = mjcf_elements(root)
    for link, inertial in zip(robot.links, inertials_of(model), strict=True):
        other = theirs[link.name]
        pairs = ((link.rotation, other.rotation), (link.translation, other.translation), (link.axis, other.axis))
        if link.joint != other.joint or any(np.max(np.abs(a - b)) > _SAME for a, b in pairs):
            return f"Joint '{link.joint}' has another placement in {source.name}, so a new description is written."
        if link.name != places.carriers[link.joint] and not inertial.massless:
            return f"Link '{link.name}' is not a separate body in {source.name}, so a new description is written."
        if "name" not in places.joints[link.joint].attributes:
            return f"{source.name} has joints without a name, so a new description is written."
    return ""


def _inertial(document: Document, body: Element, inertial: Inertial, anchor: np.ndarray) -> None:
    """Write the inertia of a body in its own frame; the joint frame is at `anchor`."""
    i = inertial.tensor
    full = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    place, mass = numbers(inertial.com + anchor), number(inertial.mass)
    text, element = tag("inertial", {"pos": place, "mass": mass, "fullinertia": numbers(full)}), body.find("inertial")
    if element is None:
        document.insert_first(body, [text])
    else:
        document.replace(element, text)


def _joint(
    document: Document, places: MjcfElements, name: str, turns: bool, values: dict[str, float], settings: dict[str, str]
) -> None:
    """Write the numbers of a joint, also zeros, because its default class may have other values."""
    element = places.joints[name]
    # springref is in the angle unit of the file; `springdamper` would override stiffness and damping.
    scale = {"springref": 180.0 / np.pi} if turns and places.degrees else {}
    original = {key: value for key, value in element.attributes.items() if key != "springdamper"}
    written = {key: number(scale.get(key, 1.0) * value) for key, value in values.items()}
    document.replace_tag(
        element, tag("joint", {**original, **written, **settings}, closed=document.span(element).empty)
    )


def _settings(document: Document, robot: Robot) -> None:
    """Set compiler and options so that masses are used as written, with the gravity of the model."""
    root = document.root
    compilers = root.all("compiler")
    for element in compilers:
        _merge(document, element, {k: v for k, v in _NO_CHANGE.items() if k in element.attributes})
    if not any("inertiafromgeom" in element.attributes for element in compilers):
        document.insert_first(root, [tag("compiler", {"inertiafromgeom": "false"})])
    options = [element for element in root.all("option") if "gravity" in element.attributes]
    for element in options:
        if not np.array_equal(element.vector("gravity", 3), robot.gravity):
            _merge(document, element, {"gravity": numbers(robot.gravity)})
    if not options and not np.array_equal(robot.gravity, (0.0, 0.0, -9.81)):
        document.insert_first(root, [tag("option", {"gravity": numbers(robot.gravity)})])


def _merge(document: Document, element: Element, attributes: dict[str, str]) -> None:
    if any(element.attributes.get(key) != value for key, value in attributes.items()):
        empty = document.span(element).empty
        document.replace_tag(element, tag(element.tag, {**element.attributes, **attributes}, closed=empty))
