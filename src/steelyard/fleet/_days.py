"""What the logs of a robot say of its channels, made ready to be compared day by day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, drawn_to_mean
from steelyard.fleet._channels import FRICTION_CHANNEL, Channel
from steelyard.fleet._scan import MEDIAN_SQUARE, excess_variance
from steelyard.ground.arrays import Array

_DAY_S = 86400.0
# Time constants within which gears warm up, s.
_WARM_UP_S = (1200.0, 4800.0)
# A temperature that varies by less than this, °C, explains nothing.
_VARIES = 1.0
# What so many other joints at least have in common is the weather's: one of them that wears does not lead their median.
_OTHERS = 4
# Joints rise and fall together if pairs of them do so by this much (1: always, 0: by chance), over so many pairs.
_TOGETHER, _FEW_PAIRS = 0.2, 60.0
# Overlapping differences of n values, and medians of them, tell as much as this part of n independent squares.
_OVERLAP, _OF_MEDIANS = 2.0 / 3.0, 0.37
# Days from which on a robot tells how it wanders.
_LONG = 6
# Robots from which on medians are not led by one of them.
_MANY = 6
# They do so for sure beyond so many standard errors of a ratio of variances.
_SURE = 0.5
_Apart = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def _same(days: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(days == 0)


def _later(days: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(days > 0)


@dataclass(frozen=True, eq=False)
class Days:
    """The channels of a robot, log by log or day by day.

    Attributes:
        robot: its name.
        t: dates, seconds since 1970, rising.
        temperature: °C, not a number where it is not known.
        values: by how much each channel differs from the robot's own, `(times, channels)`.
        variances: of these; infinite where nothing is known.
        level: the robot's own.
        units: what changes are told as parts of.
        warmth: regressors of warmth, less their mean, `(times, 3)`: temperature, and two of the time since the first
            log of the day; zeros where they do not apply.
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
        """Whether the table's temperature says how warm it was."""
        known = np.isfinite(self.temperature)
        return bool(known.all() and np.ptp(self.temperature) > _VARIES)


def without_weather(robots: Sequence[Days], channels: Sequence[Channel]) -> list[Days]:
    """From the friction of every joint, what the other joints have in common (the median of the parts by which theirs
    differs) taken out, where enough joints tell, their friction rises and falls together in the robots of the model,
    and no temperature says why.

    Args:
        robots: log by log.
        channels: what their columns are.
    """
    levels: dict[str, int] = {}
    for n, c in enumerate(channels):
        if c.friction and (c.what == FRICTION_CHANNEL or c.joint not in levels):
            levels[c.joint] = n
    places = list(levels.values())
    if len(places) <= _OTHERS or not _rise_together(robots, places):
        return list(robots)
    return [days if days.by_temperature else _alone(days, channels, levels) for days in robots]


def _rise_together(robots: Sequence[Days], places: Sequence[int]) -> bool:
    """Whether the changes of joints from log to log have the same sign more often than chance would have it."""
    same = total = 0.0
    for days in robots:
        known = np.all(np.isfinite(days.variances[:, places]), axis=1)
        signs = np.sign(np.diff(days.values[np.ix_(known, places)], axis=0))
        pairs = signs.shape[1] * (signs.shape[1] - 1.0)
        same += float(np.sum(signs.sum(axis=1) ** 2 - signs.shape[1]))
        total += pairs * len(signs)
    return total > _FEW_PAIRS and same / total > _TOGETHER


def _alone(days: Days, channels: Sequence[Channel], levels: Mapping[str, int]) -> Days:
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


def with_warmth(days: Days) -> Days:
    """The same with regressors of warmth, as far as its logs vary in them."""
    X = np.zeros((len(days.t), 3))
    if days.by_temperature:
        X[:, 0] = days.temperature
    else:
        first = np.array([days.t[days.day == d].min() for d in days.day])
        for k, lag in enumerate(_WARM_UP_S):
            X[:, k + 1] = np.exp(-(days.t - first) / lag)
    return replace(days, warmth=X - X.mean(axis=0))


