"""How the links move, written once over scalars: the outward half of Newton–Euler, for any tree.

Velocities and accelerations of a link are those of its frame's origin, in its own coordinates; a joint's
screw (`Screw`) is the velocity that a unit joint rate gives. Acceleration carries −g from the base on, so
that weight needs no term of its own (Luh, Walker & Paul 1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, cos, cross, matmul, matvec, plus, sin, times, transposed
from steelyard.robot.robot import Link, Robot

_ZERO = [0.0, 0.0, 0.0]


class Screw(NamedTuple):
    """A rigid velocity (or its cousin, a screw axis): of the origin, and of rotation."""

    linear: list[Scalar]
    angular: list[Scalar]


@dataclass(frozen=True)
class Placement:
    """A frame in its parent: rotation (columns are the child's axes) and origin."""

    rotation: list[list[Scalar]]
    origin: list[Scalar]

    def inward(self, x: Vector) -> list[Scalar]:
        """A free vector `x` of the parent, in the child's coordinates."""
        return matvec(transposed(self.rotation), x)

    def outward(self, x: Vector) -> list[Scalar]:
        """A free vector `x` of the child, in the parent's coordinates."""
        return matvec(self.rotation, x)

    def screw(self, s: Screw) -> Screw:
        """A rigid velocity `s` known at the parent's origin, at the child's."""
        return Screw(self.inward(plus(s.linear, cross(s.angular, self.origin))), self.inward(s.angular))


def constant(matrix: Array) -> list[list[Scalar]]:
    """A `matrix` of numbers as rows of scalars."""
    return [[float(x) for x in row] for row in matrix]


def _turned(axis: Array, angle: Scalar) -> list[list[Scalar]]:
    """Rodrigues' rotation over scalars; an axis along a coordinate leaves only sines, cosines and constants."""
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


def _joint_placement(link: Link, position: Scalar) -> Placement:
    """The moved joint frame of a link in its parent's joint frame, at a position of the tree joint."""
    rotation = constant(link.rotation)
    origin = [float(x) for x in link.translation]
    if link.kind == "prismatic":
        along = [float(x) for x in link.rotation @ link.axis]
        return Placement(rotation, plus(origin, times(position, along)))
    return Placement(matmul(rotation, _turned(link.axis, position)), origin)


def own_placement(link: Link) -> Placement | None:
    """The frame of the parameters of a `link` in its joint frame, or None where they are the same."""
    if not link.own_frame:
        return None
    return Placement(constant(link.frame_rotation), [float(x) for x in link.frame_translation])


def unit_screw(link: Link) -> Screw:
    """The velocity of the joint frame of a `link` for a unit rate of its tree joint."""
    axis = [float(x) for x in link.axis]
    return Screw(list(_ZERO), axis) if link.kind == "revolute" else Screw(axis, list(_ZERO))


def _tree_positions(robot: Robot, q: Vector) -> list[Scalar]:
    """Positions of the tree joints: the coordinates, stretched and shifted where a joint mimics another."""
    return [link.ratio * q[link.coordinate] + link.offset for link in robot.links]


def _tree_rates(robot: Robot, rates: Vector) -> list[Scalar]:
    """Velocities or accelerations of the tree joints."""
    return [link.ratio * rates[link.coordinate] for link in robot.links]


def placements(robot: Robot, q: Vector) -> list[Placement]:
    """Every link's joint frame in its parent's, `robot` standing at `q` (rad, m)."""
    return [_joint_placement(k, x) for k, x in zip(robot.links, _tree_positions(robot, q), strict=True)]


def velocities(robot: Robot, places: list[Placement], dq: Vector) -> list[Screw]:
    """The velocity of every joint frame, in that frame: `robot` at `places`, with joint rates `dq` (rad/s, m/s)."""
    out: list[Screw] = []
    for link, place, rate in zip(robot.links, places, _tree_rates(robot, dq), strict=True):
        linear, angular = place.screw(out[link.parent]) if link.parent >= 0 else (list(_ZERO), list(_ZERO))
        unit = unit_screw(link)
        out.append(Screw(plus(linear, times(rate, unit.linear)), plus(angular, times(rate, unit.angular))))
    return out


@dataclass(frozen=True)
class LinkMotion:
    """The motion of a frame as Newton–Euler needs it.

    `spin` ω; `turn` ω̇; `pull` the acceleration of the origin less gravity; `field` U = [ω̇×] + [ω×][ω×], so that
    a point p of the body is accelerated by pull + U p.
    """

    spin: list[Scalar]
    turn: list[Scalar]
    pull: list[Scalar]
    field: list[list[Scalar]]


def motion(spin: list[Scalar], turn: list[Scalar], pull: list[Scalar]) -> LinkMotion:
    """Of a frame: angular velocity `spin` (rad/s) and acceleration `turn`, acceleration less gravity `pull` (m/s²)."""
    w, a = spin, turn
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    field = [[-(yy + zz), xy - a[2], xz + a[1]], [xy + a[2], -(xx + zz), yz - a[0]], [xz - a[1], yz + a[0], -(xx + yy)]]
    return LinkMotion(spin, turn, pull, field)


def moved(place: Placement, m: LinkMotion) -> LinkMotion:
    """The same rigid motion `m`, seen from a frame that is fixed to the body at `place`."""
    pull = place.inward(plus(m.pull, matvec(m.field, place.origin)))
    return motion(place.inward(m.spin), place.inward(m.turn), pull)


def motions(robot: Robot, places: list[Placement], dq: Vector, ddq: Vector) -> list[LinkMotion]:
    """The motion of every joint frame, gravity included: `robot` at `places`, with joint rates `dq` and `ddq`."""
    still = motion(list(_ZERO), list(_ZERO), [-float(g) for g in robot.gravity])
    out: list[LinkMotion] = []
    rates, changes = _tree_rates(robot, dq), _tree_rates(robot, ddq)
    for link, place, rate, change in zip(robot.links, places, rates, changes, strict=True):
        parent = out[link.parent] if link.parent >= 0 else still
        pull = place.inward(plus(parent.pull, matvec(parent.field, place.origin)))
        spin, turn = place.inward(parent.spin), place.inward(parent.turn)
        axis = [float(x) for x in link.axis]
        if link.kind == "revolute":
            turn = plus(turn, plus(cross(spin, times(rate, axis)), times(change, axis)))
            spin = plus(spin, times(rate, axis))
        else:
            pull = plus(pull, plus(times(2.0 * rate, cross(spin, axis)), times(change, axis)))
        out.append(motion(spin, turn, pull))
    return out


def ancestral(robot: Robot, places: list[Placement], own: list[Screw]) -> list[list[tuple[int, Screw]]]:
    """For every link of `robot`, what its ancestors and itself carry, seen from the link's joint frame. `own`[k] is
    what link k carries, in frame k; `places` are the joint frames, each in its parent's."""
    out: list[list[tuple[int, Screw]]] = []
    for index, (link, place) in enumerate(zip(robot.links, places, strict=True)):
        inherited = out[link.parent] if link.parent >= 0 else []
        out.append([(k, place.screw(s)) for k, s in inherited] + [(index, own[index])])
    return out


def base_pose(robot: Robot, places: list[Placement]) -> list[tuple[list[list[Scalar]], list[Scalar]]]:
    """Rotation and origin of every joint frame of `robot` in the base, from `places`, each in its parent's."""
    out: list[tuple[list[list[Scalar]], list[Scalar]]] = []
    for link, place in zip(robot.links, places, strict=True):
        if link.parent < 0:
            out.append((place.rotation, place.origin))
            continue
        rotation, origin = out[link.parent]
        out.append((matmul(rotation, place.rotation), plus(origin, matvec(rotation, place.origin))))
    return out


def screw_product(s: Screw, v: Screw) -> Screw:
    """S × V of rigid velocities `s` and `v` at one origin."""
    return Screw(plus(cross(s.angular, v.linear), cross(s.linear, v.angular)), cross(s.angular, v.angular))


def up_vectors(robot: Robot, places: list[Placement]) -> list[list[Scalar]]:
    """−g in the coordinates of every joint frame of `robot`, at `places`, each in its parent's."""
    base: list[Scalar] = [-float(g) for g in robot.gravity]
    out: list[list[Scalar]] = []
    for link, place in zip(robot.links, places, strict=True):
        out.append(place.inward(out[link.parent] if link.parent >= 0 else base))
    return out
