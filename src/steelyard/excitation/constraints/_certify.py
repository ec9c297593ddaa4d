"""A bound on a traced function over a whole motion, between the samples too.

The motion is cut into pieces of time. On a piece of half width r about t, Taylor's theorem encloses q, q̇, q̈ (with the
families' own bounds on the next derivatives), and the function f is bounded twice, by interval arithmetic

    f ∈ F(enclosure)    and    f ∈ f(t) ± r · sup |Ḟ|  over the enclosure  (mean value theorem),

the second only where no sign flips inside. Pieces whose bound is too large are halved until bound and value agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import evaluate_graph
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array

# Interval arithmetic on traced functions: what a formula can be at most while its inputs stay within bounds.
#
# An interval is a pair of arrays. `IntervalLibrary` has the names of NumPy's functions, so that
# `evaluate_graph` runs on it unchanged. Rounding is not directed; whoever uses a bound adds a hair
# (`certify.py` does).


class Interval(NamedTuple):
    low: Array
    high: Array


def _as_interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else Interval(np.asarray(x, dtype=float), np.asarray(x, dtype=float))


def _increasing(function: Callable[..., Any]) -> Callable[..., Interval]:
    """A function that grows with each of its arguments: the ends decide."""

    def enclosed(_: IntervalLibrary, *given: Any) -> Interval:
        inputs = [_as_interval(x) for x in given]
        return Interval(function(*(x.low for x in inputs)), function(*(x.high for x in inputs)))

    return enclosed


class IntervalLibrary:
    """NumPy's functions on intervals. `jumps` marks the samples at which a sign or a step is undecided."""

    def __init__(self) -> None:
        self.jumps: Any = False

    add, minimum, maximum = _increasing(np.add), _increasing(np.minimum), _increasing(np.maximum)
    exp, tanh, arctan = _increasing(np.exp), _increasing(np.tanh), _increasing(np.arctan)
    sqrt = _increasing(lambda x: np.sqrt(np.maximum(x, 0.0)))

    def subtract(self, a: Any, b: Any) -> Interval:
        a, b = _as_interval(a), _as_interval(b)
        return Interval(a.low - b.high, a.high - b.low)

    def negative(self, a: Any) -> Interval:
        a = _as_interval(a)
        return Interval(-a.high, -a.low)

    def multiply(self, a: Any, b: Any) -> Interval:
        a, b = _as_interval(a), _as_interval(b)
        if a is b or (a.low is b.low and a.high is b.high):  # a square is not negative
            low, high = a.low * a.low, a.high * a.high
            inside = (a.low < 0.0) & (a.high > 0.0)
            return Interval(np.where(inside, 0.0, np.minimum(low, high)), np.maximum(low, high))
        p, q, r, s = a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high
        return Interval(np.minimum(np.minimum(p, q), np.minimum(r, s)), np.maximum(np.maximum(p, q), np.maximum(r, s)))

    def true_divide(self, a: Any, b: Any) -> Interval:
        b = _as_interval(b)
        spans = (b.low <= 0.0) & (b.high >= 0.0)
        safe_low, safe_high = np.where(spans, 1.0, b.low), np.where(spans, 1.0, b.high)
        inverse = Interval(np.where(spans, -np.inf, 1.0 / safe_high), np.where(spans, np.inf, 1.0 / safe_low))
        with np.errstate(invalid="ignore"):
            return self.multiply(a, inverse)

    def sin(self, a: Any) -> Interval:
        a = _as_interval(a)
        return self.cos(Interval(a.low - 0.5 * np.pi, a.high - 0.5 * np.pi))

    def cos(self, a: Any) -> Interval:
        """Its maxima are at even multiples of π, its minima at odd ones; between them the ends decide."""
        a = _as_interval(a)
        first, last = np.cos(a.low), np.cos(a.high)
        turns = 2.0 * np.pi
        top = np.floor(a.high / turns) >= np.ceil(a.low / turns)
        bottom = np.floor((a.high - np.pi) / turns) >= np.ceil((a.low - np.pi) / turns)
        return Interval(np.where(bottom, -1.0, np.minimum(first, last)), np.where(top, 1.0, np.maximum(first, last)))

    def absolute(self, a: Any) -> Interval:
        a = _as_interval(a)
        large = np.maximum(np.abs(a.low), np.abs(a.high))
        inside = (a.low <= 0.0) & (a.high >= 0.0)
        return Interval(np.where(inside, 0.0, np.minimum(np.abs(a.low), np.abs(a.high))), large)

    abs = absolute

    def sign(self, a: Any) -> Interval:
        a = _as_interval(a)
        self.jumps = self.jumps | ((a.low <= 0.0) & (a.high >= 0.0) & (a.high > a.low))
        return Interval(np.sign(a.low), np.sign(a.high))

    def heaviside(self, a: Any, _: float) -> Interval:
        a = _as_interval(a)
        self.jumps = self.jumps | ((a.low <= 0.0) & (a.high > 0.0))
        return Interval(np.heaviside(a.low, 0.0), np.heaviside(a.high, 0.0))