def warmth_law(robots: Sequence[Days]) -> Array:
    """By how much each channel rises with each regressor of warmth in the robots of a model, `(3, channels)`."""
    count = robots[0].values.shape[1] if robots else 0
    law = np.zeros((3, count))
    for c in range(count):
        N, b = np.zeros((3, 3)), np.zeros(3)
        for days in robots:
            seen = np.isfinite(days.variances[:, c])
            if seen.sum() < 2:
                continue
            X, z, v = days.warmth[seen], days.values[seen, c], days.variances[seen, c]
            w = 1.0 / np.maximum(v, np.median(v))  # what scatters beyond the error bars counts in all alike
            X, z = X - w @ X / w.sum(), z - w @ z / w.sum()
            N, b = N + (X * w[:, None]).T @ X, b + (X * w[:, None]).T @ z
        size = np.sqrt(np.diag(N))
        shown = size > 1e-6 * max(float(size.max(initial=0.0)), 1e-300)
        if shown.any():
            scaled = N[np.ix_(shown, shown)] / np.outer(size[shown], size[shown])
            law[shown, c] = np.linalg.lstsq(scaled, b[shown] / size[shown], rcond=1e-6)[0] / size[shown]
    return law


@dataclass(frozen=True, eq=False)
class Scatter:
    """How channels scatter in robots that do not change, beyond their error bars; all by channel.

    Attributes:
        law: of warmth, `(3, channels)`.
        within: variance from log to log of a day.
        day: variance from day to day.
        walk: variance by which they wander, per day.
        degrees: of freedom that these are known with.
    """

    law: Array
    within: Array
    day: Array
    walk: Array
    degrees: Array


def learnt_scatter(robots: Sequence[Days]) -> tuple[list[Days], Scatter]:
    """The days of all robots, warmth taken out, and how they scatter.

    Args:
        robots: log by log, with their regressors of warmth.
    """
    law = warmth_law(robots)
    clean = [replace(d, values=d.values - d.warmth @ law) for d in robots]
    count = law.shape[1]
    within = np.array([_excess(clean, c, _same)[0] for c in range(count)])
    daily = [_by_day(d, within) for d in clean]
    # One robot of many that has changed does not lead a median; one of a handful is not taken for one that wanders.
    calm = daily if len(daily) >= _MANY else [_without_a_step(d) for d in daily]
    day, walk, degrees = np.zeros((3, count))
    for c in range(count):
        day[c], number = _excess(daily, c, _later)
        degrees[c] = max(_OVERLAP * _OF_MEDIANS * number, 2.0)
        if day[c] == 0.0:  # error bars err on the safe side; many days know better
            narrower = float(np.minimum(drawn_to_mean(_ratio(daily, c), 1.0, degrees[c]), 1.0))
            for d in daily:
                d.variances[:, c] *= narrower
        for _ in range(3):  # what wanders differs from one day to the next, too
            walk[c] = _wander(calm, c, day[c])
            if walk[c] == 0.0:
                break
            day[c], _ = _excess(daily, c, _later, walk[c])
    return daily, Scatter(law, within, day, walk, degrees)


def _by_day(days: Days, within: Array) -> Days:
    """The means of each day's logs."""
    numbers = np.unique(days.day)
    shape = len(numbers), days.values.shape[1]
    t, values, variances, warmth = (
        np.zeros(len(numbers)),
        np.zeros(shape),
        np.full(shape, np.inf),
        np.zeros((len(numbers), 3)),
    )
    for n, number in enumerate(numbers):
        own = days.day == number
        w = 1.0 / (days.variances[own] + within)
        total = w.sum(axis=0)
        known = total > 0.0
        t[n], warmth[n] = days.t[own].min(), days.warmth[own].mean(axis=0)
        values[n, known] = (np.sum(w * days.values[own], axis=0) / np.where(known, total, 1.0))[known]
        variances[n, known] = 1.0 / total[known]
    return replace(days, t=t, values=values, variances=variances, warmth=warmth, temperature=np.full(len(t), np.nan))


def _without_a_step(days: Days) -> Days:
    """The same, of each channel the step taken out that accounts for most."""
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


def _differences(days: Days, c: int, lag: int) -> tuple[Array, Array, Array]:
    """Squared differences of values `lag` places apart, their known variances, and seconds between."""
    seen = np.isfinite(days.variances[:, c])
    z, v, t = days.values[seen, c], days.variances[seen, c], days.t[seen]
    return (z[lag:] - z[:-lag]) ** 2, v[lag:] + v[:-lag], t[lag:] - t[:-lag]


