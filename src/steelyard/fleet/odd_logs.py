"""Logs that do not belong to their robots: a joint's torque turned, in another unit, or that of another joint.

Asked before anything is pooled: a log whose channels are mixed up says nothing of its robot. The links are those that
most logs of the model agree on; friction and offset may be anything, for a gear may fail. What the torque of a joint
then still lacks, as a part of its square, is compared with that of all logs of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._between import other_loads
from steelyard.fleet._information import usual_parameters
from steelyard.fleet._scan import false_discovery
from steelyard.fleet._stacks import LogStack, stacked
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
    """Logs, and per equation, all `(logs, equations)`: what is left of the torque's square with the usual parameters,
    as it is and turned; with friction of its own, if turned, and if it is scaled; by which factor; its friction as a
    multiple of the usual; sizes of torques as they are and should be."""

    usual: Array
    usual_turned: Array
    left: Array
    turned: Array
    scaled: Array
    factor: Array
    friction: Array
    size: Array
    expected: Array

    def of(self, log: int) -> _Look:
        """That of one log."""
        return _Look(*(getattr(self, f.name)[log] for f in fields(self)))


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
        loaded = _other_load(usable)
        plain = [log for log, other in zip(usable, loaded, strict=True) if not other]
        some = plain[:: -(-len(plain) // _ENOUGH)]
        weighted = np.concatenate([stack.weighted for stack in stacked(some, design.independent)])
        agree = np.ones(len(some), dtype=bool)
        for _ in range(_ROUNDS):
            beta = usual_parameters(weighted[agree])
            left = _looked(design, some, beta).left
            worst = np.nanmax(left / np.maximum(np.nanmedian(left, axis=0), 1e-4), axis=1)
            now = worst <= max(_AGREES * float(np.median(worst)), _AGREES)
            if now.sum() == agree.sum() or now.sum() < 0.5 * len(some):
                break
            agree = now
        looks = _looked(design, usable, beta, loaded)
        left = looks.left
    p = _p_values(left)
    # Friction that drives the joint, where the torque is not the usual one either: it is turned.
    drives = (looks.friction < _DRIVES) & (looks.usual > 1.0)
    p = np.where(drives, np.fmin(p, _p_values(looks.usual)), p)
    worth = (left > _WORTH) | drives
    asked = np.where(np.isfinite(p) & worth, p, 1.0)
    real = false_discovery(asked.ravel(), rate).reshape(asked.shape) & worth
    out = [_told(design, usable[n], looks.of(n), real[n], asked[n]) for n in np.flatnonzero(real.any(axis=1)).tolist()]
    return tuple(sorted(out, key=lambda one: (one.p, -one.unexplained, one.url)))


def _p_values(left: Array) -> Array:
    """How often a log that belongs leaves as much, by joint: logarithms against their median and scatter."""
    from scipy.special import stdtr  # takes a fifth of a second to import

    value = np.log(np.maximum(left, 1e-9))
    middle = np.nanmedian(value, axis=0)
    scatter = np.maximum(1.4826 * np.nanmedian(np.abs(value - middle), axis=0), 0.2)
    return np.asarray(stdtr(max(0.37 * len(left), 3.0), -(value - middle) / scatter))


def _other_load(logs: Sequence[LogFactors]) -> NDArray[np.bool_]:
    """Of each log, whether the table gives it another load than most logs of its robot have."""
    out = np.zeros(len(logs), dtype=bool)
    of_robot: dict[str, list[int]] = {}
    for n, log in enumerate(logs):
        of_robot.setdefault(log.robot, []).append(n)
    for own in of_robot.values():
        out[own] = other_loads([logs[n] for n in own])
    return out


def _looked(
    design: FleetDesign, logs: Sequence[LogFactors], beta: Array, loaded: NDArray[np.bool_] | None = None
) -> _Look:
    """All `logs`; what a load changes may be anything in those that are `loaded`."""
    other = np.zeros(len(logs), dtype=bool) if loaded is None else loaded
    made, order = [], []
    for load in (False, True):
        places = np.flatnonzero(other == load)
        order.append(places)
        some = [logs[n] for n in places.tolist()]
        made += [_look(design, stack, beta, load) for stack in stacked(some, design.independent)] if some else []
    back = np.argsort(np.concatenate(order))
    return _Look(*(np.concatenate([getattr(one, f.name) for one in made])[back] for f in fields(_Look)))


def _look(design: FleetDesign, stack: LogStack, beta: Array, loaded: bool) -> _Look:
    grams, rows = stack.grams, np.maximum(stack.rows, 1.0)
    p, shape = design.rank, stack.rows.shape
    left, turned, scaled, factor, friction = np.full((5, *shape), np.nan)
    power = np.sum((grams[..., :p, :p] @ beta) * beta, axis=-1) / rows
    squares = np.where(grams[..., p, p] > 0.0, grams[..., p, p], np.nan)
    usual, usual_turned = (
        np.sum((grams @ way) * way, axis=-1) / squares for way in (np.append(-beta, 1.0), np.append(beta, 1.0))
    )
    links = np.where(design.own, 0.0, beta)
    for e in range(shape[1]):
        G = grams[:, e]
        sizes = np.sqrt(np.diagonal(G, axis1=1, axis2=2))
        own = [k for k in range(p) if design.own[k] and np.any(sizes[:, k] > 0.0)]
        more = design.load.shape[1] if loaded else 0
        M = np.zeros((p + 1, len(own) + more + 2))  # own columns, those of a load, links, torque
        M[own, range(len(own))] = 1.0
        M[:p, -2], M[p, -1] = links, 1.0
        if more:
            M[:p, len(own) : -2] = design.load
        S = M.T @ G @ M
        left[:, e], found = _rest(S, 1.0)
        turned[:, e], _ = _rest(S, -1.0)
        scaled[:, e], factor[:, e] = _scaled(S)
        rubs = [n for n, k in enumerate(own) if design.friction[k]]
        columns = [own[n] for n in rubs]
        known = sizes[:, columns] @ np.abs(beta[columns])
        now = np.sum(found[:, rubs] * sizes[:, columns] * np.where(beta[columns] < 0.0, -1.0, 1.0), axis=1)
        friction[:, e] = np.where(known > 0.0, now / np.where(known > 0.0, known, 1.0), 1.0)
    size, expected = np.sqrt(squares / rows), np.sqrt(np.maximum(power, 0.0))
    told = np.where(np.isfinite(squares), friction, 1.0)
    return _Look(usual, usual_turned, left / squares, turned / squares, scaled / squares, factor, told, size, expected)


def _rest(S: Array, sign: float) -> tuple[Array, Array]:
    """What own columns leave of the torque (turned, if `sign` is −1) less that of the links; and their parameters."""
    way = np.array([-1.0, sign])
    r, rr = S[:, :-2, -2:] @ way, way @ S[:, -2:, -2:] @ way
    x = _solve(S[:, :-2, :-2], r)
    return np.maximum(rr - np.sum(r * x, axis=1), 0.0), x


def _scaled(S: Array) -> tuple[Array, Array]:
    """What own columns and a multiple of the links' torque leave, and that multiple."""
    x = _solve(S[:, :-1, :-1], S[:, :-1, -1])
    return np.maximum(S[:, -1, -1] - np.sum(S[:, :-1, -1] * x, axis=1), 0.0), x[:, -1]


def _solve(N: Array, b: Array) -> Array:
    size = np.sqrt(np.maximum(np.diagonal(N, axis1=1, axis2=2), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    whole = N * scale[:, None, :] * scale[:, :, None] + 1e-9 * np.eye(N.shape[1])
    return np.asarray(scale * np.linalg.solve(whole, (scale * b)[..., None])[..., 0])


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
    left = float(np.sqrt(look.left[worst]))
    much = f"leave {percent(100.0 * left)} of" if left < 1.0 else "are farther off than"
    sentence = (
        f"The log '{shown_address(log.url)}' of robot '{log.robot}' does not belong: links, friction and offset {much} "
        f"the torque of '{design.equations[worst]}', and {why}{told}"
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
