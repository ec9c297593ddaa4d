"""`Closure`: the equations φ(q) = 0 of all closed loops of a robot, their Jacobian and its drift, traced once.

A pair of frames A, B: φ is the position of B in A, and the rotation of B in A (axes of A). With ω and v in the axes of
A its rate is J q̇ = (v_B − v_A − ω_A × d, ω_B − ω_A), and on the loop φ̈ = J q̈ + drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.dynamics import kinematics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, cross, matmul, matvec, plus, times, transposed
from steelyard.robot.free import vector_part, whole_quaternion
from steelyard.robot.loop_constraints import FramePair, JointCurve
from steelyard.robot.robot import FREE_WIDTHS, Robot
from steelyard.robot.spatial import LinkFrame

_ZERO = [0.0, 0.0, 0.0]
_Pose = tuple[list[list[Scalar]], list[Scalar]]


@dataclass(frozen=True)
class ClosureRow:
    """One equation of a closed loop.

    Attributes:
        loop: Number of the loop.
        angle: True for an angle, False for a length.
    """

    loop: int
    angle: bool


class Closure:
    """The equations of the closed loops of a robot.

    Args:
        robot: Robot with loops.
        q: Positions [rad, m], `(samples, joints)`.
        dq: Velocities, `(samples, joints)`.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.rows: list[ClosureRow] = []
        for k, loop in enumerate(robot.loops):
            if isinstance(loop.constraint, FramePair):
                self.rows += [ClosureRow(k, row > 2) for row in loop.constraint.rows]
            elif isinstance(loop.constraint, JointCurve):
                turns = {link.joint: link.kind == "revolute" for link in robot.links}
                own = loop.constraint.follower or loop.constraint.leader
                self.rows.append(ClosureRow(k, turns[own]))

    @cached_property
    def _place(self) -> Evaluator:
        n = self.robot.dof
        return Evaluator(trace("loop_closure", {"q": n}, self._closure, (len(self.rows), 1 + n)))

    @cached_property
    def _drift(self) -> Evaluator:
        n = self.robot.dof
        return Evaluator(trace("loop_drift", {"q": n, "dq": n}, self._drifts, (len(self.rows),)))

    def __call__(self, q: Array) -> tuple[Array, Array]:
        """Compute φ `(samples, rows)` and its Jacobian `(samples, rows, joints)`."""
        out = self._place({"q": q})
        return out[..., 0], out[..., 1:]

    def drift(self, q: Array, dq: Array) -> Array:
        """Compute φ̈ at q̈ = 0, `(samples, rows)`."""
        return self._drift({"q": q, "dq": dq})

    # ------------------------------------------------------------ over scalars

    def _closure(self, q: Vector) -> Mapping[tuple[int, int], Scalar]:
        robot, out = self.robot, dict[tuple[int, int], Scalar]()
        places = kinematics.placements(robot, q)
        poses = kinematics.base_pose(robot, places)
        units = kinematics.ancestor_screws(robot, places, [kinematics.unit_screws(link) for link in robot.links])
        row = 0
        for loop in robot.loops:
            constraint = loop.constraint
            if isinstance(constraint, JointCurve):
                self._curve(constraint, q, row, out)
                row += 1
            elif isinstance(constraint, FramePair):
                first, second = _pose(constraint.first, poses), _pose(constraint.second, poses)
                R, d = _relative(first, second)
                columns: dict[int, list[Scalar]] = {}
                for sign, place, turn in ((1.0, constraint.second, R), (-1.0, constraint.first, None)):
                    for c, ratio, s in units[place.host] if place.host >= 0 else ():
                        screw = kinematics.Placement(*_fixed(place)).screw(s)
                        v, w = screw.linear, screw.angular
                        if turn is not None:
                            v, w = matvec(turn, v), matvec(turn, w)
                        else:
                            v = plus(v, cross(w, d))
                        own = columns.setdefault(c, [0.0] * 6)
                        columns[c] = plus(own, times(sign * ratio, [*v, *w]))
                values = [*d, *_turn(R, constraint.rows)]
                for k in constraint.rows:
                    out[row, 0] = values[k]
                    for c, column in columns.items():
                        out[row, 1 + c] = column[k]
                    row += 1
        return out

    def _drifts(self, q: Vector, dq: Vector) -> Mapping[tuple[int, ...], Scalar]:
        robot, out = self.robot, dict[tuple[int, ...], Scalar]()
        places = kinematics.placements(robot, q)
        poses = kinematics.base_pose(robot, places)
        speeds = kinematics.velocities(robot, places, dq)
        moves = kinematics.motions(robot, places, dq, [0.0] * robot.dof)
        row = 0
        for loop in robot.loops:
            constraint = loop.constraint
            if isinstance(constraint, JointCurve):
                x, v = self._joint(constraint.leader, q), self._rate(constraint.leader, dq)
                out[(row,)] = -1.0 * (_second(constraint.coefficients, x) * (v * v))
                row += 1
            elif isinstance(constraint, FramePair):
                R, d = _relative(_pose(constraint.first, poses), _pose(constraint.second, poses))
                a, b = (self._motion(place, speeds, moves, poses) for place in (constraint.first, constraint.second))
                spin, turn, velocity, pull = a
                spin_b, turn_b, velocity_b, pull_b = (matvec(R, x) for x in b)
                relative = plus(velocity_b, times(-1.0, plus(velocity, cross(spin, d))))
                linear = plus(pull_b, times(-1.0, pull))
                inertial = plus(cross(turn, d), plus(cross(spin, cross(spin, d)), times(2.0, cross(spin, relative))))
                linear = plus(linear, times(-1.0, inertial))
                angular = plus(turn_b, times(-1.0, plus(turn, cross(spin, spin_b))))
                values = [*linear, *angular]
                for k in constraint.rows:
                    out[(row,)] = values[k]
                    row += 1
        return out

    def _motion(
        self,
        place: LinkFrame,
        speeds: list[kinematics.Screw],
        moves: list[kinematics.LinkMotion],
        poses: list[_Pose],
    ) -> tuple[list[Scalar], ...]:
        """Return ω, ω̇, velocity, and acceleration without −g of a frame, in its axes."""
        rotation, _ = _pose(place, poses)
        down = matvec(transposed(rotation), [float(g) for g in self.robot.gravity])
        if place.host < 0:
            return list(_ZERO), list(_ZERO), list(_ZERO), list(_ZERO)
        fixed = kinematics.Placement(*_fixed(place))
        m = kinematics.motion_at(fixed, moves[place.host])
        return m.spin, m.turn, fixed.screw(speeds[place.host]).linear, plus(m.pull, down)

    def _curve(self, curve: JointCurve, q: Vector, row: int, out: dict[tuple[int, int], Scalar]) -> None:
        """Write x₁ − Σ c_k x₂ᵏ and its derivatives."""
        x, y = self._joint(curve.follower, q), self._joint(curve.leader, q)
        value: Scalar = 0.0
        slope: Scalar = 0.0
        for k, c in reversed(list(enumerate(curve.coefficients))):
            value = value * y + c
            slope = slope * y + k * c if k else slope
        out[row, 0] = x + -1.0 * value
        for name, part in ((curve.follower, 1.0), (curve.leader, -1.0 * slope)):
            if name:
                link = next(link for link in self.robot.links if link.joint == name)
                key = (row, 1 + link.coordinate)
                out[key] = out.get(key, 0.0) + link.ratio * part

    def _joint(self, name: str, q: Vector) -> Scalar:
        link = next((link for link in self.robot.links if link.joint == name), None)
        return 0.0 if link is None else link.ratio * q[link.coordinate] + link.offset

    def _rate(self, name: str, dq: Vector) -> Scalar:
        link = next((link for link in self.robot.links if link.joint == name), None)
        return 0.0 if link is None else link.ratio * dq[link.coordinate]


