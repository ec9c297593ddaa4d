"""Arms that were exchanged: from a day on everything that is a robot's own is another's.

One gear that fails changes one joint. Another arm has other friction, offsets and gains on all joints at once; that at
least half of the joints have changed on one and the same day is a partial conjunction (Benjamini & Heller 2008), which
holds however joints depend on each other. Whose arm it is now is asked of all other robots, before and after exchanges
of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._between import of_logs
from steelyard.fleet._channels import FRICTION_CHANNEL, TOLD_APART, Channel, OwnPart
from steelyard.fleet._days import Days, Scatter, noises
from steelyard.fleet._information import Information
from steelyard.fleet._scan import as_gaussian, step_statistics
from steelyard.fleet.drift import FleetDrift
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array

# Arms that are the same are taken for others no more often than this.
_SAME = 1e-3


@dataclass(frozen=True)
class JointsAtOnce:
    """A day on which many joints of a robot have changed.

    Attributes:
        robot: its name.
        since: the day, seconds since 1970.
        joints: those that changed.
        of: how many there are.
        p: how often chance would do as much, on any day.
    """

    robot: str
    since: float
    joints: tuple[str, ...]
    of: int
    p: float


def at_once(drift: FleetDrift) -> list[JointsAtOnce]:
    """Of every robot the day on which most joints have changed, however sure that is."""
    out = [_of_robot(days, drift.channels, drift.learnt) for days in drift.days]
    return [one for one in out if one is not None]


def _of_robot(days: Days, channels: Sequence[Channel], scatter: Scatter) -> JointsAtOnce | None:
    from scipy.special import erfc  # takes a fifth of a second to import

    by_day: dict[float, dict[str, list[float]]] = {}
    whole = {c.joint for c in channels if c.what == FRICTION_CHANNEL}
    # Parts of a friction that is looked at as a whole are not.
    asked = [n for n, c in enumerate(channels) if not (c.friction and c.joint in whole and c.what != FRICTION_CHANNEL)]
    for noise in noises(days, scatter, asked):
        T, dates = step_statistics(noise.z, noise.C, noise.t)
        p_values = erfc(as_gaussian(np.abs(T), noise.degrees[:, None]) / math.sqrt(2.0))
        for c, own_p in zip(noise.channels.tolist(), p_values.tolist(), strict=True):
            for day, p in zip(dates.tolist(), own_p, strict=True):
                by_day.setdefault(day, {}).setdefault(channels[c].joint, []).append(p)
    joints = list(dict.fromkeys(c.joint for c in channels))
    half = max(2, math.ceil(0.5 * len(joints)))
    best: JointsAtOnce | None = None
    for t, told in by_day.items():
        own = sorted((min(1.0, min(ps) * len(ps)), joint) for joint, ps in told.items())
        if len(own) < half:
            continue
        p = min(1.0, (len(own) - half + 1) * own[half - 1][0] * len(by_day))
        if best is None or p < best.p:
            best = JointsAtOnce(days.robot, t, tuple(j for q, j in own if q < 0.01), len(joints), p)
    return best


class Arms:
    """What is each robot's own, in pieces of its life between exchanges, to be compared.

    Args:
        fleet: the robots.
        logs: of all of them.
        exchanges: days of exchanges, by robot.
    """

    def __init__(self, fleet: PooledFleet, logs: Sequence[LogFactors], exchanges: dict[str, float]) -> None:
        self._fleet, self._part = fleet, OwnPart(fleet, ())
        self._pieces: list[tuple[str, str, Information]] = []
        for robot in fleet.robots:
            since = exchanges.get(robot.robot)
            if since is None:
                if robot.logs:
                    self._pieces.append((robot.robot, "", robot.info))
                continue
            own = [log for log in logs if log.robot == robot.robot and log.factor is not None and log.date is not None]
            for when, some in (("before", [log for log in own if (log.date or 0.0) < since]),
                               ("after", [log for log in own if (log.date or 0.0) >= since])):  # fmt: skip
                if some:
                    made = of_logs(fleet.informed, some, fleet.log_variances)
                    self._pieces.append((robot.robot, when, made.together))
        zero = np.zeros((fleet.design.size, fleet.design.size))
        mean = np.append(np.nan_to_num(fleet.beta), np.zeros(len(fleet.design.equations)))
        self._solved = [self._part.solved(info, mean, zero) for _, _, info in self._pieces]

    def like(self, robot: str) -> tuple[str, str]:
        """The other robot, and when ("before" or "after" its own exchange, "" always), that has the arm which `robot`
        has had since its exchange; two empty texts where none has it, or several might."""
        mine = next((n for n, (name, when, _) in enumerate(self._pieces) if (name, when) == (robot, "after")), None)
        if mine is None:
            return "", ""
        same = []
        for n, (name, when, _) in enumerate(self._pieces):
            if name != robot:
                p = self._same(self._solved[mine], self._solved[n])
                if p > _SAME:
                    same.append((p, name, when))
        return (max(same)[1], max(same)[2]) if len(same) == 1 else ("", "")

    @staticmethod
    def _same(one: tuple[Array, Array, Array], other: tuple[Array, Array, Array]) -> float:
        """How often two pieces of one arm's life differ as much."""
        from scipy.special import chdtrc  # takes a fifth of a second to import

        told = (one[2] > TOLD_APART) & (other[2] > TOLD_APART)
        if not told.any():
            return 0.0
        away, C = (one[0] - other[0])[told], (one[1] + other[1])[np.ix_(told, told)]
        return float(chdtrc(int(told.sum()), float(away @ np.linalg.lstsq(C, away, rcond=1e-10)[0])))
