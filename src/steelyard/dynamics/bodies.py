"""Inverse dynamics, mass matrix and forward dynamics of a tree of rigid bodies, written once over scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.dynamics.kinematics import (
    Placement,
    Screw,
    constant,
    motion_at,
    motions,
    own_placement,
    placements,
    screw_product,
    unit_screws,
    up_vectors,
    velocities,
)
from steelyard.ground.scalars import Scalar, Vector, cross, dot, matmul, matvec, plus, times, transposed
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import parameter_transfer

Parameters = Sequence[Scalar]


def _tensor(p: Parameters) -> list[list[Scalar]]:
    return [[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]]


def inverse_dynamics(robot: Robot, q: Vector, dq: Vector, ddq: Vector, theta: Parameters) -> list[Scalar]:
    """Compute joint torques by recursive Newton–Euler (Luh, Walker & Paul 1980).

    Args:
        robot: Robot.
        q, dq, ddq: Positions [rad, m], velocities and accelerations.
        theta: Ten parameters per link, each a scalar or a node.
    """
    places = placements(robot, q)
    forces: list[list[Scalar]] = []
    moments: list[list[Scalar]] = []
    for i, (link, joint_motion) in enumerate(zip(robot.links, motions(robot, places, dq, ddq), strict=True)):
        own = own_placement(link)
        m = joint_motion if own is None else motion_at(own, joint_motion)
        p = theta[10 * i : 10 * i + 10]
        h, tensor = list(p[1:4]), _tensor(p)
        force = plus(times(p[0], m.pull), matvec(m.field, h))
        moment = plus(matvec(tensor, m.turn), cross(m.spin, matvec(tensor, m.spin)))
        moment = plus(moment, cross(h, m.pull))
        if own is not None:
            force, moment = _wrench_outward(own, force, moment)
        forces.append(force)
        moments.append(moment)
    torque: list[Scalar] = [0.0] * robot.dof
    for i in reversed(range(len(robot.links))):
        link = robot.links[i]
        for c, s in zip(link.coordinates, unit_screws(link), strict=True):
            torque[c] += link.ratio * (dot(s.linear, forces[i]) + dot(s.angular, moments[i]))
        if link.parent >= 0:
            force, moment = _wrench_outward(places[i], forces[i], moments[i])
            forces[link.parent] = plus(forces[link.parent], force)
            moments[link.parent] = plus(moments[link.parent], moment)
    return torque


def _wrench_outward(place: Placement, force: Vector, moment: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """Move a wrench from a frame's origin to the origin of its parent."""
    f = place.outward(force)
    return f, plus(place.outward(moment), cross(place.origin, f))


def _moved_body(place: Placement, p: Parameters) -> list[Scalar]:
    """Express the ten parameters of a body in the parent frame (parallel axes)."""
    r, t = place.rotation, place.origin
    mass, h = p[0], place.outward(p[1:4])
    rotated = matmul(matmul(r, _tensor(p)), transposed(r))
    # −[t×][h×] − [h×][t×] − m [t×][t×] = e·1 − (t hᵀ + h tᵀ + m t tᵀ)
    e = 2.0 * dot(t, h) + mass * dot(t, t)

    def entry(i: int, j: int) -> Scalar:
        return rotated[i][j] + (e if i == j else 0.0) - (t[i] * h[j] + h[i] * t[j] + mass * t[i] * t[j])

    second = [entry(0, 0), entry(0, 1), entry(1, 1), entry(0, 2), entry(1, 2), entry(2, 2)]
    return [mass, *plus(h, times(mass, t)), *second]


def _joint_frame_body(robot: Robot, i: int, theta: Parameters) -> list[Scalar]:
    """Return the ten parameters of link i in its joint frame."""
    link, p = robot.links[i], list(theta[10 * i : 10 * i + 10])
    if not link.own_frame:
        return p
    return matvec(constant(parameter_transfer(link.frame_rotation, link.frame_translation)), p)


def mass_matrix(robot: Robot, q: Vector, theta: Parameters) -> dict[tuple[int, int], Scalar]:
    """Compute the nonzero entries of M(q), both triangles, by composite rigid bodies (Walker & Orin 1982).

    Args:
        robot: Robot.
        q: Positions [rad, m].
        theta: Ten parameters per link.
    """
    places = placements(robot, q)
    composite = [_joint_frame_body(robot, i, theta) for i in range(len(robot.links))]
    for i in reversed(range(len(robot.links))):
        parent = robot.links[i].parent
        if parent >= 0:
            composite[parent] = plus(composite[parent], _moved_body(places[i], composite[i]))
    matrix: dict[tuple[int, int], Scalar] = {}

    def add(a: int, b: int, value: Scalar) -> None:
        matrix[a, b] = matrix.get((a, b), 0.0) + value

    for i, link in enumerate(robot.links):
        body = composite[i]
        own = list(zip(link.coordinates, unit_screws(link), strict=True))
        for k, (c, s) in enumerate(own):
            # Momentum of the composite body when its joint moves at unit rate.
            force = plus(times(body[0], s.linear), cross(s.angular, body[1:4]))
            moment = plus(matvec(_tensor(body), s.angular), cross(body[1:4], s.linear))
            for a, t in own[: k + 1]:
                value = link.ratio**2 * (dot(t.linear, force) + dot(t.angular, moment))
                add(c, a, value)
                if a != c:
                    add(a, c, value)
            j = i
            while robot.links[j].parent >= 0:
                force, moment = _wrench_outward(places[j], force, moment)
                j = robot.links[j].parent
                other = robot.links[j]
                for b, t in zip(other.coordinates, unit_screws(other), strict=True):
                    value = link.ratio * other.ratio * (dot(t.linear, force) + dot(t.angular, moment))
                    add(c, b, value)
                    add(b, c, value)
    return {key: v for key, v in matrix.items() if not (isinstance(v, float) and v == 0.0)}


