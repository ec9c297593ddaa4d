"""Finds exchanged arms: days on which friction, offset and gain of many joints of a robot change together.

A failing gear changes one joint. Another arm has other friction, offsets and gains in all joints. The test that at
least half of the joints change on the same day is a partial conjunction (Benjamini & Heller 2008), which holds for any
dependence between joints. The new arm is then compared with those of all other robots, before and after exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._channels import FRICTION_CHANNEL, MIN_RESOLVED, Channel, OwnParameters
from steelyard.fleet._daily_series import DailySeries, ResidualScale, series_blocks
from steelyard.fleet._information import Information
from steelyard.fleet._variances import log_information
from steelyard.fleet.drift import FleetDrift
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array
from steelyard.trends.change_points import step_statistics
from steelyard.trends.series_statistics import as_gaussian

# Probability of taking one arm for two different ones.
_SIGNIFICANCE = 1e-3


@dataclass(frozen=True)
class SimultaneousChange:
    """A day on which many joints of a robot changed.

    Attributes:
        robot: Name of the robot.
        since: The day, seconds since 1970.
        joints: Joints that changed.
        joint_count: Number of joints of the robot.
        p: p-value over all days.
    """

    robot: str
    since: float
    joints: tuple[str, ...]
    joint_count: int
    p: float


def simultaneous_changes(drift: FleetDrift) -> list[SimultaneousChange]:
    """Find for every robot the day on which most joints changed, whatever its significance."""
    out = [_of_robot(days, drift.channels, drift.residual_scale) for days in drift.days]
    return [one for one in out if one is not None]


def _of_robot(days: DailySeries, channels: Sequence[Channel], scale: ResidualScale) -> SimultaneousChange | None:
    from scipy.special import erfc  # takes a fifth of a second to import

    by_day: dict[float, dict[str, list[float]]] = {}
    whole = {c.joint for c in channels if c.what == FRICTION_CHANNEL}
    # Skip the parts of a friction that is tested as a whole.
    tested = [n for n, c in enumerate(channels) if not (c.friction and c.joint in whole and c.what != FRICTION_CHANNEL)]
    for noise in series_blocks(days, scale, tested):
        T, dates = step_statistics(noise.z, noise.C, noise.t)
        p_values = erfc(as_gaussian(np.abs(T), noise.degrees[:, None]) / math.sqrt(2.0))
        for c, own_p in zip(noise.channels.tolist(), p_values.tolist(), strict=True):
            for day, p in zip(dates.tolist(), own_p, strict=True):
                by_day.setdefault(day, {}).setdefault(channels[c].joint, []).append(p)
    joints = list(dict.fromkeys(c.joint for c in channels))
    half = max(2, math.ceil(0.5 * len(joints)))
    best: SimultaneousChange | None = None
    for t, p_of_joint in by_day.items():
        own = sorted((min(1.0, min(ps) * len(ps)), joint) for joint, ps in p_of_joint.items())
        if len(own) < half:
            continue
        p = min(1.0, (len(own) - half + 1) * own[half - 1][0] * len(by_day))
        if best is None or p < best.p:
            best = SimultaneousChange(days.robot, t, tuple(j for q, j in own if q < 0.01), len(joints), p)
    return best


class ArmComparison:
    """Compares the own parameters of robots before and after exchanges of their arms.

    Args:
        fleet: Robots of one type.
        logs: Logs of all robots.
        exchanges: Days of exchanges, by robot.
    """

    def __init__(self, fleet: PooledFleet, logs: Sequence[LogFactors], exchanges: dict[str, float]) -> None:
        self._fleet, self._part = fleet, OwnParameters(fleet, ())
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
                    made = log_information(fleet.builder, some, fleet.log_variances)
                    self._pieces.append((robot.robot, when, made.together))
        zero = np.zeros((fleet.design.size, fleet.design.size))
        mean = np.append(np.nan_to_num(fleet.beta), np.zeros(len(fleet.design.equations)))
        self._solved = [self._part.solve(info, mean, zero) for _, _, info in self._pieces]

    def find_match(self, robot: str) -> tuple[str, str]:
        """Find the robot that had the arm which `robot` has had since its exchange.

        Returns:
            Its name, and "before" or "after" its own exchange ("" without one). Two empty texts if no robot or several
            robots match.
        """
        mine = next((n for n, (name, when, _) in enumerate(self._pieces) if (name, when) == (robot, "after")), None)
        if mine is None:
            return "", ""
        same = []
        for n, (name, when, _) in enumerate(self._pieces):
            if name != robot:
                p = self._same(self._solved[mine], self._solved[n])
                if p > _SIGNIFICANCE:
                    same.append((p, name, when))
        return (max(same)[1], max(same)[2]) if len(same) == 1 else ("", "")

    @staticmethod
    def _same(one: tuple[Array, Array, Array], other: tuple[Array, Array, Array]) -> float:
        """Return the p-value of the difference between two estimates of the same arm."""
        from scipy.special import chdtrc  # takes a fifth of a second to import

        resolved = (one[2] > MIN_RESOLVED) & (other[2] > MIN_RESOLVED)
        if not resolved.any():
            return 0.0
        away, C = (one[0] - other[0])[resolved], (one[1] + other[1])[np.ix_(resolved, resolved)]
        return float(chdtrc(int(resolved.sum()), float(away @ np.linalg.lstsq(C, away, rcond=1e-10)[0])))
