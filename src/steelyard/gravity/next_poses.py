"""`next_poses`: the poses that reduce the error of the gravity torque most, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.gravity.columns import random_postures
from steelyard.ground.arrays import Array

if TYPE_CHECKING:
    from steelyard.gravity.gravity_model import GravityModel

_CANDIDATES = 600
_WORKSPACE = 300


def next_poses(gravity: GravityModel, count: int = 5) -> tuple[Array, Array]:
    """Choose poses to hold next, within the limits of the joints; collisions are not checked.

    The measure is the variance of the torque over the workspace, in units of each joint's friction and noise (V-optimal
    design, Fedorov 1972), so it ignores parameters without effect on the torque.

    Args:
        gravity: Gravity model.
        count: Number of poses.

    Returns:
        Poses [rad, m], shape (poses, joints), and the half band of the torque after each pose [N m or N],
        shape (poses, joints): the half band of `GravityModel.workspace_band`, to first order.
    """
    robot = gravity.robot
    # A fixed seed gives reproducible poses; the band uses other poses.
    q = random_postures(robot, _CANDIDATES, np.random.default_rng(1))
    weights = np.array(
        [f.information() if u else 0.0 for f, u in zip(gravity.friction, robot.torque_used, strict=True)]
    )
    joints = np.flatnonzero(weights > 0.0)
    rows = gravity.columns.base_rows(q)[:, joints] * np.sqrt(weights[joints])[:, None]
    everywhere = rows[:_WORKSPACE]
    workspace = np.einsum("njk,njl->kl", everywhere, everywhere) / _WORKSPACE
    C, start = gravity.covariance.copy(), np.trace(workspace @ gravity.covariance)
    indices: list[int] = []
    chosen, bands = [], []
    for _ in range(count):
        CA = rows @ C
        inner = np.linalg.inv(np.eye(len(joints)) + np.einsum("njk,nlk->njl", CA, rows))
        gains = np.einsum("njl,nlk,km,njm->n", inner, CA, workspace, CA)
        gains[indices] = -np.inf  # the same pose again would repeat its friction
        best = int(np.argmax(gains))
        indices.append(best)
        C = C - CA[best].T @ inner[best] @ CA[best]
        chosen.append(q[best])
        bands.append(gravity.workspace_band * np.sqrt(max(np.trace(workspace @ C), 0.0) / max(start, 1e-300)))
    return np.array(chosen), np.array(bands)
