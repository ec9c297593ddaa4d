"""Logs that do not belong to their robots: a joint's torque turned, in another unit, or that of another joint.

Asked before anything is pooled: a log whose channels are mixed up says nothing of its robot. The links are those that
most logs of the model agree on; friction and offset may be anything, for a gear may fail. What the torque of a joint
then still lacks, as a part of its square, is compared with that of all logs of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._information import usual_parameters
from steelyard.fleet._scan import false_discovery
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import percent
from steelyard.ground.remote import shown_address

# Of the logs that are told, so many belong after all, on the average.
FALSE_LOGS = 0.01
# A joint of which less than this part of the squared torque is unexplained is not worth a word.
_WORTH = 0.2
# A mistake explains it if it leaves less than this part of what was unexplained.
_EXPLAINS = 0.2
# Friction of less than this multiple of the usual gives power to the joint.
_DRIVES = -0.5
# Torques that an exchange accounts for are as large as those of the other joint, to this factor (as a logarithm).
_AS_LARGE = 0.25
# Rounds in which the links are fitted to the logs that agree, and how much more than usual these may lack.
_ROUNDS, _AGREES = 4, 4.0
# So many logs are enough to know the links by.
_ENOUGH = 200
# Findings of the check that say what is wrong with a mapping.
_MAPPING = ("order", "sign", "torque_scale", "degrees", "position_sign", "zero", "clock", "coupled", "velocity_sign")


@dataclass(frozen=True)
class OddLog:
    """A log that does not belong.

    Attributes:
        robot: whose it is said to be.
        url: where it lies.
        kind: "sign", "factor", "exchange" (of joints), or "unlike" where none of them accounts for it.
        joints: that are concerned.
        unexplained: the part of the squared torque, in the worst joint, that links, friction and offset leave.
        p: how often a log that belongs would leave as much.
        sentence: the evidence.
    """

    robot: str
    url: str
    kind: str
    joints: tuple[str, ...]
    unexplained: float
    p: float
    sentence: str


@dataclass(frozen=True, eq=False)
class _Look:
    """One log: per equation, what is left of the torque's square with the usual parameters, as it is and turned; with
    friction of its own, if turned, and if it is scaled; by which factor; its friction as a multiple of the usual; sizes
    of torques as they are and should be."""

    usual: Array
    usual_turned: Array
    left: Array
    turned: Array
    scaled: Array
    factor: Array
    friction: Array
    size: Array
    expected: Array


def odd_logs(design: FleetDesign, logs: Sequence[LogFactors], rate: float = FALSE_LOGS) -> tuple[OddLog, ...]:
    """The logs of one model that do not belong, the clearest first.

    Args:
        design: base parameters and effects of the model.
        logs: of all its robots.
        rate: of false ones among those that are told.
    """
    usable = [log for log in logs if log.factor is not None]
    if len(usable) < 3:
        return ()
    with one_blas_thread():
        some = usable[:: -(-len(usable) // _ENOUGH)]
        agree = some
        for _ in range(_ROUNDS):
            beta = usual_parameters(design, agree)
            left = np.array([_look(design, log, beta).left for log in some])
            worst = np.nanmax(left / np.maximum(np.nanmedian(left, axis=0), 1e-4), axis=1)
            limit = max(_AGREES * float(np.median(worst)), _AGREES)
            now = [log for log, x in zip(some, worst, strict=True) if x <= limit]
            if len(now) == len(agree) or len(now) < 0.5 * len(some):
                break
            agree = now
        looks = [_look(design, log, beta) for log in usable]
        left = np.array([x.left for x in looks])
    p = _p_values(left)
    # Friction that drives the joint, where the torque is not the usual one either: it is turned.
    drives = np.array([(x.friction < _DRIVES) & (x.usual > 1.0) for x in looks])
    p = np.where(drives, np.fmin(p, _p_values(np.array([x.usual for x in looks]))), p)
    worth = (left > _WORTH) | drives
    asked = np.where(np.isfinite(p) & worth, p, 1.0)
    real = false_discovery(asked.ravel(), rate).reshape(asked.shape) & worth
    out = [_told(design, usable[n], looks[n], real[n], asked[n]) for n in np.flatnonzero(real.any(axis=1))]
    return tuple(sorted(out, key=lambda one: (one.p, -one.unexplained, one.url)))


def _p_values(left: Array) -> Array:
    """How often a log that belongs leaves as much, by joint: logarithms against their median and scatter."""
    from scipy.special import stdtr  # takes a fifth of a second to import

    value = np.log(np.maximum(left, 1e-9))
    middle = np.nanmedian(value, axis=0)
    scatter = np.maximum(1.4826 * np.nanmedian(np.abs(value - middle), axis=0), 0.2)
    return np.asarray(stdtr(max(0.37 * len(left), 3.0), -(value - middle) / scatter))


def _look(design: FleetDesign, log: LogFactors, beta: Array) -> _Look:
    grams = log.grams(design.independent)
    p, E = design.rank, len(grams)
    usual, usual_turned, left, turned, scaled, factor, friction, size = np.full((8, E), np.nan)
    links, way = np.where(design.own, 0.0, beta), np.append(-beta, 1.0)
    power = np.einsum("p,epq,q->e", beta, grams[:, :p, :p], beta) / np.maximum(log.rows, 1.0)
    expected = np.sqrt(np.maximum(power, 0.0))
    for e, G in enumerate(grams):
        yy = float(G[p, p])
        if yy <= 0.0:
            continue
        own = [k for k in range(p) if design.own[k] and G[k, k] > 0.0]
        rubs = [k for k in own if design.friction[k]]
        M = np.zeros((p + 1, len(own) + 2))  # own columns, links, torque
        M[own, range(len(own))] = 1.0
        M[:p, -2], M[p, -1] = links, 1.0
        S = M.T @ G @ M
        usual[e], usual_turned[e] = (float(w @ G @ w) / yy for w in (way, np.append(beta, 1.0)))
        size[e] = np.sqrt(yy / max(float(log.rows[e]), 1.0))
        left[e], found = _rest(S, 1.0)
        turned[e], _ = _rest(S, -1.0)
        scaled[e], factor[e] = _scaled(S)
        known = sum(abs(beta[k]) * np.sqrt(G[k, k]) for k in rubs)
        now = sum(found[own.index(k)] * np.sign(beta[k] or 1.0) * np.sqrt(G[k, k]) for k in rubs)
        friction[e] = now / known if known > 0.0 else 1.0
        left[e], turned[e], scaled[e] = left[e] / yy, turned[e] / yy, scaled[e] / yy
    return _Look(usual, usual_turned, left, turned, scaled, factor, np.nan_to_num(friction, nan=1.0), size, expected)


def _rest(S: Array, sign: float) -> tuple[float, Array]:
    """What own columns leave of the torque (turned, if `sign` is −1) less that of the links; and their parameters."""
    way = np.array([-1.0, sign])
    r, rr = S[:-2, -2:] @ way, float(way @ S[-2:, -2:] @ way)
    x = _solve(S[:-2, :-2], r)
    return max(rr - float(r @ x), 0.0), x


def _scaled(S: Array) -> tuple[float, float]:
    """What own columns and a multiple of the links' torque leave, and that multiple."""
    x = _solve(S[:-1, :-1], S[:-1, -1])
    return max(float(S[-1, -1] - S[:-1, -1] @ x), 0.0), float(x[-1])


