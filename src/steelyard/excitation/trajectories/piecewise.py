"""Families of piecewise polynomials: the base class `Piecewise`, B-splines, splined quintics, accelerations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steelyard.excitation.trajectories._pieces import evaluate, extent, taylor
from steelyard.excitation.trajectories.family import TrajectoryError, check_duration, register_family
from steelyard.excitation.trajectories.sinusoids import eliminate
from steelyard.ground.arrays import Array


class Piecewise(ABC):
    """A family of polynomial pieces.

    A subclass defines the pieces as linear functions of all its numbers y (`shape`), and y as a function of the free
    coefficients x: y = Z x + y0 (`free`). Before its start and after its end the motion is at rest.

    Args:
        t, x, derivative, position: Arguments of the methods, as in `Family`.
    """

    # Fields of the subclasses
    duration: float
    start: float | None
    end: float | None
    closed: bool

    @property
    @abstractmethod
    def breaks(self) -> Array:
        """Ends of the pieces [s], shape (pieces + 1,)."""

    @abstractmethod
    def shape(self) -> Array:
        """Return the power coefficients of each piece for each number of y, shape (pieces, degree + 1, len(y))."""

    @abstractmethod
    def free(self) -> tuple[Array, Array]:
        """Return (Z, y0)."""

    @abstractmethod
    def still(self, position: float) -> Array:
        """Return the y of standstill at a `position` [rad, m]."""

    @property
    @abstractmethod
    def periodic(self) -> bool:
        """Whether it can be repeated."""

    @property
    def ends_meet(self) -> bool:
        return self.closed or (self.start is not None and self.start == self.end)

    @cached_property
    def _free(self) -> tuple[Array, Array]:
        return self.free()

    @cached_property
    def _table(self) -> Array:
        """The pieces for each coefficient, then their constant part, shape (pieces, degree + 1, size + 1)."""
        Z, y0 = self._free
        return self.shape() @ np.column_stack([Z, y0])

    @property
    def size(self) -> int:
        return int(self._free[0].shape[1])

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        values = evaluate(self.breaks, self._table, np.asarray(t, dtype=float), derivative)
        return values[:, :-1], values[:, -1]

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        return extent(self.breaks, self._table @ np.append(x, 1.0), derivative)

    def hold(self, position: float) -> Array:
        Z, y0 = self._free
        return np.asarray(np.linalg.lstsq(Z, self.still(position) - y0, rcond=None)[0], dtype=float)

    def settings(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]


def _tied_ends(
    rows: int, first: range, last: range, zeros: Collection[int], family: Piecewise, what: str
) -> tuple[Array, Array]:
    """Return (Z, y0): y is `family.start` in rows `first`, `family.end` in `last`, zero in `zeros`, free elsewhere.

    An unspecified start or end is a coefficient; a closed motion has one for both.
    """
    if family.closed and family.end is not None and family.start != family.end:
        raise TrajectoryError(f"{what}: a closed motion ends at its start; give `start` or leave out `closed`.")
    if first.stop > last.start:
        raise TrajectoryError(f"{what}: too few coefficients for rest at both ends; give more pieces.")
    y0, columns = np.zeros(rows), []

    def place(where: list[int], value: float | None) -> None:
        if value is not None:
            y0[where] = value
        else:
            columns.append(np.isin(np.arange(rows), where).astype(float))

    inner = [row for row in range(rows) if row not in first and row not in last and row not in zeros]
    place([*first, *last] if family.closed else [*first], family.start)
    for row in inner:
        place([row], None)
    if not family.closed:
        place([*last], family.end)
    return np.column_stack(columns) if columns else np.zeros((rows, 0)), y0


@register_family
@dataclass(frozen=True)
class BSpline(Piecewise):
    """A clamped B-spline; its coefficients are control points [rad, m].

    Args:
        duration: Duration [s].
        spans: Number of equal spans.
        degree: Degree of the polynomials.
        rest: 1: zero velocity at both ends, 2: zero acceleration as well (the first and last `rest` + 1 control points
            are equal).
        start: First control point [rad, m]; None: a coefficient.
        end: Last control point [rad, m]; None: a coefficient.
        closed: Whether the end equals the start.
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
                f"A B-spline of {self.spans} spans, degree {self.degree}; give 1 span or more, degree 1 to 9."
            )
        if not 0 <= self.rest <= 2:
            raise TrajectoryError(
                f"rest is {self.rest}; give the derivatives that are zero at the ends: 0 (none), 1 (velocity) or 2 "
                "(velocity and acceleration)."
            )
        self.free()

    @property
    def periodic(self) -> bool:
        return self.ends_meet and self.rest == 2

    @property
    def points(self) -> int:
        """Number of control points."""
        return self.degree + self.spans

    @cached_property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.spans + 1)

    def shape(self) -> Array:
        from scipy.interpolate import BSpline as Spline

        knots = np.concatenate([np.zeros(self.degree), np.arange(self.spans + 1.0), np.full(self.degree, self.spans)])
        return taylor(Spline(knots, np.eye(self.points), self.degree), np.arange(self.spans + 1.0))

    def free(self) -> tuple[Array, Array]:
        last = range(self.points - self.rest - 1, self.points)
        return _tied_ends(self.points, range(self.rest + 1), last, (), self, "B-spline")

    def still(self, position: float) -> Array:
        return np.full(self.points, position)


def cubic(duration: float, start: float | None = None, end: float | None = None) -> BSpline:
    """Return a cubic, at rest at both ends, where its acceleration jumps.

    Args:
        duration: Duration [s].
        start: Position at the start [rad, m]; None: a coefficient.
        end: Position at the end [rad, m]; None: a coefficient.
    """
    return BSpline(duration, spans=1, degree=3, rest=1, start=start, end=end)


