"""`model_to_urdf`: exports a model as URDF, by editing the original file or by writing a new one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import Inertial, displaced, impossible_links, inertials_of
from steelyard.export._simple_terms import SimpleTerms, simple_terms
from steelyard.export._urdf_new import (
    dynamics_tag,
    gravity_is_standard,
    inertial_lines,
    joint_end,
    joint_origin,
    mujoco_lines,
    new_urdf,
    origin_tag,
)
from steelyard.export._xml_text import Document, comment, numbers, tag
from steelyard.export.capability import CAPABILITIES
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.ground.xml import Element, parse_xml
from steelyard.robot.free import floating_urdf
from steelyard.robot.lock import lock_joints
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import LinkFrame
from steelyard.robot.urdf import robot_from_urdf

# Placements with larger differences between file and model are rewritten. `load_robot` snaps entries of rotations that
# are this close to 0 and ±1.
_SNAPPED = 2e-11
_MOVED = 1e-12  # [m]


class _Editor:
    """Writes a model into the original URDF of its robot; the rest of the file is unchanged."""

    def __init__(self, model: Model, terms: SimpleTerms, source: Path, locked: Mapping[str, float]) -> None:
        self.model, self.terms = model, terms
        self.document = Document(source)
        root = self.document.root
        # The root link of the file may float in the model alone (`load_robot(…, floating=True)`).
        stated = {element.attributes.get("name") for element in root.all("joint")}
        free = [k for k in model.robot.links if k.kind == "floating" and k.parent < 0 and k.joint not in stated]
        self.floating = free[0].name if free else ""
        whole = robot_from_urdf(floating_urdf(root) if free else root)
        _check_same(model.robot, whole, locked, source)
        self.links = {element.attributes["name"]: element for element in root.all("link")}
        # Joints that close a loop are not part of the tree; their elements remain unchanged.
        closing = {name for loop in whole.loops for name in loop.cut}
        named = {element.attributes["name"]: element for element in root.all("joint")}
        self.joints = {name: element for name, element in named.items() if name not in closing}
        self.wanted = {link.joint: link for link in model.robot.links}
        self.inertials = dict(zip(model.robot.link_names, inertials_of(model), strict=True))
        # Joints that move in the file but not in the model, with their fixed value.
        at = {name: float(value) for name, value in locked.items()}
        self.fixed = {
            link.joint: (link, link.ratio * at.get(whole.joints[link.coordinate].name, 0.0) + link.offset)
            for link in whole.links
            if link.joint not in self.wanted
        }
        self.merged: list[str] = []
        self.replaced = 0

    def edit(self, target: Path, notes: Sequence[str]) -> tuple[bytes, list[str]]:
        """Return the bytes of the edited file and additional notes."""
        self._walk()
        more = []
        if self.fixed:
            more.append(f"Fixed here, because the model does not move them: {', '.join(sorted(self.fixed))}.")
        if self.replaced:
            more.append(f"{self.replaced} joint placement(s) are replaced by those of the model.")
        if self._relative_meshes() and target.resolve().parent != self.document.path.resolve().parent:
            more.append("Mesh file names are relative to the folder of the original description.")
        self._mujoco()
        self._head([*notes, *more])  # the last insertion comes first in the file
        return self.document.edited(), more

    # ------------------------------------------------------------ the tree

    def _walk(self) -> None:
        """Visit links from the root to the leaves, with their pose in the joint frame of the moving link below them."""
        children: dict[str, list[Element]] = {}
        for joint in self.joints.values():
            children.setdefault(joint_end(joint, "parent"), []).append(joint)
        (base,) = set(self.links) - {joint_end(joint, "child") for joint in self.joints.values()}
        names = self.model.robot.link_names
        stack = [(base, LinkFrame())]
        if self.floating == base:
            self._inertial(self.links[base], self.inertials[base])
            stack = [(base, LinkFrame(names.index(base)))]
        while stack:
            name, place = stack.pop()
            for joint in children.get(name, []):
                child, wanted = joint_end(joint, "child"), self.wanted.get(joint.attributes["name"])
                if wanted is None:
                    where = self._fixed_joint(joint, place)
                    if where.host >= 0:
                        self._merge(self.links[child], names[where.host])
                else:
                    self._moving_joint(joint, wanted, place)
                    self._inertial(self.links[child], self.inertials[wanted.name])
                    where = LinkFrame(names.index(wanted.name))
                stack.append((child, where))

    def _fixed_joint(self, joint: Element, place: LinkFrame) -> LinkFrame:
        rotation, translation = joint_origin(joint)
        name = joint.attributes["name"]
        if name in self.fixed:
            link, value = self.fixed[name]
            self._retype(joint)
            if value != 0.0:
                turn, slide = displaced(link.kind, link.axis, value)
                rotation, translation = rotation @ turn, translation + rotation @ slide
                self._set_origin(joint, rotation, translation)
        return place.at(rotation, translation)

    def _moving_joint(self, joint: Element, wanted: Link, place: LinkFrame) -> None:
        """Write friction, and the placement if it differs; fixed links in between are kept."""
        rotation, translation = joint_origin(joint)
        pose = place.at(rotation, translation)
        turned = float(np.max(np.abs(pose.rotation - wanted.rotation)))
        if turned > _SNAPPED or float(np.max(np.abs(pose.translation - wanted.translation))) > _MOVED:
            back = place.rotation.T
            self._set_origin(joint, back @ wanted.rotation, back @ (wanted.translation - place.translation))
            self.replaced += 1
        axis = joint.find("axis")
        current = np.array([1.0, 0.0, 0.0]) if axis is None else axis.vector("xyz", 3, (1.0, 0.0, 0.0))
        if np.max(np.abs(current / np.linalg.norm(current) - wanted.axis)) > _SNAPPED:
            self._put(joint, axis, tag("axis", {"xyz": numbers(wanted.axis)}))
        self._dynamics(joint, wanted)

    # ------------------------------------------------------------ single elements

    def _put(self, owner: Element, element: Element | None, text: str) -> None:
        if element is None:
            self.document.insert_first(owner, [text])
        else:
            self.document.replace(element, text)

    def _set_origin(self, joint: Element, rotation: Array, translation: Array) -> None:
        self._put(joint, joint.find("origin"), origin_tag(rotation, translation))

    def _retype(self, joint: Element) -> None:
        """Make a joint fixed, and remove the elements that a fixed joint cannot have."""
        before = self.document.start_tag(joint)
        after = re.sub(r"""(?<=\s)type\s*=\s*("[^"]*"|'[^']*')""", 'type="fixed"', before, count=1)
        self.document.replace_tag(joint, after)
        for name in ("mimic", "limit", "dynamics", "axis"):
            for element in joint.all(name):
                self.document.remove(element)

    def _dynamics(self, joint: Element, wanted: Link) -> None:
        """Write the friction of a coordinate at its leading joint; mimic joints get none."""
        robot, element = self.model.robot, joint.find("dynamics")
        leads = robot.joints[wanted.coordinate].name == wanted.joint
        damping, friction = (
            (float(x[wanted.coordinate]) if leads else 0.0) for x in (self.terms.damping, self.terms.friction)
        )
        if element is None and not damping and not friction:
            return
        others = {} if element is None else element.attributes
        self._put(joint, element, dynamics_tag(damping, friction, others))

    def _inertial(self, link: Element, inertial: Inertial) -> None:
        lines, element = inertial_lines(inertial), link.find("inertial")
        if element is None:
            self.document.insert_first(link, lines)
        else:
            self.document.replace(element, f"\n{self.document.indent(element)}".join(lines))

    def _merge(self, link: Element, host: str) -> None:
        """Remove the inertia of a link that is fixed to a moving one, whose inertia includes it."""
        for element in link.all("inertial"):
            self.document.replace(element, comment([f"inertia merged into link '{host}'"]))
            self.merged.append(link.attributes["name"])

    def _head(self, notes: Sequence[str]) -> None:
        gravity = numbers(self.model.robot.gravity)
        lines = [
            "Inertias and joint friction in this file were identified by Steelyard; the rest is unchanged.",
            f"The model is valid for gravity {gravity} m/s2 in the root link.",
            *notes,
        ]
        if self.merged:
            lines.append("Links fixed to a moving link have no inertia; that of the moving link includes it.")
        self.document.insert_first(self.document.root, comment(lines).splitlines())

    def _mujoco(self) -> None:
        """Set `inertiafromgeom` to false; otherwise MuJoCo computes masses for links without inertia."""
        robot, element = self.model.robot, self.document.root.find("mujoco")
        if element is None:
            self.document.insert_first(self.document.root, mujoco_lines(robot))
            return
        settings = {"compiler": {"inertiafromgeom": "false"}}
        if not gravity_is_standard(robot.gravity):
            settings["option"] = {"gravity": numbers(robot.gravity)}
        missing = []
        for name, attributes in settings.items():
            existing = element.find(name)
            if existing is None:
                missing.append(tag(name, attributes))
            else:
                empty = self.document.span(existing).empty
                self.document.replace_tag(existing, tag(name, {**existing.attributes, **attributes}, closed=empty))
        if missing:
            self.document.insert_first(element, missing)

    def _relative_meshes(self) -> bool:
        names = [e.attributes.get("filename", "") for e in self.document.root.walk() if e.tag in ("mesh", "texture")]
        return any(name and "://" not in name and not name.startswith("/") for name in names)


