"""`spring_torque`: the spring of a series-elastic drive as the torque sensor of its joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.elasticity.elastic_mapping import ElasticMapping
from steelyard.elasticity.elasticity import Elasticity
from steelyard.elasticity.encoder_readings import read_readings, values_by_joint
from steelyard.errors import SteelyardError
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.filters import delayed
from steelyard.signals.log import Log


def spring_torque(robot: RobotLike, log: Any, springs: Elasticity | Mapping[str, float], *, mapping: Any = None) -> Log:
    """Convert a log with motor and link positions to a log of the links, with the torques of the springs.

    The torques exclude rotors and friction of the motors, so identify the log with `terms=("viscous", "coulomb")`.
    Joints without a known spring keep their motor torque, and `torque_used` excludes them.

    Args:
        robot: Robot, in any form that `load_robot` accepts.
        log: Path of a log, a frame, a dict of arrays, or a `Log`.
        springs: Identified elasticity, with offsets and skew, or stiffness by joint [N m/rad or N/m].
        mapping: Mapping with the second encoders (`identify_elasticity`).
    """
    arm = as_robot(robot)
    one = read_readings(log, arm, ElasticMapping.of(mapping, arm))
    if isinstance(springs, Elasticity):
        stiffness = {arm.joint_index(x.joint): x.stiffness for x in springs.known}
        skew = {arm.joint_index(x.joint): x.skew.value for x in springs.known if x.skew is not None}
        own = {arm.joint_index(x.joint): x.offsets for x in springs.known}
    else:
        stiffness, skew, own = values_by_joint(springs, arm), {}, {}
    missing = [k for k in one.elastic if k not in stiffness]
    spring_joints = [k for k in one.elastic if k in stiffness]
    if not spring_joints:
        raise SteelyardError(
            f"{one.source}: none of its joints with two encoders has a known spring "
            f"({', '.join(arm.joint_names[k] for k in missing)}); state their stiffness."
        )
    tau = np.zeros_like(one.theta) if one.log.tau is None else one.log.tau.copy()
    q = one.q.copy()
    for k in spring_joints:
        if not stiffness[k] > 0.0:
            raise SteelyardError(
                f"The stiffness of joint '{arm.joint_names[k]}' is {stiffness[k]:g}; give a positive one."
            )
        for start, stop in one.log.segments:
            period = (one.log.t[stop - 1] - one.log.t[start]) / max(stop - start - 1, 1)
            if skew.get(k) and period > 0.0:
                q[start:stop, k] = delayed(one.q[start:stop, k], -skew[k] / period)
        gap = one.theta[:, k] - q[:, k]
        tau[:, k] = stiffness[k] * (gap - _offset(own.get(k, {}), one.source))
    names = [arm.joint_names[k] for k in spring_joints]
    meta = {**one.log.meta, "torque_used": names, "torque_from": "springs"}
    return replace(one.log, q=q, dq=None, ddq=None, tau=tau, channels={}, meta=meta)


def _offset(offsets: Mapping[str, float], source: str) -> float:
    """Return the offset of the same log, or the mean of the others."""
    from pathlib import Path

    stem = Path(source).stem
    if stem in offsets:
        return offsets[stem]
    return float(np.mean(list(offsets.values()))) if offsets else 0.0