def _fixed(place: LinkFrame) -> _Pose:
    return kinematics.constant(place.rotation), [float(x) for x in place.translation]


def _pose(place: LinkFrame, poses: list[_Pose]) -> _Pose:
    """Return rotation and origin of a frame in the base."""
    turn, origin = _fixed(place)
    if place.host < 0:
        return turn, origin
    R, p = poses[place.host]
    return matmul(R, turn), plus(p, matvec(R, origin))


def _relative(first: _Pose, second: _Pose) -> _Pose:
    """Return rotation and origin of the second frame in the first."""
    back = transposed(first[0])
    return matmul(back, second[0]), matvec(back, plus(second[1], times(-1.0, first[1])))


def _turn(R: list[list[Scalar]], rows: tuple[int, ...]) -> list[Scalar]:
    """Return the rotation of a frame for small angles; of the z axis alone if the rotation about it is free."""
    if 5 not in rows:
        return [-1.0 * R[1][2], R[0][2], 0.0]
    return [0.5 * (R[2][1] - R[1][2]), 0.5 * (R[0][2] - R[2][0]), 0.5 * (R[1][0] - R[0][1])]


def _second(coefficients: tuple[float, ...], x: Scalar) -> Scalar:
    """Return the second derivative of a polynomial."""
    value: Scalar = 0.0
    for k, c in reversed(list(enumerate(coefficients))):
        value = value * x + k * (k - 1) * c if k > 1 else value
    return value


def moved_by(robot: Robot, q: Array, step: Array) -> Array:
    """Move positions by small displacements, in the axes of the velocities.

    Args:
        robot: Robot.
        q: Positions, `(samples, joints)`.
        step: Displacements, `(samples, joints)`.
    """
    out = q + step
    for link in robot.links:
        if link.kind not in FREE_WIDTHS:
            continue
        own = slice(link.coordinate, link.coordinate + FREE_WIDTHS[link.kind])
        at, d = q[:, own], step[:, own]
        if link.kind == "planar":
            c, s = np.cos(at[:, 2]), np.sin(at[:, 2])
            out[:, own] = at + np.column_stack([c * d[:, 0] - s * d[:, 1], s * d[:, 0] + c * d[:, 1], d[:, 2]])
            continue
        w, v = np.split(whole_quaternion(at[:, -3:]), [1], axis=1)
        half = 0.5 * d[:, -3:]
        size = np.linalg.norm(half, axis=1, keepdims=True)
        c, s = np.cos(size), half * np.sinc(size / np.pi)
        turned = np.hstack([w * c - np.sum(v * s, axis=1, keepdims=True), w * s + c * v + np.cross(v, s)])
        if link.kind == "floating":
            across = np.cross(v, d[:, :3])
            out[:, own.start : own.start + 3] = at[:, :3] + d[:, :3] + 2.0 * (w * across + np.cross(v, across))
        out[:, own.stop - 3 : own.stop] = vector_part(turned)
    return out
