"""Contribution of gravity to the torque regressor, by its direction."""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


def gravity_regressor(robot: Robot, q: Array) -> Array:
    """Compute the columns of the links per unit of gravity along each axis of the base.

    τ_j = ∂U/∂q_j with U = −g·Σ m p, so the columns are −∂(m p)/∂q_j over the links that joint j carries.

    Args:
        robot: Robot; its own gravity does not matter.
        q: Positions [rad, m], shape (samples, joints).

    Returns:
        Shape (samples, joints, 3, inertial parameters); masses and first moments have entries.
    """
    rotations, origins = link_poses(robot, q)
    out = np.zeros((*q.shape, 3, robot.inertial_count))
    for index, link in enumerate(robot.links):
        # ∂(m p)/∂(m, mx, my, mz): the place of the body's frame, and its axes.
        place = origins[:, index] + rotations[:, index] @ link.frame_translation
        axes = rotations[:, index] @ link.frame_rotation
        moments = np.concatenate([place[:, :, None], axes], axis=2)
        masses = np.array([1.0, 0.0, 0.0, 0.0])
        columns = slice(10 * index, 10 * index + 4)
        for above in robot.ancestors(index):
            carrier = robot.links[above]
            axis = rotations[:, above] @ carrier.axis
            if carrier.kind == "prismatic":
                slope = axis[:, :, None] * masses
            else:
                arms = moments - masses * origins[:, above, :, None]
                slope = np.cross(axis[:, :, None], arms, axis=1)
            out[:, carrier.coordinate, :, columns] -= carrier.ratio * slope
    return out
