"""`Body`: a link in the form of other programs: inertia in the joint frame, one joint, one parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.robot.robot import FREE_WIDTHS, Joint, Link, LinkKind, MovingBody, Robot
from steelyard.robot.spatial import inertia_matrix, move_parameters, parameters_from_com, rotation_about

# Allowed relative error of the ten parameters after conversion to mass, centre of mass and central tensor.
_ROUNDING = 1e-12
# Remedy for a physically impossible body, for the command line and for Python.
IDENTIFY_POSSIBLE = "identify with --physical (in Python: physical=True)"


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass [kg], centre of mass [m] and inertia tensor about that centre [kg m²]."""

    mass: float
    com: Array
    tensor: Array

    @property
    def massless(self) -> bool:
        return self.mass == 0.0 and not np.any(self.tensor)


@dataclass(frozen=True)
class Following:
    """A mimic joint: position = `ratio` · (position of `leader`) + `offset`."""

    leader: str
    ratio: float
    offset: float


@dataclass(frozen=True, eq=False)
class Body(MovingBody):
    """A link whose joint has an independent coordinate, or follows another joint."""

    inertial: Inertial
    limits: Joint
    follows: Following | None = None


def bodies_of(model: Model) -> list[Body]:
    """Convert the links of a model in order; constant offsets and signs become part of placement and axis."""
    robot = model.robot
    _check_names(robot)
    inertials = inertials_of(model)
    leaders = _leaders(robot)
    return [
        _free(link, inertials[k])
        if link.kind in FREE_WIDTHS
        else _leading(robot, link, inertials[k])
        if leaders[link.coordinate] == k
        else _following(robot, link, inertials[k])
        for k, link in enumerate(robot.links)
    ]


def inertials_of(model: Model) -> list[Inertial]:
    """Convert the inertias of the links to their joint frames."""
    blocks = model.theta[: model.robot.inertial_count].reshape(-1, 10)
    return [_inertial(link, block) for link, block in zip(model.robot.links, blocks, strict=True)]


def impossible_links(model: Model) -> list[str]:
    """Names of links with physically impossible inertia (pseudo-inertia not positive definite)."""
    blocks = model.theta[: model.robot.inertial_count].reshape(-1, 10)
    least = smallest_pseudo_eigenvalues(blocks)
    return [k.name for k, p, e in zip(model.robot.links, blocks, least, strict=True) if np.any(p) and e <= 0.0]


def displaced(kind: LinkKind, axis: Array, value: float) -> tuple[Array, Array]:
    """Rotation and translation of a joint at the position `value`."""
    if kind == "revolute":
        return rotation_about(axis, value), np.zeros(3)
    return np.eye(3), value * axis


def _inertial(link: Link, block: Array) -> Inertial:
    p = move_parameters(block, link.frame_rotation, link.frame_translation) if link.own_frame else block
    mass = float(p[0])
    if not np.all(np.isfinite(p)):
        raise ExportError(f"Link '{link.name}' has an inertia that is not finite; identify it first.")
    # A massless link can have ±1e-16 kg from rounding.
    if mass < -_ROUNDING * np.max(np.abs(p)):
        raise ExportError(f"Link '{link.name}' has a negative mass ({mass:g} kg); {IDENTIFY_POSSIBLE}.")
    if mass <= 0.0:
        if np.any(p[1:4]):
            raise ExportError(
                f"Link '{link.name}' has a first moment but no mass, so its centre of mass is undefined; "
                f"{IDENTIFY_POSSIBLE}, or export C code."
            )
        return Inertial(0.0, np.zeros(3), inertia_matrix(p))
    com = p[1:4] / mass
    tensor = inertia_matrix(move_parameters(p, np.eye(3), -com))
    back = parameters_from_com(mass, com, tensor)
    if np.max(np.abs(back - p)) > _ROUNDING * np.max(np.abs(p)):
        raise ExportError(
            f"Link '{link.name}' has too little mass ({mass:g} kg) for its first moment: its centre of mass would be "
            f"{np.linalg.norm(com):.3g} m away; {IDENTIFY_POSSIBLE}, or export C code."
        )
    return Inertial(mass, com, 0.5 * (tensor + tensor.T))


def _check_names(robot: Robot) -> None:
    for kind, names in (("link", robot.link_names), ("joint", [link.joint for link in robot.links])):
        duplicates = sorted({n for n in names if list(names).count(n) > 1})
        if duplicates:
            raise ExportError(f"Robot '{robot.name}' has two {kind}s named '{duplicates[0]}'; rename one of them.")


def _leaders(robot: Robot) -> list[int]:
    """For every coordinate, the link with ratio ±1."""
    out = []
    free = {c: k for k, link in enumerate(robot.links) if link.kind in FREE_WIDTHS for c in link.coordinates}
    for coordinate, joint in enumerate(robot.joints):
        if coordinate in free:
            out.append(free[coordinate])
            continue
        moved = [k for k, link in enumerate(robot.links) if link.coordinate == coordinate and abs(link.ratio) == 1.0]
        same_name = [k for k in moved if robot.links[k].joint == joint.name]
        if not moved:
            raise ExportError(
                f"Joint '{joint.name}' moves no link with ratio ±1; only C code supports this, export it."
            )
        out.append((same_name or moved)[0])
    return out


def _free(link: Link, inertial: Inertial) -> Body:
    place = (link.rotation, link.translation, link.axis)
    return Body(link.name, link.joint, link.kind, link.parent, *place, inertial, Joint(link.joint, "revolute"))


def _leading(robot: Robot, link: Link, inertial: Inertial) -> Body:
    joint = robot.joints[link.coordinate]
    # value = ±q + offset: first the constant rotation or translation, then the joint about ± its axis.
    turn, slide = displaced(link.kind, link.axis, link.offset)
    rotation = link.rotation @ turn
    translation = link.translation + link.rotation @ slide
    return Body(
        link.name, joint.name, link.kind, link.parent, rotation, translation, link.ratio * link.axis, inertial, joint
    )


def _following(robot: Robot, link: Link, inertial: Inertial) -> Body:
    joint = robot.joints[link.coordinate]
    ends = sorted(link.ratio * end + link.offset for end in (joint.lower, joint.upper))
    if link.ratio == 0.0:
        ends = [link.offset, link.offset]
    limits = Joint(link.joint, joint.kind, ends[0], ends[1])
    follows = Following(joint.name, link.ratio, link.offset)
    place = (link.rotation, link.translation, link.axis)
    return Body(link.name, link.joint, link.kind, link.parent, *place, inertial, limits, follows)


def children_of(bodies: Sequence[Body], parent: int) -> list[int]:
    """Indices of the child bodies of `parent` (−1: the base)."""
    return [k for k, body in enumerate(bodies) if body.parent == parent]