def _check_same(robot: Robot, whole: Robot, locked: Mapping[str, float], source: Path) -> None:
    """Check that model and file have the same robot, except locked joints, gravity, order and small corrections."""
    unknown = [name for name in robot.joint_names if name not in whole.joint_names]
    if unknown:
        raise ExportError(f"{source}: has no movable joint '{unknown[0]}'; give the original description of the robot.")
    others = {name: value for name, value in locked.items() if name not in robot.joint_names}
    theirs = {link.name: link for link in lock_joints(whole, robot.joint_names, others).links}
    names = list(theirs)
    if set(names) != set(robot.link_names):
        other = sorted(set(names) ^ set(robot.link_names))[0]
        raise ExportError(
            f"{source}: link '{other}' is only in one of file and model; give the original description of the robot."
        )
    for link in robot.links:
        other_link = theirs[link.name]
        parents = [robot.links[link.parent].name if link.parent >= 0 else ""]
        parents += [names[other_link.parent] if other_link.parent >= 0 else ""]
        same = all(getattr(link, x) == getattr(other_link, x) for x in ("joint", "kind", "ratio", "offset"))
        if not same or parents[0] != parents[1]:
            raise ExportError(
                f"{source}: joint '{link.joint}' differs from the model; give the original description of the robot."
            )


