"""Break-away torque: what it takes to set a joint in motion, from slow ramps of torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

# A joint has set off once it has moved this far from where it stood, rad or m.
_MOVED = 2e-3
_RESTED = 0.2  # s it must have stood before


@dataclass(frozen=True, eq=False)
class BreakAway:
    """Torques (less gravity, if a model was given) at which a joint set off, in each direction."""

    joint: str
    forward: Array
    backward: Array

    @property
    def means(self) -> tuple[float, float]:
        """Forward and backward, as magnitudes; NaN where it never set off that way."""
        return tuple(float(np.mean(np.abs(x))) if len(x) else float("nan") for x in (self.forward, self.backward))  # type: ignore[return-value]


def break_away(log: Log, joint: int, model: Model | None = None, moved: float = _MOVED) -> BreakAway:
    """The torque just before every start from rest of joint number `joint` (from 0) in `log`.

    Gravity is taken off by `model` (None: there is none); `moved` (rad, m) from where it stood, a joint has started.
    """
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: there is no torque in the log.")
    held = np.zeros(len(log)) if model is None else model.gravity_torque(log.q)[:, joint]
    tau = log.tau[:, joint] - held
    starts: dict[int, list[float]] = {1: [], -1: []}
    for begin, end in segments_of(log):
        k = begin
        while k < end:
            away = np.flatnonzero(np.abs(log.q[k:end, joint] - log.q[k, joint]) > moved)
            if not away.size:
                break
            left = k + int(away[0])
            # Walk back to the last sample that was still within a tenth of the threshold: there it let go.
            rest = k + int(np.flatnonzero(np.abs(log.q[k:left, joint] - log.q[k, joint]) <= 0.1 * moved)[-1])
            if log.t[rest] - log.t[k] >= _RESTED:
                side = 1 if log.q[left, joint] > log.q[k, joint] else -1
                starts[side].append(float(tau[rest]))
                k = _next_rest(log, joint, left, end, moved)
            else:
                k = left
    return BreakAway(log.joints[joint], np.array(starts[1]), np.array(starts[-1]))


def _next_rest(log: Log, joint: int, start: int, end: int, moved: float) -> int:
    """The next sample from which the joint stands for a while."""
    t, q = log.t, log.q[:, joint]
    for k in range(start, end):
        until = int(np.searchsorted(t, t[k] + _RESTED))
        if until >= end:
            return end
        if np.ptp(q[k : until + 1]) <= 0.1 * moved:
            return k
    return end
