"""How much robots of one model differ, and logs of one robot: variances of all groups of effects, found together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._arrow import Arrow, log_variance, score_step
from steelyard.fleet._information import Information, Informed
from steelyard.fleet.effects import LINKS_KIND
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array

# What noise is like, and variances, are learnt from so many robots and logs at most, evenly chosen: more of them would
# not be known better than is of use.
_ROBOTS, _LOGS = 128, 400
# Looked for near what so many of the robots say.
_FIRST = 32
# Logs of one robot differ by less than robots do.
_LOG_PART = 0.3
# A load that the table calls another may change the torque by as much as this part.
_OTHER_LOAD = 0.3
# Logarithms of variances that move by less than this, or than this part of their standard errors, stand still.
_ROUNDS, _STILL, _STILL_PART = 25, 0.03, 0.1
# The variance of links that are equal, in squared parts of the torque.
_NEXT_TO_NOTHING = 1e-16


def of_logs(informed: Informed, logs: Sequence[LogFactors], between_logs: Array | None = None) -> Information:
    """The information of each of a robot's `logs`, of the load only if it is the robot's usual one; blurred by what
    varies from log to log, if its variances by group are given."""
    design, info = informed.design, informed.of(logs)
    ways = design.ways * informed.scales
    other = np.array(other_loads(logs), dtype=bool)
    if other.any():
        load = ways[:, design.size :]
        some = Information(info.J[other], info.h[other], info.K[other], info.degrees[other])
        some = some.blurred(load, np.full(load.shape[1], _OTHER_LOAD**2))
        info.J[other], info.h[other], info.K[other] = some.J, some.h, some.K
    if between_logs is None:
        return info
    v = between_logs[design.group_of]
    return info.blurred(ways[:, v > 0.0], v[v > 0.0])


def other_loads(logs: Sequence[LogFactors]) -> list[bool]:
    """Of a robot's `logs`, whether each has another load than most of them."""
    counts = Counter(log.load or "" for log in logs)
    usual = max(sorted(counts), key=lambda name: counts[name], default="")
    return [(log.load or "") != usual for log in logs]


def sampled(
    of_robot: Mapping[str, Sequence[LogFactors]], robots: int = _ROBOTS, logs: int = _LOGS
) -> dict[str, list[LogFactors]]:
    """Some logs of some of the robots, at most so many."""
    names = [n for n, own in of_robot.items() if own]
    names = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, min(len(names), robots)).astype(int))]
    most = max(logs // max(len(names), 1), 2)
    return {n: _evenly(of_robot[n], most) for n in names}


def between_variances(
    informed: Informed, sample: Mapping[str, Sequence[LogFactors]], start: tuple[Array, ...] | None = None
) -> tuple[Array, ...]:
    """Between robots and between logs, by group; of the former the degrees of freedom and the evidence. `start`: where
    to look first."""
    design = informed.design
    groups = design.groups
    expected = np.array([g.expected for g in groups])
    names, chosen, none = list(sample), list(sample.values()), np.zeros(len(groups))
    ways = design.ways * informed.scales
    varies = np.array([g.per_log for g in groups])[design.group_of] & np.any(ways != 0.0, axis=0)
    several = any(len(logs) > 1 for logs in chosen)
    v = (0.3 * expected) ** 2
    w = np.where([g.per_log for g in groups], (0.3 * _LOG_PART * expected) ** 2, 0.0) if several else none
    if start is None and len(names) > 2 * _FIRST:
        start = between_variances(informed, sampled(sample, _FIRST, 3 * _FIRST))[:2]
    if start is not None:
        v, w = np.maximum(start[0], 1e-3 * v), np.maximum(start[1], 1e-3 * w)
    made = [of_logs(informed, logs) for logs in chosen]
    J, h = np.concatenate([i.J for i in made]), np.concatenate([i.h for i in made])
    counts = [len(logs) for logs in chosen]
    of_log, first = np.repeat(np.arange(len(names)), counts), np.cumsum([0, *counts[:-1]])
    told, pace, last = none, np.ones(2 * len(none)), np.zeros(2 * len(none))
    # Links may well be equal; nothing else is, to the last digit.
    avoid = np.where([g.kind == LINKS_KIND for g in groups], 0.02, 0.5)
    for _ in range(_ROUNDS):
        B = ways[:, varies] * np.sqrt(w[design.group_of[varies]])
        JB = J @ B
        inner = np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB)
        back = inner @ np.swapaxes(JB, 1, 2)
        folded_J = np.add.reduceat(J - JB @ back, first, axis=0)
        folded_h = np.add.reduceat(h - (np.swapaxes(back, 1, 2) @ (h @ B)[..., None])[..., 0], first, axis=0)
        arrow = Arrow(folded_J, folded_h, ways, design.group_of, design.rank, np.ones(len(names), dtype=bool))
        found = arrow.solved(v)
        step, told = score_step(found.u, found.variance_u, v, design.group_of, expected, avoid)
        more, told_logs = none, none
        if several:
            V = found.Q + found.F @ found.cov_mu @ np.swapaxes(found.F, 1, 2)
            rest = h - (J @ found.x[of_log][..., None])[..., 0]
            root = np.sqrt(w[design.group_of[varies]])
            u = (inner @ (rest @ B)[..., None])[..., 0] * root
            own = np.diagonal(inner, axis1=1, axis2=2)
            variance = (own + np.sum((back @ V[of_log]) * back, axis=2)) * root**2
            more, told_logs = _log_step(u, variance, w, design.group_of[varies], _LOG_PART * expected, avoid)
        both = np.concatenate([step, more])
        # Two kinds that are hardly told apart take turns: whoever turns round goes half as far.
        pace, last = np.where(both * last < 0.0, 0.5 * pace, np.minimum(1.3 * pace, 1.0)), both
        v, w = v * np.exp((pace * both)[: len(v)]), w * np.exp((pace * both)[len(v) :])
        doubt = np.sqrt(log_variance(np.concatenate([told, told_logs])))
        if np.all(np.abs(both) < np.maximum(_STILL, _STILL_PART * doubt)):
            break
    # Links whose equality is the likelier account are equal.
    evidence = arrow.evidence(v)
    equal = np.array([g.kind == LINKS_KIND for g in groups]) & (evidence <= 0.0)
    return np.where(equal, _NEXT_TO_NOTHING, v), w, np.where(equal, 0.0, told), evidence


def _log_step(
    u: Array, variance: Array, w: Array, group_of: NDArray[np.int64], expected: Array, avoid: Array
) -> tuple[Array, Array]:
    """A step of the variances between logs, of the groups that have one, and their degrees of freedom."""
    safe = np.where(w > 0.0, w, 1.0)
    step, told = score_step(u, variance, safe, group_of, expected, avoid)
    return np.where(w > 0.0, step, 0.0), told


def _evenly(logs: Sequence[LogFactors], most: int) -> list[LogFactors]:
    return [logs[k] for k in np.unique(np.linspace(0, len(logs) - 1, min(len(logs), most)).astype(int))]