# So many at first: fewer cost hardly less, since every operation is one of arrays, and have to be halved more often.
_PIECES, _PIECES_OF_MANY = 512, 32
_HALVINGS = 14
# Interval arithmetic here does not direct its rounding; thousands of operations lose less than this.
_HAIR = 1e-10
# Bounds this near to what is really reached are near enough (a share of the limit).
NEAR = 1e-3
# Pieces per round: more would be slow, and the worst ones decide.
_MOST = 2048


class Certifier:
    """Bounds of c(f(q, q̇, q̈)) for any motion, where c turns results into shares of a limit, growing with |f|.

    `shares(low, high)` gives, for enclosures `(pieces, outputs)` of f, the largest share `(pieces,)`.
    """

    def __init__(self, function: Function, shares: Callable[[Array, Array], Array]) -> None:
        self.function, self.shares = function, shares

    @cached_property
    def _rate(self) -> Function:
        """ḟ along a motion: the tangent of f with q, q̇, q̈ moving by q̇, q̈ and jerk."""
        return self.function.tangent()

    def excess(self, trajectories: Sequence[Trajectory], enough: float = np.inf) -> float:
        """No share of these motions is larger; ≤ 0 if the limit surely holds. Stops where `enough` is exceeded."""
        frames = [_Frame(one, list(self.function.inputs)) for one in trajectories]
        # Motions that are cut where they jump have many pieces, each of them short.
        count = _PIECES if len(frames) == 1 else _PIECES_OF_MANY
        r = np.array([0.5 * one.duration / count for one in trajectories])
        middles = np.concatenate(
            [np.linspace(h, one.duration - h, count) for one, h in zip(trajectories, r, strict=True)]
        )
        whose = np.repeat(np.arange(len(frames)), count)
        reached, settled, left = -np.inf, -np.inf, np.inf
        most = _MOST * len(frames)
        for _ in range(_HALVINGS):
            values, bounds = self._round(frames, whose, middles, r, enough)
            reached = max(reached, float(values.max()))
            if reached > enough:
                return reached
            # Pieces that can neither break the limit nor beat what is reached already are done with.
            open_ = bounds > max(0.0, reached + NEAR)
            settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
            if not open_.any():
                return settled
            if open_.sum() > most:  # too many to follow: the bound of those left aside stands
                worst = np.argsort(-bounds)
                settled = max(settled, float(bounds[worst[most]]))
                open_[worst[most:]] = False
            left = float(bounds[open_].max())
            r = r * 0.5
            whose = np.repeat(whose[open_], 2)
            middles = (middles[open_][:, None] + r[whose[::2]][:, None] * np.array([-1.0, 1.0])).ravel()
        return max(settled, left)

    def _round(
        self, frames: Sequence[_Frame], whose: NDArray[np.int64], t: Array, r: Array, enough: float
    ) -> tuple[Array, Array]:
        """Shares at the middles, and bounds of the shares on the pieces; `whose` frame each is of (in order). No bounds
        where a middle has more than `enough`."""
        each = [frames[k].enclose(t[whose == k], float(r[k])) for k in np.unique(whose)]
        points, pieces, rates = (_joined([one[k] for one in each]) for k in range(3))
        f = self.function
        with np.errstate(all="ignore"):
            here = _stack(evaluate_graph(f.graph, f.outputs, points), f, len(t))[0]
            values = self.shares(here, here)
            if values.max() > enough:
                return values, np.full(len(t), np.inf)
            library = IntervalLibrary()
            low, high = _stack(evaluate_graph(f.graph, f.outputs, pieces, library), f, len(t))
            moves = {f"tangent_{x}": rates[x] for x in f.inputs}
            slope = _stack(
                evaluate_graph(f.graph, self._rate.outputs, {**pieces, **moves}, IntervalLibrary()), self._rate, len(t)
            )
        reach = r[whose][:, None] * np.maximum(np.abs(slope[0]), np.abs(slope[1]))
        reach = np.where(np.isfinite(reach), reach, np.inf)
        reach[np.broadcast_to(library.jumps, (len(t),))] = np.inf
        hair = _HAIR * (1.0 + np.abs(here))
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        inner = self.shares(np.maximum(low, here - reach) - hair, np.minimum(high, here + reach) + hair)
        return values, inner


