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
        links = [self.robot.links[i] for i in self.chain]
        own = np.array([link.ratio * link.axis for link in links])
        axes = (rotations[..., self.chain, :, :] @ own[:, :, None])[..., 0]
        across = np.cross(axes, place[..., None, :] - origins[..., self.chain, :])
        for k, link in enumerate(links):
            if link.kind == "prismatic":
                out[..., :3, link.coordinate] += axes[..., k, :]
            else:
                out[..., :3, link.coordinate] += across[..., k, :]
                out[..., 3:, link.coordinate] += axes[..., k, :]
        return out, turn @ self.tool_rotation, place


def rotation_vector(rotation: Array) -> Array:
    """The rotation vectors `(…, 3)` (axis times angle, 0 to π) of `rotation` `(…, 3, 3)`."""
    R = rotation.reshape(-1, 3, 3)
    # sin θ times the axis, and cos θ. Near half a turn the first vanishes and the axis must be found otherwise.
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


def pose_error(position: Array, aim: Array | None, rotation: Array, place: Array) -> Array:
    """What `rotation` and `place` (m) lack to the `position` (m) and orientation `aim` of poses, row by row: metres,
    then, if they have an orientation (not None), rad in the base frame."""
    missing = position - place
    if aim is None:
        return missing
    turn = rotation_vector(aim @ np.swapaxes(rotation, -1, -2))
    return np.concatenate([missing, turn], axis=-1)


# Metres and radians: a hundred times above what rounding leaves of a pose, far below any encoder.
TOLERANCE = 1e-10
_ITERATIONS = 100
_STARTS = 48


def solve_from(tip: Tip, pose: Pose, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """From each of `starts` (n, joints) to a posture of `tip` near `pose`; (postures, what is missing (n,)).

    Postures stay between `low` and `high` (rad, m; one per joint).
    """
    rotation = None if pose.rotation is None else np.broadcast_to(pose.rotation, (len(starts), 3, 3))
    return solve_each(tip, np.broadcast_to(pose.position, (len(starts), 3)), rotation, starts, low, high)


def solve_each(
    tip: Tip, position: Array, rotation: Array | None, starts: Array, low: Array, high: Array,
    iterations: int = _ITERATIONS,
) -> tuple[Array, Array]:  # fmt: skip
    """As `solve_from`, with a pose of its own for each of `starts`: `position` (n, 3; m), and `rotation` (n, 3, 3) or
    None where any will do. `tip`, `low` and `high` are the same; so many `iterations` at most.

    Joints that a step would push over a limit are held there for that step, so the others make up for them.
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
    """Postures, drawn by `seed`, all over the ranges `low` to `high` (rad, m); joints without limits turn once."""
    a, b = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(a, np.maximum(a, b), (_STARTS, len(low)))


def _state(tip: Tip, position: Array, aim: Array | None, q: Array) -> tuple[Array, Array]:
    J, rotation, place = tip.jacobian(q)
    error = pose_error(position, aim, rotation, place)
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
