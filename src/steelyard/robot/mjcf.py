"""Read a robot from MJCF, the XML of MuJoCo.

Joints come in the order of the document, as in MuJoCo. Several joints in one body become a chain with massless links;
bodies without joints are merged into the body that carries them. A link's frame has the orientation of its body and its
origin at the anchor of its joint. Springs, tendons, actuators and gravity compensation are ignored. Meshes are not
opened.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element, parse_xml, shorten
from steelyard.robot._mjcf_document import Defaults, body_inertia, choice, expand_includes, read_compiler
from steelyard.robot._mjcf_loops import ClosingElement, actuated_joints, with_loops
from steelyard.robot._tree import Follower, Tree, couple, cut_cycles, joint_terms
from steelyard.robot.formats import ROBOT_FORMATS, RobotFormat
from steelyard.robot.free import free_coordinates
from steelyard.robot.lock import lock_joints, refuse_loops
from steelyard.robot.robot import FREE_WIDTHS, Joint, JointKind, Link, LinkKind, Robot
from steelyard.robot.spatial import LinkFrame, quaternion_of

_ZERO = (0.0, 0.0, 0.0)
_KINDS: dict[str, LinkKind] = {"hinge": "revolute", "slide": "prismatic", "free": "floating", "ball": "spherical"}
FRICTION = {"viscous": "damping", "coulomb": "frictionloss", "rotor": "armature"}
MACROS = ("replicate", "composite", "flexcomp", "attach", "plugin")


def read_mjcf(path: Path | str) -> Robot:
    """Read the robot of the MJCF file at `path`, fixed to its worldbody; refuse closed loops."""
    return refuse_loops(read_mjcf_with_loops(path))


def read_mjcf_with_loops(path: Path | str) -> Robot:
    """Read the robot of the MJCF file at `path` as a tree; closed loops are listed in `Robot.loops`."""
    return _robot_from_mjcf(parse_xml(path))


def _robot_from_mjcf(root: Element) -> Robot:
    """Convert a parsed MJCF document to a robot."""
    if root.tag != "mujoco":
        raise root.error("is not the <mujoco> that an MJCF file starts with; give a URDF the suffix .urdf.")
    root = expand_includes(root)
    reader = _Reader(root)
    for world in root.all("worldbody"):
        reader.contents(world, LinkFrame(), world.attributes.get("childclass"))
    if not reader.joints:
        raise root.error("has no joint that moves; add a joint to a body.")
    fixed = reader.equalities(root)
    followers, loops = cut_cycles(reader.followers)
    joints, links = couple(reader.tree.links(), reader.joints, followers)
    robot = Robot(
        name=root.attributes.get("model") or Path(root.file).stem,
        joints=joints,
        links=links,
        gravity=_gravity(root),
        nominal_terms=joint_terms(links, len(joints), reader.terms),
        frames=reader.tree.frames,
        source=root.file,
        start={joint.name: reader.start[joint.name] for joint in joints if reader.start.get(joint.name)},
    )
    if loops or reader.closing:
        robot = with_loops(robot, loops, reader.closing)
        robot = replace(robot, actuated=actuated_joints(root, robot, reader.defaults))
    return lock_joints(robot, [n for n in robot.joint_names if n not in fixed], fixed) if fixed else robot


@dataclass(frozen=True, eq=False)
class MjcfElements:
    """The elements of an MJCF document that describe a robot, for programs that change their numbers.

    Args:
        bodies: Elements of bodies by name.
        joints: Elements of joints by name.
        anchors: Anchor of each joint in its body [m].
        carriers: Name of the body that each joint moves.
        welded: Bodies without joints.
        degrees: Whether the angles of the document are in degrees.
    """

    bodies: dict[str, Element]
    joints: dict[str, Element]
    anchors: dict[str, Array]
    carriers: dict[str, str]
    welded: list[Element]
    degrees: bool


def mjcf_elements(root: Element) -> MjcfElements:
    """Collect the elements of the robot in the document `root`; included files are skipped."""
    reader = _Reader(root)
    for world in root.all("worldbody"):
        reader.contents(world, LinkFrame(), world.attributes.get("childclass"))
    return reader.elements


def _gravity(root: Element) -> Array:
    gravity = np.array([0.0, 0.0, -9.81])
    for option in root.all("option"):
        gravity = option.vector("gravity", 3, tuple(gravity))
        if any(flag.attributes.get("gravity") == "disable" for flag in option.all("flag")):
            return np.zeros(3)
    return gravity


class _Reader:
    """Walks the bodies of a document and collects joints, links and joint terms."""

    def __init__(self, root: Element) -> None:
        self.compiler, self.defaults = read_compiler(root), Defaults(root)
        self.tree = Tree()
        self.joints: list[Joint] = []
        self.references: dict[str, float] = {}
        self.followers: dict[str, Follower] = {}
        self.start: dict[str, float] = {}
        self.places: dict[str, LinkFrame] = {"world": LinkFrame()}  # frames of bodies
        self.closing: list[ClosingElement] = []
        self.terms: dict[str, dict[str, float]] = {kind: {} for kind in FRICTION}
        self.all_names = {element.attributes.get("name") for element in root.walk()}
        self.names: dict[str, set[str]] = {"body": set(), "joint": set()}
        self.numbered = {"body": 0, "joint": 0}
        self.elements = MjcfElements({}, {}, {}, {}, [], self.compiler.degrees)

    # ------------------------------------------------------------ bodies

    def contents(self, element: Element, place: LinkFrame, childclass: str | None) -> None:
        """Read everything inside a world, body or frame at `place`."""
        for child in element.children:
            inner = child.attributes.get("childclass", childclass)
            if child.tag in MACROS:
                raise child.error(
                    "is a macro, which is not expanded here; save the compiled model from MuJoCo and read that."
                )
            if child.tag == "body":
                self._body(child, place.at(*self._pose(child)), inner)
            elif child.tag == "frame":
                self.contents(child, place.at(*self._pose(child)), inner)
            elif child.tag == "site" and "name" in child.attributes:
                self.tree.frames[child.attributes["name"]] = place.at(*self._pose(child))

    def _body(self, body: Element, place: LinkFrame, childclass: str | None) -> None:
        name = self._name(body)
        self.elements.bodies[name] = body
        joints, geoms = self._parts(body, np.eye(3), np.zeros(3), childclass)
        for index, (original, joint, rotation, translation) in enumerate(joints):
            last = index == len(joints) - 1
            place = self._read_joint(joint, rotation, translation, place, name if last else None)
            self.elements.joints[self.joints[-1].name] = original
            self.elements.carriers[self.joints[-1].name] = name
        inertia = body_inertia(body, geoms, self.compiler)
        if inertia is not None:
            self.tree.weld(place, inertia)
        self.places[name] = place
        if not joints:
            self.tree.frames[name] = place
            self.elements.welded.append(body)
        self.contents(body, place, childclass)

    def _parts(
        self, element: Element, rotation: Array, translation: Array, childclass: str | None
    ) -> tuple[list[tuple[Element, Element, Array, Array]], list[tuple[Element, Array, Array]]]:
        """Return a body's joints, original and with defaults, and its geoms, each with the pose of its frame."""
        joints: list[tuple[Element, Element, Array, Array]] = []
        geoms: list[tuple[Element, Array, Array]] = []
        for child in element.children:
            if child.tag == "freejoint":  # defaults for joints do not apply to it
                joints.append((child, replace(child, tag="joint", attributes={**child.attributes, "type": "free"}),
                               rotation, translation))  # fmt: skip
            elif child.tag == "joint":
                joints.append((child, self.defaults.apply(child, childclass), rotation, translation))
            elif child.tag == "geom":
                geoms.append((self.defaults.apply(child, childclass), rotation, translation))
            elif child.tag == "frame":
                r, t = self._pose(child)
                inner = child.attributes.get("childclass", childclass)
                more = self._parts(child, rotation @ r, translation + rotation @ t, inner)
                joints += more[0]
                geoms += more[1]
        return joints, geoms

    def _pose(self, element: Element) -> tuple[Array, Array]:
        return self.compiler.rotation(element), element.vector("pos", 3, _ZERO)

    def _name(self, element: Element) -> str:
        """Return the name of a body or joint; unnamed elements get the next unused number."""
        taken = self.names[element.tag]
        name = element.attributes.get("name") or self._number(element.tag, taken)
        if name in taken:
            raise element.error(f"appears twice; give every {element.tag} its own name.")
        taken.add(name)
        return name

    def _number(self, tag: str, taken: set[str]) -> str:
        for k in itertools.count(max(self.numbered[tag], len(taken)) + 1):
            self.numbered[tag] = k
            if (name := f"{tag}{k}") not in self.all_names and name not in taken:
                return name
        raise AssertionError  # counting never ends

    # ------------------------------------------------------------ joints

    def _read_joint(
        self, joint: Element, rotation: Array, translation: Array, place: LinkFrame, body: str | None
    ) -> LinkFrame:
        """Attach one joint at its anchor and return the body's frame behind it (`body` None: massless link)."""
        kind = joint.attributes.get("type", "hinge")
        if kind not in _KINDS:
            raise joint.error(f"is of type '{shorten(kind)}', but MJCF has only {', '.join(_KINDS)}.")
        name = self._name(joint)
        if _KINDS[kind] == "floating":
            return self._free_joint(joint, name, body, place)
        axis = joint.vector("axis", 3, (0.0, 0.0, 1.0))
        length = float(np.linalg.norm(axis))
        if length < 1e-9:
            raise joint.error("has a zero axis; write the direction it turns about or slides along.")
        reference = self._position(joint, joint.number("ref", 0.0))
        anchor = translation + rotation @ joint.vector("pos", 3, _ZERO)
        link = Link(
            name=body or f"{name}_body",
            joint=name,
            kind=_KINDS[kind],
            parent=-1,
            rotation=np.eye(3),
            translation=np.zeros(3),
            axis=rotation @ axis / length,
            coordinate=0,
            offset=-reference,
            inertia=None if body else np.zeros(10),
        )
        self.references[name] = self.start[name] = reference
        self.elements.anchors[name] = anchor
        self.joints.append(Joint(name, "revolute") if link.kind in FREE_WIDTHS else self._limits(joint, name))
        self._note_terms(joint, name, link.kind)
        return self.tree.hang(place.at(np.eye(3), anchor), link).at(np.eye(3), -anchor)

    def _free_joint(self, joint: Element, name: str, body: str | None, place: LinkFrame) -> LinkFrame:
        """Attach a free joint; its position is that of the body in the world, so the body's own pose has no effect."""
        if body is None:
            raise joint.error("is free and shares its body with other joints; a free joint stands alone.")
        self._note_terms(joint, name, "floating")
        self.joints.append(Joint(name, "revolute"))
        self.elements.anchors[name] = np.zeros(3)
        zero, unit = np.zeros(3), np.eye(3)
        pose = [*place.translation, *quaternion_of(place.rotation)[1:]]
        self.start |= dict(zip((j.name for j in free_coordinates(name, "floating")), map(float, pose), strict=True))
        return self.tree.hang(LinkFrame(), Link(body, name, "floating", -1, unit, zero, unit[2], 0))

    def _note_terms(self, joint: Element, name: str, kind: LinkKind) -> None:
        """Read the friction and the armature of a joint; a free one has none."""
        for term, attribute in FRICTION.items():
            value = self._coefficient(joint, attribute)
            if kind not in FREE_WIDTHS:
                self.terms[term][name] = value
            elif value:
                raise joint.error(
                    f"is {joint.attributes['type']} and has {attribute} (perhaps by a default class), which free "
                    f"joints do not support; set it to 0."
                )

    def _position(self, joint: Element, value: float) -> float:
        """Convert a position of a joint to rad or m."""
        return value if joint.attributes.get("type") == "slide" else self.compiler.angle(value)

    def _limits(self, joint: Element, name: str) -> Joint:
        kind: JointKind = "prismatic" if joint.attributes.get("type") == "slide" else "revolute"
        bounds = {}
        for key, switch in (("range", "limited"), ("actuatorfrcrange", "actuatorfrclimited")):
            limited = choice(joint, switch, "auto", ("true", "false", "auto"))
            if limited == "auto" and key in joint.attributes and not self.compiler.autolimits:
                raise joint.error(f'has {key} but neither {switch} nor autolimits; write {switch}="true".')
            if limited == "false" or key not in joint.attributes:
                continue
            lower, upper = joint.vector(key, 2)
            if lower > upper:
                raise joint.error(f"has its {key} from {lower:g} down to {upper:g}; swap the two.")
            bounds[key] = (float(lower), float(upper))
        lower, upper = bounds.get("range", (-np.inf, np.inf))
        if "range" in bounds:
            lower, upper = self._position(joint, lower), self._position(joint, upper)
        effort = max(map(abs, bounds["actuatorfrcrange"])) if "actuatorfrcrange" in bounds else np.inf
        return Joint(name, kind, lower, upper, effort=effort)

    def _coefficient(self, joint: Element, attribute: str) -> float:
        """Return a joint's coefficient; refuse the polynomials that newer MuJoCo accepts for damping."""
        if attribute not in joint.attributes:
            return 0.0
        first, *higher = joint.numbers(attribute)
        if any(higher):
            raise joint.error(
                f"has a polynomial in '{attribute}', which is not supported; write its first coefficient."
            )
        return first

    # ------------------------------------------------------------ equality constraints

    def equalities(self, root: Element) -> dict[str, float]:
        """Collect joints that follow others, and return the locked joints with their positions."""
        fixed: dict[str, float] = {}
        for section in root.all("equality"):
            for child in section.children:
                element = self.defaults.apply(replace(child, tag="equality"), None)
                if choice(element, "active", "true", ("true", "false")) == "false":
                    continue
                if child.tag in ("connect", "weld"):
                    constraint = replace(element, tag=child.tag)
                    ends = (self._end(constraint, "1"), self._end(constraint, "2"))
                    self.closing.append(ClosingElement(str(child.error("closes a loop")), constraint, ends))
                elif child.tag != "joint":
                    raise child.error("closes a loop or couples tendons, which is not supported; remove it.")
                else:
                    self._equality(replace(element, tag="joint"), fixed)
        return fixed

    def _end(self, element: Element, end: str) -> LinkFrame:
        """Return the frame of the body or site at one end of a constraint, "1" or "2"."""
        kind = "site" if f"site{end}" in element.attributes else "body"
        if kind == "body" and end == "2" and "body2" not in element.attributes:
            return LinkFrame()
        name = element.string(f"{kind}{end}")
        known = self.tree.frames if kind == "site" else self.places
        if name not in known:
            raise element.error(f"names {kind} '{shorten(name)}', which does not exist; name an existing one.")
        return known[name]

    def _equality(self, element: Element, fixed: dict[str, float]) -> None:
        coefficients = element.numbers("polycoef") if "polycoef" in element.attributes else [0.0, 1.0]
        constant, slope, *higher = [*coefficients, 0.0, 0.0][: max(2, len(coefficients))]
        name = element.string("joint1")
        if len(coefficients) > 5 or any(higher):
            both = [name, element.attributes.get("joint2", "")]
            if any(one not in self.references for one in both):
                raise element.error(
                    "has a polycoef of higher order, which needs two hinge or slide joints; name joint2, or write a "
                    "straight line."
                )
            place = str(element.error("has a polycoef of higher order, not a straight line"))
            self.closing.append(ClosingElement(place, element, joints=(both[0], both[1]), curve=tuple(coefficients)))
            return
        if name not in self.references:
            raise element.error(f"names joint '{shorten(name)}', which does not exist; name a hinge or slide joint.")
        if name in self.followers or name in fixed:
            raise element.error(f"constrains joint '{name}' a second time; keep one of the two constraints.")
        if "joint2" not in element.attributes:
            fixed[name] = self.references[name] + constant
            return
        self.followers[name] = Follower(element.string("joint2"), slope, constant, element.error)


ROBOT_FORMATS.register("mjcf")(
    RobotFormat((".xml",), "MJCF, the XML of MuJoCo", read_mjcf_with_loops, "mujoco", _robot_from_mjcf)
)
