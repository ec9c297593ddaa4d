"""`judge_fleet`: robots, joints and logs that do not belong, ranked, each with its evidence in one sentence.

Logs come first: those whose channels are mixed up (`odd_logs.py`) take no part in anything else. Then the robots are
pooled, and asked: is a joint's friction, offset or gain outside of its kind? Does it grow? Has everything changed at
once? Are the links others? Of each kind of answer, false ones are kept at a stated rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._channels import Channel, OwnPart, channels_of
from steelyard.fleet._exchanges import Arms, JointsAtOnce, at_once
from steelyard.fleet._scan import as_gaussian, excess_variance, false_discovery
from steelyard.fleet.drift import Drift, FleetDrift, day_text, fleet_drift
from steelyard.fleet.effects import GAIN_KIND, FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.odd_logs import OddLog, odd_logs
from steelyard.fleet.pooling import PooledFleet, pool
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import with_error

# Of what is told of each kind, so much is false on the average.
FALSE_OUTLIERS = 0.05
# Fewer robots are no population.
_FEWEST = 6
# A joint that differs by less than this part of its friction (of its torque, for gains) does its work.
_WORTH = 0.1
# Robots that are farther off than so many standard deviations do not say how much robots differ.
_FAR = 3.0
# Links that are off by less than so many standard errors, root mean square, are not worth a word.
_WORTH_LINKS = 3.0
# No p is smaller in a score.
_SMALLEST = 1e-50


@dataclass(frozen=True)
class Outlier:
    """Something in a fleet that does not belong.

    Attributes:
        kind: "mapping" (logs whose channels are mixed up), "exchange" (another arm since a date), "gear" (friction that
            grows, or is far above that of its kind), "friction" (far below), "offset", "gain", "links".
        robot: the robot.
        joints: that are concerned.
        logs: that are concerned, where it is a matter of logs.
        since: its date, seconds since 1970; None where it has none.
        like: for an exchange, the robot whose arm it is now; "" where none is known.
        p: how often chance would do as much here.
        score: −log₁₀ p, by which outliers are ranked.
        sentence: the evidence.
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
        """−log₁₀ p."""
        return -math.log10(max(self.p, _SMALLEST))


@dataclass(frozen=True, eq=False)
class JudgedFleet:
    """The robots of one model, and what among them does not belong.

    Attributes:
        fleet: the robots, pooled without what does not belong.
        drift: what changes.
        odd: logs that do not belong, which take no part in the rest.
        outliers: all that does not belong, the surest first.
        rate: of false ones among those of each kind.
    """

    fleet: PooledFleet
    drift: FleetDrift
    odd: tuple[OddLog, ...]
    outliers: tuple[Outlier, ...]
    rate: float


def judge_fleet(
    design: FleetDesign, logs: Sequence[LogFactors], robots: Sequence[str] = (), rate: float = FALSE_OUTLIERS
) -> JudgedFleet:
    """Pool the robots of one model, follow them, and tell what does not belong.

    Args:
        design: base parameters and effects of the model.
        logs: of all its robots, as the table states them.
        robots: names of all robots, those without any log, too.
        rate: of false ones among what is told of each kind.
    """
    names = sorted({*robots, *(log.robot for log in logs)})
    odd = odd_logs(design, logs)
    strange = {(o.robot, o.url) for o in odd}
    clean = [log for log in logs if (log.robot, log.url) not in strange]
    if not any(log.factor is not None for log in clean):
        clean, odd = list(logs), ()
    fleet = pool(design, clean, names)
    drift = fleet_drift(fleet, clean)
    with one_blas_thread():
        exchanged = _exchanged(fleet, clean, drift, rate)
        others = {o.robot for o in exchanged}
        outside = [*_outside(fleet, rate), *_links(fleet, rate)]
    # The friction of an arm that was exchanged is that of another from then on, and no gear has failed.
    grown = [_grown(d) for d in drift.drifts if _is_wear(d) and d.robot not in others]
    known = {(o.robot, o.joints) for o in grown}
    outside = [o for o in outside if o.robot not in others and (o.robot, o.joints) not in known]
    apart = {o.robot for o in (*exchanged, *outside) if o.kind in ("gear", "friction", "links")}
    since = {o.robot: o.since for o in exchanged}
    now = [log for log in clean if since.get(log.robot) is None or (log.date or 0.0) >= (since[log.robot] or 0.0)]
    counted = {log.robot for log in now if log.factor is not None}
    if (apart or len(now) < len(clean)) and counted - apart:
        fleet = pool(design, now, names, apart=apart, first=fleet)
    told = [*_mapped(odd, logs), *exchanged, *grown, *outside]
    told.sort(key=lambda o: (-o.score, o.kind, o.robot, o.joints))
    return JudgedFleet(fleet, drift, odd, tuple(told), rate)


