"""Find the times at which one joint turns at a constant speed, and what torque that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.errors import LogError
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
    """The plateaus of one joint, at least `shortest` seconds long, with the torque as it was measured."""
    settings = preparation or Preparation()
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: friction is a torque, and the log has none.")
    for motion in prepare(log, settings, chosen_cutoff([log], settings)):
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
        error=error_of_mean(tau),
        q=motion.q[part],
        tau=tau,
        temperature=warm,
    )


def error_of_mean(x: Array) -> float:
    """The standard error of a mean whose samples are correlated, from the means of a few long pieces."""
    pieces = [float(np.mean(p)) for p in np.array_split(x, min(_PIECES, len(x)))]
    if len(pieces) < 2:
        return float("inf")
    return float(np.std(pieces, ddof=1) / np.sqrt(len(pieces)))
