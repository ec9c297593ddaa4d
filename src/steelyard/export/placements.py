"""Write a robot with corrected joint placements into its original description: only these numbers change."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.errors import ExportError
from steelyard.export._urdf_new import joint_end, joint_origin, origin_tag
from steelyard.export._xml_text import Document, comment, number, numbers, tag
from steelyard.ground.xml import Element, parse_xml
from steelyard.robot.mjcf import mjcf_elements, read_mjcf_with_loops
from steelyard.robot.robot import UNLIMITED, Link, Robot
from steelyard.robot.spatial import LinkFrame, quaternion_of
from steelyard.robot.urdf import robot_from_urdf

_HEAD = "Joint placements in this file were calibrated by Steelyard; the rest is unchanged."
_EXACT = "The small angles count: load it with --snap 0."


def placed_urdf(robot: Robot, nominal: Robot, source: Path) -> bytes:
    """Return the bytes of a URDF whose joint origins are those of a robot.

    Args:
        robot: Robot with corrected placements.
        nominal: The robot as described in the file; joints with equal placements keep their text.
        source: Original URDF.
    """
    document = Document(source)
    root = document.root
    robot_from_urdf(root)  # refuses a document without a robot
    changed = _changed(robot, nominal)
    indices = {link.joint: k for k, link in enumerate(robot.links)}
    children: dict[str, list[Element]] = {}
    for joint in root.all("joint"):
        children.setdefault(joint_end(joint, "parent"), []).append(joint)
    names = {element.attributes["name"] for element in root.all("link")}
    (base,) = names - {joint_end(joint, "child") for joint in root.all("joint")}
    stack = [(base, LinkFrame())]
    missing = set(changed)
    while stack:
        name, place = stack.pop()
        for joint in children.get(name, []):
            own = joint.attributes["name"]
            rotation, translation = joint_origin(joint)
            if own in changed:
                link = changed[own]
                back = place.rotation.T
                text = origin_tag(back @ link.rotation, back @ (link.translation - place.translation))
                element = joint.find("origin")
                if element is None:
                    document.insert_first(joint, [text])
                else:
                    document.replace(element, text)
                missing.discard(own)
            where = LinkFrame(indices[own]) if own in indices else place.at(rotation, translation)
            stack.append((joint_end(joint, "child"), where))
    _refuse_missing(missing, source)
    document.insert_first(root, comment([_HEAD, _EXACT]).splitlines())
    return document.edited()


def placed_mjcf(robot: Robot, nominal: Robot, source: Path) -> bytes:
    """Return the bytes of an MJCF with its bodies at the joints of a robot.

    An MJCF joint has a position and an axis, but not an orientation, so a correction rotates the body of the joint.
    Bodies with several joints cannot be corrected like this.

    Args:
        robot: Robot with corrected placements.
        nominal: The robot as described in the file.
        source: Original MJCF.
    """
    document = Document(source)
    if any(element.tag == "include" for element in document.root.walk()):
        raise ExportError(f"{source}: includes other files, which are not edited; save it as one file with MuJoCo.")
    read_mjcf_with_loops(source)
    places = mjcf_elements(document.root)
    changed = _changed(robot, nominal)
    carriers = list(places.carriers.values())
    for name in changed:
        if name not in places.carriers or carriers.count(places.carriers[name]) > 1:
            raise ExportError(f"{source}: joint '{name}' shares its body with others; give each joint a separate body.")
    for own, link in changed.items():
        old = next(k for k in nominal.links if k.joint == own)
        body = places.bodies[places.carriers[own]]
        anchor = places.anchors[own]
        # The origin of the body's frame is −anchor in its joint frame, here and in the parent.
        parent = nominal.links[old.parent].joint if old.parent >= 0 else None
        above = places.anchors[parent] if parent in places.anchors else np.zeros(3)
        between = _between(document.root, body, places.carriers.get(parent or "", ""), places.welded)
        if between:
            raise ExportError(f"{source}: body '{between}' stands between joints; merge it with its parent first.")
        position = link.translation + above - link.rotation @ anchor
        others = {k: v for k, v in body.attributes.items() if k not in _POSE}
        attributes = {**others, "pos": numbers(position), "quat": numbers(quaternion_of(link.rotation))}
        document.replace_tag(body, tag("body", attributes, closed=document.span(body).empty))
    document.insert_first(document.root, comment([_HEAD, _EXACT]).splitlines())
    return document.edited()


_POSE = ("pos", "quat", "axisangle", "euler", "xyaxes", "zaxis")


def _between(root: Element, body: Element, above: str, welded: list[Element]) -> str:
    """Name of a welded body or frame between a body and the next one above that moves; "" if none."""
    for element in root.walk():
        if body in element.children:
            if element.tag == "worldbody" or (element.attributes.get("name", "") == above and element not in welded):
                return ""
            return element.attributes.get("name", element.tag)
    return ""


def plain_urdf(robot: Robot) -> str:
    """Return the text of a new URDF with the joints of a `robot`, and its inertias where they are known."""
    from steelyard.export._bodies import Inertial
    from steelyard.export._urdf_new import inertial_lines

    base = "base"
    while base in robot.link_names:
        base += "_"
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment([_HEAD, _EXACT])]
    lines += [tag("robot", {"name": robot.name}, closed=False), f"  {tag('link', {'name': base})}"]
    for link in robot.links:
        lines.append(f"  {tag('link', {'name': link.name}, closed=False)}")
        if link.inertia is not None and link.inertia[0] > 0.0:
            from steelyard.robot.spatial import inertia_matrix, move_parameters, skew

            p = move_parameters(link.inertia, link.frame_rotation, link.frame_translation)
            com = p[1:4] / p[0]
            lines += [
                f"    {x}"
                for x in inertial_lines(Inertial(p[0], com, inertia_matrix(p) + p[0] * skew(com) @ skew(com)))
            ]
        lines.append("  </link>")
    for link in robot.links:
        joint = robot.joints[link.coordinate]
        limits = {"lower": joint.lower, "upper": joint.upper, "velocity": joint.velocity, "effort": joint.effort}
        clipped = {key: number(float(np.clip(x, -UNLIMITED, UNLIMITED))) for key, x in limits.items()}
        lines += [
            f"  {tag('joint', {'name': link.joint, 'type': link.kind}, closed=False)}",
            f"    {origin_tag(link.rotation, link.translation)}",
            f"    {tag('parent', {'link': robot.links[link.parent].name if link.parent >= 0 else base})}",
            f"    {tag('child', {'link': link.name})}",
            f"    {tag('axis', {'xyz': numbers(link.axis)})}",
            f"    {tag('limit', clipped)}",
        ]
        if joint.name != link.joint:
            follows = {"joint": joint.name, "multiplier": number(link.ratio), "offset": number(link.offset)}
            lines.append(f"    {tag('mimic', follows)}")
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def _changed(robot: Robot, nominal: Robot) -> dict[str, Link]:
    pairs = zip(robot.links, nominal.links, strict=True)
    return {
        new.joint: new
        for new, old in pairs
        if np.any(new.rotation != old.rotation) or np.any(new.translation != old.translation)
    }


def _refuse_missing(missing: set[str], source: Path) -> None:
    if missing:
        raise ExportError(f"{source}: has no joint '{sorted(missing)[0]}'; give the original description of the robot.")


def description_format(source: Path) -> str:
    """Return the format of a description (`source`) that can be edited: "urdf" or "mjcf"; "" for others."""
    if source.suffix.lower() == ".urdf":
        return "urdf"
    if source.suffix.lower() == ".xml" and source.is_file():
        return {"robot": "urdf", "mujoco": "mjcf"}.get(parse_xml(source).tag, "")
    return ""
