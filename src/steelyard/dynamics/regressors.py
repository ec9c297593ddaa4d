"""The regressors of a tree of rigid bodies, written once over scalars.

Each function returns its non-zero entries as `{(row, column): scalar}`: rows are joints, columns the ten
parameters of every link (m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link frame's origin).

* torque     Y(q, q̇, q̈)   τ = Y θ
* momentum   P(q, q̇)       p = P θ = M q̇
* remainder  D(q, q̇)       τ = d/dt(P θ) + D θ,  D = −∂K/∂q + ∂U/∂q
* kinetic    K(q, q̇)       kinetic energy K θ
* potential  U(q)           potential energy U θ, zero with all of the mass at the base's origin
"""

from __future__ import annotations

from steelyard.dynamics.kinematics import (
    JointScrew,
    LinkMotion,
    Placement,
    Screw,
    ancestor_screws,
    base_pose,
    motion_at,
    motions,
    own_placement,
    placements,
    screw_product,
    unit_screws,
    up_vectors,
    velocities,
)
from steelyard.ground.scalars import Scalar, Vector, cross, dot, matmul, matvec, plus, transposed
from steelyard.robot.robot import Robot

_Entries = dict[tuple[int, int], Scalar]


def _force_columns(m: LinkMotion, s: Screw) -> list[Scalar]:
    """Compute the torque per parameter of a body in motion `m` on a joint with screw `s`: s · (force, moment)."""
    w, a, u = m.spin, m.turn, m.field
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    moment = [  # I ω̇ + ω × I ω = K [Ixx, Ixy, Iyy, Ixz, Iyz, Izz]
        [a[0], -u[2][0], -yz, u[1][0], yy - zz, yz],
        [xz, u[2][1], a[1], zz - xx, -u[0][1], -xz],
        [-xy, xx - yy, xy, -u[1][2], u[0][2], a[2]],
    ]
    first = plus(matvec(transposed(u), s.linear), cross(m.pull, s.angular))
    return [dot(s.linear, m.pull), *first, *matvec(transposed(moment), s.angular)]


def _momentum_columns(v: Screw, s: Screw) -> list[Scalar]:
    """Compute the momentum per parameter of a body with velocity `v` along the screw `s`."""
    a, b = s.angular, v.angular
    first = plus(cross(s.linear, v.angular), cross(v.linear, s.angular))
    second = [
        a[0] * b[0],
        a[0] * b[1] + a[1] * b[0],
        a[1] * b[1],
        a[0] * b[2] + a[2] * b[0],
        a[1] * b[2] + a[2] * b[1],
        a[2] * b[2],
    ]
    return [dot(s.linear, v.linear), *first, *second]


def _weight_columns(up: Vector, s: Screw) -> list[Scalar]:
    """Compute the weight per parameter on a joint with screw `s`; `up` is −g in the link's coordinates."""
    return [dot(s.linear, up), *cross(up, s.angular)]


def _add_row(entries: _Entries, joint: JointScrew, link: int, columns: list[Scalar]) -> None:
    """Add a tree joint's columns for one link to the row of the coordinate that moves it."""
    for k, value in enumerate(columns):
        key = (joint.coordinate, 10 * link + k)
        total = entries.get(key, 0.0) + joint.ratio * value
        entries[key] = total


def _nonzero(entries: _Entries) -> _Entries:
    return {key: v for key, v in entries.items() if not (isinstance(v, float) and v == 0.0)}


def _own_screw(own: Placement | None, s: Screw) -> Screw:
    return s if own is None else own.screw(s)


def torque_regressor(robot: Robot, q: Vector, dq: Vector, ddq: Vector) -> _Entries:
    """Compute Y with τ = Y θ, by (joint, parameter).

    Args:
        robot: Robot.
        q, dq, ddq: Positions [rad, m], velocities and accelerations.
    """
    places = placements(robot, q)
    moves = motions(robot, places, dq, ddq)
    units = ancestor_screws(robot, places, [unit_screws(link) for link in robot.links])
    entries: _Entries = {}
    for i, link in enumerate(robot.links):
        own = own_placement(link)
        move = moves[i] if own is None else motion_at(own, moves[i])
        for joint in units[i]:
            _add_row(entries, joint, i, _force_columns(move, _own_screw(own, joint.screw)))
    return _nonzero(entries)


