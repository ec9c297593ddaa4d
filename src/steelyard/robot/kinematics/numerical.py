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
    """A pose that the robot cannot take: names the pose, how near it came, and what would fix it."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A place in the robot's base frame (m) and an orientation; without one, any orientation will do."""

    position: Array
    rotation: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", frozen(self.position))
        if self.position.shape != (3,) or not np.all(np.isfinite(self.position)):
            raise ShapeError(f"The position of a pose is three finite numbers in m, not {self.position}.")
        if self.rotation is None:
            return
        object.__setattr__(self, "rotation", frozen(self.rotation))
        # 1e-6: matrices written with seven digits are taken, mirrored or scaled ones are not.
        if self.rotation.shape != (3, 3) or not (
            np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(self.rotation) > 0.0
        ):
            raise ShapeError("The rotation of a pose is a proper 3×3 rotation matrix (orthonormal, determinant 1).")

    @staticmethod
    def from_rpy(position: ArrayLike, rpy: ArrayLike) -> Pose:
        """From a `position` (m) and URDF's roll, pitch, yaw `rpy` (rad)."""
        roll, pitch, yaw = np.asarray(rpy, dtype=float)
        return Pose(frozen(position), rotation_from_rpy(roll, pitch, yaw))

    def __str__(self) -> str:
        return f"({', '.join(f'{x:.4g}' for x in self.position)}) m"


@dataclass(frozen=True, eq=False)
class Tip:
    """The frame that is to be placed: joint frame of `link` (default: the last), then `tool` seen from there.

    Its methods take postures `q` `(…, joints)` in rad and m.
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
        """Rotations `(…, 3, 3)` and places `(…, 3)` of the tip."""
        rotations, origins = link_poses(self.robot, q)
        turn = rotations[..., self.index, :, :]
        return turn @ self.tool_rotation, origins[..., self.index, :] + turn @ self.tool.position

    def pose(self, q: ArrayLike) -> Pose:
        rotation, position = self.forward(q)
        return Pose(position, rotation)

    def jacobian(self, q: Array) -> tuple[Array, Array, Array]:
        """Jacobian `(…, 6, joints)` (velocity of the tip's origin, then angular), with the tip's rotation and place."""
        rotations, origins = link_poses(self.robot, q)
        turn = rotations[..., self.index, :, :]
        place = origins[..., self.index, :] + turn @ self.tool.position
        out = np.zeros((*q.shape[:-1], 6, self.robot.dof))
        for i in self.chain:
            link = self.robot.links[i]
            axis = rotations[..., i, :, :] @ link.axis
            if link.kind == "prismatic":
                out[..., :3, link.coordinate] += link.ratio * axis
            else:
                out[..., :3, link.coordinate] += link.ratio * np.cross(axis, place - origins[..., i, :])
                out[..., 3:, link.coordinate] += link.ratio * axis
        return out, turn @ self.tool_rotation, place


def rotation_vector(rotation: Array) -> Array:
    """The rotation vectors `(…, 3)` (axis times angle, 0 to π) of `rotation` `(…, 3, 3)`."""
    from scipy.spatial.transform import Rotation

    flat = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_rotvec()
    return np.asarray(flat, dtype=float).reshape(rotation.shape[:-1])


def pose_error(pose: Pose, rotation: Array, place: Array) -> Array:
    """What `rotation` and `place` (m) lack to `pose`: metres, then, if it has an orientation, rad in the base frame."""
    missing = pose.position - place
    if pose.rotation is None:
        return missing
    turn = rotation_vector(pose.rotation @ np.swapaxes(rotation, -1, -2))
    return np.concatenate([missing, turn], axis=-1)


# Metres and radians: a hundred times above what rounding leaves of a pose, far below any encoder.
TOLERANCE = 1e-10
_ITERATIONS = 100
_STARTS = 48


def solve_from(tip: Tip, pose: Pose, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """From each of `starts` (n, joints) to a posture of `tip` near `pose`; (postures, what is missing (n,)).

    Postures stay between `low` and `high` (rad, m; one per joint).
    Joints that a step would push over a limit are held there for that step, so the others make up for them.
    """
    q = np.clip(starts, low, high)
    damping = np.full(len(q), 1e-3)
    error, J = _state(tip, pose, q)
    cost = np.linalg.norm(error, axis=1)
    for _ in range(_ITERATIONS):
        active = (cost > TOLERANCE) & (damping < 1e10)
        if not active.any():
            break
        step = _step(J[active], error[active], damping[active], q[active], low, high)
        trial = np.clip(q[active] + step, low, high)
        new_error, new_J = _state(tip, pose, trial)
        new_cost = np.linalg.norm(new_error, axis=1)
        better = new_cost < cost[active]
        rows = np.flatnonzero(active)
        damping[rows] = np.where(better, np.maximum(damping[rows] / 8.0, 1e-14), damping[rows] * 8.0)
        won = rows[better]
        q[won], error[won], J[won], cost[won] = trial[better], new_error[better], new_J[better], new_cost[better]
    return q, cost


def random_starts(low: Array, high: Array, seed: int) -> Array:
    """Postures, drawn by `seed`, all over the ranges `low` to `high` (rad, m); joints without limits turn once."""
    a, b = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(a, np.maximum(a, b), (_STARTS, len(low)))


def _state(tip: Tip, pose: Pose, q: Array) -> tuple[Array, Array]:
    J, rotation, place = tip.jacobian(q)
    error = pose_error(pose, rotation, place)
    return error, J[:, : error.shape[1]]


def _step(J: Array, error: Array, damping: Array, q: Array, low: Array, high: Array) -> Array:
    held = np.zeros(q.shape, dtype=bool)
    step = np.zeros(q.shape)
    # Each round holds at least one joint more or ends; three rounds settle nearly all, the clip of the caller the rest.
    for _ in range(3):
        free = J * ~held[:, None, :]
        normal = np.einsum("nij,nik->njk", free, free)
        size = np.maximum(np.einsum("njj->n", normal), 1e-12)
        normal += (damping * size)[:, None, None] * np.eye(q.shape[1])
        right = np.einsum("nij,ni->nj", free, error)
        step = np.linalg.solve(normal, right[..., None])[..., 0]
        over = ~held & (((q + step < low) & (q <= low)) | ((q + step > high) & (q >= high)))
        if not over.any():
            break
        held |= over
    return np.where(held, 0.0, step)
