"""Converts scores and their signals to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.assessment.score import JointScore, Score
from steelyard.ground.display import NamedColumns, wide_columns
from steelyard.ground.result_tables import ResultTable, TableField

_STD, _RMS = "% of the torque's standard deviation", "% of the torque's root mean square"
SCORES = ResultTable(
    "scores",
    "a joint in a log",
    (
        TableField("log", "text", "name of the log"),
        TableField("role", "text", "use of the log: fitted, judged by, or score of the description"),
        TableField("joint", "text", "name of the joint", "joint"),
        TableField("unit", "text", "unit of its torque"),
        TableField("moving_percent", "number", f"root mean square error in motion, {_STD}", "moving", digits=3,
                   printed="moving, % of std", in_frames=False),
        TableField("rmse", "number", "root mean square error, {unit}", "RMSE"),
        TableField("nrmse_percent", "number", f"root mean square error of all samples, {_STD}", "NRMSE", digits=3,
                   printed="all samples %"),
        TableField("r2", "number", "1 − squared error / variance of the torque", "R²", digits=5),
        TableField("relative_error_percent", "number", f"root mean square error, {_RMS}", "of rms", digits=3,
                   printed="relative %"),
        TableField("standing_percent", "number", "the same at standstill", "standing", digits=3,
                   printed="standing %", in_frames=False),
        TableField("time_standing_percent", "number", "% of the samples at standstill", "time standing", digits=3,
                   printed="of the time %", in_frames=False),
        TableField("raw_rmse", "number", "error against the unfiltered measured torque, {unit}", "RMSE, unfiltered",
                   in_frames=False),
        TableField("samples", "count", "number of samples"),
    ),
)  # fmt: skip


def score_row(score: JointScore, **more: Any) -> dict[str, Any]:
    """Return the row of `SCORES` of one joint; figures without meaning are NaN, missing ones None.

    Args:
        score: Score of the joint.
        **more: Further values of the row.
    """
    s = score.for_display
    return {
        "joint": s.joint, "rmse": s.rmse, "nrmse_percent": s.nrmse_percent, "r2": s.r2,
        "relative_error_percent": s.relative_error_percent, "moving_percent": s.moving.get("nrmse_percent"),
        "standing_percent": s.standing.get("nrmse_percent"),
        "time_standing_percent": 100.0 * s.standing.get("share", 0.0), "raw_rmse": s.raw.get("rmse"), **more,
    }  # fmt: skip


def score_columns(scores: Sequence[tuple[str, Score]], units: Mapping[str, str]) -> NamedColumns:
    """Build the table of scores with a row for each joint of each log.

    Args:
        scores: Pairs of role ("fitted", "judged by", …) and score.
        units: Torque unit of each joint.
    """
    return SCORES.frame([
        score_row(j, log=s.log, role=role, unit=units[j.joint], samples=s.samples)
        for role, s in scores for j in s.joints
    ])  # fmt: skip


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
