"""Time series of a robot's channels: remove effects of temperature, average by day, estimate the usual scatter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, shrink_to_mean
from steelyard.fleet._channels import FRICTION_CHANNEL, Channel
from steelyard.ground.arrays import Array
from steelyard.trends.series_statistics import MEDIAN_EFFICIENCY, MEDIAN_SQUARE, excess_variance, weighted_mean

_DAY_S = 86400.0
# Time constants of the warm-up of gears [s].
_WARM_UP_S = (1200.0, 4800.0)
# Smallest range of a temperature that is used as a regressor [°C].
_MIN_RANGE_C = 1.0
# Smallest number of other joints whose median removes what all joints share; wear of one of them does not move it.
_OTHERS = 4
# Smallest mean agreement of signs between joints (1: always equal, 0: by chance), and smallest number of pairs.
_AGREEMENT, _MIN_PAIRS = 0.2, 60.0
# Efficiency of overlapping differences, as a part of that many independent squares.
_OVERLAP = 2.0 / 3.0
# Smallest number of days of a robot that a random walk is estimated from.
_MIN_DAYS = 6
# Smallest number of robots whose median a single robot cannot move.
_MANY = 6
# A random walk is assumed beyond this many standard errors of the ratio of variances.
_WALK_ERRORS = 0.5
_DayFilter = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def _same(days: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(days == 0)


def _later(days: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(days > 0)


@dataclass(frozen=True, eq=False)
class DailySeries:
    """Channels of one robot over time, log by log or day by day.

    Attributes:
        robot: Name of the robot.
        t: Dates, seconds since 1970, increasing.
        temperature: Temperatures [°C]; NaN if unknown.
        values: Deviation of each channel from the robot's level, shape (times, channels).
        variances: Variances of the values; infinite if unknown.
        level: Level of each channel.
        units: Reference of relative changes.
        warmth: Centred regressors of warmth, shape (times, 3): temperature, and two of the time since the first log of
            the day; zeros where they do not apply.
    """

    robot: str
    t: Array
    temperature: Array
    values: Array
    variances: Array
    level: Array
    units: Array
    warmth: Array = field(default_factory=lambda: np.zeros((0, 3)))

    @property
    def day(self) -> NDArray[np.int64]:
        """The number of each day."""
        return np.asarray(np.floor(self.t / _DAY_S), dtype=np.int64)

    @property
    def by_temperature(self) -> bool:
        """Whether the table states temperatures that vary enough to be a regressor."""
        known = np.isfinite(self.temperature)
        return bool(known.all() and np.ptp(self.temperature) > _MIN_RANGE_C)


def remove_common_friction(robots: Sequence[DailySeries], channels: Sequence[Channel]) -> list[DailySeries]:
    """Remove from the friction of every joint the median relative deviation of the other joints.

    This applies if enough joints have values, if their friction rises and falls together in robots of this type, and
    if no temperature explains it.

    Args:
        robots: Series of all robots, log by log.
        channels: Channels of their columns.
    """
    levels: dict[str, int] = {}
    for n, c in enumerate(channels):
        if c.friction and (c.what == FRICTION_CHANNEL or c.joint not in levels):
            levels[c.joint] = n
    places = list(levels.values())
    if len(places) <= _OTHERS or not _rise_together(robots, places):
        return list(robots)
    return [days if days.by_temperature else _without_common_part(days, channels, levels) for days in robots]


def _rise_together(robots: Sequence[DailySeries], places: Sequence[int]) -> bool:
    """Whether the changes of joints from log to log have the same sign more often than by chance."""
    same = total = 0.0
    for days in robots:
        known = np.all(np.isfinite(days.variances[:, places]), axis=1)
        signs = np.sign(np.diff(days.values[np.ix_(known, places)], axis=0))
        pairs = signs.shape[1] * (signs.shape[1] - 1.0)
        same += float(np.sum(signs.sum(axis=1) ** 2 - signs.shape[1]))
        total += pairs * len(signs)
    return total > _MIN_PAIRS and same / total > _AGREEMENT


def _without_common_part(days: DailySeries, channels: Sequence[Channel], levels: Mapping[str, int]) -> DailySeries:
    values, variances = days.values.copy(), days.variances.copy()
    for n, c in enumerate(channels):
        others = [k for joint, k in levels.items() if joint != c.joint]
        if not c.friction:
            continue
        seen = np.isfinite(days.variances[:, others])
        enough = seen.sum(axis=1) >= _OTHERS
        parts = np.where(seen, days.values[:, others] / days.units[others], np.nan)[enough]
        doubt = np.where(seen, days.variances[:, others] / days.units[others] ** 2, np.nan)[enough]
        if enough.any():
            values[enough, n] -= np.nanmedian(parts, axis=1) * days.level[n]
            variances[enough, n] += 1.57 * np.nanmean(doubt, axis=1) / seen[enough].sum(axis=1) * days.level[n] ** 2
    return replace(days, values=values, variances=variances)


def add_warmth_regressors(days: DailySeries) -> DailySeries:
    """Add regressors of warmth to the series."""
    X = np.zeros((len(days.t), 3))
    if days.by_temperature:
        X[:, 0] = days.temperature
    else:
        first = np.array([days.t[days.day == d].min() for d in days.day])
        for k, lag in enumerate(_WARM_UP_S):
            X[:, k + 1] = np.exp(-(days.t - first) / lag)
    return replace(days, warmth=X - X.mean(axis=0))


def fit_warmth(robots: Sequence[DailySeries]) -> Array:
    """Fit how much each channel rises with each regressor of warmth over all robots, shape (3, channels)."""
    count = robots[0].values.shape[1] if robots else 0
    law = np.zeros((3, count))
    for c in range(count):
        N, b = np.zeros((3, 3)), np.zeros(3)
        for days in robots:
            seen = np.isfinite(days.variances[:, c])
            if seen.sum() < 2:
                continue
            X, z, v = days.warmth[seen], days.values[seen, c], days.variances[seen, c]
            w = 1.0 / np.maximum(v, np.median(v))  # scatter beyond the error bars is the same in all logs
            X, z = X - w @ X / w.sum(), z - w @ z / w.sum()
            N, b = N + (X * w[:, None]).T @ X, b + (X * w[:, None]).T @ z
        size = np.sqrt(np.diag(N))
        shown = size > 1e-6 * max(float(size.max(initial=0.0)), 1e-300)
        if shown.any():
            scaled = N[np.ix_(shown, shown)] / np.outer(size[shown], size[shown])
            law[shown, c] = np.linalg.lstsq(scaled, b[shown] / size[shown], rcond=1e-6)[0] / size[shown]
    return law


@dataclass(frozen=True, eq=False)
class ResidualScale:
    """Scatter of channels beyond their error bars in robots that do not change; all by channel.

    Attributes:
        law: Effect of warmth, shape (3, channels).
        within: Variance from log to log within a day.
        day: Variance from day to day.
        walk: Variance of a random walk per day.
        degrees: Degrees of freedom of the variances.
    """

    law: Array
    within: Array
    day: Array
    walk: Array
    degrees: Array


def estimate_residual_scale(robots: Sequence[DailySeries]) -> tuple[list[DailySeries], ResidualScale]:
    """Average the series by day without the effect of warmth, and estimate their usual scatter.

    Args:
        robots: Series log by log, with regressors of warmth.
    """
    law = fit_warmth(robots)
    clean = [replace(d, values=d.values - d.warmth @ law) for d in robots]
    count = law.shape[1]
    within = np.array([_excess(clean, c, _same)[0] for c in range(count)])
    daily = [_by_day(d, within) for d in clean]
    # Among many robots one that changed does not move a median; among few its largest step is removed first.
    calm = daily if len(daily) >= _MANY else [_without_a_step(d) for d in daily]
    day, walk, degrees = np.zeros((3, count))
    for c in range(count):
        day[c], number = _excess(daily, c, _later)
        degrees[c] = max(_OVERLAP * MEDIAN_EFFICIENCY * number, 2.0)
        if day[c] == 0.0:  # error bars are conservative; narrow them if the scatter over many days is smaller
            narrower = float(np.minimum(shrink_to_mean(_ratio(daily, c), 1.0, degrees[c]), 1.0))
            for d in daily:
                d.variances[:, c] *= narrower
        for _ in range(3):  # a random walk also adds to the differences between neighbouring days
            walk[c] = _wander(calm, c, day[c])
            if walk[c] == 0.0:
                break
            day[c], _ = _excess(daily, c, _later, walk[c])
    return daily, ResidualScale(law, within, day, walk, degrees)


def _by_day(days: DailySeries, within: Array) -> DailySeries:
    """Average the logs of each day."""
    numbers = np.unique(days.day)
    values, variances = np.zeros((2, len(numbers), days.values.shape[1]))
    t, warmth = np.zeros(len(numbers)), np.zeros((len(numbers), 3))
    for n, number in enumerate(numbers):
        own = days.day == number
        t[n], warmth[n] = days.t[own].min(), days.warmth[own].mean(axis=0)
        values[n], variances[n] = weighted_mean(days.values[own], days.variances[own] + within)
    return replace(days, t=t, values=values, variances=variances, warmth=warmth, temperature=np.full(len(t), np.nan))


def _without_a_step(days: DailySeries) -> DailySeries:
    """Remove the largest step of each channel."""
    values = days.values.copy()
    for c in range(values.shape[1]):
        seen = np.isfinite(days.variances[:, c])
        z, w = values[seen, c], 1.0 / np.maximum(days.variances[seen, c], 1e-300)
        after = np.arange(len(z))[:, None] >= np.arange(1, len(z))
        means = [(w * z) @ part / np.maximum(w @ part, 1e-300) for part in (after, ~after)]
        if len(z) > 1:
            gain = (means[0] - means[1]) ** 2 / (1.0 / (w @ after) + 1.0 / (w @ ~after))
            best = int(np.argmax(gain))
            values[seen, c] = z - np.where(after[:, best], means[0][best] - means[1][best], 0.0)
    return replace(days, values=values)


def _differences(days: DailySeries, c: int, lag: int) -> tuple[Array, Array, Array]:
    """Return squared differences of values at distance `lag`, their known variances, and the time between them [s]."""
    seen = np.isfinite(days.variances[:, c])
    z, v, t = days.values[seen, c], days.variances[seen, c], days.t[seen]
    return (z[lag:] - z[:-lag]) ** 2, v[lag:] + v[:-lag], t[lag:] - t[:-lag]


def _neighbours(robots: Sequence[DailySeries], c: int, apart: _DayFilter, walk: float = 0.0) -> tuple[Array, Array]:
    """Return squared differences of neighbours whose distance in days passes `apart`, and their known variances."""
    if not robots:
        return np.zeros(0), np.zeros(0)
    z, v = (
        np.concatenate([x[:, c] for x in every])
        for every in ([d.values for d in robots], [d.variances for d in robots])
    )
    t, owner = np.concatenate([d.t for d in robots]), np.repeat(np.arange(len(robots)), [len(d.t) for d in robots])
    seen = np.isfinite(v)
    z, v, t, owner = z[seen], v[seen], t[seen], owner[seen]
    day = np.asarray(np.floor(t / _DAY_S), dtype=np.int64)
    used = (np.diff(owner) == 0) & apart(day[1:] - day[:-1])
    return (np.diff(z) ** 2)[used], (v[1:] + v[:-1] + walk * np.diff(t) / _DAY_S)[used]


def _excess(robots: Sequence[DailySeries], c: int, apart: _DayFilter, walk: float = 0.0) -> tuple[float, int]:
    """Return the variance beyond the error bars, and the number of differences that it is estimated from."""
    squares, known = _neighbours(robots, c, apart, walk)
    return excess_variance(squares, known, np.full(len(squares), 2.0)), len(squares)


def _ratio(robots: Sequence[DailySeries], c: int) -> float:
    """Return the ratio of observed to expected differences between days."""
    squares, known = _neighbours(robots, c, _later)
    return float(np.median(squares / np.maximum(known, 1e-300))) / MEDIAN_SQUARE if len(squares) else 1.0


def _wander(robots: Sequence[DailySeries], c: int, day: float) -> float:
    """Estimate the variance per day of a random walk from values that are far apart."""
    far = []
    for d in robots:
        count = int(np.isfinite(d.variances[:, c]).sum())
        if count >= _MIN_DAYS:
            far.append(_differences(d, c, count // 3))
    if not far:
        return 0.0
    squares, known, seconds = (np.concatenate([m[k] for m in far]) for k in range(3))
    # The thirds of a series are compared. They also differ by chance, half of the time by more than the median.
    ratio = float(np.median(squares / np.maximum(known + 2.0 * day, 1e-300))) / MEDIAN_SQUARE
    if ratio < 1.0 + _WALK_ERRORS * np.sqrt(2.0 / (3.0 * MEDIAN_EFFICIENCY * len(far))):
        return 0.0
    return excess_variance(squares, known + 2.0 * day, seconds / _DAY_S)


@dataclass(frozen=True, eq=False)
class SeriesBlock:
    """Channels of a robot that have values on the same days.

    Attributes:
        channels: Indices of the channels.
        t: Days, seconds since 1970.
        z: Values, shape (channels, days).
        C: Their covariances.
        degrees: Degrees of freedom of the covariances, by channel.
    """

    channels: NDArray[np.intp]
    t: Array
    z: Array
    C: Array
    degrees: Array


def series_blocks(days: DailySeries, scale: ResidualScale, channels: Sequence[int]) -> list[SeriesBlock]:
    """Group `channels` of a robot by the days on which they have values; channels without values are left out."""
    seen = np.isfinite(days.variances)
    same: dict[bytes, list[int]] = {}
    for c in channels:
        if seen[:, c].any():
            same.setdefault(seen[:, c].tobytes(), []).append(c)
    return [_block(days, scale, np.array(own), seen[:, own[0]]) for own in same.values()]


def _block(days: DailySeries, scale: ResidualScale, own: NDArray[np.intp], observed: NDArray[np.bool_]) -> SeriesBlock:
    z, v, t = days.values[observed][:, own].T, days.variances[observed][:, own].T, days.t[observed] / _DAY_S
    day, walk = scale.day[own, None], scale.walk[own, None]
    C = walk[..., None] * np.minimum.outer(t - t[0], t - t[0])
    C[:, range(len(t)), range(len(t))] += v + day
    # The scatter of this robot may be larger or smaller than usual.
    d = np.diff(z, axis=1) ** 2 / np.maximum(v[:, 1:] + v[:, :-1] + 2.0 * day + walk * np.diff(t), 1e-300)
    own_degrees = max(d.shape[1] * _OVERLAP, 0.0)
    wider = shrink_to_mean(_mean_but_largest(d), 1.0, own_degrees) if d.shape[1] else np.ones(len(own))
    # The effect of warmth differs between robots, with a standard deviation of half of it.
    X = days.warmth[observed] * (0.5 * scale.law[:, own].T[:, None, :])
    degrees = np.minimum(scale.degrees[own], 200.0) + min(own_degrees, DEGREES_OF_MEAN)
    return SeriesBlock(own, days.t[observed], z, wider[:, None, None] * C + X @ np.swapaxes(X, 1, 2), degrees)


def _mean_but_largest(d: Array) -> Array:
    """Return the mean of squared Gaussians, shape (series, values), without the largest one, which may be a step."""
    n = d.shape[1]
    if n < 6:
        return np.asarray(np.mean(d, axis=1))
    expected = 2.0 * np.log(n) - np.log(np.log(n))
    return np.asarray((np.sum(d, axis=1) - np.max(d, axis=1)) / (n - expected))
