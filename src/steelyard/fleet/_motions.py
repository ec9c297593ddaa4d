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
from steelyard.fleet._between import of_logs
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
    links = ~design.own & found.seen & (np.diag(model) > 0.0)
    of = _motions(design, [log for own in robots for log in own])
    count = int(of.max(initial=0)) + 1
    if count < 3 or not links.any():
        return 1.0
    v = between_logs[design.group_of]
    kept = v > 0.0
    B = (design.ways * informed.scales)[:, kept] * np.sqrt(v[kept])
    scores = np.zeros((count, design.rank))
    at = 0
    for r, own in enumerate(robots):
        info = of_logs(informed, own)
        left = info.h - info.J @ found.x[r]
        JB = info.J @ B
        inner = np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, (left @ B)[..., None])
        left = left - (JB @ inner)[..., 0]
        np.add.at(scores, of[at : at + len(own)], left[:, : design.rank])
        at += len(own)
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
        shape = _shape(design, log)
        far = [float(np.linalg.norm(shape - one)) for one in leaders]
        if far and min(far) < _ALIKE * np.sqrt(len(design.equations)):
            out[n] = int(np.argmin(far))
            continue
        if len(leaders) == _MOST:
            return np.arange(len(logs))
        leaders.append(shape)
        out[n] = len(leaders) - 1
    return out


def _shape(design: FleetDesign, log: LogFactors) -> Array:
    """The sizes of the columns of each equation, to one another."""
    out = np.zeros((len(design.equations), design.rank))
    assert log.factor is not None
    for e, (equation, r) in enumerate(zip(log.equations, log.factor.triangles, strict=True)):
        own, where = equation.among(design.independent)
        size = np.sqrt(np.sum(r[:, own] ** 2, axis=0))
        out[e, where] = size / max(float(np.linalg.norm(size)), 1e-300)
    return out.ravel()
