"""Inverse kinematics of any robot by damped least squares (Levenberg–Marquardt) within the joint limits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_from_rpy


class ReachError(SteelyardError):
    """The robot does not reach a pose: states the pose, the smallest error, and a remedy."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A position in the base frame [m] and an orientation, 3×3; None allows any orientation."""

    position: Array
    rotation: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", frozen(self.position))
        if self.position.shape != (3,) or not np.all(np.isfinite(self.position)):
            raise ShapeError(f"The position of a pose must be three finite numbers in m, not {self.position}.")
        if self.rotation is None:
            return
        object.__setattr__(self, "rotation", frozen(self.rotation))
        # 1e-6 accepts matrices written with seven digits, but no mirrored or scaled ones.
        if self.rotation.shape != (3, 3) or not (
            np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(self.rotation) > 0.0
        ):
            raise ShapeError("The rotation of a pose must be a 3×3 rotation matrix (orthonormal, determinant 1).")

    @staticmethod
    def from_rpy(position: ArrayLike, rpy: ArrayLike) -> Pose:
        """Build a pose from URDF's angles.

        Args:
            position: Position [m].
            rpy: Roll, pitch and yaw [rad].
        """
        roll, pitch, yaw = np.asarray(rpy, dtype=float)
        return Pose(frozen(position), rotation_from_rpy(roll, pitch, yaw))

    def __str__(self) -> str:
        return f"({', '.join(f'{x:.4g}' for x in self.position)}) m"


@dataclass(frozen=True, eq=False)
class Tip:
    """The controlled frame: `tool`, a fixed pose in the joint frame of `link` (default: the last link).

    Methods take postures `q` `(…, joints)` [rad, m].
    """

    robot: Robot
    link: str | None = None
    tool: Pose = field(default_factory=lambda: Pose(np.zeros(3), np.eye(3)))

    @property
    def index(self) -> int:
        if self.link is None:
            return len(self.robot.links) - 1
        if self.link not in self.robot.link_names:
            raise UnknownNameError("link", self.link, self.robot.link_names)
        return self.robot.link_names.index(self.link)

    @property
    def chain(self) -> list[int]:
        return self.robot.ancestors(self.index)

    @property
    def tool_rotation(self) -> Array:
        return np.eye(3) if self.tool.rotation is None else self.tool.rotation

    def forward(self, q: ArrayLike) -> tuple[Array, Array]:
        """Compute rotations `(…, 3, 3)` and positions `(…, 3)` [m] of the tip."""
        rotations, origins = link_poses(self.robot, q)
        turn = rotations[..., self.index, :, :]
        return turn @ self.tool_rotation, origins[..., self.index, :] + turn @ self.tool.position

    def pose(self, q: ArrayLike) -> Pose:
        rotation, position = self.forward(q)
        return Pose(position, rotation)

    def jacobian(self, q: Array) -> tuple[Array, Array, Array]:
        """Compute the Jacobian `(…, 6, joints)` (velocity of the tip's origin, then angular), the tip's rotation and
        position.
        """
        rotations, origins = link_poses(self.robot, q)
        turn = rotations[..., self.index, :, :]
        position = origins[..., self.index, :] + turn @ self.tool.position
        out = np.zeros((*q.shape[:-1], 6, self.robot.dof))
        links = [self.robot.links[i] for i in self.chain]
        own = np.array([link.ratio * link.axis for link in links])
        axes = (rotations[..., self.chain, :, :] @ own[:, :, None])[..., 0]
        across = np.cross(axes, position[..., None, :] - origins[..., self.chain, :])
        for k, link in enumerate(links):
            if link.kind == "prismatic":
                out[..., :3, link.coordinate] += axes[..., k, :]
            else:
                out[..., :3, link.coordinate] += across[..., k, :]
                out[..., 3:, link.coordinate] += axes[..., k, :]
        return out, turn @ self.tool_rotation, position


def rotation_vector(rotation: Array) -> Array:
    """Compute rotation vectors `(…, 3)` (axis times angle, 0 to π) of `rotation` `(…, 3, 3)`."""
    R = rotation.reshape(-1, 3, 3)
    # sin θ times the axis, and cos θ. Near half a turn sin θ vanishes; there SciPy computes the axis.
    v = 0.5 * np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=-1)
    sine, cosine = np.linalg.norm(v, axis=-1), 0.5 * (R[:, 0, 0] + R[:, 1, 1] + R[:, 2, 2] - 1.0)
    small = sine < 1e-4
    flat: Array = (
        v * np.where(small, 1.0 + sine**2 / 6.0, np.arctan2(sine, cosine) / np.where(small, 1.0, sine))[:, None]
    )
    half = small & (cosine < 0.0)
    if np.any(half):
        from scipy.spatial.transform import Rotation

        flat[half] = Rotation.from_matrix(R[half]).as_rotvec()
    return flat.reshape(rotation.shape[:-1])


