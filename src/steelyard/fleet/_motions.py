"""Structural error of the links, estimated from the differences between motions.

Robots of a fleet repeat a few motions. Noise averages out over their logs, but friction that the model approximates
causes the same error in all logs of a motion. Its effect on the links shows in the scatter of the summed scores between
motions, which exceeds that of noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.linear.widening import mean_ratio, shrink_to_mean
from steelyard.fleet._arrowhead import Solution
from steelyard.fleet._information import InformationBuilder
from steelyard.fleet._variances import log_information
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array

# Logs belong to the same motion if the relative sizes of their columns differ by less than this.
_TOLERANCE = 0.03
# With more motions than this every log is its own motion.
_MAX_MOTIONS = 64


def motion_ratio(
    builder: InformationBuilder,
    robots: Sequence[Sequence[LogFactors]],
    solution: Solution,
    between_logs: Array,
    mean_covariance: Array,
) -> float:
    """Estimate the ratio of the variance of the links to that of noise; 1 if motions agree.

    Args:
        builder: Computes the information of a log.
        robots: Logs of each robot in the order of `solution`; empty for robots that do not count.
        solution: The fit.
        between_logs: Variances of effects between logs, by group.
        mean_covariance: Covariance of the mean robot's base parameters by noise alone.
    """
    design = builder.design
    links = ~design.own & solution.identifiable & (np.diag(mean_covariance) > 0.0)
    of = _motions(design, [log for own in robots for log in own])
    count = int(of.max(initial=0)) + 1
    if count < 3 or not links.any():
        return 1.0
    effects, variances = design.effects_matrix * builder.scales, between_logs[design.group_of]
    scores = np.zeros((count, design.rank))
    at = 0
    for r, own in enumerate(robots):
        info = log_information(builder, own)
        left = replace(info, h=info.h - info.J @ solution.x[r]).with_log_effects(effects, variances).h
        np.add.at(scores, of[at : at + len(own)], left[:, : design.rank])
        at += len(own)
    moved = (scores - scores.mean(axis=0)) @ solution.cov_mu
    ratios = np.sum(moved**2, axis=0)[links] * count / (count - 1.0) / np.diag(mean_covariance)[links]
    degrees = count - 1.0
    ratio = float(shrink_to_mean(mean_ratio(ratios, degrees), 1.0, 2.0 * degrees))
    return max(ratio, 1.0)


def _motions(design: FleetDesign, logs: Sequence[LogFactors]) -> NDArray[np.int64]:
    """Return the number of the motion of each log."""
    leaders: list[Array] = []
    out = np.zeros(len(logs), dtype=np.int64)
    for n, log in enumerate(logs):
        shape = _shape(design, log)
        far = [float(np.linalg.norm(shape - one)) for one in leaders]
        if far and min(far) < _TOLERANCE * np.sqrt(len(design.equations)):
            out[n] = int(np.argmin(far))
            continue
        if len(leaders) == _MAX_MOTIONS:
            return np.arange(len(logs))
        leaders.append(shape)
        out[n] = len(leaders) - 1
    return out


def _shape(design: FleetDesign, log: LogFactors) -> Array:
    """Return the relative sizes of the columns of each equation."""
    out = np.zeros((len(design.equations), design.rank))
    assert log.factor is not None
    for e, (equation, r) in enumerate(zip(log.equations, log.factor.triangles, strict=True)):
        own, where = equation.among(design.independent)
        size = np.sqrt(np.sum(r[:, own] ** 2, axis=0))
        out[e, where] = size / max(float(np.linalg.norm(size)), 1e-300)
    return out.ravel()
