"""`fleet_drift`: friction, offset and torque gain of every joint over weeks and months, and what changed since when.

Each log gives one value of every channel (`_channels.py`), with an error bar. What a robot does every day is taken out:
warmth, by the temperature that the table states or else by the time since the first log of the day, and, where five
joints move or more, the friction that they have in common. Days are compared, not logs. They scatter by more than
their error bars, and usually wander a little; how much is learnt from all robots of the model together, by medians,
which the few that have really changed do not lead. Then each joint is asked whether it has changed on any day, and the
rate of false discoveries is kept over all joints of all robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from steelyard.fleet._channels import FRICTION_CHANNEL, Channel, channels_of, deviations
from steelyard.fleet._days import Days, Scatter, learnt_scatter, noises, with_warmth, without_weather
from steelyard.fleet._scan import ChangePoint, false_discovery, scan
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import with_error

# Of the changes that are told, so many are false on the average.
FALSE_DRIFTS = 0.05
# What is told of one channel at most.
_MOST = 3
_SAYS = {
    FRICTION_CHANNEL: "the friction of '{joint}' has {way} by {part} %",
    "offset": "the torque of '{joint}' has an offset that has {way} by {part} % of its friction",
    GAIN_KIND: "the torque of '{joint}' has {way} by {part} %: its gain has changed",
    "": "the {what} friction of '{joint}' has {way} by {part} % of its friction",
}


@dataclass(frozen=True, eq=False)
class DriftSeries:
    """A channel of a robot over time.

    Attributes:
        robot: its name.
        joint: the joint.
        what: "friction", the kind of a term, or "gain".
        unit: of values and errors.
        dates: of the days, seconds since 1970 (UTC).
        values: the robot's own plus what each day differs by, warmth taken out.
        errors: standard errors, the usual scatter of days included.
        p: how often chance would look like a change; 1 where there are too few days.
    """

    robot: str
    joint: str
    what: str
    unit: str
    dates: Array
    values: Array
    errors: Array
    p: float


@dataclass(frozen=True)
class Drift:
    """A change of a robot's joint beyond chance.

    Attributes:
        robot: its name.
        joint: the joint.
        what: the channel in which it is clearest.
        how: "step" or "growth".
        since: its date, seconds since 1970 (UTC).
        earliest: with `latest` what the date lies between at 95 %.
        latest: see `earliest`.
        size: by how much the last days differ from what was before, in `unit`.
        error: its standard error.
        unit: of the size.
        relative: the size as a part of the joint's friction (of the torque for gains).
        relative_error: its standard error.
        p: how often chance would do as much in this joint, on any day.
        sentence: all this in words.
    """

    robot: str
    joint: str
    what: str
    how: str
    since: float
    earliest: float
    latest: float
    size: float
    error: float
    unit: str
    relative: float
    relative_error: float
    p: float
    sentence: str


@dataclass(frozen=True, eq=False)
class FleetDrift:
    """What drifts in the robots of one model.

    Attributes:
        series: every channel of every robot, for curves.
        drifts: what has changed, the surest first.
        joints: how many joints of robots were asked.
        rate: of false discoveries among `drifts`.
        scatter: of days, beyond their error bars: by channel (joint, what), in its unit.
        channels: what is followed.
        days: every robot day by day, warmth taken out.
        learnt: how days scatter.
    """

    series: tuple[DriftSeries, ...]
    drifts: tuple[Drift, ...]
    joints: int
    rate: float
    scatter: dict[tuple[str, str], float]
    channels: tuple[Channel, ...]
    days: tuple[Days, ...]
    learnt: Scatter


def fleet_drift(fleet: PooledFleet, logs: Sequence[LogFactors], rate: float = FALSE_DRIFTS) -> FleetDrift:
    """Follow every joint of the robots of one model, and tell what has changed.

    Args:
        fleet: the robots, pooled.
        logs: of all of them; those without a date, or that could not be used, count for nothing.
        rate: of false discoveries.
    """
    dated = [log for log in logs if log.factor is not None and log.date is not None]
    with one_blas_thread():
        channels = channels_of(fleet)
        followed = [_followed(fleet, name, dated, channels) for name in fleet.by_name]
        return compared([d for d in followed if d is not None], channels, rate)


def compared(robots: Sequence[Days], channels: Sequence[Channel], rate: float = FALSE_DRIFTS) -> FleetDrift:
    """What has changed in robots whose channels are known log by log.

    Args:
        robots: log by log.
        channels: what their columns are.
        rate: of false discoveries.
    """
    daily, scatter = learnt_scatter([with_warmth(d) for d in without_weather(robots, channels)])
    series: list[DriftSeries] = []
    by_joint: dict[tuple[int, str], list[tuple[float, int, ChangePoint]]] = {}
    for r, days in enumerate(daily):
        made: dict[int, DriftSeries] = {}
        for noise in noises(days, scatter, range(len(channels))):
            found = scan(noise.z, noise.C, noise.t, noise.degrees)
            errors = np.sqrt(np.diagonal(noise.C, axis1=1, axis2=2))
            for n, (c, change) in enumerate(zip(noise.channels.tolist(), found, strict=True)):
                own, p_own = channels[c], 1.0 if change is None else change.p
                made[c] = DriftSeries(
                    days.robot, own.joint, own.what, own.unit, noise.t, days.level[c] + noise.z[n], errors[n], p_own
                )
                if change is not None:
                    by_joint.setdefault((r, own.joint), []).append((p_own, c, change))
        series += [made[c] for c in sorted(made)]
    keys = sorted(by_joint)
    # A joint has several channels that tell of much the same: its p is that of its best, times their number.
    p = np.array([min(1.0, min(x[0] for x in by_joint[k]) * len(by_joint[k])) for k in keys])
    real = false_discovery(p, rate)
    told: list[Drift] = []
    limit = float(p[real].max()) if real.any() else 0.0
    for k, key in enumerate(keys):
        if real[k]:
            told += _all_changes(daily[key[0]], channels, scatter, by_joint[key], limit, float(p[k]))
    told.sort(key=lambda one: (one.p, one.robot, one.joint, one.since))
    usual = {(c.joint, c.what): float(np.sqrt(s)) for c, s in zip(channels, scatter.day, strict=False)}
    return FleetDrift(tuple(series), tuple(told), len(keys), rate, usual, tuple(channels), tuple(daily), scatter)


def _followed(fleet: PooledFleet, name: str, dated: Sequence[LogFactors], channels: Sequence[Channel]) -> Days | None:
    """The logs of a robot in the order of their dates, and what each says of the channels."""
    own = sorted((log for log in dated if log.robot == name), key=lambda log: (log.date or 0.0, log.url))
    if not own:
        return None
    robot = fleet.by_name[name]
    values, variances = deviations(fleet, robot, own, channels)
    return Days(
        name,
        np.array([log.date for log in own], dtype=float),
        np.array([np.nan if log.temperature is None else log.temperature for log in own], dtype=float),
        values,
        variances,
        np.array([c.row @ robot.x for c in channels]),
        np.array([max(c.size(robot.x), 1e-12) for c in channels]),
    )


def _all_changes(
    days: Days,
    channels: Sequence[Channel],
    scatter: Scatter,
    found: Sequence[tuple[float, int, ChangePoint]],
    limit: float,
    p: float,
) -> list[Drift]:
    """The changes of a joint: the clearest channel's, those after it, those of channels that changed at other times."""
    out: list[Drift] = []
    for p_own, c, change in sorted(found, key=lambda one: (one[0], one[1])):
        told = min(1.0, p_own * len(found))
        if told > limit:
            break
        noise = noises(days, scatter, [c])[0]
        along: list[Array] = []
        next_change: ChangePoint | None = change
        while next_change is not None and min(1.0, next_change.p * len(found)) <= limit and len(along) < _MOST:
            own_p = min(told, p) if not along else next_change.p * len(found)
            one = _told(days, channels[c], c, next_change, noise.t, own_p)
            # The same event in another channel of the joint is no news.
            if not any(o.what != one.what and o.earliest <= one.latest and one.earliest <= o.latest for o in out):
                out.append(one)
            along.append(next_change.template)
            next_change = scan(noise.z, noise.C, noise.t, noise.degrees, along)[0]
    return out


def _told(days: Days, channel: Channel, c: int, change: ChangePoint, t: Array, p: float) -> Drift:
    part, error = change.size / days.units[c], change.error / days.units[c]
    since, earliest, latest = float(t[change.start]), float(t[change.first]), float(t[change.last])
    words = _SAYS.get(channel.what, _SAYS[""]).format(
        joint=channel.joint, what=channel.what, way="risen" if change.size > 0.0 else "fallen",
        part=with_error(100.0 * abs(part), 100.0 * error),
    )  # fmt: skip
    when = f"growing since {day_text(since)}" if change.ramp else f"since {day_text(since)}"
    if earliest < latest:
        when += f" (between {day_text(earliest)} and {day_text(latest)})"
    return Drift(
        days.robot, channel.joint, channel.what, "growth" if change.ramp else "step", since, earliest, latest,
        change.size, change.error, channel.unit, part, error, p, f"Robot '{days.robot}': {words}, {when}.",
    )  # fmt: skip


def day_text(seconds: float) -> str:
    """The day of a moment, `seconds` since 1970, as 2026-03-01."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d")
