"""`Chain`: the joints between base and tool, and the poses of the tool with small corrections at every joint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import LinkFrame, rotations_about

# Directions of a small correction at a joint, in its frame before it moves: shifts and tilts across the axis, and a
# displacement along the joint's own motion.
SHIFT_U, SHIFT_V, TILT_U, TILT_V, ALONG = range(5)
DIRECTIONS = 5
# Without masses in the description: point masses at the joints, each lighter than the one before, as in serial arms.
# Only the shape of the torque over the postures matters; the unit of a compliance is then arbitrary.
_MASS_RATIO = 0.7


@short_repr
@dataclass(frozen=True, eq=False)
class Tips:
    """Poses of the tool frame in the robot's base.

    Attributes:
        rotation: Rotations, shape (poses, 3, 3).
        position: Origins [m], shape (poses, 3).
        twists: Change of the tip per unit of each correction, shape (poses, 6, corrections): velocity of the origin,
            then rotation vector, in the base. Corrections are ordered by joint, then by direction.
    """

    rotation: Array
    position: Array
    twists: Array | None = None


@short_repr
@dataclass(frozen=True, eq=False)
class Chain:
    """The links between the base and the tool.

    Attributes:
        robot: Robot with its nominal geometry.
        place: Frame of the tool on its link.
        weights: The same robot with identified masses and first moments, for the torques of gravity; None: those of the
            description.
    """

    robot: Robot
    place: LinkFrame
    weights: Robot | None = None

    def __post_init__(self) -> None:
        if self.place.host < 0:
            raise RobotError("The tool is fixed to the base, which does not move; name a frame on a moving link.")

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Links from the base to the tool."""
        return tuple(self.robot.links[k] for k in self.robot.ancestors(self.place.host))

    @cached_property
    def across(self) -> tuple[tuple[Array, Array], ...]:
        """Two unit vectors across each axis, in the joint frame; axes of the frame where possible."""
        out = []
        for link in self.links:
            u = np.cross(np.eye(3)[(int(np.argmax(np.abs(link.axis))) + 1) % 3], link.axis)
            u = np.cross(link.axis, u / np.linalg.norm(u))
            u /= np.linalg.norm(u)
            out.append((u, np.cross(link.axis, u)))
        return tuple(out)

    @cached_property
    def size(self) -> float:
        """Length of the chain [m]: it relates shifts to tilts."""
        lengths = [float(np.linalg.norm(link.translation)) for link in self.links[1:]]
        return sum(lengths) + float(np.linalg.norm(self.place.translation)) or 1.0

    @cached_property
    def masses_known(self) -> bool:
        """Whether the description states the mass of a link that gravity can move."""
        return any(link.inertia is not None and np.any(link.inertia[:4]) for link in (self.weights or self.robot).links)

    def tips(self, q: Array, corrections: Array | None = None, twists: bool = False) -> Tips:
        """Compute the poses of the tool.

        Args:
            q: Joint positions [rad, m], shape (poses, joints).
            corrections: Corrections of every joint, shape (poses or 1, links, 5); None: nominal geometry.
            twists: Also compute the derivatives.
        """
        n, count = len(q), len(self.links)
        x = np.zeros((1, count, DIRECTIONS)) if corrections is None else corrections
        rotation, position = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
        shifts, spins, origins = [], [], []
        for k, link in enumerate(self.links):
            u, v = self.across[k]
            position = position + rotation @ link.translation
            rotation = rotation @ link.rotation
            if link.kind == "revolute":
                shift = x[:, k, SHIFT_U, None] * u + x[:, k, SHIFT_V, None] * v
                position = position + np.einsum("nij,nj->ni", rotation, np.broadcast_to(shift, (n, 3)))
            tilt = x[:, k, TILT_U, None] * u + x[:, k, TILT_V, None] * v
            turned = rotation @ _exponential(tilt)
            if twists:
                shifts.append(rotation @ np.column_stack([u, v]))
                spins.append(turned @ _right_jacobian(tilt) @ np.column_stack([u, v]))
                origins.append((position, turned @ link.axis))
            rotation = turned
            value = link.ratio * q[:, link.coordinate] + link.offset + x[:, k, ALONG]
            if link.kind == "prismatic":
                position = position + value[:, None] * (rotation @ link.axis)
            else:
                rotation = rotation @ rotations_about(link.axis, value)
        position = position + rotation @ self.place.translation
        rotation = rotation @ self.place.rotation
        if not twists:
            return Tips(rotation, position)
        columns = np.zeros((n, 6, count, DIRECTIONS))
        for k, link in enumerate(self.links):
            origin, axis = origins[k]
            arm = position - origin
            turning = link.kind == "revolute"
            if turning:
                columns[:, :3, k, :2] = shifts[k]
            spin = np.concatenate([spins[k], axis[:, :, None]], axis=2)
            columns[:, :3, k, 2:] = np.cross(spin, arm[:, :, None], axis=1)
            columns[:, 3:, k, 2:] = spin
            if not turning:
                columns[:, :3, k, ALONG], columns[:, 3:, k, ALONG] = axis, 0.0
        return Tips(rotation, position, columns.reshape(n, 6, count * DIRECTIONS))

    def gravity_moments(self, q: Array) -> Array:
        """Compute the moment of gravity about the origin of every joint, in its frame before it moves.

        Args:
            q: Joint positions [rad, m], shape (poses, joints).

        Returns:
            Moments [N m] of all links and loads beyond the joint, shape (poses, links, 3).
        """
        robot = self.weights or self.robot
        rotations, origins = link_poses(robot, q)
        mass, centre = [], []
        for k, link in enumerate(robot.links):
            m, moment = (0.0, np.zeros(3)) if link.inertia is None else (link.inertia[0], link.inertia[1:4])
            if not self.masses_known:
                m = _MASS_RATIO ** len(robot.ancestors(k))
            local = m * link.frame_translation + link.frame_rotation @ moment
            mass.append(m)
            centre.append(m * origins[:, k] + rotations[:, k] @ local)
        out = np.zeros((len(q), len(self.links), 3))
        for row, k in enumerate(robot.ancestors(self.place.host)):
            above = [j for j in range(len(robot.links)) if k in robot.ancestors(j)]
            first = sum((centre[j] for j in above), np.zeros((len(q), 3))) - sum(mass[j] for j in above) * origins[:, k]
            moment = np.cross(first, robot.gravity)
            link = robot.links[k]
            parent = np.eye(3) if link.parent < 0 else rotations[:, link.parent]
            out[:, row] = np.einsum("...ji,...j->...i", parent @ link.rotation, moment)
        return out


