"""`LoopStructure`: degrees of freedom of closed loops, a closed start, and random poses of its branch."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.loops.closure import Closure, moved_by
from steelyard.robot.robot import Robot

# Singular values below this share of the largest are rounding.
_ROUNDING = 1e-8
# A loop closes if its gap is below this share of the longest link: descriptions have three digits or more.
CLOSES = 1e-3
# Damping of Gauss–Newton steps to a closed pose, as a share of the largest singular value: rows that differ only by
# rounding do not move joints.
_DAMPING = 1e-4
_STEPS = 60
_CONVERGED = 1e-9
# Walks to random poses: steps of this size [rad, or lengths of the longest link], small enough to keep the branch.
_STRIDE = 0.3
_WALKS = 12
# A step ends if the singular value at the rank falls below this share of its usual value: another branch is near.
_NEAR_BRANCH = 0.05
_SEED = 20261119
_PROBES = 48


class LoopStructure:
    """The closed loops of a robot and their kinematics.

    Args:
        robot: Robot with loops.
        q: Positions [rad, m], `(samples, joints)`.
        count: Number of poses.
        seed: Seed of the poses.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.closure = Closure(robot)
        self.length = _longest(robot)
        self.row_scale = np.array([1.0 if row.angle else 1.0 / self.length for row in self.closure.rows])
        self.unit = np.array([1.0 if joint.kind == "revolute" else self.length for joint in robot.joints])

    def equations(self, q: Array) -> tuple[Array, Array]:
        """Compute φ and its Jacobian, both without units: lengths count in lengths of the longest link."""
        phi, J = self.closure(q)
        return np.asarray(phi * self.row_scale), np.asarray(J * self.row_scale[:, None] * self.unit)

    def drift(self, q: Array, dq: Array) -> Array:
        """Compute φ̈ at q̈ = 0 without units.

        Args:
            q: Positions.
            dq: Velocities.
        """
        return np.asarray(self.closure.drift(q, dq) * self.row_scale)

    def closed(self, q: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Move poses to the nearest closed poses; also return flags of success."""
        q = np.array(q, dtype=float)
        converged = np.zeros(len(q), dtype=bool)
        for _ in range(_STEPS):
            own = np.flatnonzero(~converged)
            if not own.size:
                break
            phi, J = self.equations(q[own])
            A = J @ np.swapaxes(J, 1, 2)
            size = np.trace(A, axis1=1, axis2=2)[:, None, None]
            A = A + _DAMPING**2 * size * np.eye(A.shape[1])
            step = -np.squeeze(np.swapaxes(J, 1, 2) @ np.linalg.solve(A, phi[:, :, None]), axis=2)
            length = np.linalg.norm(step, axis=1)
            step *= np.minimum(1.0, _STRIDE / np.maximum(length, 1e-300))[:, None]
            q[own] = moved_by(self.robot, q[own], step * self.unit)
            converged[own] = length < _CONVERGED
        gap = np.max(np.abs(self.equations(q)[0]), axis=1, initial=0.0)
        return q, np.isfinite(gap) & (gap < CLOSES)

    @cached_property
    def start(self) -> Array:
        """The nearest closed pose to the pose of the description, `(joints,)`."""
        stated = np.array([[self.robot.start.get(name, 0.0) for name in self.robot.joint_names]])
        q, arrived = self.closed(stated)
        if not arrived[0]:
            raise RobotError(
                f"{self.robot.source or self.robot.name}: {self.gap_text(q)[0]} at the positions of the description, "
                "and no near position closes it; correct its frames, or state positions near which it closes "
                "(start = {joint = …} in the loop table)."
            )
        return np.asarray(q[0])

    def gap_text(self, q: Array) -> tuple[str, float]:
        """Name the loop with the largest gap at one pose, and return this gap without unit."""
        phi = self.equations(np.atleast_2d(q))[0][0]
        worst = int(np.argmax(np.abs(phi)))
        row = self.closure.rows[worst]
        gap = abs(float(phi[worst]))
        size = f"{np.degrees(gap):.3g}°" if row.angle else f"{1000.0 * gap * self.length:.3g} mm"
        return f"loop '{self.robot.loops[row.loop].name}' does not close: {size} are missing", gap

    # ------------------------------------------------------------ rank

    @cached_property
    def rank(self) -> int:
        """Number of independent equations at usual poses of the branch."""
        J = self.equations(self._probes)[1]
        values = np.median(np.linalg.svd(J, compute_uv=False), axis=0)
        return clear_rank(values)

    @property
    def mobility(self) -> int:
        """Degrees of freedom."""
        return self.robot.dof - self.rank

    @cached_property
    def _probes(self) -> Array:
        rank = clear_rank(np.linalg.svd(self.equations(self.start[None])[1][0], compute_uv=False))
        return self._walk(_PROBES, _SEED, rank, 3)

    def tangents(self, q: Array) -> Array:
        """Compute orthonormal bases of the possible velocities, `(samples, joints, degrees of freedom)`, unitless."""
        J = self.equations(q)[1]
        _, _, v = np.linalg.svd(J, full_matrices=True)
        return np.swapaxes(v[:, self.rank :], 1, 2)

    def accelerations(self, q: Array, dq: Array) -> Array:
        """Compute the smallest accelerations that keep the loops closed, `(samples, joints)`.

        Args:
            q: Positions.
            dq: Velocities on the loops.
        """
        J = self.equations(q)[1]
        u, s, v = np.linalg.svd(J, full_matrices=False)
        r = self.rank
        own = np.einsum("tki,tk->ti", u[:, :, :r], -self.drift(q, dq)) / s[:, :r]
        return np.asarray(np.einsum("ti,tin->tn", own, v[:, :r]) * self.unit)

    def random_poses(self, count: int, seed: int) -> Array:
        """Draw poses of the branch of the description, `(count, joints)`."""
        return self._walk(count, seed, self.rank, _WALKS)

    def _walk(self, count: int, seed: int, rank: int, steps: int) -> Array:
        """Walk from the start in random directions; reject steps near another branch."""
        rng = np.random.default_rng(seed)
        q = np.repeat(self.start[None], count, axis=0)
        usual = np.linalg.svd(self.equations(q[:1])[1][0], compute_uv=False)[rank - 1] if rank else 1.0
        usual = max(float(usual), 1e-3)
        for _ in range(steps):
            _, _, v = np.linalg.svd(self.equations(q)[1], full_matrices=True)
            N = np.swapaxes(v[:, rank:], 1, 2)
            if not N.shape[2]:
                break
            step = np.einsum("tnk,tk->tn", N, rng.standard_normal((count, N.shape[2])) * _STRIDE)
            there, arrived = self.closed(moved_by(self.robot, q, step * self.unit))
            values = np.linalg.svd(self.equations(there)[1], compute_uv=False)
            clear = values[:, rank - 1] > _NEAR_BRANCH * usual if rank else np.ones(count, dtype=bool)
            ok = arrived & clear
            q[ok] = there[ok]
        return q


def clear_rank(values: Array) -> int:
    """Return the rank of singular `values` at their clearest gap; values below a share of 1e-8 are rounding."""
    relative = np.append(values / max(float(values[0]), 1e-300), 0.0) if len(values) else np.zeros(1)
    ratios = np.maximum(relative[:-1], _ROUNDING) / np.maximum(relative[1:], _ROUNDING)
    return int(np.argmax(ratios)) + 1 if ratios.size and ratios.max() > 1.0 else 0


def _longest(robot: Robot) -> float:
    """Return the longest distance between successive joints, or to a loop's frames [m]."""
    sizes = [float(np.linalg.norm(link.translation)) for link in robot.links]
    for loop in robot.loops:
        for name in ("first", "second"):
            frame = getattr(loop.constraint, name, None)
            if frame is not None:
                sizes.append(float(np.linalg.norm(frame.translation)))
    return max(sizes) or 1.0