def _mapped(odd: Sequence[OddLog], logs: Sequence[LogFactors]) -> list[Outlier]:
    """One outlier for the logs of a robot that lack the same."""
    of_robot = Counter(log.robot for log in logs if log.factor is not None)
    groups: dict[tuple[str, str, tuple[str, ...]], list[OddLog]] = {}
    for one in odd:
        groups.setdefault((one.robot, one.kind, one.joints), []).append(one)
    out = []
    for (robot, _, joints), own in groups.items():
        more = f" So do {len(own) - 1} more of its {of_robot[robot]} logs." if len(own) > 1 else ""
        out.append(Outlier("mapping", robot, joints, tuple(o.url for o in own), None, "", min(o.p for o in own),
                           own[0].sentence + more))  # fmt: skip
    return out


def _is_wear(drift: Drift) -> bool:
    return drift.size > 0.0 and drift.what not in ("offset", GAIN_KIND) and drift.relative > _WORTH / 2.0


def _grown(drift: Drift) -> Outlier:
    return Outlier("gear", drift.robot, (drift.joint,), (), drift.since, "", drift.p, drift.sentence)


def _exchanged(fleet: PooledFleet, logs: Sequence[LogFactors], drift: FleetDrift, rate: float) -> list[Outlier]:
    found = at_once(drift)
    real: list[JointsAtOnce] = [
        one for one, yes in zip(found, false_discovery(np.array([f.p for f in found]), rate), strict=True) if yes
    ]
    if not real:
        return []
    arms = Arms(fleet, logs, {one.robot: one.since for one in real})
    out = []
    for one in real:
        like, when = arms.like(one.robot)
        whose = f" It is like that of robot '{like}'{f' {when} its own exchange' if when else ''}." if like else ""
        sentence = (
            f"Robot '{one.robot}' has another arm since {day_text(one.since)}: friction, offset or gain of "
            f"{len(one.joints)} of {one.of} joints changed at once.{whose}"
        )
        out.append(Outlier("exchange", one.robot, one.joints, (), one.since, like, one.p, sentence))
    return out


def _outside(fleet: PooledFleet, rate: float) -> list[Outlier]:
    """Joints whose friction, offset or gain is outside of that of their kind."""
    robots = [r for r in fleet.robots if r.logs]
    if len(robots) < _FEWEST:
        return []
    channels = channels_of(fleet)
    part = OwnPart(fleet, channels)
    mean = np.append(np.nan_to_num(fleet.beta), np.zeros(len(fleet.design.equations)))
    away, variance = np.zeros((2, len(robots), len(channels)))
    for n, robot in enumerate(robots):
        x = robot.x.copy()
        x[part.own] = mean[part.own]
        away[n], variance[n] = part.channels(robot.info, x, part.fixed(robot.x_covariance))
    p = np.ones(away.shape)
    for c in range(len(channels)):
        seen = np.isfinite(variance[:, c])
        if seen.sum() < _FEWEST:
            continue
        p[seen, c] = _p_of_kind(away[seen, c], variance[seen, c], float(channels[c].row @ mean), channels[c].friction)
        away[seen, c] -= np.median(away[seen, c])
    return _told_outside(fleet, [r.robot for r in robots], channels, (away, variance, p), mean, rate)


