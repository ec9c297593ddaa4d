"""Plateaus: intervals of constant speed of one joint, their torque, and the removal of gravity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.friction.coordinates import Coordinates
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare

# Largest relative change of speed per second; faster changes are ramps.
_STEADY = 0.2
# Largest relative difference of the mean speeds of a plateau's pieces.
_SAME = 0.1
# Speeds below this fraction of the joint's top speed count as standing.
_SLOWEST = 0.005
# Number of pieces of a plateau, whose means give the standard error.
_PIECES = 8

# Two plateaus form a pair if their speeds agree to this fraction and their ranges overlap by at least this fraction.
_SAME_SPEED = 0.05
_OVERLAP = 0.3
_GRID = 64


@short_repr
@dataclass(frozen=True, eq=False)
class Plateau:
    """An interval of constant speed of one joint.

    Attributes:
        joint: Index of the joint.
        start: Start time [s].
        duration: Duration [s].
        velocity: Mean velocity [rad/s or m/s].
        torque: Mean torque, without gravity if that was removed [N m or N].
        error: Standard error of the mean torque.
        q: Joint positions, shape (samples, joints).
        tau: Torques of the joint, without gravity if that was removed.
        load: Mean magnitude of the removed torque, the load on the gear [N m or N].
        temperature: Temperature [°C]; None if it was not measured.
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
    """Find the plateaus of a joint, with torques as measured.

    Args:
        log: Log with torques.
        joint: Index of the joint.
        shortest: Least duration of a plateau [s].
        preparation: Preparation of the signals; None for the default one.
    """
    settings = preparation or Preparation()
    yield from plateaus_in(log, prepare(log, settings, chosen_cutoff([log], settings)), joint, shortest)


def plateaus_in(log: Log, motions: Iterable[Motion], joint: int, shortest: float = 0.2) -> Iterator[Plateau]:
    """Find the plateaus of a joint in prepared motions.

    Args:
        log: Log of the motions, for its temperatures.
        motions: Prepared motions.
        joint: Index of the joint.
        shortest: Least duration of a plateau [s].
    """
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: the log lacks torques, which friction needs.")
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
    """Whether the pieces have equal mean speeds, which excludes the crest of a slow sine."""
    means = np.abs([np.mean(p) for p in np.array_split(v, min(_PIECES, len(v)))])
    return bool(np.ptp(means) <= _SAME * means.mean())


def _slope(v: Array, period: float) -> Array:
    """Return the change of speed over 0.1 s, divided by that time; infinite at the ends."""
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
    """Compute the standard error of the mean of correlated samples, from the means of long pieces."""
    pieces = [float(np.mean(p)) for p in np.array_split(x, min(_PIECES, len(x)))]
    if len(pieces) < 2:
        return float("inf")
    return float(np.std(pieces, ddof=1) / np.sqrt(len(pieces)))


def _by_symmetry(plateaus: Sequence[Plateau], middle: float) -> list[Plateau]:
    """Average over positions that are symmetric about `middle`, where the gravity torque is odd and cancels.

    This is correct for a link about its vertical posture, not about its horizontal one (Kozłowski & Dutkiewicz 1996
    adjust a counterweight instead).
    """
    out = []
    for p in plateaus:
        q = p.q[:, p.joint]
        reach = min(middle - float(q.min()), float(q.max()) - middle)
        if reach <= 0.0:
            continue
        inside = np.abs(q - middle) <= reach
        if np.count_nonzero(inside) >= 8:
            # The mean over positions equals the mean over time except for ripple of the speed.
            even = 0.5 * (_over(p, middle + _steps(reach)) + _over(p, middle - _steps(reach)))
            out.append(replace(p, torque=float(np.mean(even)), error=_error_of_mean(even)))
    return out


def _by_pairs(plateaus: Sequence[Plateau]) -> list[Plateau]:
    """Take half the difference of the two directions at equal speed and position, where gravity cancels.

    Differences between the directions cancel as well, so the curve is symmetric.
    """
    out = []
    backward = [p for p in plateaus if p.velocity < 0.0]
    for p in (p for p in plateaus if p.velocity > 0.0):
        # The nearest in time, so that both are equally warm.
        for n in sorted(backward, key=lambda other: abs(other.start - p.start)):
            common = _common_positions(p, n) if abs(p.velocity + n.velocity) <= _SAME_SPEED * p.velocity else None
            if common is None:
                continue
            half = 0.5 * (_over(p, common) - _over(n, common))
            mean, error = float(np.mean(half)), _error_of_mean(half)
            out += [replace(p, torque=mean, error=error), replace(n, torque=-mean, error=error)]
            backward.remove(n)
            break
    return out


def _by_model(plateaus: Sequence[Plateau], model: Model, coordinates: Coordinates) -> list[Plateau]:
    """Subtract the gravity torque of a model, without its friction and offsets."""
    rigid = Model(model.robot, model.terms, np.where(_rigid(model), model.theta, 0.0))
    out = []
    for p in plateaus:
        gravity = coordinates.torques(rigid.gravity_torque(coordinates.joints(p.q)))[:, p.joint]
        rest = p.tau - gravity
        load = float(np.mean(np.abs(gravity)))
        out.append(replace(p, torque=float(np.mean(rest)), error=_error_of_mean(rest), tau=rest, load=load))
    return out


def remove_gravity(
    plateaus: Sequence[Plateau],
    how: str,
    model: Model | None = None,
    middle: float | None = None,
    coordinates: Coordinates | None = None,
) -> list[Plateau]:
    """Remove gravity from the torques of plateaus.

    Args:
        plateaus: Plateaus.
        how: "pairs", "symmetry", "model" or "none".
        model: Model for the method "model".
        middle: Centre of the method "symmetry" [rad or m].
        coordinates: Coordinates of the plateaus; default: joints.
    """
    if how == "none":
        return list(plateaus)
    if how == "pairs":
        return _by_pairs(plateaus)
    if how == "symmetry":
        if middle is None:
            raise SteelyardError(
                "Symmetry needs the position about which gravity is odd; set it with --middle (in Python: middle)."
            )
        return _by_symmetry(plateaus, middle)
    if how == "model":
        if model is None:
            raise SteelyardError("Removing gravity by a model needs one; give an identified model.")
        return _by_model(plateaus, model, coordinates or Coordinates.of(model.robot))
    raise SteelyardError(f"Gravity is removed by pairs, symmetry, model or none, not by '{how}'.")


def _rigid(model: Model) -> Array:
    """Select the parameters of links, springs and balancers, which depend only on the position."""
    conservative = model.terms.per_parameter(lambda term, _: not (term.inertial or term.dissipative or term.bias))
    return np.array([True] * model.robot.inertial_count + conservative)


def _steps(reach: float) -> Array:
    return np.linspace(0.0, reach, _GRID)


def _over(p: Plateau, positions: Array) -> Array:
    """Interpolate the torque at positions."""
    q = p.q[:, p.joint]
    order = np.argsort(q)
    return np.asarray(np.interp(positions, q[order], p.tau[order]))


def _common_positions(a: Plateau, b: Plateau) -> Array | None:
    qa, qb = a.q[:, a.joint], b.q[:, b.joint]
    low, high = max(qa.min(), qb.min()), min(qa.max(), qb.max())
    shorter = min(np.ptp(qa), np.ptp(qb))
    return np.linspace(low, high, _GRID) if high - low >= _OVERLAP * shorter else None
