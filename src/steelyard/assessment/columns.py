"""Converts scores and their signals to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.assessment.score import Score
from steelyard.ground.display import NamedColumns, by_columns, wide_columns


def score_columns(scores: Sequence[tuple[str, Score]], units: Mapping[str, str]) -> NamedColumns:
    """Build the table of scores with a row for each joint of each log.

    Args:
        scores: Pairs of role ("fitted", "judged by", …) and score.
        units: Torque unit of each joint.
    """
    heads = ("log", "role", "joint", "unit", "rmse", "nrmse_percent", "r2", "relative_error_percent", "samples")
    rows = [
        (s.log, role, j.joint, units[j.joint], j.rmse, j.nrmse_percent, j.r2, j.relative_error_percent, s.samples)
        for role, s in scores
        for j in (joint.for_display for joint in s.joints)
    ]
    return by_columns(heads, rows)


def signal_columns(scores: Sequence[Score], joints: Sequence[str]) -> NamedColumns:
    """Build the table of measured and predicted torques with the motion, sample by sample.

    Args:
        scores: Scores of the logs, with their signals.
        joints: Names of all joints of the robot.
    """
    parts = []
    for s in scores:
        motion = wide_columns(s.t, {"q": s.q, "dq": s.dq}, joints)
        torques = wide_columns(s.t, {"measured": s.measured, "predicted": s.predicted}, [j.joint for j in s.joints])
        parts.append({"log": np.full(len(s.t), s.log, dtype=object), **motion, **torques})
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
