"""Detects parts of validation logs that are copies of fitted logs, by the noise of their torques.

Two recordings of one motion have the same path and torques except for noise. A copy has the same noise. The copy can be
shifted, slower, reversed, mirrored, subsampled, spliced or have additional noise. Each window of the validation log is
therefore aligned with the fitted log by its path alone, and then the phases of the highest torque frequencies are
compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.signals.excerpt import joined_ranges
from steelyard.signals.log import Log

# Samples of a window, and of its four to seven pieces whose spectra are compared.
_WINDOW, _PIECE = 256, 64
# Allowed residual between a copy and its source, relative to the variance of the window: interpolation and rounding.
_SAME_PATH = 1e-2
# The same for a coarse path: an offset of ten samples gives 0.02.
_NEAR = 0.25
# Threshold for the mean cosine between the phases of two torques: 1 for copies, 0 ± 0.25 for independent noise in a
# piece (16 frequencies). The median over pieces and joints is closer to 0.
_SAME_NOISE = 0.5
# Number of windows from which a search starts; it continues to their neighbours.
_STARTS = 40
# Points of the fitted path, points of a window for the alignment, and nearest path points tried for each.
_POINTS, _ANCHORS, _NEAREST = 5_000, 6, 5
# Windows of the same path with other noise after which a copy has ended.
_MOST_MISSED = 2

# Maps the time of a window to that of the source: time of the first sample [s], and speed.
Line = tuple[float, float]


@dataclass(frozen=True)
class Copy:
    """The part of a validation log that repeats a fitted log.

    Attributes:
        log: Name of the validation log.
        source: Name of the fitted log.
        share: Share of the validation log's samples, 0 to 1.
        speed: Speed relative to the source; negative: reversed.
        cut: Whether only the copied part is excluded from validation.
    """

    log: str
    source: str
    share: float
    speed: float
    cut: bool = False

    @property
    def sentence(self) -> str:
        """Finding, consequence and remedy."""
        much = "" if self.share > 0.995 else f"{100 * self.share:.0f} % of "
        speed = "" if 0.99 < abs(self.speed) < 1.01 else f" at {abs(self.speed):.2g} times its speed"
        if self.speed < 0.0:
            speed = f" in reverse{speed}"
        return (
            f"{much}'{self.log}' is a copy of the fitted log '{self.source}'{speed}, including its noise. "
            f"{'This part' if self.cut else 'It'} is excluded from validation. Give --validate a log of another run."
        )

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        return {"log": self.log, "of": self.source, "share": self.share, "speed": self.speed, "rest_judges": self.cut}


def find_copy(name: str, judged: Log, fitted: Sequence[tuple[str, Log]]) -> tuple[Copy, list[tuple[int, int]]] | None:
    """Find the part of a validation log that repeats fitted logs; also return the ranges of other samples.

    Args:
        name: Name of the validation log.
        judged: Validation log.
        fitted: Fitted logs with their names.
    """
    same, most, source, speed = np.zeros(len(judged), dtype=bool), 0, "", 1.0
    for other, log in fitted:
        ranges, rate = copied_ranges(judged, log)
        for first, last in ranges:
            same[first:last] = True
        if (count := sum(last - first for first, last in ranges)) > most:
            most, source, speed = count, other, rate
    if not most:
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~same, [False]]).astype(np.int8)))
    rest = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return Copy(name, source, float(np.mean(same)), speed), rest


def copied_ranges(judged: Log, fitted: Log) -> tuple[list[tuple[int, int]], float]:
    """Find the samples of a log that repeat another log including its noise.

    Args:
        judged: Validation log.
        fitted: Fitted log.

    Returns:
        Half-open ranges of samples of `judged`, and the speed relative to the source (0: no copy).
    """
    if judged is fitted:
        return [(0, len(judged))], 1.0
    if judged.tau is None or fitted.tau is None or judged.joints != fitted.joints:
        return [], 0.0
    if min(len(judged), len(fitted)) < _PIECE:
        return [], 0.0
    windows, source = list(_windows(judged, fitted)), _Source(fitted)
    lines: list[Line | None] = [None] * len(windows)
    for k in range(0, len(windows), max(1, len(windows) // _STARTS)):
        if lines[k] is None:
            chains = (_chain(source, windows, k, line) for line in source.lines(windows[k]))
            for place, line in next(filter(None, chains), {}).items():
                lines[place] = line
    ranges = joined_ranges([w.rows for w, line in zip(windows, lines, strict=True) if line is not None])
    speeds = [line[1] for line in lines if line is not None]
    return ranges, float(np.median(speeds)) if speeds else 0.0


@dataclass(frozen=True, eq=False)
class _Window:
    """Samples of a validation log, subsampled to the rate of the fitted log if that is lower."""

    rows: tuple[int, int]
    t: Array
    q: Array
    tau: Array


def _windows(a: Log, b: Log) -> Iterator[_Window]:
    assert a.tau is not None
    periods = [float(np.median(np.diff(log.t))) for log in (a, b)]
    every = max(1, round(periods[1] / periods[0]))
    for start, stop in a.segments:
        count = max(1, (stop - start) // (every * _WINDOW))
        edges = np.linspace(start, stop, count + 1).astype(int)
        for first, last in itertools.pairwise(edges):
            rows = slice(first, last, every)
            if len(a.t[rows]) >= _PIECE:
                yield _Window((int(first), int(last)), a.t[rows], a.q[rows], a.tau[rows])


class _Source:
    """A fitted log as a path with torques.

    Args:
        log: The log.
    """

    def __init__(self, log: Log) -> None:
        assert log.tau is not None
        self.t, self.q, self.tau = log.t, log.q, log.tau
        self.rate = np.gradient(log.q, log.t, axis=0)
        # Absolute positions also match mirrored joints; `_Source.refine` finds their signs.
        self.scale = np.maximum(np.std(log.q, axis=0), 1e-9)
        self.points = np.linspace(0, len(log) - 1, min(len(log), _POINTS)).astype(int)
        self.path = np.abs(log.q[self.points]) / self.scale

    def lines(self, window: _Window) -> Iterator[Line]:
        """Yield lines along which a window has the path and noise of the source, the best first."""
        size = float(np.sum(np.var(window.q / self.scale, axis=0)))
        if size < 1e-8:
            return  # At standstill the alignment is undefined.
        for guess in self._guesses(window, size):
            line = self.refine(window, guess)
            if line is not None and _same_noise(self.cosines(window, line)):
                yield line

    def _guesses(self, window: _Window, size: float) -> Iterator[Line]:
        """Yield lines on which some points of the window are close to the path, the closest first.

        Args:
            window: The window.
            size: Variance of its scaled positions.
        """
        anchors = np.linspace(0, len(window.t) - 1, _ANCHORS).astype(int)
        x = np.abs(window.q[anchors]) / self.scale
        distances = np.sum((self.path[None] - x[:, None]) ** 2, axis=2)
        clock, times = self.t[self.points], window.t[anchors]
        ends = [_minima(distances[k]) for k in (0, -1)]
        lines = [(clock[i], (clock[j] - clock[i]) / (times[-1] - times[0])) for i in ends[0] for j in ends[1] if i != j]
        scores = []
        for start, speed in lines:
            places = np.clip(np.searchsorted(clock, start + speed * (times - times[0])), 0, len(clock) - 1)
            scores.append(float(np.sum(distances[np.arange(_ANCHORS), places])))
        for k in np.argsort(scores)[:3]:
            if scores[k] < _NEAR * _ANCHORS * size:
                yield lines[k]

    def refine(self, window: _Window, guess: Line) -> Line | None:
        """Refine a line by Gauss-Newton steps on the positions; None if the path differs."""
        start, speed = guess
        since = window.t - window.t[0]
        size = float(np.sum(np.var(window.q / self.scale, axis=0)))
        left = np.inf
        for _ in range(8):
            times = start + speed * since
            q, rate = _at(times, self.t, self.q), _at(times, self.t, self.rate)
            signs = np.where(np.sum(q * window.q, axis=0) < 0.0, -1.0, 1.0)
            rest, slope = (window.q - signs * q) / self.scale, signs * rate / self.scale
            left = float(np.mean(np.sum(rest**2, axis=1)))
            columns = np.column_stack([slope.ravel(), (slope * since[:, None]).ravel()])
            step = np.linalg.lstsq(columns, rest.ravel(), rcond=None)[0]
            start, speed = start + step[0], speed + step[1]
        inside = (times >= self.t[0] - 1e-9) & (times <= self.t[-1] + 1e-9)
        if not (left < _SAME_PATH * max(size, 1e-8) and np.mean(inside) > 0.5):
            return None
        return start, speed

    def cosines(self, window: _Window, line: Line) -> list[float]:
        """Compute the phase cosines between a window's torques and those of the source, piece by piece."""
        source_torques = _at(line[0] + line[1] * (window.t - window.t[0]), self.t, self.tau)
        pairs = (
            (mine[k : k + _PIECE], its[k : k + _PIECE])
            for mine, its in zip(window.tau.T, source_torques.T, strict=True)
            for k in range(0, len(mine) - _PIECE + 1, _PIECE // 2)
        )
        return [cosine for x, y in pairs if (cosine := _phase_cosine(x, y)) is not None]


def _same_noise(cosines: Sequence[float]) -> bool:
    return bool(cosines) and float(np.median(cosines)) > _SAME_NOISE


def _chain(source: _Source, windows: Sequence[_Window], k: int, line: Line) -> dict[int, Line] | None:
    """Extend the line of a window to its neighbours; None if they are another run of the same motion.

    If all joints reverse in a window, the friction jumps alone can make two runs look equal. The neighbours decide.
    """
    chain, cosines_so_far = {k: line}, source.cosines(windows[k], line)
    for step in (-1, 1):
        at, (start, speed), missed = k, line, 0
        while 0 <= at + step < len(windows) and missed < _MOST_MISSED:
            guess = start + speed * (windows[at + step].t[0] - windows[at].t[0]), speed
            at += step
            refined = source.refine(windows[at], guess)
            # At standstill there is no path to refine the line.
            start, speed = refined or guess
            cosines = source.cosines(windows[at], (start, speed))
            if _same_noise(cosines):
                chain[at], missed = (start, speed), 0
            elif refined is None:
                break
            else:
                missed += 1
            cosines_so_far += cosines
            if not _same_noise(cosines_so_far):
                return None
    return chain


def _phase_cosine(x: Array, y: Array) -> float | None:
    """Compute the mean phase cosine of two signals in the upper half of their frequencies; None: no signal."""
    # Differences remove the smooth part, which would leak into high frequencies.
    u, v = (np.fft.rfft(np.diff(z, 3) * np.hanning(len(z) - 3)) for z in (x, y))
    product = (u * np.conj(v))[len(u) // 2 :]
    size = np.abs(product)
    if np.max(size) <= 1e-20 * max(float(np.var(x) * np.var(y)), 1e-300):
        return None
    return abs(float(np.mean(np.real(product) / np.maximum(size, 1e-300))))


def _at(times: Array, clock: Array, x: Array) -> Array:
    return np.column_stack([np.interp(times, clock, column) for column in x.T])


def _minima(x: Array) -> NDArray[np.intp]:
    """Return the indices of the smallest local minima."""
    padded = np.concatenate([[np.inf], x, [np.inf]])
    places = np.flatnonzero((padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]))
    return np.asarray(places[np.argsort(x[places])[:_NEAREST]], dtype=np.intp)
