"""Is the log that judges a copy of one that was fitted to? The noise on its torques tells.

Two logs of one motion, played twice, have the same positions and torques but for noise. A copy has the same noise too,
whatever its clock shows, however many of its rows were left out, and even under some noise of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.log import Log

# Of the positions' variance, what may be left between two records of one motion.
_SAME_MOTION = 1e-3
# Correlation of the torques' fine structure: of two records of one motion it is nought, of copies one.
_SAME_NOISE = 0.5
_MOST = 20_000  # samples that are looked at


def copied_from(judged: Log, fitted: Sequence[tuple[str, Log]]) -> str | None:
    """The name of the first log of `fitted` (name, log) that `judged` repeats, noise and all, or None."""
    for name, log in fitted:
        if log is judged or _copy(judged, log):
            return name
    return None


def _copy(a: Log, b: Log) -> bool:
    if a.tau is None or b.tau is None or a.joints != b.joints or min(len(a), len(b)) < 32:
        return False
    return any(_alike(a, b, shift) for shift in _shifts(a, b))


def _shifts(a: Log, b: Log) -> Iterable[float]:
    """By how many seconds `a` is to be moved to lie on `b`, where its positions then do; the likeliest first."""
    period = float(np.median(np.diff(b.t)))
    first, last = a.segments[int(np.argmax([stop - start for start, stop in a.segments]))]
    last = min(last, first + _MOST)
    times = np.arange(a.t[first], a.t[last - 1], period)
    clock = np.arange(b.t[0], b.t[min(len(b), 2 * _MOST) - 1], period)
    if len(times) < 16 or len(clock) < 16:
        return
    # A piece in the middle: a copy may begin before or end after what it was copied from.
    third = len(times) // 3
    times = times[third : third + max(16, min(third, 1000))]
    if len(times) > len(clock):
        return
    x, y = (np.column_stack([np.interp(t, log.t, c) for c in log.q.T]) for t, log in ((times, a), (clock, b)))
    spread = np.maximum(np.std(y, axis=0), 1e-9)
    x, y = x / spread, y / spread
    apart = _apart(x, y)
    power = max(float(np.sum((x - x.mean(axis=0)) ** 2)), 1e-12)
    best = int(np.argmin(apart))
    if apart[best] < _SAME_MOTION * power:
        middle = clock[best] - times[0]
        # Between two samples of the clock lies the true shift: that of stamps which then coincide.
        near = np.argsort(np.abs(b.t - (times[0] + middle)))[:5]
        start = int(np.argmin(np.abs(a.t - times[0])))
        yield from (float(b.t[k] - a.t[start]) for k in near)


def _apart(x: Array, y: Array) -> Array:
    """Σ|x − y|² with x laid on y from each sample of it on."""
    n, m = len(x), len(y)
    size = 1 << (n + m).bit_length()
    product = np.fft.irfft(np.fft.rfft(y, size, axis=0) * np.conj(np.fft.rfft(x, size, axis=0)), size, axis=0)
    common = product[: m - n + 1].sum(axis=1)
    squares = np.append(0.0, np.cumsum(np.sum(y**2, axis=1)))
    return np.asarray(np.maximum(squares[n:] - squares[: m - n + 1] + float(np.sum(x**2)) - 2.0 * common, 0.0))


def _alike(a: Log, b: Log, shift: float) -> bool:
    """Whether the torques agree in what changes from one sample to the next, at most joints."""
    assert a.tau is not None
    assert b.tau is not None
    times = a.t + shift
    inside = np.flatnonzero((times >= b.t[0]) & (times <= b.t[-1]))[:_MOST]
    if len(inside) < 32:
        return False
    there = np.clip(np.searchsorted(b.t, times[inside]), 1, len(b) - 1)
    there -= (times[inside] - b.t[there - 1] < b.t[there] - times[inside]).astype(int)
    # Rows of `a` that follow one another, held against the rows of `b` at these times.
    mine, theirs = a.tau[inside], b.tau[there]
    shares = []
    for x, y in zip(mine.T, theirs.T, strict=True):
        u, v = np.diff(x, 2), np.diff(y, 2)
        size = float(np.linalg.norm(u) * np.linalg.norm(v))
        if size > 0.0:
            shares.append(float(u @ v) / size)
    return bool(shares) and float(np.median(shares)) > _SAME_NOISE