def _solve(N: Array, b: Array) -> Array:
    size = np.sqrt(np.maximum(np.diag(N), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    return np.asarray(scale * np.linalg.solve(N * scale * scale[:, None] + 1e-9 * np.eye(len(N)), scale * b))


def _told(design: FleetDesign, log: LogFactors, look: _Look, real: Array, p: Array) -> OddLog:
    """What accounts for it best, in words."""
    places = [int(e) for e in np.flatnonzero(real)]
    worst = max(places, key=lambda e: look.left[e])
    names = [design.equations[e] for e in places]
    kind, joints, why = (
        "unlike",
        tuple(names),
        "neither a sign, nor a factor, nor an exchange of joints accounts for it",
    )
    order = _exchanged(look, places)
    pairs = (look.turned, look.left), (look.usual_turned, look.usual)
    flips = [e for e in places if any(after[e] < _EXPLAINS * before[e] for after, before in pairs)]
    factors = [e for e in places if look.scaled[e] < _EXPLAINS * look.left[e] and not 0.8 < look.factor[e] < 1.25]
    if len(flips) == len(places):
        kind, joints = "sign", tuple(design.equations[e] for e in flips)
        why = f"turned, the torque of {_listed(joints)} agrees"
    elif len(factors) == len(places):
        kind, joints = "factor", tuple(design.equations[e] for e in factors)
        many = _listed([f"{look.factor[e]:.3g}" for e in factors], quoted=False)
        why = f"it is {many} times that of the other logs: another unit, or a current"
    elif order:
        kind, joints = "exchange", tuple(design.equations[e] for e in order)
        sizes = ", ".join(f"{look.size[e]:.2g} where {look.expected[e]:.2g} was expected" for e in order)
        why = f"the torques are as large as if {_listed(joints)} had been exchanged ({sizes})"
    said = [f["message"] for f in log.findings if f.get("kind") in _MAPPING and f.get("severity") == "problem"]
    told = f"; the check says: {said[0]}" if said else "."
    sentence = (
        f"The log '{shown_address(log.url)}' of robot '{log.robot}' does not belong: links, friction and offset leave "
        f"{percent(100.0 * min(float(np.sqrt(look.left[worst])), 10.0))} of the torque of '{design.equations[worst]}', "
        f"and {why}{told}"
    )
    return OddLog(log.robot, log.url, kind, joints, float(look.left[worst]), float(p[places].min()), sentence)


def _exchanged(look: _Look, places: Sequence[int]) -> list[int]:
    """The joints whose torques have the sizes of each other, if an exchange of them accounts for those."""
    if len(places) < 2:
        return []
    from scipy.optimize import linear_sum_assignment

    have, should = (np.log(np.maximum(x[list(places)], 1e-12)) for x in (look.size, look.expected))
    cost = (have[:, None] - should[None, :]) ** 2
    rows, columns = linear_sum_assignment(cost)
    moved = [places[r] for r, c in zip(rows, columns, strict=True) if r != c]
    best = float(np.max(cost[rows, columns], initial=0.0))
    return moved if moved and best < _AS_LARGE**2 and float(np.max(np.diag(cost))) > 4.0 * best else []


def _listed(names: Sequence[str], quoted: bool = True) -> str:
    told = [f"'{n}'" if quoted else n for n in names]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
