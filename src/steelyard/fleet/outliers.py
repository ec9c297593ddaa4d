"""`judge_fleet`: finds outlying robots, joints and logs and ranks them, each with its evidence in one sentence.

First, logs with a wrong mapping are found (`odd_logs.py`) and excluded. Then the robots are pooled, and four tests
follow: friction, offset or gain of a joint differs from other robots; it grows over time; many joints change at once;
the links differ. Each test has a controlled false discovery rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._channels import Channel, OwnParameters, channels_of
from steelyard.fleet._exchanges import ArmComparison, SimultaneousChange, simultaneous_changes
from steelyard.fleet.drift import Drift, FleetDrift, day_text, fleet_drift
from steelyard.fleet.effects import GAIN_KIND, FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.odd_logs import OddLog, odd_logs
from steelyard.fleet.pooling import PooledFleet, pool
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import with_error
from steelyard.trends.series_statistics import as_gaussian, excess_variance, false_discovery, robust_p_values

# Expected part of false ones among the outliers of each kind.
FALSE_OUTLIERS = 0.05
# Smallest number of robots that are compared with each other.
_MIN_ROBOTS = 6
# Smallest difference that is reported, as a part of the joint's friction (of its torque for gains).
_MIN_DIFFERENCE = 0.1
# Robots beyond this many standard deviations are left out when the difference between robots is estimated.
_MAX_DEVIATION = 3.0
# Smallest root mean square deviation of links that is reported, in standard errors.
_MIN_LINK_ERRORS = 3.0
# Smallest p-value that a score distinguishes.
_SMALLEST = 1e-50


@dataclass(frozen=True)
class Outlier:
    """An outlier in a fleet.

    Attributes:
        kind: "mapping" (logs with a wrong mapping), "exchange" (another arm since a date), "gear" (friction that grows,
            or is much higher than usual), "friction" (much lower), "offset", "gain", "links".
        robot: Name of the robot.
        joints: Affected joints.
        logs: Affected logs, if the outlier is about logs.
        since: Date from which the robot is an outlier, seconds since 1970; None without one.
        like: For an exchange, the robot that the arm comes from; "" if unknown.
        p: p-value.
        sentence: The evidence.
    """

    kind: str
    robot: str
    joints: tuple[str, ...]
    logs: tuple[str, ...]
    since: float | None
    like: str
    p: float
    sentence: str

    @property
    def score(self) -> float:
        """−log₁₀ p, by which outliers are ranked."""
        return -math.log10(max(self.p, _SMALLEST))


@dataclass(frozen=True, eq=False)
class JudgedFleet:
    """The robots of one type with their outliers.

    Attributes:
        fleet: The robots, pooled without the outliers.
        drift: Changes over time.
        odd: Logs with a wrong mapping, which are not used otherwise.
        outliers: All outliers, the most significant first.
        rate: False discovery rate of each kind.
    """

    fleet: PooledFleet
    drift: FleetDrift
    odd: tuple[OddLog, ...]
    outliers: tuple[Outlier, ...]
    rate: float


def judge_fleet(
    design: FleetDesign, logs: Sequence[LogFactors], robots: Sequence[str] = (), rate: float = FALSE_OUTLIERS
) -> JudgedFleet:
    """Pool the robots of one type, follow them over time, and find outliers.

    Args:
        design: Base parameters and effects.
        logs: Logs of all robots, with the values of the fleet's table.
        robots: Names of all robots, including those without logs.
        rate: False discovery rate of each kind.
    """
    names = sorted({*robots, *(log.robot for log in logs)})
    odd = odd_logs(design, logs)
    bad = {(o.robot, o.url) for o in odd}
    clean = [log for log in logs if (log.robot, log.url) not in bad]
    if not any(log.factor is not None for log in clean):
        clean, odd = list(logs), ()
    fleet = pool(design, clean, names)
    drift = fleet_drift(fleet, clean)
    with one_blas_thread():
        exchanged = _exchanged(fleet, clean, drift, rate)
        others = {o.robot for o in exchanged}
        outside = [*_outside(fleet, rate), *_links(fleet, rate)]
    # After an exchange the friction is that of another arm, so a change of it is not wear.
    grown = [_wear(d) for d in drift.drifts if _is_wear(d) and d.robot not in others]
    known = {(o.robot, o.joints) for o in grown}
    outside = [o for o in outside if o.robot not in others and (o.robot, o.joints) not in known]
    excluded = {o.robot for o in (*exchanged, *outside) if o.kind in ("gear", "friction", "links")}
    since = {o.robot: o.since for o in exchanged}
    now = [log for log in clean if since.get(log.robot) is None or (log.date or 0.0) >= (since[log.robot] or 0.0)]
    counted = {log.robot for log in now if log.factor is not None}
    if (excluded or len(now) < len(clean)) and counted - excluded:
        fleet = pool(design, now, names, excluded=excluded, previous=fleet)
    outliers = [*_wrong_mappings(odd, logs), *exchanged, *grown, *outside]
    outliers.sort(key=lambda o: (-o.score, o.kind, o.robot, o.joints))
    return JudgedFleet(fleet, drift, odd, tuple(outliers), rate)


def _wrong_mappings(odd: Sequence[OddLog], logs: Sequence[LogFactors]) -> list[Outlier]:
    """Make one outlier of all logs of a robot with the same fault."""
    of_robot = Counter(log.robot for log in logs if log.factor is not None)
    groups: dict[tuple[str, str, tuple[str, ...]], list[OddLog]] = {}
    for one in odd:
        groups.setdefault((one.robot, one.kind, one.joints), []).append(one)
    out = []
    for (robot, _, joints), own in groups.items():
        more = f" The same holds for {len(own) - 1} more of its {of_robot[robot]} logs." if len(own) > 1 else ""
        out.append(Outlier("mapping", robot, joints, tuple(o.url for o in own), None, "", min(o.p for o in own),
                           own[0].sentence + more))  # fmt: skip
    return out


def _is_wear(drift: Drift) -> bool:
    return drift.size > 0.0 and drift.what not in ("offset", GAIN_KIND) and drift.relative > _MIN_DIFFERENCE / 2.0


def _wear(drift: Drift) -> Outlier:
    return Outlier("gear", drift.robot, (drift.joint,), (), drift.since, "", drift.p, drift.sentence)


def _exchanged(fleet: PooledFleet, logs: Sequence[LogFactors], drift: FleetDrift, rate: float) -> list[Outlier]:
    found = simultaneous_changes(drift)
    real: list[SimultaneousChange] = [
        one for one, yes in zip(found, false_discovery(np.array([f.p for f in found]), rate), strict=True) if yes
    ]
    if not real:
        return []
    arms = ArmComparison(fleet, logs, {one.robot: one.since for one in real})
    out = []
    for one in real:
        like, when = arms.find_match(one.robot)
        source = f" It matches robot '{like}'{f' {when} its own exchange' if when else ''}." if like else ""
        sentence = (
            f"Robot '{one.robot}' has another arm since {day_text(one.since)}: friction, offset or gain of "
            f"{len(one.joints)} of {one.joint_count} joints changed at once.{source}"
        )
        out.append(Outlier("exchange", one.robot, one.joints, (), one.since, like, one.p, sentence))
    return out


def _outside(fleet: PooledFleet, rate: float) -> list[Outlier]:
    """Find joints whose friction, offset or gain differs from that of the other robots."""
    robots = [r for r in fleet.robots if r.logs]
    if len(robots) < _MIN_ROBOTS:
        return []
    channels = channels_of(fleet)
    part = OwnParameters(fleet, channels)
    mean = np.append(np.nan_to_num(fleet.beta), np.zeros(len(fleet.design.equations)))
    away, variance = np.zeros((2, len(robots), len(channels)))
    for n, robot in enumerate(robots):
        x = robot.x.copy()
        x[part.own] = mean[part.own]
        away[n], variance[n] = part.channels(robot.info, x, part.shared_covariance(robot.x_covariance))
    p = np.ones(away.shape)
    for c in range(len(channels)):
        seen = np.isfinite(variance[:, c])
        if seen.sum() < _MIN_ROBOTS:
            continue
        p[seen, c] = _p_values(away[seen, c], variance[seen, c], float(channels[c].row @ mean), channels[c].friction)
        away[seen, c] -= np.median(away[seen, c])
    return _outside_joints(fleet, [r.robot for r in robots], channels, (away, variance, p), mean, rate)


def _p_values(away: Array, variance: Array, level: float, friction: bool) -> Array:
    """Compute p-values of the deviations of robots from their median.

    Positive friction may differ by amounts or by factors between robots; the larger p-value of both is taken.
    """
    value = level + away
    middle = float(np.median(value))
    scales = [(value - middle, variance)]
    if friction and middle > 0.0 and np.all(value > 0.1 * middle):
        scales.append((np.log(value / middle), variance / value**2))
    out = np.zeros(len(away))
    for centred, doubt in scales:
        size, degrees = _std_of_the_others(centred, doubt)
        rare = as_gaussian(np.abs(centred) / size, degrees)
        out = np.maximum(out, [math.erfc(x / math.sqrt(2.0)) for x in rare.tolist()])
    return out


def _std_of_the_others(value: Array, variance: Array) -> tuple[Array, Array]:
    """Return for every robot the standard deviation expected from the other robots, and its degrees of freedom."""
    scatter = excess_variance(value**2, variance, np.ones(len(value)))
    near = np.abs(value) < _MAX_DEVIATION * np.sqrt(variance + scatter)
    excess = np.where(near, value**2 - variance, 0.0)
    count = np.maximum(near.sum() - near, 2)
    # Cutting at three standard deviations removes 3 % of the variance.
    between = np.maximum(1.03 * (excess.sum() - excess) / (count - 1.0), 0.0)
    return np.sqrt(variance + between), count - 1.0


def _outside_joints(
    fleet: PooledFleet, robots: Sequence[str], channels: Sequence[Channel], deviations: tuple[Array, Array, Array],
    mean: Array, rate: float,
) -> list[Outlier]:  # fmt: skip
    away, variance, p = deviations
    joints = list(dict.fromkeys(c.joint for c in channels))
    of_joint = {joint: [n for n, c in enumerate(channels) if c.joint == joint] for joint in joints}
    each = [(r, joint) for r in range(len(robots)) for joint in joints]
    least = np.array([min(1.0, p[r, of_joint[j]].min() * len(of_joint[j])) for r, j in each])
    out = []
    for (r, joint), own, yes in zip(each, least, false_discovery(least, rate), strict=True):
        c = of_joint[joint][int(np.argmin(p[r, of_joint[joint]]))]
        channel = channels[c]
        unit = max(channel.size(mean), 1e-12)
        part, error = away[r, c] / unit, math.sqrt(variance[r, c]) / unit if np.isfinite(variance[r, c]) else 0.0
        if not yes or abs(part) < _MIN_DIFFERENCE:
            continue
        kind = channel.what if not channel.friction else "gear" if part > 0.0 else "friction"
        what = (
            f"The {channel.what}"
            if channel.what in ("friction", "offset", GAIN_KIND)
            else f"The {channel.what} friction"
        )
        of = "of the torque" if channel.what == GAIN_KIND else "of the usual friction"
        sentence = (
            f"{what} of '{joint}' of robot '{robots[r]}' is {with_error(100.0 * abs(part), 100.0 * error)} % {of} "
            f"{'above' if part > 0.0 else 'below'} that of the other {len(robots) - 1} robots, which differ less."
        )
        out.append(Outlier(kind, robots[r], (joint,), (), None, "", float(own), sentence))
    return out


def _links(fleet: PooledFleet, rate: float) -> list[Outlier]:
    """Find robots whose links differ from those of the other robots."""
    robots = [r for r in fleet.robots if r.logs]
    links = ~fleet.design.own
    if len(robots) < _MIN_ROBOTS or not links.any():
        return []
    size = np.full(len(robots), np.nan)
    for n, robot in enumerate(robots):
        z = ((robot.own_beta - fleet.beta) / np.hypot(robot.own_errors, fleet.errors))[links]
        if np.isfinite(z).any():
            size[n] = math.sqrt(float(np.nanmean(z**2)))
    value = np.log(np.maximum(size, 1e-6))
    middle = float(np.nanmedian(value))
    p = np.nan_to_num(robust_p_values(value, 0.15, 2.0), nan=1.0)
    out = []
    for n in np.flatnonzero(false_discovery(p, rate) & (np.nan_to_num(size) > _MIN_LINK_ERRORS)).tolist():
        sentence = (
            f"The links of robot '{robots[n].robot}' differ from those of the other {len(robots) - 1} robots by "
            f"{size[n]:.1f} standard errors ({math.exp(middle):.1f} is usual); it may be another model or have a tool."
        )
        out.append(Outlier("links", robots[n].robot, (), (), None, "", float(p[n]), sentence))
    return out
