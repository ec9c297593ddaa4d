"""`BSpline`: clamped B-splines that rest at both ends; with one span, plain polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.interpolate import BSpline as Spline

from steelyard.excitation.trajectories.family import TrajectoryError, check_duration
from steelyard.excitation.trajectories.pieces import taylor
from steelyard.excitation.trajectories.piecewise import Piecewise, tied_ends
from steelyard.excitation.trajectories.registry import known
from steelyard.robot.spatial import Array


@known
@dataclass(frozen=True)
class BSpline(Piecewise):
    """A clamped B-spline of `spans` equal spans; its coefficients are control points (rad or m).

    The first (last) control point is the start (end); `rest` = 1 makes the velocity zero at both ends, 2 the
    acceleration too: the first (last) `rest` + 1 control points are then one. `start` and `end` are coefficients
    unless given; `closed` makes the end the start.
    """

    kind: ClassVar[str] = "bspline"

    duration: float
    spans: int = 8
    degree: int = 5
    rest: int = 2
    start: float | None = None
    end: float | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "B-spline")
        if self.spans < 1 or not 1 <= self.degree <= 9:
            raise TrajectoryError(
                f"A B-spline of {self.spans} spans, degree {self.degree}: it takes 1 or more; 1 to 9."
            )
        if not 0 <= self.rest <= 2:
            raise TrajectoryError(f"rest is {self.rest}; it is 0 (none), 1 (velocity) or 2 (and acceleration).")
        self.free()

    @property
    def periodic(self) -> bool:
        ends_meet = self.closed or (self.start is not None and self.start == self.end)
        return ends_meet and self.rest == 2

    @property
    def points(self) -> int:
        """The number of control points."""
        return self.degree + self.spans

    @cached_property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.spans + 1)

    def shape(self) -> Array:
        knots = np.concatenate([np.zeros(self.degree), np.arange(self.spans + 1.0), np.full(self.degree, self.spans)])
        return taylor(Spline(knots, np.eye(self.points), self.degree), np.arange(self.spans + 1.0))

    def free(self) -> tuple[Array, Array]:
        last = range(self.points - self.rest - 1, self.points)
        return tied_ends(self.points, range(self.rest + 1), last, (), self, "B-spline")

    def still(self, position: float) -> Array:
        return np.full(self.points, position)


def cubic(duration: float, start: float | None = None, end: float | None = None) -> BSpline:
    """A cubic from start to end (coefficients unless given), at rest at both; its acceleration jumps there."""
    return BSpline(duration, spans=1, degree=3, rest=1, start=start, end=end)


def quintic(duration: float, start: float | None = None, end: float | None = None) -> BSpline:
    """A quintic from start to end (coefficients unless given) with zero velocity and acceleration at both."""
    return BSpline(duration, spans=1, degree=5, rest=2, start=start, end=end)


def free_quintic(duration: float) -> BSpline:
    """A quintic with nothing prescribed at its ends: six coefficients, as Urrea & Pascal 2017 optimise them (eq. 37).

    The coefficients are Bernstein's and not powers of t: the same motions, far better conditioned.
    """
    return BSpline(duration, spans=1, degree=5, rest=0)
