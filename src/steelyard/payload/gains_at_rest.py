"""Scales of torque channels from poses at rest: with a known weight, or with a known model.

The scale is not identifiable from gravity alone: twice the torque may come from twice the mass. A weight of known mass
at a known place fixes it, for currents, PWM and the distance of a servo to its goal, whose scale is its stiffness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.estimation.estimate import EstimationError
from steelyard.gravity.columns import GravityColumns
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile
from steelyard.payload.gains import DriveGains, gauss_newton
from steelyard.payload.held_payload import pairs_of_poses
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.robot.robot import Robot
from steelyard.signals.held_poses import HeldPoses, held_poses
from steelyard.signals.log import Log

_FEWEST_PAIRS = 3


def scale_at_rest(robot: Robot, loaded: Sequence[Log], bare: Sequence[Log], load: Payload) -> DriveGains:
    """Identify the scale of each torque channel from poses with and without a known payload.

    Joints that the payload does not load are left out.

    Args:
        robot: Robot without the payload.
        loaded: Logs with the payload.
        bare: Logs without it.
        load: The payload; mass and centre of gravity count.
    """
    columns = GravityColumns.of(robot, ("offset",))
    with_it, without = held_poses(robot, loaded), held_poses(robot, bare)
    place = robot.moving_frame(load.frame)
    own = frame_transfer(place, link_frame(robot.links[place.host], place.host)) @ load.parameters
    weight = columns.rows(with_it.q)[:, :, 4 * place.host : 4 * place.host + 4] @ own[:4]
    pairs = pairs_of_poses(with_it, without)
    if len(pairs) >= _FEWEST_PAIRS:
        at = np.array([k for k, _ in pairs])
        change = np.array([with_it.tau[k] - without.tau[same].mean(axis=0) for k, same in pairs])
        return _by_joint(robot, weight[at], change)
    return _together(columns, with_it, without, weight)


def scale_from_model(model: Model, logs: Sequence[Log]) -> DriveGains:
    """Identify the scale of each torque channel from poses at rest and a model whose gravity torque is exact.

    Args:
        model: Model, such as that of a description with masses.
        logs: Logs with poses at rest.
    """
    poses = held_poses(model.robot, logs)
    return _by_joint(model.robot, model.gravity_torque(poses.q), poses.tau)


def _by_joint(robot: Robot, torque: Array, channel: Array) -> DriveGains:
    """Fit channel = c torque + offset joint by joint; the scale is 1/c. The noise is on the channel."""
    if len(torque) < 3:
        raise LogError(f"There are {len(torque)} poses at rest; at least 3 are needed.")
    names, values, errors = [], [], []
    for j, name in enumerate(robot.joint_names):
        x, y = torque[:, j] - torque[:, j].mean(), channel[:, j] - channel[:, j].mean()
        power = float(x @ x)
        if not robot.torque_used[j] or power <= 1e-12 * max(float(np.sum(torque**2)), 1e-300):
            continue
        c = float(x @ y) / power
        left = len(x) - 2
        error = float(np.sqrt(np.sum((y - c * x) ** 2) / left / power))
        # A joint whose scale may be infinite carries too little of the known torque.
        if abs(c) > quantile(0.95, left) * error:
            names.append(name)
            values.append(1.0 / c)
            errors.append(error / c**2)
    if not names:
        raise EstimationError("The known torque does not show at any joint; hold poses where it loads the joints.")
    return DriveGains(tuple(names), np.array(values), np.array(errors), robot.joint_names)


def _together(columns: GravityColumns, loaded: HeldPoses, bare: HeldPoses, weight: Array) -> DriveGains:
    """Fit scales and the gravity of the arm together, where the poses with and without the payload differ."""
    robot = columns.robot
    gravity = [k for k, c in enumerate(columns.independent) if c < 4 * len(robot.links)]
    carrying = [j for j in range(robot.dof) if robot.torque_used[j] and np.ptp(weight[:, j]) > 1e-6 * np.ptp(weight)]
    blocks = []
    for j in carrying:
        parts = []
        for poses, own in ((bare, np.zeros(len(bare))), (loaded, weight[:, j])):
            one = np.zeros((len(poses), robot.dof))
            one[:, j] = 1.0
            arm = columns.base_rows(poses.q)[:, j][:, gravity]
            parts.append(np.column_stack([own, arm, one, poses.tau[:, j]]))
        blocks.append(np.vstack(parts))
    used = np.any(np.vstack(blocks)[:, :-1] != 0.0, axis=0)
    blocks = [np.column_stack([b[:, :-1][:, used], b[:, -1]]) for b in blocks]
    start = np.linalg.lstsq(np.vstack(blocks)[:, :-1], np.vstack(blocks)[:, -1], rcond=None)[0]
    weights = np.array([1.0 / max(float(b[:, -1].std()), 1e-12) for b in blocks])
    for _ in range(3):
        c, errors, x = gauss_newton(blocks, weights, start / start[0], len(carrying))
        start = x
        weights = np.array(
            [1.0 / max(float(np.std(b[:, -1] - c[k] * (b[:, :-1] @ x))), 1e-12) for k, b in enumerate(blocks)]
        )
    names = tuple(robot.joint_names[j] for j in carrying)
    return DriveGains(names, 1.0 / c, errors / c**2, robot.joint_names)