def _neighbours(robots: Sequence[Days], c: int, apart: _Apart, walk: float = 0.0) -> tuple[Array, Array]:
    """Squared differences of neighbours whose days are `apart`, and their known variances, of all robots."""
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


def _excess(robots: Sequence[Days], c: int, apart: _Apart, walk: float = 0.0) -> tuple[float, int]:
    """The variance of values beyond their error bars, and how many differences it is from."""
    squares, known = _neighbours(robots, c, apart, walk)
    return excess_variance(squares, known, np.full(len(squares), 2.0)), len(squares)


def _ratio(robots: Sequence[Days], c: int) -> float:
    """The size of differences between days over what error bars say."""
    squares, known = _neighbours(robots, c, _later)
    return float(np.median(squares / np.maximum(known, 1e-300))) / MEDIAN_SQUARE if len(squares) else 1.0


def _wander(robots: Sequence[Days], c: int, day: float) -> float:
    """The variance per day by which values far apart differ more than neighbours do."""
    far = []
    for d in robots:
        count = int(np.isfinite(d.variances[:, c]).sum())
        if count >= _LONG:
            far.append(_differences(d, c, count // 3))
    if not far:
        return 0.0
    squares, known, seconds = (np.concatenate([m[k] for m in far]) for k in range(3))
    # Three thirds of a series are compared; chance makes them differ as well, and half of the time by more than usual.
    ratio = float(np.median(squares / np.maximum(known + 2.0 * day, 1e-300))) / MEDIAN_SQUARE
    if ratio < 1.0 + _SURE * np.sqrt(2.0 / (3.0 * _OF_MEDIANS * len(far))):
        return 0.0
    return excess_variance(squares, known + 2.0 * day, seconds / _DAY_S)


@dataclass(frozen=True, eq=False)
class Noise:
    """Channels of a robot that tell on the same days, and how they scatter there.

    Attributes:
        channels: their places.
        t: the days, seconds since 1970.
        z: values, `(channels, days)`.
        C: their covariances.
        degrees: of freedom that these are known with, by channel.
    """

    channels: NDArray[np.intp]
    t: Array
    z: Array
    C: Array
    degrees: Array


def noises(days: Days, scatter: Scatter, channels: Sequence[int]) -> list[Noise]:
    """Some `channels` of a robot, those together that tell on the same days; those that never tell are left out."""
    seen = np.isfinite(days.variances)
    same: dict[bytes, list[int]] = {}
    for c in channels:
        if seen[:, c].any():
            same.setdefault(seen[:, c].tobytes(), []).append(c)
    return [_noise(days, scatter, np.array(own), seen[:, own[0]]) for own in same.values()]


def _noise(days: Days, scatter: Scatter, own: NDArray[np.intp], seen: NDArray[np.bool_]) -> Noise:
    z, v, t = days.values[seen][:, own].T, days.variances[seen][:, own].T, days.t[seen] / _DAY_S
    day, walk = scatter.day[own, None], scatter.walk[own, None]
    C = walk[..., None] * np.minimum.outer(t - t[0], t - t[0])
    C[:, range(len(t)), range(len(t))] += v + day
    # A robot that scatters more than its kin is given more, one that scatters less, less.
    d = np.diff(z, axis=1) ** 2 / np.maximum(v[:, 1:] + v[:, :-1] + 2.0 * day + walk * np.diff(t), 1e-300)
    told = max(d.shape[1] * _OVERLAP, 0.0)
    wider = drawn_to_mean(_mean_but_largest(d), 1.0, told) if d.shape[1] else np.ones(len(own))
    # Robots warm up by half as much, or half as much again.
    X = days.warmth[seen] * (0.5 * scatter.law[:, own].T[:, None, :])
    degrees = np.minimum(scatter.degrees[own], 200.0) + min(told, DEGREES_OF_MEAN)
    return Noise(own, days.t[seen], z, wider[:, None, None] * C + X @ np.swapaxes(X, 1, 2), degrees)


def _mean_but_largest(d: Array) -> Array:
    """The mean of squared Gaussians, `(series, values)`, without the largest, which a jump may have made."""
    n = d.shape[1]
    if n < 6:
        return np.asarray(np.mean(d, axis=1))
    expected = 2.0 * np.log(n) - np.log(np.log(n))
    return np.asarray((np.sum(d, axis=1) - np.max(d, axis=1)) / (n - expected))
