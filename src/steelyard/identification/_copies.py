"""Find the parts of a validation log that are copies of a fitted log, by the noise on the torques.

Two logs of one motion, played twice, have the same path and torques except for noise. A copy has the same noise too,
for any change of its clock: shifted, slower, backwards, mirrored, thinned, spliced with something else, or with some
added noise. Each window of the validation log is aligned with the fitted log by its path, not by time. Then the phases
of the torques' highest frequencies are compared.
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

# Samples of a window, and of each of its four to seven pieces for the comparison of spectra.
_WINDOW, _PIECE = 256, 64
# Largest mean square difference between a copy and its source, by interpolation and rounding, over the window's
# variance of positions.
_SAME_PATH = 1e-2
# The same where only some points of the path are compared: an error of ten samples makes 0.02.
_NEAR = 0.25
# Mean cosine between the phases of two torques at one frequency: 1 of copies; of independent noise 0 ± 0.25 in a piece
# (16 frequencies), and the median over pieces and joints is nearer to 0. Half-way lies the limit.
_SAME_NOISE = 0.5
# Number of windows that start a search; the windows between them are tried with the line of a neighbour.
_STARTS = 40
# A line has converged if a step moves it by less than this part of a sample.
_SETTLED = 1e-3
# Numbers of points of the fitted path, of points of a window to align it, and of nearest points of the path to each.
_POINTS, _ANCHORS, _NEAREST = 5_000, 6, 5

# Windows of the same path and another noise after which a copy has ended.
_MOST_MISSED = 2

# From a window's time to the source's: time of the window's first sample [s], and speed.
Line = tuple[float, float]


@dataclass(frozen=True)
class Copy:
    """Part of a validation log that repeats a fitted log.

    Attributes:
        log: Name of the validation log.
        source: Name of the fitted log.
        share: Part of the validation log's samples, 0 to 1.
        speed: Speed of the copy over that of its source; negative: backwards.
        cut: Whether the rest of the log is still used for validation.
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
    """Find the samples of a validation log that repeat fitted logs, and the ranges of samples that do not.

    Args:
        name: Name of the validation log.
        judged: The validation log.
        fitted: Logs that were fitted to, each with its name.
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
    """Find the samples of a log that repeat another one, noise and all.

    Args:
        judged: Validation log.
        fitted: Log that was fitted to.

    Returns:
        Half-open ranges of samples of `judged`, and the speed of the copy over that of its source (0: no copy).
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
    """Samples of a validation log, thinned to the sampling rate of the fitted log if that is lower."""

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
    """A fitted log as a path with torques along it.

    Args:
        log: The log.
    """

    def __init__(self, log: Log) -> None:
        assert log.tau is not None
        self.t, self.q, self.tau = log.t, log.q, log.tau
        self.rate = np.gradient(log.q, log.t, axis=0)
        # A mirrored joint has the same size; the alignment of the window shows which joints are mirrored.
        self.scale = np.maximum(np.std(log.q, axis=0), 1e-9)
        self.points = np.linspace(0, len(log) - 1, min(len(log), _POINTS)).astype(int)
        self.path = np.abs(log.q[self.points]) / self.scale
        self.size = np.sum(self.path**2, axis=1)

    def lines(self, window: _Window) -> Iterator[Line]:
        """Find lines along which a window has the source's path and noise, the likeliest first."""
        size = float(np.sum(np.var(window.q / self.scale, axis=0)))
        if size < 1e-8:
            return  # at rest, it fits all phases at rest of the path
        for guess in self._guesses(window, size):
            line = self.settled(window, guess)
            if line is not None and _same_noise(self.cosines(window, line)):
                yield line

    def _guesses(self, window: _Window, size: float) -> Iterator[Line]:
        """Lines that bring some points of the window next to the path, the nearest first.

        Args:
            window: The window.
            size: Variance of its positions, in the path's scale.
        """
        anchors = np.linspace(0, len(window.t) - 1, _ANCHORS).astype(int)
        x = np.abs(window.q[anchors]) / self.scale
        apart = self.size + np.sum(x**2, axis=1)[:, None] - 2.0 * (x @ self.path.T)
        clock, times = self.t[self.points], window.t[anchors]
        ends = [_least(apart[k]) for k in (0, -1)]
        lines = [(clock[i], (clock[j] - clock[i]) / (times[-1] - times[0])) for i in ends[0] for j in ends[1] if i != j]
        scores = []
        for start, speed in lines:
            places = np.clip(np.searchsorted(clock, start + speed * (times - times[0])), 0, len(clock) - 1)
            scores.append(float(np.sum(apart[np.arange(_ANCHORS), places])))
        for k in np.argsort(scores)[:3]:
            if scores[k] < _NEAR * _ANCHORS * size:
                yield lines[k]

    def settled(self, window: _Window, guess: Line) -> Line | None:
        """Refine a line by Gauss–Newton steps on the positions; None if the two paths differ."""
        start, speed = guess
        since = window.t - window.t[0]
        size = float(np.sum(np.var(window.q / self.scale, axis=0)))
        left = np.inf
        for _ in range(8):
            times = start + speed * since
            q, rate = _at(times, self.t, self.q, self.rate)
            signs = np.where(np.sum(q * window.q, axis=0) < 0.0, -1.0, 1.0)
            rest, slope = (window.q - signs * q) / self.scale, signs * rate / self.scale
            left = float(np.mean(np.sum(rest**2, axis=1)))
            columns = np.column_stack([slope.ravel(), (slope * since[:, None]).ravel()])
            step = np.linalg.lstsq(columns.T @ columns, columns.T @ rest.ravel(), rcond=None)[0]
            start, speed = start + step[0], speed + step[1]
            if abs(step[0]) + abs(step[1]) * since[-1] < _SETTLED * since[1]:
                break
        inside = (times >= self.t[0] - 1e-9) & (times <= self.t[-1] + 1e-9)
        if not (left < _SAME_PATH * max(size, 1e-8) and np.mean(inside) > 0.5):
            return None
        return start, speed

    def cosines(self, window: _Window, line: Line) -> list[float]:
        """Compare the phases of a window's torques with those of the source along a line, piece by piece."""
        (theirs,) = _at(line[0] + line[1] * (window.t - window.t[0]), self.t, self.tau)
        places = np.arange(0, len(theirs) - _PIECE + 1, _PIECE // 2)[:, None] + np.arange(_PIECE)
        return _phases_alike(window.tau[places], theirs[places])


def _same_noise(cosines: Sequence[float]) -> bool:
    return bool(cosines) and float(np.median(cosines)) > _SAME_NOISE


def _chain(source: _Source, windows: Sequence[_Window], k: int, line: Line) -> dict[int, Line] | None:
    """Follow the line of a window over its neighbours; None where they show another run of the same motion.

    Where all joints reverse, friction's jumps alone can make two runs alike in a window, but not in its neighbours.
    """
    chain, seen = {k: line}, source.cosines(windows[k], line)
    for step in (-1, 1):
        at, (start, speed), missed = k, line, 0
        while 0 <= at + step < len(windows) and missed < _MOST_MISSED:
            guess = start + speed * (windows[at + step].t[0] - windows[at].t[0]), speed
            at += step
            settled = source.settled(windows[at], guess)
            # A window at rest has no path to align it by.
            start, speed = settled or guess
            cosines = source.cosines(windows[at], (start, speed))
            if _same_noise(cosines):
                chain[at], missed = (start, speed), 0
            elif settled is None:
                break
            else:
                missed += 1
            seen += cosines
            if not _same_noise(seen):
                return None
    return chain


def _phases_alike(x: Array, y: Array) -> list[float]:
    """Mean cosines between the phases of two torques in the upper half of their frequencies, where there is something.

    Args:
        x: Torques, shape (pieces, samples, joints).
        y: Torques to compare with, same shape.
    """
    # Differences remove the smooth part, which would leak into the higher frequencies.
    window = np.hanning(x.shape[1] - 3)[:, None]
    u, v = (np.fft.rfft(np.diff(z, 3, axis=1) * window, axis=1) for z in (x, y))
    product = (u * np.conj(v))[:, u.shape[1] // 2 :]
    size = np.abs(product)
    cosines = np.abs(np.mean(np.real(product) / np.maximum(size, 1e-300), axis=1))
    there = np.max(size, axis=1) > 1e-20 * np.maximum(np.var(x, axis=1) * np.var(y, axis=1), 1e-300)
    return list(map(float, cosines[there]))


def _at(times: Array, clock: Array, *signals: Array) -> list[Array]:
    """Signals at some times of their clock, linearly between samples; beyond its ends they stay as they are there."""
    after = np.clip(np.searchsorted(clock, times), 1, len(clock) - 1)
    share = np.clip((times - clock[after - 1]) / (clock[after] - clock[after - 1]), 0.0, 1.0)[:, None]
    return [(1.0 - share) * x[after - 1] + share * x[after] for x in signals]


def _least(x: Array) -> NDArray[np.intp]:
    """Places of the least local minima."""
    padded = np.concatenate([[np.inf], x, [np.inf]])
    places = np.flatnonzero((padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]))
    return np.asarray(places[np.argsort(x[places])[:_NEAREST]], dtype=np.intp)
