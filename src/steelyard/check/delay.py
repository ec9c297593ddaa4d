"""The delay between torque and motion: the shift at which the motion explains the torque best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from steelyard.check.entry import Entry, Severity
from steelyard.check.evidence import Evidence
from steelyard.check.shift import vertex
from steelyard.robot.spatial import Array

LONGEST = 0.1  # s
STEPS = 40  # shifts that are tried either way
MOST_ROWS = 2000
# A shift counts if it leaves less than this part of what was left without it, for one joint on its own if it leaves
# CLEARLY less, and if it is longer than half a period and a millisecond.
BETTER, CLEARLY, SHORTEST = 0.75, 0.3, 1e-3
# Beyond this the torque explains nothing, and a shift of it neither.
LEFT = 0.3
# Friction follows a reversal late by itself (gears wind up, lubricant builds up); a torque that is friction for more
# than this part of its standard deviation says nothing about delays.
MOSTLY_FRICTION = 0.5


def check_delay(seen: Evidence, friction: Mapping[int, float]) -> Iterator[Entry]:
    """One entry for the log if the joints agree, else one for each joint that is out of step.

    `friction` is, by joint, its share of the torque.
    """
    motion = max(seen.motions, key=lambda m: len(m.t))
    period = motion.filter.period
    offsets = np.linspace(-LONGEST, LONGEST, 2 * STEPS + 1)
    found = {j: d for j in seen.joints if (d := _delay(seen, j, offsets)) is not None}
    out = {j: lag for j, (lag, part) in found.items() if part < BETTER and abs(lag) > max(SHORTEST, 0.5 * period)}
    late = {j: lag for j, lag in out.items() if friction.get(j, 0.0) < MOSTLY_FRICTION}
    if not late:
        return
    middle = float(np.median(list(late.values())))
    tolerance = max(2.0 * period, 0.3 * abs(middle))
    # Joints with much friction accuse nobody, but they may bear witness that all are late together.
    alike = sum(abs(lag - middle) < tolerance for lag in out.values())
    if len(found) > 1 and 2 * alike > len(found):
        yield _entry("The torques are", middle, "warning", None)
        return
    for j, lag in late.items():
        name = seen.robot.joints[j].name
        # A joint on its own may also have friction of another kind than the terms can describe.
        severity: Severity = "warning" if found[j][1] < CLEARLY else "note"
        yield _entry(f"The torque of '{name}' is", lag, severity, name)


def _entry(what: str, delay: float, severity: Severity, joint: str | None) -> Entry:
    word = "behind" if delay > 0.0 else "ahead of"
    advice = "Log torque and position with the stamps of one clock, at the same place of the control loop."
    return Entry("delay", severity, f"{what} {1e3 * abs(delay):.1f} ms {word} the motion.", advice, joint)


def _delay(seen: Evidence, joint: int, offsets: Array) -> tuple[float, float] | None:
    """The torque's lag, s, and what it leaves of what was left without it; None where no shift explains the torque."""
    e = seen.joints.index(joint)
    first = 0
    left = np.zeros(len(offsets))
    total = 0.0
    for motion in seen.motions:
        count = motion.rows
        rows = slice(first, first + count)
        first += count
        kept = motion.t[motion.keep]
        inside = (kept > motion.t[0] + LONGEST) & (kept < motion.t[-1] - LONGEST)
        A = seen.A[e][rows][inside]
        step = max(1, len(A) // MOST_ROWS)
        A, times = A[::step], kept[inside][::step]
        if len(A) < 3 * A.shape[1]:
            continue
        Q = _basis(A)
        smooth = motion.filter(motion.tau[:, joint])
        for k, offset in enumerate(offsets):
            y = np.interp(times + offset, motion.t, smooth)
            rest = y - Q @ (Q.T @ y)
            left[k] += float(rest @ rest)
        total += float(np.var(smooth)) * len(times)
    best = int(np.argmin(left))
    if total == 0.0 or left[best] > LEFT * total:
        return None
    lag = offsets[best] + vertex(left, best) * (offsets[1] - offsets[0])
    inside_range = 0 < best < len(offsets) - 1
    return float(lag), float(left[best] / left[len(offsets) // 2]) if inside_range else 1.0


def _basis(A: Array) -> Array:
    """Orthonormal columns that span A's."""
    lengths = np.linalg.norm(A, axis=0)
    U, s, _ = np.linalg.svd(A / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(U[:, s > 1e-8 * s[0]])