def pose_error(target: Array, aim: Array | None, rotation: Array, position: Array) -> Array:
    """Compute the error of poses row by row: position [m], then, if `aim` is not None, rotation vector [rad] in the
    base.

    Args:
        target: Target positions [m].
        aim: Target rotations; None for any.
        rotation: Present rotations.
        position: Present positions [m].
    """
    missing = target - position
    if aim is None:
        return missing
    turn = rotation_vector(aim @ np.swapaxes(rotation, -1, -2))
    return np.concatenate([missing, turn], axis=-1)


# [m, rad]: a hundred times the rounding error of a pose, far below the resolution of any encoder.
TOLERANCE = 1e-10
_ITERATIONS = 100
_STARTS = 48


def solve_from(tip: Tip, pose: Pose, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Search a posture for one pose from several starts; returns postures and remaining errors (n,).

    Args:
        tip: Frame to position.
        pose: Target.
        starts: Start postures (n, joints) [rad, m].
        low: Lower joint limits [rad, m].
        high: Upper joint limits [rad, m].
    """
    rotation = None if pose.rotation is None else np.broadcast_to(pose.rotation, (len(starts), 3, 3))
    return solve_each(tip, np.broadcast_to(pose.position, (len(starts), 3)), rotation, starts, low, high)


def solve_each(
    tip: Tip, position: Array, rotation: Array | None, starts: Array, low: Array, high: Array,
    iterations: int = _ITERATIONS,
) -> tuple[Array, Array]:  # fmt: skip
    """Search a posture for each of several poses; returns postures and remaining errors (n,).

    A joint that a step would push over a limit is fixed for that step, so that the others compensate for it.

    Args:
        tip: Frame to position.
        position: Target positions (n, 3) [m].
        rotation: Target rotations (n, 3, 3); None for any.
        starts: Start posture of each target (n, joints) [rad, m].
        low: Lower joint limits [rad, m].
        high: Upper joint limits [rad, m].
        iterations: Maximum number of steps.
    """
    q = np.clip(starts, low, high)
    damping = np.full(len(q), 1e-3)
    error, J = _state(tip, position, rotation, q)
    cost = np.linalg.norm(error, axis=1)
    for _ in range(iterations):
        rows = np.flatnonzero((cost > TOLERANCE) & (damping < 1e10))
        if not len(rows):
            break
        step = _step(J[rows], error[rows], damping[rows], q[rows], low, high)
        trial = np.clip(q[rows] + step, low, high)
        new_error, new_J = _state(tip, position[rows], None if rotation is None else rotation[rows], trial)
        new_cost = np.linalg.norm(new_error, axis=1)
        better = new_cost < cost[rows]
        damping[rows] = np.where(better, np.maximum(damping[rows] / 8.0, 1e-14), damping[rows] * 8.0)
        won = rows[better]
        q[won], error[won], J[won], cost[won] = trial[better], new_error[better], new_J[better], new_cost[better]
    return q, cost


def random_starts(low: Array, high: Array, seed: int) -> Array:
    """Draw postures uniformly within the limits; joints without limits turn once.

    Args:
        low: Lower joint limits [rad, m].
        high: Upper joint limits [rad, m].
        seed: Seed of the random numbers.
    """
    a, b = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(a, np.maximum(a, b), (_STARTS, len(low)))


def _state(tip: Tip, target: Array, aim: Array | None, q: Array) -> tuple[Array, Array]:
    J, rotation, position = tip.jacobian(q)
    error = pose_error(target, aim, rotation, position)
    return error, J[:, : error.shape[1]]


def _step(J: Array, error: Array, damping: Array, q: Array, low: Array, high: Array) -> Array:
    fixed = np.zeros(q.shape, dtype=bool)
    step = np.zeros(q.shape)
    # Each round fixes one more joint or ends. Three rounds suffice almost always; the caller clips the rest.
    for _ in range(3):
        free = J * ~fixed[:, None, :]
        normal = np.einsum("nij,nik->njk", free, free)
        size = np.maximum(np.einsum("njj->n", normal), 1e-12)
        normal += (damping * size)[:, None, None] * np.eye(q.shape[1])
        right = np.einsum("nij,ni->nj", free, error)
        step = np.linalg.solve(normal, right[..., None])[..., 0]
        over = ~fixed & (((q + step < low) & (q <= low)) | ((q + step > high) & (q >= high)))
        if not over.any():
            break
        fixed |= over
    return np.where(fixed, 0.0, step)
