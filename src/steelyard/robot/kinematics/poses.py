"""Where the links of a robot stand, in plain NumPy (the fast, traced recursions live in `dynamics/`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotations_about


def link_poses(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Rotations `(…, links, 3, 3)` and origins `(…, links, 3)` of the joint frames of a `robot`'s links in the base.

    `q` is one posture `(joints,)` or any batch of them `(…, joints)`, in rad and m.
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
        if link.kind == "prismatic":
            origin = origin + value * (foot @ link.axis)
        else:
            foot = foot @ rotations_about(link.axis, value[..., 0])
        rotations[..., index, :, :], origins[..., index, :] = foot, origin
    return rotations, origins
