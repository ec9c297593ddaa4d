"""What the description says the torques should be, and what of it depends on the direction of gravity."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.robot.kinematics import link_poses
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array


def nominal_torque(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the links alone, `(samples, joints)`; friction and rotors are left to be fitted."""
    return Dynamics(robot).inverse_dynamics(q, dq, ddq, robot.inertial_parameters)


def gravity_columns(robot: Robot, q: Array) -> Array:
    """Torque per m/s² of gravity along the base's axes, `(samples, joints, 3)`.

    τ_j = ∂U/∂q_j with U = −g·Σ m p, so that the column of joint j is −Σ ∂(m p)/∂q_j over the links it carries.
    """
    rotations, origins = link_poses(robot, q)
    out = np.zeros((*q.shape, 3))
    for index, link in enumerate(robot.links):
        if link.inertia is None:
            continue
        mass = float(link.inertia[0])
        first = mass * link.frame_translation + link.frame_rotation @ link.inertia[1:4]
        moment = mass * origins[:, index] + rotations[:, index] @ first
        for above in robot.ancestors(index):
            carrier = robot.links[above]
            axis = rotations[:, above] @ carrier.axis
            arm = moment - mass * origins[:, above]
            out[:, carrier.coordinate] -= carrier.ratio * (
                mass * axis if carrier.kind == "prismatic" else np.cross(axis, arm)
            )
    return out


def drive_columns(dq: Array, ddq: Array, slow: float) -> Array:
    """What a drive adds to its joint's torque, whatever its size: rotor, viscous and dry friction, offset."""
    return np.column_stack([ddq, dq, np.tanh(dq / slow), np.ones_like(dq)])
