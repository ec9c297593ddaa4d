"""Read a robot from URDF, the XML of ROS.

The order of the joints is that of Pinocchio: depth first from the root, siblings (also fixed ones) by joint name. Fixed
joints are merged into their parent, joints with <mimic> follow their leader. Free joints have the types floating,
planar and spherical (also called ball). Meshes are not opened.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element, parse_xml, shorten
from steelyard.robot._tree import Follower, Tree, couple, cut_cycles, joint_terms, joints_between
from steelyard.robot.formats import ROBOT_FORMATS, RobotFormat
from steelyard.robot.lock import refuse_loops
from steelyard.robot.loop_constraints import CLOSINGS, FramePair, unlocked_loops
from steelyard.robot.robot import FREE_WIDTHS, Joint, JointKind, Link, LinkKind, Loop, Robot
from steelyard.robot.spatial import LinkFrame, move_parameters, parameters_from_com, rotation_from_rpy, rotation_from_z

MOVING: dict[str, LinkKind] = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
    "floating": "floating", "planar": "planar", "spherical": "spherical", "ball": "spherical",
}  # fmt: skip


def read_urdf(path: Path | str) -> Robot:
    """Read the robot of the URDF file at `path`, fixed to its root link; refuse closed loops.

    Links welded to the root are dropped. A moving link has unknown inertia (None) if neither it nor a link welded to it
    has an <inertial>.
    """
    return refuse_loops(read_urdf_with_loops(path))


def read_urdf_with_loops(path: Path | str) -> Robot:
    """Read the robot of the URDF file at `path` as a tree; closed loops are listed in `Robot.loops`."""
    if Path(path).suffix.lower() == ".xacro":
        raise RobotError(f"{path}: this is a xacro file; run `xacro {Path(path).name} > robot.urdf` and read that.")
    return robot_from_urdf(parse_xml(path))


def robot_from_urdf(root: Element) -> Robot:
    """Convert a parsed URDF document `root` to a robot; closed loops are listed in `Robot.loops`."""
    _check_document(root)
    links, joints = _by_name(root, "link"), _by_name(root, "joint")
    parents = _parent_joints(links, joints)
    base = _root_link(root, links, parents)
    parent_joint, closing = _tree_joints(base, parents)
    for joint in closing:
        del joints[joint.attributes["name"]]
    inertias = {name: _inertia(link) for name, link in links.items()}
    children: dict[str, list[str]] = {name: [] for name in links}
    for name in sorted(joints, reverse=True):  # reversed, because the walk takes the last one first
        children[_end(joints[name], "parent")].append(_end(joints[name], "child"))

    tree = Tree()
    moving: list[Joint] = []
    followers: dict[str, Follower] = {}
    friction: dict[str, dict[str, float]] = {"viscous": {}, "coulomb": {}}
    visited = set()
    stack = [(base, LinkFrame())]
    while stack:
        name, place = stack.pop()
        visited.add(name)
        if name != base:
            joint = parent_joint[name]
            place = place.at(*_origin(joint))
            if joint.attributes["type"] in MOVING:
                place = tree.hang(place, _link(joint, name))
                moving.append(_coordinate(joint))
                _note_mimic(joint, followers)
                _note_friction(joint, friction)
        tree.frames[name] = place
        inertia = inertias[name]
        if inertia is not None:
            tree.weld(place, inertia)
        stack.extend((child, place) for child in children[name])

    for name in sorted(set(links) - visited):
        raise parent_joint[name].error(f"closes a loop through link '{name}'; cut the loop at one joint.")
    if not moving:
        raise root.error(f"has no joint that moves; a robot needs at least one of {', '.join(MOVING)}.")
    followers, loops = cut_cycles(followers)
    coordinates, final = couple(tree.links(), moving, followers)
    for joint in closing:
        ends = (tree.frames[_end(joint, "parent")].at(*_origin(joint)), tree.frames[_end(joint, "child")])
        name, text = joint.attributes["name"], f"gives link '{_end(joint, 'child')}' a second parent and closes a loop"
        between = joints_between(final, coordinates, *(end.host for end in ends))
        loops.append(Loop(str(joint.error(text)), between, (name,), name, _closing_pair(joint, *ends)))
    return Robot(
        name=root.attributes.get("name") or Path(root.file).stem,
        joints=coordinates,
        links=final,
        nominal_terms=joint_terms(final, len(coordinates), friction),
        frames=_fixed_frames(tree, final),
        source=root.file,
        loops=unlocked_loops(loops, [joint.name for joint in coordinates]),
    )


def _closing_pair(joint: Element, first: LinkFrame, second: LinkFrame) -> FramePair | None:
    """Return the constraint of a joint that closes a loop; None if it is coupled to another joint."""
    kind = MOVING.get(joint.attributes["type"], "fixed")
    names = {"fixed": "pose", "revolute": "hinge", "prismatic": "slider", "spherical": "point", "planar": "plane"}
    if joint.find("mimic") is not None or kind not in names:
        return None
    turn = np.eye(3) if kind in ("fixed", "spherical") else rotation_from_z(_link(joint, "").axis)
    return FramePair(first.at(turn, np.zeros(3)), second.at(turn, np.zeros(3)), CLOSINGS[names[kind]])


def _fixed_frames(tree: Tree, links: Sequence[Link]) -> dict[str, LinkFrame]:
    """Return the links that were merged into others; they remain as frames."""
    moving = {link.name for link in links}
    return {name: place for name, place in tree.frames.items() if name not in moving}


# -------------------------------------------------------------------- the document and its tree


def _check_document(root: Element) -> None:
    if root.tag == "mujoco":
        raise root.error("opens a MuJoCo file, not a URDF; give it the suffix .xml.")
    if root.tag != "robot":
        raise root.error("is not the <robot> element of a URDF; convert the file to URDF or MJCF.")
    for element in root.walk():
        if element.tag.startswith("xacro:") or any("${" in v or "$(" in v for v in element.attributes.values()):
            raise element.error("is unexpanded xacro; run `xacro` on the file first and read its output.")
        if element.tag in ("mesh", "texture") and "filename" in element.attributes:
            _check_filename(element)


def _check_filename(element: Element) -> None:
    """Refuse a path outside its package or the folder of the URDF, since other programs will open it."""
    filename = element.attributes["filename"]
    scheme, separator, path = filename.replace("\\", "/").rpartition("://")
    if separator:
        path = unquote(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." not in parts:
        return
    if separator and scheme != "file":
        climbs = parts[0] == ".." or posixpath.normpath("/".join(parts[1:])).startswith("..")
    elif path.startswith("/"):
        folder = Path(element.file).absolute().parent
        climbs = not Path(posixpath.normpath(path)).is_relative_to(folder)
    else:
        climbs = posixpath.normpath(path).startswith("..")
    if climbs:
        raise element.error(
            f"has the filename '{shorten(filename)}', which climbs out of its folder; "
            f"move the file next to the URDF or write it as package://name/path."
        )


def _by_name(root: Element, tag: str) -> dict[str, Element]:
    out: dict[str, Element] = {}
    for element in root.all(tag):
        name = element.string("name")
        if name in out:
            raise element.error(f"appears twice (first in line {out[name].line}); give every {tag} its own name.")
        out[name] = element
    return out


def _end(joint: Element, tag: str) -> str:
    end = joint.find(tag)
    if end is None:
        raise joint.error(f'has no <{tag}>; add <{tag} link="…"/>.')
    return end.string("link")


def _parent_joints(links: dict[str, Element], joints: dict[str, Element]) -> dict[str, list[Element]]:
    """Return the joints above every link but the root; more than one if the link closes a loop."""
    out: dict[str, list[Element]] = {}
    for joint in joints.values():
        kind = joint.string("type")
        if kind not in MOVING and kind != "fixed":
            known = ", ".join(MOVING)
            raise joint.error(
                f"is of type '{shorten(kind)}', but only {known} and fixed are supported; use one or several of those."
            )
        for tag in ("parent", "child"):
            if _end(joint, tag) not in links:
                raise joint.error(f"has the {tag} link '{shorten(_end(joint, tag))}', which does not exist; define it.")
        out.setdefault(_end(joint, "child"), []).append(joint)
    return out


def _tree_joints(base: str, parents: dict[str, list[Element]]) -> tuple[dict[str, Element], list[Element]]:
    """Return the joint by which a walk from the root first reaches each link, and the other joints, which close
    loops.
    """
    below: dict[str, list[Element]] = {}
    for joint in (joint for some in parents.values() for joint in some):
        below.setdefault(_end(joint, "parent"), []).append(joint)
    chosen: dict[str, Element] = {}
    walk = [base]
    for link in walk:  # grows while it is walked
        for joint in below.get(link, ()):
            child = _end(joint, "child")
            if child != base and child not in chosen:
                chosen[child] = joint
                walk.append(child)
    chosen = {child: chosen.get(child, some[-1]) for child, some in parents.items()}  # unreached links: refused later
    return chosen, [joint for child, some in parents.items() for joint in some if joint is not chosen[child]]


def _root_link(root: Element, links: dict[str, Element], parent_joint: dict[str, list[Element]]) -> str:
    if not links:
        raise root.error("has no link; add links and joints.")
    roots = [name for name in links if name not in parent_joint]
    if not roots:
        raise root.error(
            "has no root link because every link has a parent: the joints form a loop; cut it at one joint."
        )
    if len(roots) > 1:
        raise links[roots[1]].error(f"is a second root next to link '{roots[0]}'; connect the two with a joint.")
    return roots[0]


# -------------------------------------------------------------------- one element at a time


def _origin(element: Element) -> tuple[Array, Array]:
    origin = element.find("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    zero = (0.0, 0.0, 0.0)
    return rotation_from_rpy(*origin.vector("rpy", 3, zero)), origin.vector("xyz", 3, zero)


def _inertia(link: Element) -> Array | None:
    """Read the ten parameters of a link in its own frame."""
    inertial = link.find("inertial")
    if inertial is None:
        return None
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass is None or tensor is None:
        raise inertial.error("needs both <mass> and <inertia>; add the missing one or remove the <inertial>.")
    m = mass.number("value")
    if m < 0.0:
        raise mass.error(f"is negative ({m:g} kg); write the true mass, or 0.")
    xx, yy, zz = (tensor.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (tensor.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    with np.errstate(over="ignore", invalid="ignore"):
        about_com = parameters_from_com(m, np.zeros(3), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        parameters = move_parameters(about_com, *_origin(inertial))
    if not np.all(np.isfinite(parameters)):
        raise inertial.error("is so large that it overflows; write it in kg, m and kg m².")
    return parameters


def _link(joint: Element, name: str) -> Link:
    element = joint.find("axis")
    axis = np.array([1.0, 0.0, 0.0]) if element is None else element.vector("xyz", 3, (1.0, 0.0, 0.0))
    length = float(np.linalg.norm(axis))
    if element is not None and length < 1e-9:
        raise element.error("is zero; write the direction of the joint axis.")
    kind = MOVING[joint.attributes["type"]]
    return Link(name, joint.attributes["name"], kind, -1, np.eye(3), np.zeros(3), axis / length, coordinate=0)


def _coordinate(joint: Element) -> Joint:
    """Read a joint with its limits; missing limits are infinite, as are positions of a continuous joint."""
    name, moving = joint.attributes["name"], MOVING[joint.attributes["type"]]
    limit = joint.find("limit")
    kind: JointKind = "prismatic" if moving == "prismatic" else "revolute"
    if limit is None or moving in FREE_WIDTHS:
        return Joint(name, kind)
    velocity, effort = (limit.number(key, np.inf, infinite=True) for key in ("velocity", "effort"))
    for key, value in (("velocity", velocity), ("effort", effort)):
        if value < 0.0:
            raise limit.error(f"has a negative {key} ({value:g}); write its magnitude.")
    if joint.attributes["type"] == "continuous":
        return Joint(name, kind, velocity=velocity, effort=effort)
    # URDF's default for a missing bound is 0; without both bounds the range is unknown.
    missing = not {"lower", "upper"} & set(limit.attributes)
    lower = limit.number("lower", -np.inf if missing else 0.0, infinite=True)
    upper = limit.number("upper", np.inf if missing else 0.0, infinite=True)
    if lower > upper:
        raise limit.error(f"has its lower bound {lower:g} above its upper bound {upper:g}; swap them.")
    return Joint(name, kind, lower, upper, velocity, effort)


def _note_mimic(joint: Element, followers: dict[str, Follower]) -> None:
    mimic = joint.find("mimic")
    if mimic is not None:
        if MOVING[joint.attributes["type"]] in FREE_WIDTHS:
            raise mimic.error("couples a free joint, which cannot follow another; remove it.")
        followers[joint.attributes["name"]] = Follower(
            mimic.string("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.error
        )


def _note_friction(joint: Element, friction: dict[str, dict[str, float]]) -> None:
    dynamics = joint.find("dynamics")
    if dynamics is not None and MOVING[joint.attributes["type"]] not in FREE_WIDTHS:
        for kind, attribute in (("viscous", "damping"), ("coulomb", "friction")):
            friction[kind][joint.attributes["name"]] = dynamics.number(attribute, 0.0)


ROBOT_FORMATS.register("urdf")(
    RobotFormat((".urdf", ".xacro", ".xml"), "URDF, the XML of ROS", read_urdf_with_loops, "robot", robot_from_urdf)
)