def momentum_and_remainder(robot: Robot, q: Vector, dq: Vector, theta: Parameters) -> tuple[list[Scalar], list[Scalar]]:
    """Compute the generalised momentum p = M q̇, and d with torque τ = ṗ + d: d = −∂T/∂q + ∂U/∂q.

    One pass outward computes velocities; one inward adds up momenta and weights of all that a joint moves: p is the
    momentum along the joint's screw S, −∂T/∂q that along S × V, with V the velocity of the link behind it.

    Args:
        robot: Robot.
        q, dq: Positions [rad, m] and velocities.
        theta: Ten parameters per link.
    """
    places = placements(robot, q)
    speeds, ups = velocities(robot, places, dq), up_vectors(robot, places)
    momenta: list[tuple[list[Scalar], list[Scalar]]] = []
    weights: list[tuple[list[Scalar], list[Scalar]]] = []
    for i, (v, up) in enumerate(zip(speeds, ups, strict=True)):
        body = _joint_frame_body(robot, i, theta)
        h = body[1:4]
        linear = plus(times(body[0], v.linear), cross(v.angular, h))
        momenta.append((linear, plus(matvec(_tensor(body), v.angular), cross(h, v.linear))))
        weights.append((times(body[0], up), cross(h, up)))
    p: list[Scalar] = [0.0] * robot.dof
    d: list[Scalar] = [0.0] * robot.dof
    for i in reversed(range(len(robot.links))):
        link = robot.links[i]
        for c, s in zip(link.coordinates, unit_screws(link), strict=True):
            p[c] += link.ratio * _along(s, *momenta[i])
            lag = screw_product(s, speeds[i])
            d[c] += link.ratio * (_along(lag, *momenta[i]) + _along(s, *weights[i]))
        if link.parent >= 0:
            for held in (momenta, weights):
                (force, moment), there = _wrench_outward(places[i], *held[i]), held[link.parent]
                held[link.parent] = plus(there[0], force), plus(there[1], moment)
    return p, d


def _along(s: Screw, force: Vector, moment: Vector) -> Scalar:
    return dot(s.linear, force) + dot(s.angular, moment)


def elimination_order(robot: Robot) -> list[int]:
    """Return the coordinates of `robot` from the leaves to the base; in this order a tree's mass matrix has no
    fill-in.
    """
    deepest = {c: i for i, link in enumerate(robot.links) for c in link.coordinates}
    return sorted(range(robot.dof), key=lambda c: -deepest.get(c, -1))


def solve_spd(matrix: Mapping[tuple[int, int], Scalar], right: Vector, order: Sequence[int]) -> list[Scalar]:
    """Solve M x = `right` by L D Lᵀ for a sparse positive definite M.

    Args:
        matrix: Nonzero entries of M.
        right: Right side.
        order: Order of elimination.
    """
    n = len(order)
    position = {c: k for k, c in enumerate(order)}
    lower: dict[tuple[int, int], Scalar] = {}
    scaled: dict[tuple[int, int], Scalar] = {}
    inverse: list[Scalar] = []
    rows: list[list[int]] = [[] for _ in range(n)]
    original = {(position[a], position[b]): v for (a, b), v in matrix.items()}
    for j in range(n):
        pivot = original.get((j, j), 0.0)
        for k in rows[j]:
            pivot = pivot - lower[j, k] * scaled[j, k]
        inverse.append(1.0 / pivot)
        for i in range(j + 1, n):
            value = original.get((i, j), 0.0)
            for k in rows[i]:
                if (j, k) in lower:
                    value = value - scaled[i, k] * lower[j, k]
            if not (isinstance(value, float) and value == 0.0):
                scaled[i, j] = value
                lower[i, j] = value * inverse[j]
                rows[i].append(j)
    x = [right[c] for c in order]
    for i in range(n):
        for k in rows[i]:
            x[i] = x[i] - lower[i, k] * x[k]
    x = [a * b for a, b in zip(x, inverse, strict=True)]
    for i in reversed(range(n)):
        for k in rows[i]:
            x[k] = x[k] - lower[i, k] * x[i]
    out: list[Scalar] = [0.0] * n
    for c, value in zip(order, x, strict=True):
        out[c] = value
    return out
