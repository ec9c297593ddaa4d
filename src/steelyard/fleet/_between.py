"""How much robots of one model differ, and logs of one robot: variances of all groups of effects, found together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._arrow import Arrow, score_step
from steelyard.fleet._information import Information, Informed
from steelyard.fleet.effects import LINKS_KIND
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array

# Variances are estimated from so many robots and logs at most, evenly chosen: more of them would not be known better
# than is of use.
_ROBOTS, _LOGS = 128, 400
# Logs of one robot differ by less than robots do.
_LOG_PART = 0.3
# A load that the table calls another may change the torque by as much as this part.
_OTHER_LOAD = 0.3
_ROUNDS, _STILL = 25, 0.03
# The variance of links that are equal, in squared parts of the torque.
_NEXT_TO_NOTHING = 1e-16


def of_logs(informed: Informed, logs: Sequence[LogFactors], between_logs: Array) -> list[Information]:
    """The information of a robot's logs, each blurred by what varies from log to log."""
    design = informed.design
    v = between_logs[design.group_of]
    kept = v > 0.0
    ways = (design.ways * informed.scales)[:, kept]
    return [
        of_log(informed, log, other).blurred(ways, v[kept]) for log, other in zip(logs, other_loads(logs), strict=True)
    ]


def of_log(informed: Informed, log: LogFactors, other_load: bool) -> Information:
    """What a log says, of the load only if it is the robot's usual one."""
    info = informed.of(log)
    if not other_load:
        return info
    first = informed.design.size
    load = informed.design.ways[:, first:] * informed.scales[first:]
    return info.blurred(load, np.full(load.shape[1], _OTHER_LOAD**2))


def other_loads(logs: Sequence[LogFactors]) -> list[bool]:
    """Of a robot's `logs`, whether each has another load than most of them."""
    counts = Counter(log.load or "" for log in logs)
    usual = max(sorted(counts), key=lambda name: counts[name], default="")
    return [(log.load or "") != usual for log in logs]


def between_variances(informed: Informed, of_robot: dict[str, list[LogFactors]]) -> tuple[Array, ...]:
    """Between robots and between logs, by group; of the former the degrees of freedom and the evidence."""
    design = informed.design
    groups = design.groups
    expected = np.array([g.expected for g in groups])
    names = [n for n, logs in of_robot.items() if logs]
    names = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, min(len(names), _ROBOTS)).astype(int))]
    most = max(_LOGS // len(names), 2)
    none = np.zeros(len(groups))
    chosen = [of_logs(informed, _evenly(of_robot[n], most), none) for n in names]
    ways = design.ways * informed.scales
    varies = np.array([g.per_log for g in groups])[design.group_of] & np.any(ways != 0.0, axis=0)
    several = any(len(logs) > 1 for logs in chosen)
    v = (0.3 * expected) ** 2
    w = np.where([g.per_log for g in groups], (0.3 * _LOG_PART * expected) ** 2, 0.0) if several else none
    J, h = (np.concatenate([[getattr(i, name) for i in logs] for logs in chosen]) for name in ("J", "h"))
    of_log = np.repeat(np.arange(len(names)), [len(logs) for logs in chosen])
    told = none
    # Links may well be equal; nothing else is, to the last digit.
    avoid = np.where([g.kind == LINKS_KIND for g in groups], 0.02, 0.5)
    for _ in range(_ROUNDS):
        B = ways[:, varies] * np.sqrt(w[design.group_of[varies]])
        JB = J @ B
        inner = np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB)
        back = inner @ np.swapaxes(JB, 1, 2)
        folded_J, folded_h = np.zeros((len(names), *J.shape[1:])), np.zeros((len(names), h.shape[1]))
        np.add.at(folded_J, of_log, J - JB @ back)
        np.add.at(folded_h, of_log, h - np.einsum("lda,la->ld", JB @ inner, np.einsum("da,ld->la", B, h)))
        arrow = Arrow(folded_J, folded_h, ways, design.group_of, design.rank, np.ones(len(names), dtype=bool))
        found = arrow.solved(v)
        step, told = score_step(found.u, found.variance_u, v, design.group_of, expected, avoid)
        more = np.zeros(len(groups))
        if several:
            V = found.Q + found.F @ found.cov_mu @ np.swapaxes(found.F, 1, 2)
            rest = h - np.einsum("lde,le->ld", J, found.x[of_log])
            root = np.sqrt(w[design.group_of[varies]])
            u = np.einsum("lab,lb->la", inner, np.einsum("da,ld->la", B, rest)) * root
            own = np.diagonal(inner, axis1=1, axis2=2)
            variance = (own + np.einsum("lad,lde,lae->la", back, V[of_log], back, optimize=True)) * root**2
            more = _log_step(u, variance, w, design.group_of[varies], _LOG_PART * expected, avoid)
        v, w = v * np.exp(step), w * np.exp(more)
        if max(np.max(np.abs(step)), np.max(np.abs(more))) < _STILL:
            break
    # Links whose equality is the likelier account are equal.
    evidence = arrow.evidence(v)
    equal = np.array([g.kind == LINKS_KIND for g in groups]) & (evidence <= 0.0)
    return np.where(equal, _NEXT_TO_NOTHING, v), w, np.where(equal, 0.0, told), evidence


def _log_step(u: Array, variance: Array, w: Array, group_of: NDArray[np.int64], expected: Array, avoid: Array) -> Array:
    """A step of the variances between logs, of the groups that have one."""
    safe = np.where(w > 0.0, w, 1.0)
    step, _ = score_step(u, variance, safe, group_of, expected, avoid)
    return np.where(w > 0.0, step, 0.0)


def _evenly(logs: Sequence[LogFactors], most: int) -> list[LogFactors]:
    return [logs[k] for k in np.unique(np.linspace(0, len(logs) - 1, min(len(logs), most)).astype(int))]
