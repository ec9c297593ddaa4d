"""Finds logs with a wrong mapping: a joint's torque has the wrong sign or unit, or belongs to another joint.

This runs before the robots are pooled, because such a log says nothing about its robot. The links are fixed at the
values that most logs of the type agree on. Friction and offset are free, because a gear may have failed. The remaining
part of the squared torque of each joint is compared with that of all logs of the type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._information import usual_parameters
from steelyard.fleet._stacks import LogStack, stack_logs
from steelyard.fleet._variances import have_other_load
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import percent
from steelyard.ground.remote import shown_address
from steelyard.trends.series_statistics import false_discovery, robust_p_values

# Expected part of correct logs among the reported ones.
FALSE_LOGS = 0.01
# Smallest unexplained part of a joint's squared torque that is reported.
_MIN_UNEXPLAINED = 0.2
# A fault explains the torque if it leaves less than this part of what was unexplained.
_EXPLAINS = 0.2
# Friction below this multiple of the usual drives the joint.
_DRIVES = -0.5
# Largest log ratio of torques at which an exchange of joints explains them.
_SIZE_TOLERANCE = 0.25
# Number of rounds in which the links are fitted to the logs that agree, and largest ratio of their unexplained part to
# the usual one.
_ROUNDS, _AGREES = 4, 4.0
# Largest number of logs that the links are fitted to.
_MAX_LOGS = 200
# Findings of the check about faults of a mapping.
_MAPPING = ("order", "sign", "torque_scale", "degrees", "position_sign", "zero", "clock", "coupled", "velocity_sign")


@dataclass(frozen=True)
class OddLog:
    """A log with a wrong mapping.

    Attributes:
        robot: Robot that the log is listed for.
        url: Location of the log.
        kind: "sign", "factor", "exchange" (of joints), or "unlike" if none of them explains it.
        joints: Affected joints.
        unexplained: Part of the squared torque of the worst joint that links, friction and offset do not explain.
        p: p-value.
        sentence: The evidence.
    """

    robot: str
    url: str
    kind: str
    joints: tuple[str, ...]
    unexplained: float
    p: float
    sentence: str


@dataclass(frozen=True, eq=False)
class _Unexplained:
    """Unexplained parts of squared torques, shape (logs, equations).

    Attributes:
        usual: With the usual parameters.
        usual_turned: The same for the opposite sign of the torque.
        left: With fitted friction and offset.
        turned: The same for the opposite sign of the torque.
        scaled: With fitted friction, offset and factor of the torque.
        factor: This factor.
        friction: Fitted friction as a multiple of the usual.
        size: Root mean square torque.
        expected: Root mean square torque by the usual parameters.
    """

    usual: Array
    usual_turned: Array
    left: Array
    turned: Array
    scaled: Array
    factor: Array
    friction: Array
    size: Array
    expected: Array

    def of(self, log: int) -> _Unexplained:
        """Select one log."""
        return _Unexplained(*(getattr(self, f.name)[log] for f in fields(self)))


def odd_logs(design: FleetDesign, logs: Sequence[LogFactors], rate: float = FALSE_LOGS) -> tuple[OddLog, ...]:
    """Find the logs of one robot type with a wrong mapping, the most significant first.

    Args:
        design: Base parameters and effects.
        logs: Logs of all robots.
        rate: False discovery rate.
    """
    usable = [log for log in logs if log.factor is not None]
    if len(usable) < 3:
        return ()
    with one_blas_thread():
        loaded = _other_load(usable)
        plain = [log for log, other in zip(usable, loaded, strict=True) if not other]
        some = plain[:: -(-len(plain) // _MAX_LOGS)]
        weighted = np.concatenate([stack.weighted for stack in stack_logs(some, design.independent)])
        agree = np.ones(len(some), dtype=bool)
        for _ in range(_ROUNDS):
            beta = usual_parameters(weighted[agree])
            left = _unexplained(design, some, beta).left
            worst = np.nanmax(left / np.maximum(np.nanmedian(left, axis=0), 1e-4), axis=1)
            now = worst <= max(_AGREES * float(np.median(worst)), _AGREES)
            if now.sum() == agree.sum() or now.sum() < 0.5 * len(some):
                break
            agree = now
        parts = _unexplained(design, usable, beta, loaded)
        left = parts.left
    p = _p_values(left)
    # Friction that drives the joint and an unusual torque together are a wrong sign.
    drives = (parts.friction < _DRIVES) & (parts.usual > 1.0)
    p = np.where(drives, np.fmin(p, _p_values(parts.usual)), p)
    large = (left > _MIN_UNEXPLAINED) | drives
    tested = np.where(np.isfinite(p) & large, p, 1.0)
    real = false_discovery(tested.ravel(), rate).reshape(tested.shape) & large
    out = [
        _explain(design, usable[n], parts.of(n), real[n], tested[n]) for n in np.flatnonzero(real.any(axis=1)).tolist()
    ]
    return tuple(sorted(out, key=lambda one: (one.p, -one.unexplained, one.url)))


def _p_values(left: Array) -> Array:
    """How often a log that belongs leaves as much, by joint: logarithms against their median and scatter."""
    return robust_p_values(np.log(np.maximum(left, 1e-9)), 0.2, 3.0)


def _other_load(logs: Sequence[LogFactors]) -> NDArray[np.bool_]:
    """Return for each log whether its load differs from the usual load of its robot."""
    out = np.zeros(len(logs), dtype=bool)
    of_robot: dict[str, list[int]] = {}
    for n, log in enumerate(logs):
        of_robot.setdefault(log.robot, []).append(n)
    for own in of_robot.values():
        out[own] = have_other_load([logs[n] for n in own])
    return out


def _unexplained(
    design: FleetDesign, logs: Sequence[LogFactors], beta: Array, loaded: NDArray[np.bool_] | None = None
) -> _Unexplained:
    """Compute the unexplained parts of `logs`; in those that are `loaded` the parameters of the load are free."""
    other = np.zeros(len(logs), dtype=bool) if loaded is None else loaded
    made, order = [], []
    for load in (False, True):
        places = np.flatnonzero(other == load)
        order.append(places)
        some = [logs[n] for n in places.tolist()]
        made += [_of_stack(design, stack, beta, load) for stack in stack_logs(some, design.independent)] if some else []
    back = np.argsort(np.concatenate(order))
    return _Unexplained(*(np.concatenate([getattr(one, f.name) for one in made])[back] for f in fields(_Unexplained)))


def _of_stack(design: FleetDesign, stack: LogStack, beta: Array, loaded: bool) -> _Unexplained:
    grams, rows = stack.grams, np.maximum(stack.rows, 1.0)
    p, shape = design.rank, stack.rows.shape
    left, turned, scaled, factor, friction = np.full((5, *shape), np.nan)
    power = np.sum((grams[..., :p, :p] @ beta) * beta, axis=-1) / rows
    squares = np.where(grams[..., p, p] > 0.0, grams[..., p, p], np.nan)
    usual, usual_turned = (
        np.sum((grams @ x) * x, axis=-1) / squares for x in (np.append(-beta, 1.0), np.append(beta, 1.0))
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
        left[:, e], x = _remainder(S, 1.0)
        turned[:, e], _ = _remainder(S, -1.0)
        scaled[:, e], factor[:, e] = _scaled_remainder(S)
        frictional = [n for n, k in enumerate(own) if design.friction[k]]
        columns = [own[n] for n in frictional]
        known = sizes[:, columns] @ np.abs(beta[columns])
        now = np.sum(x[:, frictional] * sizes[:, columns] * np.where(beta[columns] < 0.0, -1.0, 1.0), axis=1)
        friction[:, e] = np.where(known > 0.0, now / np.where(known > 0.0, known, 1.0), 1.0)
    size, expected = np.sqrt(squares / rows), np.sqrt(np.maximum(power, 0.0))
    friction = np.where(np.isfinite(squares), friction, 1.0)
    return _Unexplained(
        usual, usual_turned, left / squares, turned / squares, scaled / squares, factor, friction, size, expected
    )


def _remainder(S: Array, sign: float) -> tuple[Array, Array]:
    """Fit own columns to the torque times `sign` less that of the links; return the squared remainder and the fit."""
    way = np.array([-1.0, sign])
    r, rr = S[:, :-2, -2:] @ way, way @ S[:, -2:, -2:] @ way
    x = _solve(S[:, :-2, :-2], r)
    return np.maximum(rr - np.sum(r * x, axis=1), 0.0), x


def _scaled_remainder(S: Array) -> tuple[Array, Array]:
    """Fit own columns and a multiple of the links' torque; return the squared remainder and the multiple."""
    x = _solve(S[:, :-1, :-1], S[:, :-1, -1])
    return np.maximum(S[:, -1, -1] - np.sum(S[:, :-1, -1] * x, axis=1), 0.0), x[:, -1]


