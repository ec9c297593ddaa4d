"""`identify_elasticity`: stiffness of the joints of a robot, and clock skew of its link encoders, from logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.elasticity.elastic_mapping import ElasticMapping
from steelyard.elasticity.elastic_table import cutoff_of
from steelyard.elasticity.elasticity import Elasticity
from steelyard.elasticity.encoder_readings import EncoderReadings, joints_named, read_readings
from steelyard.elasticity.resonance import resonances
from steelyard.elasticity.two_encoders import TwoEncoders, log_names
from steelyard.errors import SteelyardError
from steelyard.parameters.terms import TermsLike
from steelyard.robot.free import refuse_free
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.log import Log, refuse_without_torque


def identify_elasticity(
    robot: RobotLike,
    log: Any,
    validate: Any = (),
    *,
    mapping: Any = None,
    joints: Sequence[str] = (),
    terms: TermsLike | None = None,
    cutoff_hz: float | None = None,
    links: Model | None = None,
    resonance: bool = False,
    source: Path | None = None,
) -> Elasticity:
    """Identify the elasticity of joints from two encoders, or from the resonance in the signal of one encoder.

    Args:
        robot: Robot, in any form that `load_robot` accepts.
        log: Path of a log, a frame, a dict of arrays, a `Log`, or several.
        validate: Validation logs; the fit does not use them.
        mapping: Mapping file or dict; its table [elastic] states the second encoders. Columns such as `qlink1` are
            recognised.
        joints: Joints to report; default: all joints with a second encoder, or all that move.
        terms: Additional terms of the rigid robot, such as "counterbalance"; rotor, friction and offset are included.
        cutoff_hz: Cut-off of the low-pass of all signals [Hz]; default: computed from the band of the motion.
        links: Known model. Its link torque replaces the motor torque, to calibrate springs of series-elastic drives.
        resonance: Identify from one encoder and a motion that excites the resonance.
        source: Description (MJCF) that the exported elastic model extends.
    """
    arm = refuse_free(as_robot(robot), "elastic joints of it cannot be identified", "Lock its coordinates.")
    encoders = ElasticMapping.of(mapping, arm)
    selection = joints_named(arm, joints)
    logs, validation_logs = (_several(x) for x in (log, validate))
    if not logs:
        raise SteelyardError("Identification needs at least one log; name one.")
    if resonance and links is not None:
        raise SteelyardError("Identification from a resonance does not use known links; remove one of the two options.")
    readings = [read_readings(x, arm, encoders, needed=not resonance) for x in logs]
    validation = [read_readings(x, arm, encoders, needed=False) for x in validation_logs]
    if links is None:
        _refuse_without_torque([one.log for one in (*readings, *validation)])
    _refuse_copies(readings, validation)
    names = log_names([*readings, *validation])
    findings = tuple(dict.fromkeys(text for one in (*readings, *validation) for text in one.findings))
    if resonance:
        estimates = resonances(arm, readings, selection, bool(joints))
        return Elasticity(arm, estimates, names=tuple(names), findings=findings, source=source)
    cutoff = cutoff_of([one.log for one in readings], cutoff_hz)
    whole, every = TwoEncoders(arm, cutoff, terms, links).joints_of(readings, validation, names)
    names_of_selection = {arm.joint_names[k] for k in selection}
    estimates = tuple(x for x in every if x.joint in names_of_selection)
    missing = [name for name in joints if name not in {x.joint for x in estimates}]
    if missing:
        raise SteelyardError(
            f"Joint '{missing[0]}' does not move or lacks a second encoder in the logs; leave it out of --only."
        )
    explained = np.asarray(whole.sums.explained)
    return Elasticity(
        arm, estimates, names=tuple(names), findings=findings, source=source, cutoff_hz=cutoff,
        torque_explained=tuple(float(x) for x in explained),
    )  # fmt: skip


def _several(logs: Any) -> list[Any]:
    if logs is None:
        return []
    return list(logs) if isinstance(logs, list | tuple) else [logs]


def _refuse_without_torque(logs: Sequence[Log]) -> None:
    for log in logs:
        if log.tau is None:
            raise SteelyardError(
                f"{log.meta.get('source', 'The log')}: there is no torque of the motors; name its columns, or give a "
                "known model of the links (--links)."
            )
        if log.meta.get("torque_kind") == "current":
            raise SteelyardError(
                f"{log.meta.get('source', 'The log')}: the torque is in amperes, and the stiffness needs N m; "
                "state torque_constants in the mapping."
            )
    refuse_without_torque(logs)


def _refuse_copies(readings: Sequence[EncoderReadings], validation: Sequence[EncoderReadings]) -> None:
    """Refuse validation logs that the fit uses."""
    for one in validation:
        for other in readings:
            if one.q.shape == other.q.shape and np.array_equal(one.q, other.q):
                raise SteelyardError(
                    f"{one.source} is also a log of the fit, so it cannot validate the fit; give another log."
                )
