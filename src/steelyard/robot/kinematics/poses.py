"""Poses of all links of a robot, in plain NumPy (`dynamics/` has the fast, traced recursions)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array
from steelyard.robot.free import moved as shifted
from steelyard.robot.free import turned
from steelyard.robot.robot import FREE_WIDTHS, Robot
from steelyard.robot.spatial import rotations_about


def link_poses(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Compute rotations `(…, links, 3, 3)` and origins `(…, links, 3)` [m] of the joint frames in the base.

    Args:
        robot: Robot.
        q: One posture `(joints,)` or any batch of them `(…, joints)` [rad, m].
    """
    positions = np.asarray(q, dtype=float)
    if positions.ndim == 0 or positions.shape[-1] != robot.dof:
        raise ShapeError(f"q has shape {positions.shape}; expected (…, {robot.dof}), one column per joint.")
    batch = positions.shape[:-1]
    rotations = np.empty((*batch, len(robot.links), 3, 3))
    origins = np.empty((*batch, len(robot.links), 3))
    for index, link in enumerate(robot.links):
        value = (link.ratio * positions[..., link.coordinate] + link.offset)[..., None]
        above = rotations[..., link.parent, :, :] if link.parent >= 0 else np.eye(3)
        below = origins[..., link.parent, :] if link.parent >= 0 else np.zeros(3)
        foot = above @ link.rotation
        origin = below + above @ link.translation
        if link.kind in FREE_WIDTHS:
            own = [positions[..., k] for k in link.coordinates]
            origin = origin + np.einsum("...ij,...j->...i", foot, _stacked(shifted(link, own), batch))
            rows = [_stacked(row, batch) for row in turned(link, own)]
            foot = foot @ np.stack(rows, axis=-2)
        elif link.kind == "prismatic":
            origin = origin + value * (foot @ link.axis)
        else:
            foot = foot @ rotations_about(link.axis, value[..., 0])
        rotations[..., index, :, :], origins[..., index, :] = foot, origin
    return rotations, origins


def _stacked(values: Sequence[ArrayLike], batch: tuple[int, ...]) -> Array:
    """Stack three scalars of a batch into vectors."""
    return np.stack([np.broadcast_to(np.asarray(x, dtype=float), batch) for x in values], axis=-1)