def _solve(N: Array, b: Array) -> Array:
    size = np.sqrt(np.maximum(np.diagonal(N, axis1=1, axis2=2), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    whole = N * scale[:, None, :] * scale[:, :, None] + 1e-9 * np.eye(N.shape[1])
    return np.asarray(scale * np.linalg.solve(whole, (scale * b)[..., None])[..., 0])


def _explain(design: FleetDesign, log: LogFactors, parts: _Unexplained, real: Array, p: Array) -> OddLog:
    """Find the fault that explains the log best, and describe it."""
    places = [int(e) for e in np.flatnonzero(real)]
    worst = max(places, key=lambda e: parts.left[e])
    kind, joints = "unlike", tuple(design.equations[e] for e in places)
    why = "neither a sign, nor a factor, nor an exchange of joints explains it"
    order = _exchanged(parts, places)
    pairs = (parts.turned, parts.left), (parts.usual_turned, parts.usual)
    flips = [e for e in places if any(after[e] < _EXPLAINS * before[e] for after, before in pairs)]
    factors = [e for e in places if parts.scaled[e] < _EXPLAINS * parts.left[e] and not 0.8 < parts.factor[e] < 1.25]
    if len(flips) == len(places):
        kind, joints = "sign", tuple(design.equations[e] for e in flips)
        why = f"with the opposite sign the torque of {_listed(joints)} agrees"
    elif len(factors) == len(places):
        kind, joints = "factor", tuple(design.equations[e] for e in factors)
        values = _listed([f"{parts.factor[e]:.3g}" for e in factors], quoted=False)
        why = f"it is {values} times that of the other logs: another unit, or a current"
    elif order:
        kind, joints = "exchange", tuple(design.equations[e] for e in order)
        sizes = ", ".join(f"{parts.size[e]:.2g} where {parts.expected[e]:.2g} was expected" for e in order)
        why = f"the torques are as large as if {_listed(joints)} had been exchanged ({sizes})"
    found = [f["message"] for f in log.findings if f.get("kind") in _MAPPING and f.get("severity") == "problem"]
    check = f"; the check reports: {found[0]}" if found else "."
    left = float(np.sqrt(parts.left[worst]))
    size = f"leave {percent(100.0 * left)} of" if left < 1.0 else "add to"
    sentence = (
        f"The log '{shown_address(log.url)}' of robot '{log.robot}' does not fit its robot: links, friction and offset "
        f"{size} the torque of '{design.equations[worst]}', and {why}{check}"
    )
    return OddLog(log.robot, log.url, kind, joints, float(parts.left[worst]), float(p[places].min()), sentence)


def _exchanged(parts: _Unexplained, places: Sequence[int]) -> list[int]:
    """Return the joints whose torques have the sizes of each other, if an exchange of joints explains them."""
    if len(places) < 2:
        return []
    from scipy.optimize import linear_sum_assignment

    have, should = (np.log(np.maximum(x[list(places)], 1e-12)) for x in (parts.size, parts.expected))
    cost = (have[:, None] - should[None, :]) ** 2
    rows, columns = linear_sum_assignment(cost)
    moved = [places[r] for r, c in zip(rows, columns, strict=True) if r != c]
    best = float(np.max(cost[rows, columns], initial=0.0))
    return moved if moved and best < _SIZE_TOLERANCE**2 and float(np.max(np.diag(cost))) > 4.0 * best else []


def _listed(names: Sequence[str], quoted: bool = True) -> str:
    quoted_names = [f"'{n}'" if quoted else n for n in names]
    return quoted_names[0] if len(names) == 1 else f"{', '.join(quoted_names[:-1])} and {quoted_names[-1]}"
