"""How much wider the model's error bars are than noise explains: logs of the same motion repeat what a model lacks.

Robots of a fleet play a handful of motions, again and again. Noise averages out over their logs, but friction that the
model rounds off is the same in each of them. What it does to the links is seen from motion to motion: the scores of all
logs of one motion together are as large as noise makes them, or larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.linear.widening import drawn_to_mean, mean_ratio
from steelyard.fleet._arrow import Solved
from steelyard.fleet._between import of_log, other_loads
from steelyard.fleet._information import Informed
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array

# Logs whose columns have the same sizes, to this part of them, are of one motion.
_ALIKE = 0.03
# More motions than this are not told apart: every log is one.
_MOST = 64


def motion_ratio(
    informed: Informed, robots: Sequence[Sequence[LogFactors]], found: Solved, between_logs: Array, model: Array
) -> float:
    """How many times larger the variance of the links is than noise explains; 1 where motions agree.

    Args:
        informed: what makes the information of a log.
        robots: the logs of each robot that counts, as `found` has them in order; empty for those that do not.
        found: the fit.
        between_logs: variances of effects between logs, by group.
        model: the covariance of the model's base parameters, as noise explains it.
    """
    design = informed.design
    logs = [(log, r) for r, own in enumerate(robots) for log in own]
    links = ~design.own & found.seen & (np.diag(model) > 0.0)
    of = _motions(design, [log for log, _ in logs])
    count = int(of.max(initial=0)) + 1
    if count < 3 or not links.any():
        return 1.0
    v = between_logs[design.group_of]
    kept = v > 0.0
    B = (design.ways * informed.scales)[:, kept] * np.sqrt(v[kept])
    scores = np.zeros((count, design.rank))
    others = [x for own in robots for x in other_loads(own)]
    for (log, r), other, motion in zip(logs, others, of.tolist(), strict=True):
        info = of_log(informed, log, other)
        left = info.h - info.J @ found.x[r]
        JB = info.J @ B
        left = left - JB @ np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, B.T @ left)
        scores[motion] += left[: design.rank]
    moved = (scores - scores.mean(axis=0)) @ found.cov_mu
    ratios = np.sum(moved**2, axis=0)[links] * count / (count - 1.0) / np.diag(model)[links]
    degrees = count - 1.0
    ratio = float(drawn_to_mean(mean_ratio(ratios, degrees), 1.0, 2.0 * degrees))
    return max(ratio, 1.0)


def _motions(design: FleetDesign, logs: Sequence[LogFactors]) -> NDArray[np.int64]:
    """The number of the motion of each log."""
    leaders: list[Array] = []
    out = np.zeros(len(logs), dtype=np.int64)
    for n, log in enumerate(logs):
        size = np.diagonal(log.grams(design.independent), axis1=1, axis2=2)[:, :-1]
        shape = np.sqrt(size / np.maximum(log.rows, 1.0)[:, None])
        shape = (shape / np.maximum(np.sqrt(np.sum(shape**2, axis=1, keepdims=True)), 1e-300)).ravel()
        far = [float(np.linalg.norm(shape - one)) for one in leaders]
        if far and min(far) < _ALIKE * np.sqrt(len(size)):
            out[n] = int(np.argmin(far))
            continue
        if len(leaders) == _MOST:
            return np.arange(len(logs))
        leaders.append(shape)
        out[n] = len(leaders) - 1
    return out