def model_to_urdf(
    model: Model,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    locked: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Write a model as URDF; return one sentence for each part that the file leaves out or approximates.

    With an original URDF, only the inertials of moving links and of links fixed to them, the <dynamics> of joints, and
    placements that differ from the model change. Otherwise a new file is written. Locked joints become fixed. URDF does
    not support rotors, coupled friction and gravity: `model_to_sidecar` writes them.

    Args:
        model: Model to write.
        path: Path of the file.
        source: Original URDF of the robot, if any.
        locked: Positions of locked joints [rad or m]. They affect only the appearance, because the placements of moving
            joints come from the model.
    """
    target = Path(path)
    terms = simple_terms(model, CAPABILITIES["urdf"].numbers)
    notes = list(terms.missing)
    impossible = impossible_links(model)
    if impossible:
        notes.append(f"The inertia of {', '.join(impossible)} is physically impossible; MuJoCo will refuse it.")
    if source is not None and _is_urdf(Path(source)):
        origin = Path(source)
        if target.exists() and target.resolve() == origin.resolve():
            raise ExportError(f"{target}: this is the robot's original description; write the model to another file.")
        data, more = _Editor(model, terms, origin, locked or {}).edit(target, notes)
        write_whole(target, data)
        return (*notes, *more)
    write_whole(target, new_urdf(model, terms, notes))
    return tuple(notes)


def _is_urdf(source: Path) -> bool:
    suffix = source.suffix.lower()
    if suffix == ".xml":
        return source.exists() and parse_xml(source).tag == "robot"
    return suffix == ".urdf"
