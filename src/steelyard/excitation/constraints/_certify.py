"""A bound of a traced function over a whole motion, including the times between samples.

The motion is cut into pieces of time. On a piece of half width r about t, Taylor's theorem encloses q, q̇, q̈ (with the
families' own bounds on the next derivatives), and the function f is bounded twice, by interval arithmetic

    f ∈ F(enclosure)    and    f ∈ f(t) ± r · sup |Ḟ|  over the enclosure  (mean value theorem),

the second only if no sign changes inside. Pieces with too large a bound are halved until bound and value agree.
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

# Interval arithmetic on traced functions. An interval is a pair of arrays. `IntervalLibrary` has the names of NumPy's
# functions, so `evaluate_graph` runs on it unchanged. Rounding is not directed; `Certifier` adds a small margin.


class Interval(NamedTuple):
    low: Array
    high: Array


def _as_interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else Interval(np.asarray(x, dtype=float), np.asarray(x, dtype=float))


def _increasing(function: Callable[..., Any]) -> Callable[..., Interval]:
    """Extend a function that increases with each argument to intervals: the ends decide."""

    def enclose(_: IntervalLibrary, *arguments: Any) -> Interval:
        inputs = [_as_interval(x) for x in arguments]
        return Interval(function(*(x.low for x in inputs)), function(*(x.high for x in inputs)))

    return enclose


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
        """Enclose the cosine: maxima at even multiples of π, minima at odd ones; otherwise the ends decide."""
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


# Initial number of pieces. Fewer hardly save time, since every operation works on arrays, and need more halvings.
_PIECES, _PIECES_OF_MANY = 512, 32
_HALVINGS = 14
# Margin for undirected rounding; thousands of operations lose less than this.
_HAIR = 1e-10
# Accepted difference between a bound and a reached value (share of the limit).
NEAR = 1e-3
# Largest number of pieces per round; the worst ones decide.
_MOST = 2048


class Certifier:
    """Bounds of c(f(q, q̇, q̈)) for any motion, where c converts f to shares of a limit, increasing with |f|.

    Args:
        function: f, traced.
        shares: `shares(low, high)` gives, for enclosures `(pieces, outputs)` of f, the largest share `(pieces,)`.
    """

    def __init__(self, function: Function, shares: Callable[[Array, Array], Array]) -> None:
        self.function, self.shares = function, shares

    @cached_property
    def _rate(self) -> Function:
        """ḟ along a motion: the tangent of f, where q, q̇, q̈ have the rates q̇, q̈ and jerk."""
        return self.function.tangent()

    def excess(self, trajectories: Sequence[Trajectory], enough: float = np.inf) -> float:
        """Return an upper bound of the shares of all motions; ≤ 0 proves the limit.

        Args:
            trajectories: The motions.
            enough: Stop as soon as this value is exceeded.
        """
        frames = [_Frame(one, list(self.function.inputs)) for one in trajectories]
        # Motions cut at their jumps are many and short.
        count = _PIECES if len(frames) == 1 else _PIECES_OF_MANY
        r = np.array([0.5 * one.duration / count for one in trajectories])
        middles = np.concatenate(
            [np.linspace(h, one.duration - h, count) for one, h in zip(trajectories, r, strict=True)]
        )
        owner = np.repeat(np.arange(len(frames)), count)
        reached, settled, left = -np.inf, -np.inf, np.inf
        most = _MOST * len(frames)
        for _ in range(_HALVINGS):
            values, bounds = self._round(frames, owner, middles, r, enough)
            reached = max(reached, float(values.max()))
            if reached > enough:
                return reached
            # Pieces that can neither break the limit nor exceed the reached value are finished.
            open_ = bounds > max(0.0, reached + NEAR)
            settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
            if not open_.any():
                return settled
            if open_.sum() > most:  # too many: keep the present bound of the dropped ones
                worst = np.argsort(-bounds)
                settled = max(settled, float(bounds[worst[most]]))
                open_[worst[most:]] = False
            left = float(bounds[open_].max())
            r = r * 0.5
            owner = np.repeat(owner[open_], 2)
            middles = (middles[open_][:, None] + r[owner[::2]][:, None] * np.array([-1.0, 1.0])).ravel()
        return max(settled, left)

    def _round(
        self, frames: Sequence[_Frame], owner: NDArray[np.int64], t: Array, r: Array, enough: float
    ) -> tuple[Array, Array]:
        """Return the shares at the middles and bounds of the shares on the pieces, which belong to the frames `owner`.

        The bounds are omitted (inf) if a middle has more than `enough`.
        """
        enclosures = [frames[k].enclose(t[owner == k], float(r[k])) for k in np.unique(owner)]
        points, pieces, rates = (_concatenate([one[k] for one in enclosures]) for k in range(3))
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
        reach = r[owner][:, None] * np.maximum(np.abs(slope[0]), np.abs(slope[1]))
        reach = np.where(np.isfinite(reach), reach, np.inf)
        reach[np.broadcast_to(library.jumps, (len(t),))] = np.inf
        hair = _HAIR * (1.0 + np.abs(here))
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        inner = self.shares(np.maximum(low, here - reach) - hair, np.minimum(high, here + reach) + hair)
        return values, inner


def _concatenate(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Concatenate signals (or their intervals) of several motions."""
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
        """Return signals at t, their intervals within t ± r, and intervals of their rates."""
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
    """Return low and high of all results, shape (samples, size); structural zeros are zero."""
    low, high = np.zeros((samples, function.size)), np.zeros((samples, function.size))
    for place, value in zip(function.places, outputs, strict=True):
        low[:, place], high[:, place] = value if isinstance(value, Interval) else (value, value)
    return low, high
