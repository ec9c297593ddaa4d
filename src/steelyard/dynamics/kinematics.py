"""Motion of the links, written once over scalars: the outward pass of Newton–Euler, for any tree.

Velocities and accelerations of a link are those of its frame's origin, in its own coordinates; a joint's
screw (`Screw`) is the velocity for a unit joint rate. Acceleration contains −g from the base on, so
that weight needs no separate term (Luh, Walker & Paul 1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, cos, cross, matmul, matvec, plus, sin, times, transposed
from steelyard.robot import free
from steelyard.robot.robot import FREE_WIDTHS, Link, Robot

_ZERO = [0.0, 0.0, 0.0]


class Screw(NamedTuple):
    """A rigid velocity or a screw axis: of the origin, and of rotation."""

    linear: list[Scalar]
    angular: list[Scalar]


@dataclass(frozen=True)
class Placement:
    """A frame in its parent: rotation (columns are the child's axes) and origin."""

    rotation: list[list[Scalar]]
    origin: list[Scalar]

    def inward(self, x: Vector) -> list[Scalar]:
        """Express a free vector `x` of the parent in the child's coordinates."""
        return matvec(transposed(self.rotation), x)

    def outward(self, x: Vector) -> list[Scalar]:
        """Express a free vector `x` of the child in the parent's coordinates."""
        return matvec(self.rotation, x)

    def screw(self, s: Screw) -> Screw:
        """Move a rigid velocity `s` from the parent's origin to the child's."""
        return Screw(self.inward(plus(s.linear, cross(s.angular, self.origin))), self.inward(s.angular))


def constant(matrix: Array) -> list[list[Scalar]]:
    """Convert a `matrix` of numbers to rows of scalars."""
    return [[float(x) for x in row] for row in matrix]


def _rotation(axis: Array, angle: Scalar) -> list[list[Scalar]]:
    """Compute Rodrigues' rotation over scalars; axes along a coordinate give only sines, cosines and constants."""
    s, c = sin(angle), cos(angle)
    a = [float(x) for x in axis]
    skew = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
    aligned = any(abs(x) == 1.0 for x in a)
    out: list[list[Scalar]] = []
    for i in range(3):
        row: list[Scalar] = []
        for j in range(3):
            if aligned:
                along = abs(a[i]) == 1.0 and i == j
                row.append(1.0 if along else (c if i == j else skew[i][j] * s))
            else:
                row.append((1.0 if i == j else 0.0) * c + a[i] * a[j] * (1.0 - c) + skew[i][j] * s)
        out.append(row)
    return out


def _joint_placement(link: Link, position: Scalar, q: Vector) -> Placement:
    """Return the moved joint frame of a link in its parent's joint frame, at a position of the tree joint."""
    rotation = constant(link.rotation)
    origin = [float(x) for x in link.translation]
    if link.kind in FREE_WIDTHS:
        own = [q[k] for k in link.coordinates]
        shift = matvec(rotation, free.moved(link, own))
        return Placement(matmul(rotation, free.turned(link, own)), plus(origin, shift))
    if link.kind == "prismatic":
        along = [float(x) for x in link.rotation @ link.axis]
        return Placement(rotation, plus(origin, times(position, along)))
    return Placement(matmul(rotation, _rotation(link.axis, position)), origin)


def own_placement(link: Link) -> Placement | None:
    """Return the frame of the parameters of a `link` in its joint frame; None if they are the same."""
    if not link.own_frame:
        return None
    return Placement(constant(link.frame_rotation), [float(x) for x in link.frame_translation])


def unit_screws(link: Link) -> list[Screw]:
    """Return the velocity of the joint frame of a `link` for a unit rate of its tree joint, or of each coordinate of a
    free one.
    """
    if link.kind in FREE_WIDTHS:
        return [Screw([*map(float, v)], [*map(float, w)]) for v, w in zip(*free.directions(link), strict=True)]
    axis = [float(x) for x in link.axis]
    return [Screw(list(_ZERO), axis) if link.kind == "revolute" else Screw(axis, list(_ZERO))]


def _relative(link: Link, rates: Vector) -> Screw:
    """Return the velocity of a free joint's body relative to its parent, or its derivative, in the body's axes."""
    v, w = list(_ZERO), list(_ZERO)
    for k, unit in zip(link.coordinates, unit_screws(link), strict=True):
        v, w = plus(v, times(rates[k], unit.linear)), plus(w, times(rates[k], unit.angular))
    return Screw(v, w)


def _tree_positions(robot: Robot, q: Vector) -> list[Scalar]:
    """Return positions of the tree joints: coordinates, scaled and shifted for mimic joints."""
    return [link.ratio * q[link.coordinate] + link.offset for link in robot.links]


def _tree_rates(robot: Robot, rates: Vector) -> list[Scalar]:
    """Return velocities or accelerations of the tree joints."""
    return [link.ratio * rates[link.coordinate] for link in robot.links]


def placements(robot: Robot, q: Vector) -> list[Placement]:
    """Compute every link's joint frame in its parent's.

    Args:
        robot: Robot.
        q: Positions [rad, m].
    """
    return [_joint_placement(k, x, q) for k, x in zip(robot.links, _tree_positions(robot, q), strict=True)]


def velocities(robot: Robot, places: list[Placement], dq: Vector) -> list[Screw]:
    """Compute the velocity of every joint frame, in that frame.

    Args:
        robot: Robot.
        places: Joint frames in their parents.
        dq: Joint rates [rad/s, m/s].
    """
    out: list[Screw] = []
    for link, place, rate in zip(robot.links, places, _tree_rates(robot, dq), strict=True):
        linear, angular = place.screw(out[link.parent]) if link.parent >= 0 else (list(_ZERO), list(_ZERO))
        if link.kind in FREE_WIDTHS:
            own = _relative(link, dq)
            out.append(Screw(plus(linear, own.linear), plus(angular, own.angular)))
            continue
        (unit,) = unit_screws(link)
        out.append(Screw(plus(linear, times(rate, unit.linear)), plus(angular, times(rate, unit.angular))))
    return out


@dataclass(frozen=True)
class LinkMotion:
    """The motion of a frame as Newton–Euler needs it.

    A point p of the body has the acceleration (minus gravity) pull + U p.

    Attributes:
        spin: ω [rad/s].
        turn: ω̇ [rad/s²].
        pull: Acceleration of the origin minus gravity [m/s²].
        field: U = [ω̇×] + [ω×][ω×] [1/s²].
    """

    spin: list[Scalar]
    turn: list[Scalar]
    pull: list[Scalar]
    field: list[list[Scalar]]


def motion(spin: list[Scalar], turn: list[Scalar], pull: list[Scalar]) -> LinkMotion:
    """Create the motion of a frame.

    Args:
        spin: Angular velocity [rad/s].
        turn: Angular acceleration [rad/s²].
        pull: Acceleration minus gravity [m/s²].
    """
    w, a = spin, turn
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    field = [[-(yy + zz), xy - a[2], xz + a[1]], [xy + a[2], -(xx + zz), yz - a[0]], [xz - a[1], yz + a[0], -(xx + yy)]]
    return LinkMotion(spin, turn, pull, field)


def motion_at(place: Placement, m: LinkMotion) -> LinkMotion:
    """Express a rigid motion in another frame of the body.

    Args:
        place: The other frame.
        m: The motion.
    """
    pull = place.inward(plus(m.pull, matvec(m.field, place.origin)))
    return motion(place.inward(m.spin), place.inward(m.turn), pull)


def motions(robot: Robot, places: list[Placement], dq: Vector, ddq: Vector) -> list[LinkMotion]:
    """Compute the motion of every joint frame, gravity included.

    Args:
        robot: Robot.
        places: Joint frames in their parents.
        dq, ddq: Joint rates and accelerations.
    """
    still = motion(list(_ZERO), list(_ZERO), [-float(g) for g in robot.gravity])
    out: list[LinkMotion] = []
    rates, changes = _tree_rates(robot, dq), _tree_rates(robot, ddq)
    for link, place, rate, change in zip(robot.links, places, rates, changes, strict=True):
        parent = out[link.parent] if link.parent >= 0 else still
        pull = place.inward(plus(parent.pull, matvec(parent.field, place.origin)))
        spin, turn = place.inward(parent.spin), place.inward(parent.turn)
        axis = [float(x) for x in link.axis]
        if link.kind in FREE_WIDTHS:
            (v, w), (dv, dw) = _relative(link, dq), _relative(link, ddq)
            # ω × v, because the rates of v are those of its numbers in the turning axes of the body.
            pull = plus(pull, plus(times(2.0, cross(spin, v)), plus(dv, cross(w, v))))
            turn, spin = plus(turn, plus(cross(spin, w), dw)), plus(spin, w)
        elif link.kind == "revolute":
            turn = plus(turn, plus(cross(spin, times(rate, axis)), times(change, axis)))
            spin = plus(spin, times(rate, axis))
        else:
            pull = plus(pull, plus(times(2.0 * rate, cross(spin, axis)), times(change, axis)))
        out.append(motion(spin, turn, pull))
    return out


class JointScrew(NamedTuple):
    """A screw, and the coordinate that moves along it by `ratio` per unit."""

    coordinate: int
    ratio: float
    screw: Screw


def ancestor_screws(robot: Robot, places: list[Placement], own: list[list[Screw]]) -> list[list[JointScrew]]:
    """Express the screws of every link and its ancestors in the link's joint frame.

    Args:
        robot: Robot.
        places: Joint frames in their parents.
        own: Screws of link k in frame k, one per coordinate.
    """
    out: list[list[JointScrew]] = []
    for link, place, screws in zip(robot.links, places, own, strict=True):
        inherited = out[link.parent] if link.parent >= 0 else []
        moved = [JointScrew(c, ratio, place.screw(s)) for c, ratio, s in inherited]
        out.append(moved + [JointScrew(c, link.ratio, s) for c, s in zip(link.coordinates, screws, strict=True)])
    return out


def base_pose(robot: Robot, places: list[Placement]) -> list[tuple[list[list[Scalar]], list[Scalar]]]:
    """Compute rotation and origin of every joint frame in the base.

    Args:
        robot: Robot.
        places: Joint frames in their parents.
    """
    out: list[tuple[list[list[Scalar]], list[Scalar]]] = []
    for link, place in zip(robot.links, places, strict=True):
        if link.parent < 0:
            out.append((place.rotation, place.origin))
            continue
        rotation, origin = out[link.parent]
        out.append((matmul(rotation, place.rotation), plus(origin, matvec(rotation, place.origin))))
    return out


def screw_product(s: Screw, v: Screw) -> Screw:
    """Compute S × V of two rigid velocities at one origin.

    Args:
        s: Screw S.
        v: Velocity V.
    """
    return Screw(plus(cross(s.angular, v.linear), cross(s.linear, v.angular)), cross(s.angular, v.angular))


def up_vectors(robot: Robot, places: list[Placement]) -> list[list[Scalar]]:
    """Compute −g in the coordinates of every joint frame.

    Args:
        robot: Robot.
        places: Joint frames in their parents.
    """
    base: list[Scalar] = [-float(g) for g in robot.gravity]
    out: list[list[Scalar]] = []
    for link, place in zip(robot.links, places, strict=True):
        out.append(place.inward(out[link.parent] if link.parent >= 0 else base))
    return out
