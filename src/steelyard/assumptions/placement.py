"""Exact derivatives of joint torques with respect to joint placements, joint zeros and gravity.

A shift or tilt of a joint frame displaces the bodies behind it by a small screw. A wrong zero is a screw about the
joint axis. The derivative of the inverse dynamics equals that of a virtual joint with this screw at zero speed (Singh,
Russell & Wensing 2022, eq. 38-41). Screws and wrenches are (linear, angular) in base coordinates at the base origin, so
that composite bodies are sums.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import inertia_matrix, move_parameters, rotations_about


def across(axis: Array) -> tuple[Array, Array]:
    """Return two unit vectors that are perpendicular to a unit vector and to each other.

    Args:
        axis: Unit vector.
    """
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)


class Placements:
    """Rigid-body quantities along a motion, and derivatives of their torques.

    Args:
        robot: Tree of links.
        q: Positions [rad, m], shape (samples, joints).
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s^2, m/s^2].
        theta: Ten parameters per link.
    """

    def __init__(self, robot: Robot, q: Array, dq: Array, ddq: Array, theta: Array) -> None:
        self.robot, self.samples = robot, len(q)
        self._outward(q, dq, ddq)
        self._inward(theta)

    def _outward(self, q: Array, dq: Array, ddq: Array) -> None:
        """Compute poses, joint screws, velocities and accelerations (minus gravity) of the links."""
        count = self.samples
        still, up = np.zeros((count, 6)), np.zeros((count, 6))
        up[:, :3] = -self.robot.gravity
        self.rotations: list[Array] = []  # Moved joint frames.
        self.frames: list[Array] = []  # Joint frames before their rotation.
        self.seats: list[Array] = []  # Origins of `frames`.
        self.origins: list[Array] = []
        self.screws, self.velocities, self.accelerations = (list[Array]() for _ in range(3))
        self.before: list[Array] = []  # Acceleration of each link's parent.
        for link in self.robot.links:
            x = link.ratio * q[:, link.coordinate] + link.offset
            if link.parent >= 0:
                R, p = self.rotations[link.parent], self.origins[link.parent]
                v, a = self.velocities[link.parent], self.accelerations[link.parent]
            else:
                R, p, v, a = np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3)), still, up
            frame, seat = R @ link.rotation, p + R @ link.translation
            axis = frame @ link.axis
            if link.kind == "revolute":
                R = frame @ rotations_about(link.axis, x)
                origin, screw = seat, _screw(axis, seat)
            else:
                R, origin = frame, seat + x[:, None] * axis
                screw = np.hstack([axis, np.zeros((count, 3))])
            rate = link.ratio * dq[:, link.coordinate, None] * screw
            change = link.ratio * ddq[:, link.coordinate, None] * screw
            self.before.append(a)
            self.frames.append(frame)
            self.seats.append(seat)
            self.rotations.append(R)
            self.origins.append(origin)
            self.screws.append(screw)
            self.velocities.append(v + rate)
            self.accelerations.append(a + change + motion_product(v, rate))

    def _inward(self, theta: Array) -> None:
        """Compute composite inertias, their rates and forces behind each joint."""
        self.inertias, self.rates, self.forces, self._turns = (list[Array]() for _ in range(4))
        for k, link in enumerate(self.robot.links):
            body = theta[10 * k : 10 * k + 10]
            if link.own_frame:
                body = move_parameters(body, link.frame_rotation, link.frame_translation)
            inertia = _spatial_inertia(body, self.rotations[k], self.origins[k])
            v, a = self.velocities[k], self.accelerations[k]
            momentum = _apply(inertia, v)
            self.inertias.append(inertia)
            self.forces.append(_apply(inertia, a) + force_product(v, momentum))
            # Twice B of the paper: v×* I − I v× + (I v) ×̄*, whose action on a screw s is v×*(I s) − I(v×s) + s×*(I v).
            turn = _motion_matrix(v)
            self._turns.append(turn)
            self.rates.append(-np.swapaxes(turn, 1, 2) @ inertia - inertia @ turn + _momentum_matrix(momentum))
        for k in reversed(range(len(self.robot.links))):
            parent = self.robot.links[k].parent
            if parent >= 0:
                for sums in (self.inertias, self.rates, self.forces):
                    sums[parent] = sums[parent] + sums[k]

    @cached_property
    def _rows(self) -> list[tuple[Array, Array]]:
        """Screw of every joint times its composite inertia, and times the rate of this inertia."""
        return [
            (np.einsum("ni,nij->nj", s, m), np.einsum("ni,nij->nj", s, b))
            for s, m, b in zip(self.screws, self.inertias, self.rates, strict=True)
        ]

    def displacement_slopes(self, link: int, screws: Array) -> Array:
        """Differentiate the torques with respect to small displacements of a link's joint and all bodies behind it.

        Args:
            link: Index of the link.
            screws: Displacements, shape (samples, 6, displacements).

        Returns:
            Shape (samples, joints, displacements).
        """
        parent = self.robot.links[link].parent
        second = _motion_matrix(self.before[link]) @ screws
        first = np.zeros_like(second)
        if parent >= 0:  # The base is fixed.
            first = self._turns[parent] @ screws
            second = second + self._turns[parent] @ first
        out = np.zeros((self.samples, self.robot.dof, screws.shape[2]))
        wrench = self.inertias[link] @ second + self.rates[link] @ first
        wrench = wrench + _momentum_matrix(self.forces[link]) @ screws
        above = set(self.robot.ancestors(link)[:-1])
        for k, joint in enumerate(self.robot.links):
            to = out[:, joint.coordinate]
            if k in above:
                to += joint.ratio * np.einsum("ni,nij->nj", self.screws[k], wrench)
            elif link in self.robot.ancestors(k):
                inertia, rate = self._rows[k]
                to += joint.ratio * np.einsum("ni,nij->nj", inertia, second)
                to += joint.ratio * np.einsum("ni,nij->nj", rate, first)
        return out

    def gravity_slopes(self, direction: Array) -> Array:
        """Differentiate the torques with respect to gravity along a direction in the base frame.

        Args:
            direction: Change of gravity [m/s^2], shape (3,).

        Returns:
            Shape (samples, joints).
        """
        out = np.zeros((self.samples, self.robot.dof))
        for k, link in enumerate(self.robot.links):
            out[:, link.coordinate] -= link.ratio * (self._rows[k][0][:, :3] @ direction)
        return out

    @property
    def torque(self) -> Array:
        """Joint torques of links alone, shape (samples, joints)."""
        out = np.zeros((self.samples, self.robot.dof))
        for link, screw, force in zip(self.robot.links, self.screws, self.forces, strict=True):
            out[:, link.coordinate] += link.ratio * np.sum(screw * force, axis=1)
        return out

    def directions(self, link: int) -> Array:
        """Return the small displacements of a joint frame: three shifts (along the axis first) and two tilts.

        Args:
            link: Index of the link.

        Returns:
            Screws, shape (samples, 6, 5).
        """
        frame, seat = self.frames[link], self.seats[link]
        axis = self.robot.links[link].axis
        u, w = across(axis)
        shifts = [np.hstack([frame @ d, np.zeros((self.samples, 3))]) for d in (axis, u, w)]
        return np.stack([*shifts, *(_screw(frame @ d, seat) for d in (u, w))], axis=2)


def _screw(axis: Array, origin: Array) -> Array:
    """Return unit screws about axes through points: velocity of the base origin, angular velocity."""
    return np.hstack([np.cross(origin, axis), axis])


def motion_product(a: Array, b: Array) -> Array:
    """Compute the rate of change of screws that move with a body.

    Args:
        a: Velocities, shape (samples, 6).
        b: Screws, shape (samples, 6).
    """
    v, w = a[:, :3], a[:, 3:]
    return np.hstack([np.cross(w, b[:, :3]) + np.cross(v, b[:, 3:]), np.cross(w, b[:, 3:])])


def force_product(a: Array, f: Array) -> Array:
    """Compute the rate of change of wrenches that move with a body.

    Args:
        a: Velocities, shape (samples, 6).
        f: Wrenches (force, moment), shape (samples, 6).
    """
    v, w = a[:, :3], a[:, 3:]
    return np.hstack([np.cross(w, f[:, :3]), np.cross(w, f[:, 3:]) + np.cross(v, f[:, :3])])


def _apply(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("nij,nj->ni", matrices, vectors))


def _skews(x: Array) -> Array:
    out = np.zeros((len(x), 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -x[:, 2], x[:, 1], -x[:, 0]
    out[:, 1, 0], out[:, 2, 0], out[:, 2, 1] = x[:, 2], -x[:, 1], x[:, 0]
    return out


def _motion_matrix(a: Array) -> Array:
    """[a×] with [a×] b = `motion_product(a, b)`."""
    out = np.zeros((len(a), 6, 6))
    turn = _skews(a[:, 3:])
    out[:, :3, :3], out[:, 3:, 3:], out[:, :3, 3:] = turn, turn, _skews(a[:, :3])
    return out


def _momentum_matrix(f: Array) -> Array:
    """Return the matrix F of a wrench or momentum f with F s = `force_product(s, f)`."""
    out = np.zeros((len(f), 6, 6))
    push = -_skews(f[:, :3])
    out[:, :3, 3:], out[:, 3:, :3], out[:, 3:, 3:] = push, push, -_skews(f[:, 3:])
    return out


def _spatial_inertia(body: Array, rotations: Array, origins: Array) -> Array:
    """Return the 6 × 6 inertias of a moving body at the base origin."""
    mass = float(body[0])
    arm = rotations @ body[1:4]
    moment = arm + mass * origins
    tensor = rotations @ inertia_matrix(body) @ np.swapaxes(rotations, 1, 2)
    # Parallel axes: −[h×][p×] − [p×][h×] − m [p×][p×] with the first moment h and the origin p.
    dots = 2.0 * np.sum(arm * origins, axis=1) + mass * np.sum(origins**2, axis=1)
    outer = arm[:, :, None] * origins[:, None, :]
    tensor = tensor + dots[:, None, None] * np.eye(3) - outer - np.swapaxes(outer, 1, 2)
    tensor = tensor - mass * origins[:, :, None] * origins[:, None, :]
    out = np.zeros((len(origins), 6, 6))
    out[:, :3, :3] = mass * np.eye(3)
    out[:, 3:, 3:] = tensor
    out[:, 3:, :3] = _skews(moment)
    out[:, :3, 3:] = -out[:, 3:, :3]
    return out
