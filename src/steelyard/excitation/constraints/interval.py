"""Interval arithmetic on traced functions: what a formula can be at most while its inputs stay within bounds.

An interval is a pair of arrays. `IntervalLibrary` has the names of NumPy's functions, so that `dynamics.graph.evaluate`
runs on it unchanged. Rounding is not directed; whoever uses a bound adds a hair (`certify.py` does).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steelyard.robot.spatial import Array


class Interval(NamedTuple):
    low: Array
    high: Array


def _as_interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else Interval(np.asarray(x, dtype=float), np.asarray(x, dtype=float))


class IntervalLibrary:
    """NumPy's functions on intervals. `jumps` marks the samples at which a sign or a step is undecided."""

    def __init__(self) -> None:
        self.jumps: Any = False

    def add(self, a: Any, b: Any) -> Interval:
        a, b = _as_interval(a), _as_interval(b)
        return Interval(a.low + b.low, a.high + b.high)

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

    def minimum(self, a: Any, b: Any) -> Interval:
        a, b = _as_interval(a), _as_interval(b)
        return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))

    def maximum(self, a: Any, b: Any) -> Interval:
        a, b = _as_interval(a), _as_interval(b)
        return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))

    # Increasing functions: the ends decide.

    def sqrt(self, a: Any) -> Interval:
        a = _as_interval(a)
        return Interval(np.sqrt(np.maximum(a.low, 0.0)), np.sqrt(np.maximum(a.high, 0.0)))

    def exp(self, a: Any) -> Interval:
        a = _as_interval(a)
        return Interval(np.exp(a.low), np.exp(a.high))

    def tanh(self, a: Any) -> Interval:
        a = _as_interval(a)
        return Interval(np.tanh(a.low), np.tanh(a.high))

    def arctan(self, a: Any) -> Interval:
        a = _as_interval(a)
        return Interval(np.arctan(a.low), np.arctan(a.high))