def _exponential(vectors: Array) -> Array:
    """Rotations of rotation vectors (…, 3)."""
    angle = np.linalg.norm(vectors, axis=-1)[..., None, None]
    k = skews(vectors)
    return np.asarray(np.eye(3) + np.sinc(angle / np.pi) * k + 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2 * (k @ k))


def _right_jacobian(vectors: Array) -> Array:
    """Derivative of a rotation vector's rotation, in the turned frame: exp(v + dv) = exp(v) exp(J dv)."""
    angle = np.linalg.norm(vectors, axis=-1)[..., None, None]
    k = skews(vectors)
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    third = np.where(small, 1.0 / 6.0 - angle**2 / 120.0, (safe - np.sin(safe)) / safe**3)
    return np.asarray(np.eye(3) - 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2 * k + third * (k @ k))


def skews(vectors: Array) -> Array:
    """Compute the matrices [v×] of `vectors` (…, 3)."""
    out = np.zeros((*vectors.shape, 3))
    x, y, z = np.moveaxis(vectors, -1, 0)
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -z, y, -x
    out[..., 1, 0], out[..., 2, 0], out[..., 2, 1] = z, -y, x
    return out


def exponential(vectors: Array) -> Array:
    """Compute the rotations of rotation `vectors` (…, 3) [rad]."""
    return _exponential(np.asarray(vectors, dtype=float))


def rotation_vectors(rotations: Array) -> Array:
    """Compute the rotation vectors (…, 3) [rad] of `rotations`, with angles up to π."""
    from scipy.spatial.transform import Rotation

    flat = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_rotvec()
    return np.asarray(flat).reshape(rotations.shape[:-1])
