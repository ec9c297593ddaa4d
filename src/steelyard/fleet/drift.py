"""`fleet_drift`: changes of friction, offset and torque gain of every joint over weeks and months, with their dates.

Each log gives one value of every channel (`_channels.py`) with an error bar. Warmth is removed, by the temperature in
the table or else by the time since the first log of the day. With five or more joints, friction that they share is
removed as well. Daily means are compared. They scatter by more than their error bars and often follow a slow random
walk. Medians over all robots of the type estimate both, so the few robots that changed have little influence. Then each
joint is tested for a change on any day, with a controlled false discovery rate over all joints of all robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from steelyard.fleet._channels import FRICTION_CHANNEL, Channel, channels_of, deviations
from steelyard.fleet._daily_series import (
    DailySeries,
    ResidualScale,
    add_warmth_regressors,
    estimate_residual_scale,
    remove_common_friction,
    series_blocks,
)
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import with_error
from steelyard.trends.change_points import ChangePoint, scan
from steelyard.trends.series_statistics import false_discovery

# Expected share of false changes among the reported ones.
FALSE_DRIFTS = 0.05
# Largest number of changes of one channel.
_MAX_CHANGES = 3
_SENTENCES = {
    FRICTION_CHANNEL: "the friction of '{joint}' has {way} by {part} %",
    "offset": "the torque offset of '{joint}' has {way} by {part} % of its friction",
    GAIN_KIND: "the torque gain of '{joint}' has {way} by {part} %",
    "": "the {what} friction of '{joint}' has {way} by {part} % of its friction",
}


@dataclass(frozen=True, eq=False)
class DriftSeries:
    """A channel of a robot over time.

    Attributes:
        robot: Name of the robot.
        joint: Name of the joint.
        what: "friction", the kind of a term, or "gain".
        unit: Unit of values and errors.
        dates: Dates of the days, seconds since 1970 (UTC).
        values: The robot's level plus the deviation of each day, without the effect of warmth.
        errors: Standard errors including the usual scatter of days.
        p: p-value of the most likely change; 1 if there are too few days.
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
    """A significant change of a robot's joint.

    Attributes:
        robot: Name of the robot.
        joint: Name of the joint.
        what: Channel with the most significant change.
        how: "step" or "growth".
        since: Date of the change, seconds since 1970 (UTC).
        earliest: Lower end of the 95 % interval of the date.
        latest: Upper end of this interval.
        size: Difference between the last days and the level before, in `unit`.
        error: Standard error of the size.
        unit: Unit of the size.
        relative: Size as a part of the joint's friction (of the torque for gains).
        relative_error: Standard error of `relative`.
        p: p-value of the joint, over all days.
        sentence: Description in one sentence.
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
    """Changes over time in the robots of one type.

    Attributes:
        series: Every channel of every robot, for curves.
        drifts: Significant changes, the most significant first.
        joints: Number of joints of all robots that were tested.
        rate: False discovery rate of `drifts`.
        scatter: Standard deviation of days beyond their error bars, by channel (joint, what), in the channel's unit.
        channels: Channels that were followed.
        days: Daily means of every robot, without the effect of warmth.
        residual_scale: Usual scatter of days.
    """

    series: tuple[DriftSeries, ...]
    drifts: tuple[Drift, ...]
    joints: int
    rate: float
    scatter: dict[tuple[str, str], float]
    channels: tuple[Channel, ...]
    days: tuple[DailySeries, ...]
    residual_scale: ResidualScale


def fleet_drift(fleet: PooledFleet, logs: Sequence[LogFactors], rate: float = FALSE_DRIFTS) -> FleetDrift:
    """Follow every joint of the robots of one type over time and find significant changes.

    Args:
        fleet: The robots, pooled.
        logs: Logs of all robots; logs without a date and unusable ones are ignored.
        rate: False discovery rate.
    """
    dated = [log for log in logs if log.factor is not None and log.date is not None]
    with one_blas_thread():
        channels = channels_of(fleet)
        series = [_channel_series(fleet, name, dated, channels) for name in fleet.by_name]
        return find_changes([s for s in series if s is not None], channels, rate)


def find_changes(robots: Sequence[DailySeries], channels: Sequence[Channel], rate: float = FALSE_DRIFTS) -> FleetDrift:
    """Find significant changes in series of channels.

    Args:
        robots: Series of all robots, log by log.
        channels: Channels of their columns.
        rate: False discovery rate.
    """
    series_by_log = [add_warmth_regressors(d) for d in remove_common_friction(robots, channels)]
    daily, scale = estimate_residual_scale(series_by_log)
    series: list[DriftSeries] = []
    by_joint: dict[tuple[int, str], list[tuple[float, int, ChangePoint]]] = {}
    for r, days in enumerate(daily):
        made: dict[int, DriftSeries] = {}
        for noise in series_blocks(days, scale, range(len(channels))):
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
    # The channels of a joint overlap; its p-value is the smallest one times their number.
    p = np.array([min(1.0, min(x[0] for x in by_joint[k]) * len(by_joint[k])) for k in keys])
    real = false_discovery(p, rate)
    drifts: list[Drift] = []
    limit = float(p[real].max()) if real.any() else 0.0
    for k, key in enumerate(keys):
        if real[k]:
            drifts += _all_changes(daily[key[0]], channels, scale, by_joint[key], limit, float(p[k]))
    drifts.sort(key=lambda one: (one.p, one.robot, one.joint, one.since))
    usual = {(c.joint, c.what): float(np.sqrt(s)) for c, s in zip(channels, scale.day, strict=False)}
    return FleetDrift(tuple(series), tuple(drifts), len(keys), rate, usual, tuple(channels), tuple(daily), scale)


def _channel_series(
    fleet: PooledFleet, name: str, dated: Sequence[LogFactors], channels: Sequence[Channel]
) -> DailySeries | None:
    """Evaluate the channels of one robot in each of its logs, in the order of dates."""
    own = sorted((log for log in dated if log.robot == name), key=lambda log: (log.date or 0.0, log.url))
    if not own:
        return None
    robot = fleet.by_name[name]
    values, variances = deviations(fleet, robot, own, channels)
    return DailySeries(
        name,
        np.array([log.date for log in own], dtype=float),
        np.array([np.nan if log.temperature is None else log.temperature for log in own], dtype=float),
        values,
        variances,
        np.array([c.row @ robot.x for c in channels]),
        np.array([max(c.size(robot.x), 1e-12) for c in channels]),
    )


def _all_changes(
    days: DailySeries,
    channels: Sequence[Channel],
    scale: ResidualScale,
    changes: Sequence[tuple[float, int, ChangePoint]],
    limit: float,
    p: float,
) -> list[Drift]:
    """List the changes of a joint: of its most significant channel, later ones, and those of other channels."""
    out: list[Drift] = []
    for p_own, c, change in sorted(changes, key=lambda one: (one[0], one[1])):
        channel_p = min(1.0, p_own * len(changes))
        if channel_p > limit:
            break
        noise = series_blocks(days, scale, [c])[0]
        along: list[Array] = []
        next_change: ChangePoint | None = change
        while next_change is not None and min(1.0, next_change.p * len(changes)) <= limit and len(along) < _MAX_CHANGES:
            own_p = min(channel_p, p) if not along else next_change.p * len(changes)
            one = _as_drift(days, channels[c], c, next_change, noise.t, own_p)
            # Another channel of the joint may show the same event.
            if not any(o.what != one.what and o.earliest <= one.latest and one.earliest <= o.latest for o in out):
                out.append(one)
            along.append(next_change.template)
            next_change = scan(noise.z, noise.C, noise.t, noise.degrees, along)[0]
    return out


def _as_drift(days: DailySeries, channel: Channel, c: int, change: ChangePoint, t: Array, p: float) -> Drift:
    part, error = change.size / days.units[c], change.error / days.units[c]
    since, earliest, latest = float(t[change.start]), float(t[change.first]), float(t[change.last])
    words = _SENTENCES.get(channel.what, _SENTENCES[""]).format(
        joint=channel.joint, what=channel.what, way="increased" if change.size > 0.0 else "decreased",
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
    """Format the date of a time, `seconds` since 1970, as 2026-03-01."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d")
