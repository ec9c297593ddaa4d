"""Variances of all effects between robots of one type, between logs of one robot, and between motions.

Robots of a fleet repeat a few motions. Noise averages out over their logs, but friction that the model approximates
causes the same error in all logs of a motion. Its effect on the links, their structural error, shows in the scatter of
the summed scores between motions, which exceeds that of noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.linear.widening import mean_ratio, shrink_to_mean
from steelyard.fleet._arrowhead import Arrowhead, Solution, log_variance, score_step
from steelyard.fleet._information import Information, InformationBuilder
from steelyard.fleet.effects import LINKS_KIND, FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array

# Largest number of robots and logs that noise and variances are estimated from, evenly chosen; more add little.
_ROBOTS, _LOGS = 128, 400
# Number of robots of a first, rough estimate.
_FIRST = 32
# Expected difference between logs of one robot, as a part of that between robots.
_LOG_PART = 0.3
# Prior standard deviation of the torque of an unusual load, as a part of the torque.
_OTHER_LOAD = 0.3
# The iteration ends when all log variances move by less than this, or by less than this part of their standard errors.
_ROUNDS, _TOLERANCE, _RELATIVE_TOLERANCE = 25, 0.03, 0.1
# Variance of links that are equal, in squared parts of the torque.
_ZERO_VARIANCE = 1e-16


def log_information(
    builder: InformationBuilder, logs: Sequence[LogFactors], between_logs: Array | None = None
) -> Information:
    """Return the information of each of one robot's logs; logs with an unusual load say nothing about the load.

    With the variances `between_logs` (by group), effects that vary from log to log are marginalised.
    """
    design, info = builder.design, builder.of(logs)
    effects = design.effects_matrix * builder.scales
    other = np.array(have_other_load(logs), dtype=bool)
    if other.any():
        load = effects[:, design.size :]
        some = Information(info.J[other], info.h[other], info.K[other], info.degrees[other])
        some = some.with_log_effects(load, np.full(load.shape[1], _OTHER_LOAD**2))
        info.J[other], info.h[other], info.K[other] = some.J, some.h, some.K
    if between_logs is None:
        return info
    v = between_logs[design.group_of]
    return info.with_log_effects(effects[:, v > 0.0], v[v > 0.0])


def have_other_load(logs: Sequence[LogFactors]) -> list[bool]:
    """Return for each log of one robot whether its load differs from the most frequent one."""
    counts = Counter(log.load or "" for log in logs)
    usual = max(sorted(counts), key=lambda name: counts[name], default="")
    return [(log.load or "") != usual for log in logs]


def sample_logs(
    of_robot: Mapping[str, Sequence[LogFactors]], robots: int = _ROBOTS, logs: int = _LOGS
) -> dict[str, list[LogFactors]]:
    """Choose at most `logs` logs of at most `robots` robots, evenly."""
    names = [n for n, own in of_robot.items() if own]
    names = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, min(len(names), robots)).astype(int))]
    most = max(logs // max(len(names), 1), 2)
    return {n: _evenly(of_robot[n], most) for n in names}


def estimate_variances(
    builder: InformationBuilder, sample: Mapping[str, Sequence[LogFactors]], start: tuple[Array, ...] | None = None
) -> tuple[Array, ...]:
    """Estimate the variances between robots and between logs, and degrees of freedom and evidence of the former.

    `start` holds variances near which to begin the search.
    """
    design = builder.design
    groups = design.groups
    expected = np.array([g.expected for g in groups])
    names, chosen, none = list(sample), list(sample.values()), np.zeros(len(groups))
    effects = design.effects_matrix * builder.scales
    varies = np.array([g.per_log for g in groups])[design.group_of] & np.any(effects != 0.0, axis=0)
    several = any(len(logs) > 1 for logs in chosen)
    v = (0.3 * expected) ** 2
    w = np.where([g.per_log for g in groups], (0.3 * _LOG_PART * expected) ** 2, 0.0) if several else none
    if start is None and len(names) > 2 * _FIRST:
        start = estimate_variances(builder, sample_logs(sample, _FIRST, 3 * _FIRST))[:2]
    if start is not None:
        v, w = np.maximum(start[0], 1e-3 * v), np.maximum(start[1], 1e-3 * w)
    made = [log_information(builder, logs) for logs in chosen]
    J, h = np.concatenate([i.J for i in made]), np.concatenate([i.h for i in made])
    counts = [len(logs) for logs in chosen]
    of_log, first = np.repeat(np.arange(len(names)), counts), np.cumsum([0, *counts[:-1]])
    degrees, pace, last = none, np.ones(2 * len(none)), np.zeros(2 * len(none))
    # Links may be exactly equal; other parameters are not.
    avoid = np.where([g.kind == LINKS_KIND for g in groups], 0.02, 0.5)
    for _ in range(_ROUNDS):
        B = effects[:, varies] * np.sqrt(w[design.group_of[varies]])
        JB = J @ B
        inner = np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB)
        back = inner @ np.swapaxes(JB, 1, 2)
        folded_J = np.add.reduceat(J - JB @ back, first, axis=0)
        folded_h = np.add.reduceat(h - (np.swapaxes(back, 1, 2) @ (h @ B)[..., None])[..., 0], first, axis=0)
        arrow = Arrowhead(folded_J, folded_h, effects, design.group_of, design.rank, np.ones(len(names), dtype=bool))
        solution = arrow.solve(v)
        step, degrees = score_step(solution.u, solution.variance_u, v, design.group_of, expected, avoid)
        more, log_degrees = none, none
        if several:
            V = solution.Q + solution.F @ solution.cov_mu @ np.swapaxes(solution.F, 1, 2)
            rest = h - (J @ solution.x[of_log][..., None])[..., 0]
            root = np.sqrt(w[design.group_of[varies]])
            u = (inner @ (rest @ B)[..., None])[..., 0] * root
            own = np.diagonal(inner, axis1=1, axis2=2)
            variance = (own + np.sum((back @ V[of_log]) * back, axis=2)) * root**2
            more, log_degrees = _log_step(u, variance, w, design.group_of[varies], _LOG_PART * expected, avoid)
        both = np.concatenate([step, more])
        # Two kinds that are hard to separate can oscillate; a step that changes its sign is halved.
        pace, last = np.where(both * last < 0.0, 0.5 * pace, np.minimum(1.3 * pace, 1.0)), both
        v, w = v * np.exp((pace * both)[: len(v)]), w * np.exp((pace * both)[len(v) :])
        doubt = np.sqrt(log_variance(np.concatenate([degrees, log_degrees])))
        if np.all(np.abs(both) < np.maximum(_TOLERANCE, _RELATIVE_TOLERANCE * doubt)):
            break
    # Links are equal unless the likelihood favours a difference.
    evidence = arrow.evidence(v)
    equal = np.array([g.kind == LINKS_KIND for g in groups]) & (evidence <= 0.0)
    return np.where(equal, _ZERO_VARIANCE, v), w, np.where(equal, 0.0, degrees), evidence


def _log_step(
    u: Array, variance: Array, w: Array, group_of: NDArray[np.int64], expected: Array, avoid: Array
) -> tuple[Array, Array]:
    """Compute a scoring step of the variances between logs, and their degrees of freedom."""
    safe = np.where(w > 0.0, w, 1.0)
    step, degrees = score_step(u, variance, safe, group_of, expected, avoid)
    return np.where(w > 0.0, step, 0.0), degrees


def _evenly(logs: Sequence[LogFactors], most: int) -> list[LogFactors]:
    return [logs[k] for k in np.unique(np.linspace(0, len(logs) - 1, min(len(logs), most)).astype(int))]


# Logs belong to the same motion if the relative sizes of their columns differ by less than this.
_MOTION_TOLERANCE = 0.03
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
        if far and min(far) < _MOTION_TOLERANCE * np.sqrt(len(design.equations)):
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