def momentum_regressor(robot: Robot, q: Vector, dq: Vector) -> _Entries:
    """Compute P with M q̇ = P θ, by (joint, parameter).

    Args:
        robot: Robot.
        q, dq: Positions [rad, m] and velocities.
    """
    places = placements(robot, q)
    speeds = velocities(robot, places, dq)
    units = ancestor_screws(robot, places, [unit_screws(link) for link in robot.links])
    entries: _Entries = {}
    for i, link in enumerate(robot.links):
        own = own_placement(link)
        speed = _own_screw(own, speeds[i])
        for joint in units[i]:
            _add_row(entries, joint, i, _momentum_columns(speed, _own_screw(own, joint.screw)))
    return _nonzero(entries)


def remainder_regressor(robot: Robot, q: Vector, dq: Vector) -> _Entries:
    """Compute D with τ = d/dt(P θ) + D θ, by (joint, parameter).

    −∂K/∂q_j is the momentum along S_j × V_j, ∂U/∂q_j the weight along S_j. Moving q_j rotates all links behind it as
    one body, which does not change their energy, except that their velocities are not rotated: −h · (S_j × V_j) remains
    for the momentum h of each link.

    Args:
        robot: Robot.
        q, dq: Positions [rad, m] and velocities.
    """
    places = placements(robot, q)
    speeds = velocities(robot, places, dq)
    unit = [unit_screws(link) for link in robot.links]
    units = ancestor_screws(robot, places, unit)
    turning = [[screw_product(s, v) for s in own] for own, v in zip(unit, speeds, strict=True)]
    lags = ancestor_screws(robot, places, turning)
    ups = up_vectors(robot, places)
    entries: _Entries = {}
    for i, link in enumerate(robot.links):
        own = own_placement(link)
        speed = _own_screw(own, speeds[i])
        up = ups[i] if own is None else own.inward(ups[i])
        for joint, lag in zip(units[i], lags[i], strict=True):
            columns = _momentum_columns(speed, _own_screw(own, lag.screw))
            weight = _weight_columns(up, _own_screw(own, joint.screw))
            _add_row(entries, joint, i, [*plus(columns[:4], weight), *columns[4:]])
    return _nonzero(entries)


def kinetic_regressor(robot: Robot, q: Vector, dq: Vector) -> _Entries:
    """Compute kinetic energy per parameter, by (0, parameter).

    Args:
        robot: Robot.
        q, dq: Positions [rad, m] and velocities.
    """
    speeds = velocities(robot, placements(robot, q), dq)
    entries: _Entries = {}
    for i, link in enumerate(robot.links):
        speed = _own_screw(own_placement(link), speeds[i])
        # ½ of the momentum along the velocity itself.
        for k, value in enumerate(_momentum_columns(speed, speed)):
            entries[0, 10 * i + k] = 0.5 * value
    return _nonzero(entries)


def potential_regressor(robot: Robot, q: Vector) -> _Entries:
    """Compute potential energy per parameter, by (0, parameter).

    Args:
        robot: Robot.
        q: Positions [rad, m].
    """
    entries: _Entries = {}
    up = [-float(g) for g in robot.gravity]
    for i, (rotation, origin) in enumerate(base_pose(robot, placements(robot, q))):
        own = own_placement(robot.links[i])
        if own is not None:
            rotation, origin = matmul(rotation, own.rotation), plus(origin, matvec(rotation, own.origin))
        for k, value in enumerate([dot(up, origin), *matvec(transposed(rotation), up)]):
            entries[0, 10 * i + k] = value
    return _nonzero(entries)


__all__ = [
    "_Entries",
    "kinetic_regressor",
    "momentum_regressor",
    "potential_regressor",
    "remainder_regressor",
    "torque_regressor",
]