def _joined(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Signals (or intervals of them) of several motions, one behind the other."""
    if len(parts) == 1:
        return parts[0]

    def behind(columns: Sequence[Any]) -> Any:
        if not isinstance(columns[0], Interval):
            return np.concatenate(columns)
        return Interval(*(np.concatenate([getattr(c, side) for c in columns]) for side in ("low", "high")))

    return {x: [behind(columns) for columns in zip(*(p[x] for p in parts), strict=True)] for x in parts[0]}


class _Frame:
    """Enclosures of the signals of one motion."""

    def __init__(self, trajectory: Trajectory, inputs: list[str]) -> None:
        self.trajectory, self.inputs = trajectory, inputs
        self.extents = [trajectory.extents(k) for k in range(4)]
        self.peaks = [np.maximum(np.abs(a), np.abs(b)) for a, b in self.extents]

    def enclose(self, t: Array, r: float) -> tuple[dict[str, list[Any]], dict[str, list[Any]], dict[str, list[Any]]]:
        """Signals at t, intervals of them within t ± r, and intervals of their rates."""
        middle = [self.trajectory.derivative(t, k) for k in range(3)]
        around: list[Interval] = []
        for k in range(4):
            low, high = (np.broadcast_to(x, (len(t), self.trajectory.joints)) for x in self.extents[k])
            if k < 3 and np.all(np.isfinite(self.peaks[k + 1])):
                reach = r * self.peaks[k + 1]
                if k < 2 and np.all(np.isfinite(self.peaks[k + 2])):
                    reach = np.minimum(reach, r * np.abs(middle[k + 1]) + 0.5 * r * r * self.peaks[k + 2])
                low, high = np.maximum(low, middle[k] - reach), np.minimum(high, middle[k] + reach)
            around.append(Interval(low, high))
        order = {"q": 0, "dq": 1, "ddq": 2}
        points = {x: list(middle[order[x]].T) for x in self.inputs}
        pieces = {x: _columns(around[order[x]]) for x in self.inputs}
        rates = {x: _columns(around[order[x] + 1]) for x in self.inputs}
        return points, pieces, rates


def _columns(interval: Interval) -> list[Interval]:
    return [Interval(low, high) for low, high in zip(interval.low.T, interval.high.T, strict=True)]


def _stack(outputs: list[Any], function: Function, samples: int) -> tuple[Array, Array]:
    """Low and high of all results `(samples, size)`; structural zeros are zero."""
    low, high = np.zeros((samples, function.size)), np.zeros((samples, function.size))
    for place, value in zip(function.places, outputs, strict=True):
        low[:, place], high[:, place] = value if isinstance(value, Interval) else (value, value)
    return low, high