def quintic(duration: float, start: float | None = None, end: float | None = None) -> BSpline:
    """Return a quintic with zero velocity and acceleration at both ends.

    Args:
        duration: Duration [s].
        start: Position at the start [rad, m]; None: a coefficient.
        end: Position at the end [rad, m]; None: a coefficient.
    """
    return BSpline(duration, spans=1, degree=5, rest=2, start=start, end=end)


def free_quintic(duration: float) -> BSpline:
    """Return a quintic of `duration` [s] with free ends: six coefficients, as in Urrea & Pascal 2017 (eq. 37).

    The coefficients are Bernstein's instead of powers of t: the same motions, far better conditioned.
    """
    return BSpline(duration, spans=1, degree=5, rest=0)


# Power coefficients on [0, 1] of the quintic with given p, p′, p″ at 0 and p, p′, p″ at 1 (columns in that order).
_HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


@register_family
@dataclass(frozen=True)
class SplinedQuintic(Piecewise):
    """Quintics between knots; coefficients are position, velocity and acceleration at every inner knot (SI units).

    At both ends velocity and acceleration are zero.

    Args:
        duration: Duration [s].
        times: Inner knots [s], or their number for even spacing.
        start: Position at the start [rad, m]; None: the first coefficient.
        end: Position at the end [rad, m]; None: the last coefficient.
        closed: Whether the end equals the start.
    """

    kind: ClassVar[str] = "splined-quintic"

    duration: float
    times: tuple[float, ...] | int = 4
    start: float | None = None
    end: float | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "Splined quintic")
        if isinstance(self.times, int):
            if self.times < 0:
                raise TrajectoryError(f"A splined quintic cannot have {self.times} inner knots; give 0 or more.")
            inner = np.linspace(0.0, self.duration, self.times + 2)[1:-1]
            object.__setattr__(self, "times", tuple(inner.tolist()))
        object.__setattr__(self, "times", tuple(float(t) for t in self.times))  # type: ignore[union-attr]
        if np.any(np.diff(self.breaks) <= 0.0):
            raise TrajectoryError(f"The inner knots {self.times} must increase between 0 and {self.duration} s.")
        self.free()

    @property
    def periodic(self) -> bool:
        return self.ends_meet

    @cached_property
    def breaks(self) -> Array:
        return np.array([0.0, *self.times, self.duration])  # type: ignore[misc]

    def shape(self) -> Array:
        pieces = len(self.breaks) - 1
        out = np.zeros((pieces, 6, 3 * (pieces + 1)))
        for i, h in enumerate(np.diff(self.breaks)):
            out[i, :, 3 * i : 3 * i + 6] = _HERMITE * np.tile([1.0, h, h * h], 2)
        return out

    def free(self) -> tuple[Array, Array]:
        """Return (Z, y0) for all y: position, velocity, acceleration of every knot, ends included."""
        rows = 3 * len(self.breaks)
        at_rest = (1, 2, rows - 2, rows - 1)
        return _tied_ends(rows, range(1), range(rows - 3, rows - 2), at_rest, self, "Splined quintic")

    def still(self, position: float) -> Array:
        return np.tile([position, 0.0, 0.0], len(self.breaks))


@register_family
@dataclass(frozen=True)
class Acceleration(Piecewise):
    """Armstrong's motion (1989): free accelerations at evenly spaced instants, linear between them.

    The velocity is zero at both ends. The coefficients are orthonormal coordinates of the null space of the conditions
    on (start, a₁ …).

    Args:
        duration: Duration [s].
        samples: Number of instants.
        rest: Whether the acceleration is zero at both ends.
        start: Position at the start [rad, m]; None: free.
        end: Position at the end [rad, m]; None: free.
        closed: Whether the end equals the start.
    """

    kind: ClassVar[str] = "acceleration"

    duration: float
    samples: int = 20
    rest: bool = True
    start: float | None = None
    end: float | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "Acceleration samples")
        if self.samples < 3:
            raise TrajectoryError(f"{self.samples} acceleration samples cannot start and stop a joint; give 3 or more.")
        if self.closed and self.end is not None:
            raise TrajectoryError("Acceleration samples: a closed motion ends at its start; leave out `end`.")
        self.free()

    @property
    def periodic(self) -> bool:
        return self.ends_meet and self.rest

    @cached_property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.samples)

    def shape(self) -> Array:
        """Return the pieces for all y: the start, then the samples of acceleration."""
        h = self.duration / (self.samples - 1)
        count = 1 + self.samples
        out = np.zeros((self.samples - 1, 4, count))
        position, velocity = np.eye(1, count)[0], np.zeros(count)
        for i in range(self.samples - 1):
            a, change = np.eye(count)[1 + i], np.eye(count)[2 + i] - np.eye(count)[1 + i]
            out[i] = position, h * velocity, h * h / 2 * a, h * h / 6 * change
            position = out[i].sum(axis=0)
            velocity = velocity + h * (a + change / 2)
        return out

    def free(self) -> tuple[Array, Array]:
        everything, finish = self.shape(), np.array([self.duration])
        rows, right = [evaluate(self.breaks, everything, finish, 1)[0]], [0.0]
        unit = np.eye(1 + self.samples)
        arrival = evaluate(self.breaks, everything, finish, 0)[0]
        if self.rest:
            rows, right = [*rows, unit[1], unit[-1]], [*right, 0.0, 0.0]
        if self.start is not None:
            rows, right = [*rows, unit[0]], [*right, self.start]
        if self.closed or self.end is not None:
            rows.append(arrival - unit[0] if self.closed else arrival)
            right.append(0.0 if self.end is None else self.end)
        return eliminate(np.array(rows), np.array(right), "Acceleration samples")

    def still(self, position: float) -> Array:
        return np.append(position, np.zeros(self.samples))