def _p_of_kind(away: Array, variance: Array, level: float, friction: bool) -> Array:
    """How often a robot of the kind differs as much from the median. Friction is positive; whether it differs by
    amounts or by factors nobody knows, and what is not rare by either is not told."""
    value = level + away
    middle = float(np.median(value))
    scales = [(value - middle, variance)]
    if friction and middle > 0.0 and np.all(value > 0.1 * middle):
        scales.append((np.log(value / middle), variance / value**2))
    out = np.zeros(len(away))
    for centred, doubt in scales:
        size, degrees = _of_the_others(centred, doubt)
        rare = as_gaussian(np.abs(centred) / size, degrees)
        out = np.maximum(out, [math.erfc(x / math.sqrt(2.0)) for x in rare.tolist()])
    return out


def _of_the_others(value: Array, variance: Array) -> tuple[Array, Array]:
    """For every robot the standard deviation that `value` would have in it, with error bars of `variance`, by how the
    others differ, those apart that are far off themselves; and its degrees of freedom."""
    scatter = excess_variance(value**2, variance, np.ones(len(value)))
    near = np.abs(value) < _FAR * np.sqrt(variance + scatter)
    excess = np.where(near, value**2 - variance, 0.0)
    count = np.maximum(near.sum() - near, 2)
    # What is cut at three standard deviations lacks 3 % of its variance.
    between = np.maximum(1.03 * (excess.sum() - excess) / (count - 1.0), 0.0)
    return np.sqrt(variance + between), count - 1.0


def _told_outside(
    fleet: PooledFleet, robots: Sequence[str], channels: Sequence[Channel], found: tuple[Array, Array, Array],
    mean: Array, rate: float,
) -> list[Outlier]:  # fmt: skip
    away, variance, p = found
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
        if not yes or abs(part) < _WORTH:
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
            f"{'above' if part > 0.0 else 'below'} that of the other {len(robots) - 1} robots, which differ by less."
        )
        out.append(Outlier(kind, robots[r], (joint,), (), None, "", float(own), sentence))
    return out


def _links(fleet: PooledFleet, rate: float) -> list[Outlier]:
    """Robots whose links are others than those of their kin."""
    robots = [r for r in fleet.robots if r.logs]
    links = ~fleet.design.own
    if len(robots) < _FEWEST or not links.any():
        return []
    size = np.full(len(robots), np.nan)
    for n, robot in enumerate(robots):
        z = ((robot.own_beta - fleet.beta) / np.hypot(robot.own_errors, fleet.errors))[links]
        if np.isfinite(z).any():
            size[n] = math.sqrt(float(np.nanmean(z**2)))
    value = np.log(np.maximum(size, 1e-6))
    middle = float(np.nanmedian(value))
    scatter = max(1.4826 * float(np.nanmedian(np.abs(value - middle))), 0.15)
    degrees = max(0.37 * len(robots), 2.0)
    p = np.array([0.5 * math.erfc(as_gaussian(max(x, 0.0), degrees) / math.sqrt(2.0)) if np.isfinite(x) else 1.0
                  for x in (value - middle) / scatter])  # fmt: skip
    out = []
    for n in np.flatnonzero(false_discovery(p, rate) & (np.nan_to_num(size) > _WORTH_LINKS)).tolist():
        sentence = (
            f"The links of robot '{robots[n].robot}' are not those of the other {len(robots) - 1}: its own logs differ "
            f"from them by {size[n]:.1f} standard errors, where {math.exp(middle):.1f} is usual: another model or tool."
        )
        out.append(Outlier("links", robots[n].robot, (), (), None, "", float(p[n]), sentence))
    return out
