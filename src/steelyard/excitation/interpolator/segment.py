"""`Segment`: one move as a displacement of all joints in time, in polynomial pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.interpolate import make_interp_spline

from steelyard.excitation.interpolator.limits import MotionLimits
from steelyard.excitation.interpolator.profile import Profile, Ramp, profile
from steelyard.excitation.trajectories.pieces import evaluate, taylor
from steelyard.robot.spatial import Array

# Limits are kept with this margin, so that rounding does not break them.
_MARGIN = 1.0 - 1e-9
# Rad or m: a step that is rounding of the step zero.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Pace:
    """How many times slower than it could be a move is taken: as a whole, and in its first and last ramp."""

    whole: float = 1.0
    first: float = 1.0
    last: float = 1.0


@dataclass(frozen=True, eq=False)
class Segment:
    """Displacement from where the move starts: `breaks` (s), `table` (pieces, powers of u, joints); its ramps (s)."""

    breaks: Array
    table: Array
    speeding: float
    slowing: float

    @property
    def duration(self) -> float:
        return float(self.breaks[-1])


class Course(Protocol):
    """The way of a move, which may be taken at any pace; `fly` is the part of its slowing down given to the next."""

    @property
    def fly(self) -> float: ...

    def at(self, pace: Pace) -> Segment: ...


@dataclass(frozen=True, eq=False)
class Standing:
    seconds: float
    joints: int
    fly: float = 0.0

    def at(self, pace: Pace) -> Segment:
        return Segment(np.array([0.0, self.seconds]), np.zeros((1, 4, self.joints)), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Straight:
    """All joints in step along a straight way in joint space."""

    step: Array
    velocity: float
    ramp: Ramp
    fly: float

    def at(self, pace: Pace) -> Segment:
        shape = _shape(self.velocity, self.ramp, pace)
        return Segment(shape.breaks, shape.table[:, :, None] * self.step, shape.speeding, shape.slowing)


@dataclass(frozen=True, eq=False)
class Curved:
    """Along a curve of postures, `curve(s)` for s from 0 to 1, in `count` pieces of time."""

    curve: Any
    count: int
    velocity: float
    ramp: Ramp
    fly: float

    def at(self, pace: Pace) -> Segment:
        shape = _shape(self.velocity, self.ramp, pace)
        t = np.linspace(0.0, shape.duration, self.count + 1)
        s = np.clip(evaluate(shape.breaks, shape.table[:, :, None], t, 0)[:, 0], 0.0, 1.0)
        q = self.curve(s)
        still = np.zeros(q.shape[1])
        smooth = np.isfinite(self.ramp.jerk)
        rest = [(1, still), (2, still)] if smooth else [(1, still)]
        spline = make_interp_spline(t, q - q[0], k=5 if smooth else 3, bc_type=(rest, rest))
        return Segment(t, taylor(spline, t), shape.speeding, shape.slowing)


def straight(step: Array, speed: float, fly: float, limits: MotionLimits) -> Straight | None:
    """The quickest synchronised motion over a step of all joints: the slowest joint sets the pace. None: no step."""
    size = np.abs(step)
    moves = size > 0.0
    if size.max() <= _NOTHING:
        return None
    bounds = (speed * limits.velocity, limits.acceleration, limits.jerk)
    velocity, acceleration, jerk = (float(np.min(bound[moves] / size[moves])) * _MARGIN for bound in bounds)
    return Straight(step, velocity, Ramp(acceleration, jerk), fly)


def _shape(velocity: float, ramp: Ramp, pace: Pace) -> Profile:
    whole = ramp.softened(pace.whole)
    return profile(velocity / pace.whole, whole.softened(pace.first), whole.softened(pace.last))
