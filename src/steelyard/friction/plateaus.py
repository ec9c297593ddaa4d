"""The times at which one joint turns at a constant speed, and what torque that takes, with gravity taken off it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.friction.coordinates import Coordinates
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare

# Speed may change by this part of itself in a second; faster changes are ramps.
_STEADY = 0.2
# From piece to piece of a plateau, speeds differ by no more than this part.
_SAME = 0.1
# Slower than this part of the joint's top speed counts as standing.
_SLOWEST = 0.005
# A plateau is cut into so many pieces, whose means tell how well its own mean is known.
_PIECES = 8

# Two plateaus are a pair if their speeds agree to this part and they share at least this part of their ways.
_SAME_SPEED = 0.05
_SHARED_WAY = 0.3
_GRID = 64


@dataclass(frozen=True, eq=False)
class Plateau:
    """A stretch of constant speed of joint `joint`: samples of position, the torque less what is known of it, …

    `torque` is the mean of (measured − removed) with its standard error; `load` the mean size of what was removed, the
    load on the gear; `temperature` in °C or, where none is measured, None.
    """

    joint: int
    start: float
    duration: float
    velocity: float
    torque: float
    error: float
    q: Array
    tau: Array
    load: float = 0.0
    temperature: float | None = None


def find_plateaus(
    log: Log, joint: int, shortest: float = 0.2, preparation: Preparation | None = None
) -> Iterator[Plateau]:
    """The plateaus of joint number `joint` (from 0) in `log`, at least `shortest` seconds long; torque as measured.

    `preparation` (None: the default) makes the signals ready.
    """
    settings = preparation or Preparation()
    yield from plateaus_in(log, prepare(log, settings, chosen_cutoff([log], settings)), joint, shortest)


def plateaus_in(log: Log, motions: Iterable[Motion], joint: int, shortest: float = 0.2) -> Iterator[Plateau]:
    """The plateaus of one joint in motions that are prepared already.

    Args:
        log: what the motions are of, for its temperatures.
        motions: the prepared pieces of the log.
        joint: its number, from 0.
        shortest: of a plateau, s.
    """
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: friction is a torque, and the log has none.")
    for motion in motions:
        for start, stop in _steady(motion, joint, shortest):
            yield _plateau(log, motion, joint, start, stop)


def _steady(motion: Motion, joint: int, shortest: float) -> list[tuple[int, int]]:
    first, last, _ = motion.keep.indices(len(motion.t))
    v = motion.dq[first:last, joint]
    top = float(np.max(np.abs(v), initial=0.0))
    if top == 0.0:
        return []
    steady = (np.abs(_slope(v, motion.filter.period)) < _STEADY * np.abs(v)) & (np.abs(v) > _SLOWEST * top)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], steady, [False]]).astype(int)))
    runs = list(zip(edges[::2] + first, edges[1::2] + first, strict=True))
    h = motion.filter.period
    joined: list[tuple[int, int]] = []
    for a0, b0 in runs:
        near = joined and (a0 - joined[-1][1]) * h < 0.05
        if near and np.sign(motion.dq[a0, joint]) == np.sign(motion.dq[joined[-1][1] - 1, joint]):
            joined[-1] = (joined[-1][0], int(b0))
        else:
            joined.append((int(a0), int(b0)))
    long = [(a0, b0) for a0, b0 in joined if (b0 - a0) * h >= shortest]
    return [(a0, b0) for a0, b0 in long if _level(motion.dq[a0:b0, joint])]


def _level(v: Array) -> bool:
    """Whether the speed stays the same from piece to piece: the crest of a slow sine is no plateau."""
    means = np.abs([np.mean(p) for p in np.array_split(v, min(_PIECES, len(v)))])
    return bool(np.ptp(means) <= _SAME * means.mean())


def _slope(v: Array, period: float) -> Array:
    """The change of speed per second over a tenth of one: an acceleration with less noise, infinite at the ends."""
    half = max(1, round(0.05 / period))
    out = np.full(len(v), np.inf)
    if len(v) > 2 * half:
        out[half:-half] = (v[2 * half :] - v[: -2 * half]) / (2 * half * period)
    return out


def _plateau(log: Log, motion: Motion, joint: int, start: int, stop: int) -> Plateau:
    part = slice(start, stop)
    tau = motion.tau[part, joint]
    warm = None
    if "temperature" in log.channels:
        column = log.channels["temperature"]
        middle = 0.5 * (motion.t[start] + motion.t[stop - 1])
        warm = float(np.interp(middle, log.t, column[:, min(joint, column.shape[1] - 1)]))
    return Plateau(
        joint=joint,
        start=float(motion.t[start]),
        duration=float((stop - start) * motion.filter.period),
        velocity=float(np.mean(motion.dq[part, joint])),
        torque=float(np.mean(tau)),
        error=_error_of_mean(tau),
        q=motion.q[part],
        tau=tau,
        temperature=warm,
    )


def _error_of_mean(x: Array) -> float:
    """The standard error of a mean whose samples are correlated, from the means of a few long pieces."""
    pieces = [float(np.mean(p)) for p in np.array_split(x, min(_PIECES, len(x)))]
    if len(pieces) < 2:
        return float("inf")
    return float(np.std(pieces, ddof=1) / np.sqrt(len(pieces)))


def _by_symmetry(plateaus: Sequence[Plateau], middle: float) -> list[Plateau]:
    """The mean over a way that is symmetric about position `middle`, where the gravity torque is odd: it averages out.

    Right for a link about its vertical posture; for one about its horizontal posture gravity does not cancel
    (Kozłowski & Dutkiewicz 1996 tune a counterweight instead).
    """
    out = []
    for p in plateaus:
        q = p.q[:, p.joint]
        reach = min(middle - float(q.min()), float(q.max()) - middle)
        if reach <= 0.0:
            continue
        inside = np.abs(q - middle) <= reach
        if np.count_nonzero(inside) >= 8:
            # Over the way, not over time: at constant speed they are the same but for ripple of the speed.
            even = 0.5 * (_over(p, middle + _steps(reach)) + _over(p, middle - _steps(reach)))
            out.append(replace(p, torque=float(np.mean(even)), error=_error_of_mean(even)))
    return out


def _by_pairs(plateaus: Sequence[Plateau]) -> list[Plateau]:
    """Half the difference of the two directions at equal speed and position: gravity is the same in both.

    What differs between the directions stays with gravity, so that the curve comes out symmetric.
    """
    out = []
    backward = [p for p in plateaus if p.velocity < 0.0]
    for p in (p for p in plateaus if p.velocity > 0.0):
        # The nearest in time, so that both are equally warm.
        for n in sorted(backward, key=lambda other: abs(other.start - p.start)):
            way = _common_way(p, n) if abs(p.velocity + n.velocity) <= _SAME_SPEED * p.velocity else None
            if way is None:
                continue
            half = 0.5 * (_over(p, way) - _over(n, way))
            mean, error = float(np.mean(half)), _error_of_mean(half)
            out += [replace(p, torque=mean, error=error), replace(n, torque=-mean, error=error)]
            backward.remove(n)
            break
    return out


def _by_model(plateaus: Sequence[Plateau], model: Model, places: Coordinates) -> list[Plateau]:
    """Less the torque that a model needs to hold the robot; its friction and offsets do not count."""
    rigid = Model(model.robot, model.terms, np.where(_rigid(model), model.theta, 0.0))
    out = []
    for p in plateaus:
        held = places.torques(rigid.gravity_torque(places.joints(p.q)))[:, p.joint]
        rest = p.tau - held
        load = float(np.mean(np.abs(held)))
        out.append(replace(p, torque=float(np.mean(rest)), error=_error_of_mean(rest), tau=rest, load=load))
    return out


def remove_gravity(
    plateaus: Sequence[Plateau],
    how: str,
    model: Model | None = None,
    middle: float | None = None,
    places: Coordinates | None = None,
) -> list[Plateau]:
    """`plateaus` without gravity; `how`: "pairs", "symmetry" (about `middle`; rad, m), "model" (by `model`), "none".

    They are of `places` (None: of joints).
    """
    if how == "none":
        return list(plateaus)
    if how == "pairs":
        return _by_pairs(plateaus)
    if how == "symmetry":
        if middle is None:
            raise SteelyardError(
                "Symmetry needs the position about which gravity is odd; give it with --middle (in Python: middle)."
            )
        return _by_symmetry(plateaus, middle)
    if how == "model":
        if model is None:
            raise SteelyardError("To take gravity off by a model, give an identified model.")
        return _by_model(plateaus, model, places or Coordinates.of(model.robot))
    raise SteelyardError(f"Gravity is removed by pairs, symmetry, model or none, not by '{how}'.")


def _rigid(model: Model) -> Array:
    """The parameters of links, springs and balancers: what depends on position alone."""
    conservative = model.terms.per_parameter(lambda term, _: not (term.inertial or term.dissipative or term.bias))
    return np.array([True] * model.robot.inertial_count + conservative)


def _steps(reach: float) -> Array:
    return np.linspace(0.0, reach, _GRID)


def _over(p: Plateau, way: Array) -> Array:
    """The torque at positions of the way."""
    q = p.q[:, p.joint]
    order = np.argsort(q)
    return np.asarray(np.interp(way, q[order], p.tau[order]))


def _common_way(a: Plateau, b: Plateau) -> Array | None:
    qa, qb = a.q[:, a.joint], b.q[:, b.joint]
    low, high = max(qa.min(), qb.min()), min(qa.max(), qb.max())
    shorter = min(np.ptp(qa), np.ptp(qb))
    return np.linspace(low, high, _GRID) if high - low >= _SHARED_WAY * shorter else None
