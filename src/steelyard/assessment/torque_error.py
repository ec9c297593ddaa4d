"""`TorqueError`: pools the torque errors of several logs over all their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.assessment.score import JointScore, Score, error_figures
from steelyard.ground.reasons import explained


@dataclass(frozen=True)
class TorqueError:
    """Torque error of each joint over all rows of several logs.

    It is the RMS error over all rows, divided by the torque's standard deviation over the same rows. A slow log with
    small torques therefore has little influence.

    Args:
        joints: Errors of each joint.
        logs: Names of the logs.
        unseen: Whether the logs are validation logs.
    """

    joints: tuple[JointScore, ...]
    logs: tuple[str, ...]
    unseen: bool

    @property
    def moving_percent(self) -> float:
        """Mean error over joints in motion [% of the torque's standard deviation]."""
        return float(np.mean([j.moving_nrmse_percent for j in self.joints]))

    @property
    def all_percent(self) -> float:
        """Mean error over joints and all rows, including standstill [% of the torque's standard deviation]."""
        return float(np.mean([j.nrmse_percent for j in self.joints]))

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
        return explained(
            {
                "unseen": self.unseen,
                "logs": list(self.logs),
                "moving_nrmse_percent": self.moving_percent,
                "nrmse_percent": self.all_percent,
                "joints": [j.for_display for j in self.joints],
            }
        )


def pool_scores(scores: Sequence[Score], unseen: bool) -> TorqueError:
    """Pool the scores of several logs of one robot.

    Args:
        scores: Scores of the logs.
        unseen: Whether the logs are validation logs.
    """
    joints = [
        scores[0].joints[k] if len(scores) == 1 else _pool_joint([(s.samples, s.joints[k]) for s in scores])
        for k in range(len(scores[0].joints))
    ]
    return TorqueError(tuple(joints), tuple(s.log for s in scores), unseen)


def _pool_joint(scores: Sequence[tuple[int, JointScore]]) -> JointScore:
    """Pool the scores of one joint, given with their numbers of samples."""
    counts = np.array([float(n) for n, _ in scores])
    whole = _pool_figures(counts, [vars(j) for _, j in scores])
    raw = [j.raw for _, j in scores]
    return JointScore(
        scores[0][1].joint,
        **whole,
        raw=_pool_figures(counts, raw) if all("torque_std" in x for x in raw) else {},
        moving=_pool_part(counts, [j.moving for _, j in scores], whole["torque_std"]),
        standing=_pool_part(counts, [j.standing for _, j in scores], whole["torque_std"]),
    )


def _pool_figures(counts: np.ndarray, figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """Pool the error figures of logs with `counts` samples."""
    rmse, mean, std = (np.array([f[name] for f in figures]) for name in ("rmse", "torque_mean", "torque_std"))
    sums = (counts @ rmse**2, counts @ mean, counts @ (std**2 + mean**2))
    return error_figures(float(counts.sum()), *(float(x) for x in sums))


def _pool_part(counts: np.ndarray, parts: Sequence[dict[str, float]], torque_std: float) -> dict[str, float]:
    """Pool a joint's `moving` or `standing` figures; `torque_std` is over all rows of all logs."""
    share = np.array([part.get("share", 0.0) for part in parts]) * counts
    if not share.any():
        return {}
    rmse = float(np.sqrt(share @ np.array([part.get("rmse", 0.0) for part in parts]) ** 2 / share.sum()))
    percent = 100.0 * rmse / max(torque_std, 1e-12)
    return {"share": float(share.sum() / counts.sum()), "rmse": rmse, "nrmse_percent": percent}
