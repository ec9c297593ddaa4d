"""Channels of every joint that are followed over time: friction and its parts, offset and gain, estimated per log.

Links and load are fixed at the robot's values. Its own parameters and the gains are estimated from each log alone.
Errors that all logs of the robot share shift the level of a series only, so they do not look like changes. Errors of
the links affect logs with other motions; their covariance is part of each log's variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._information import Information
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.pooling import PooledFleet, PooledRobot
from steelyard.ground.arrays import Array

# Prior standard deviation of a channel in one log, as a part of the joint's torque; gains vary less.
_PRIOR_STD, _PRIOR_STD_GAIN = 1.0, 0.3
# Smallest resolution of a channel that is used: 1 if the log determines it alone, 0 if only the prior does.
MIN_RESOLVED = 0.5
FRICTION_CHANNEL = "friction"


@dataclass(frozen=True, eq=False)
class Channel:
    """A quantity of a joint that is followed over time.

    Attributes:
        joint: Name of the joint.
        what: "friction" (all terms together at the joint's usual speed), the kind of a term, or "gain".
        unit: Unit of the values.
        row: The quantity as a linear combination of a robot's coordinates.
        reference: Linear combination that relative changes refer to: the joint's friction; zeros for gains.
        friction: Whether it is friction.
    """

    joint: str
    what: str
    unit: str
    row: Array
    reference: Array
    friction: bool

    def size(self, x: Array) -> float:
        """Return the reference of relative changes for a robot with the coordinates `x`; 1 for gains."""
        return float(abs(self.reference @ x)) if np.any(self.reference) else 1.0


def channels_of(fleet: PooledFleet) -> list[Channel]:
    """List all channels of a robot type, joint by joint."""
    design, grams = fleet.design, fleet.builder.grams
    p, d = design.rank, design.size
    units = np.eye(d)
    out: list[Channel] = []
    for joint in dict.fromkeys(
        (*design.equations, *(j for j, own in zip(design.joints, design.own, strict=True) if own))
    ):
        own = [k for k in range(p) if design.own[k] and design.joints[k] == joint and fleet.builder.scales[k] > 0.0]
        frictional = [k for k in own if design.friction[k]]
        level = np.zeros(d)
        if frictional:
            e = int(np.argmax(grams[:, frictional, frictional].sum(axis=1)))
            along = grams[e, frictional, frictional[0]]
            level[frictional] = np.where(along < 0.0, -1.0, 1.0) * np.sqrt(grams[e, frictional, frictional])
            unit = next((design.units[k] for k in frictional if design.units[k] in ("N m", "N")), "N m")
            if len(frictional) > 1:
                out.append(Channel(joint, FRICTION_CHANNEL, unit, level, level, True))
        out += [Channel(joint, design.kinds[k], design.units[k], units[k], level, design.friction[k]) for k in own]
        if joint in design.equations:
            out.append(Channel(joint, GAIN_KIND, "1", units[p + design.equations.index(joint)], np.zeros(d), False))
    return out


class OwnParameters:
    """Estimates a robot's own parameters with fixed links and load.

    Args:
        fleet: Robots of one type.
        channels: Channels to evaluate.
    """

    def __init__(self, fleet: PooledFleet, channels: Sequence[Channel]) -> None:
        design = fleet.design
        self.own = np.flatnonzero([*design.own, *(True for _ in design.equations)])
        self.rest = np.setdiff1d(np.arange(design.size), self.own)
        self.scale = fleet.builder.scales[self.own]
        self._prior_std = np.where(self.own < design.rank, _PRIOR_STD, _PRIOR_STD_GAIN)
        self._rows = np.array([c.row[self.own] for c in channels]).reshape(-1, len(self.own)) * self.scale

    def shared_covariance(self, covariance: Array) -> Array:
        """Return the `covariance` of a robot's coordinates with the entries of its own parameters set to zero."""
        out = np.zeros_like(covariance)
        places = np.ix_(self.rest, self.rest)
        out[places] = covariance[places]
        return out

    def solve(self, info: Information, x: Array, fixed: Array) -> tuple[Array, Array, Array]:
        """Estimate deviations of the own coordinates from `x` as parts of the torque, their covariance and resolution.

        Args:
            info: Information of one log, or of several logs along the first axis.
            x: Coordinates of a robot.
            fixed: Covariance of the coordinates that are not its own.
        """
        scale = self.scale
        N = info.J[..., self.own[:, None], self.own] * scale * scale[:, None]
        P: Array = np.asarray(np.linalg.inv(N + np.diag(1.0 / self._prior_std**2)), dtype=float)
        across = info.J[..., self.own, :]
        noise = info.widened[..., self.own[:, None], self.own] + across @ fixed @ np.swapaxes(across, -1, -2)
        covariance = P @ (noise * scale * scale[:, None]) @ P
        away = scale * (info.h[..., self.own] - across @ x)
        return (P @ away[..., None])[..., 0], covariance, np.sum(P * np.swapaxes(N, -1, -2), axis=-1)

    def channels(self, info: Information, x: Array, fixed: Array) -> tuple[Array, Array]:
        """Compute the deviation of every channel from its value for `x`, and its variance; infinite if not resolved.

        Args:
            info: Information of one log, or of several logs along the first axis.
            x: Coordinates of a robot.
            fixed: Covariance of the coordinates that are not its own.
        """
        delta, covariance, resolution = self.solve(info, x, fixed)
        rows = self._rows
        size = np.abs(rows).max(axis=1, initial=0.0)
        resolved = np.where(np.abs(rows) > 1e-3 * size[:, None], resolution[..., None, :], 1.0)
        resolved = resolved.min(axis=-1, initial=1.0)
        variance = np.sum((rows @ covariance) * rows, axis=-1)
        return delta @ rows.T, np.where((resolved > MIN_RESOLVED) & (size > 0.0), variance, np.inf)


def deviations(
    fleet: PooledFleet, robot: PooledRobot, logs: Sequence[LogFactors], channels: Sequence[Channel]
) -> tuple[Array, Array]:
    """Compute the deviation of every channel from the robot's level in each log, and its variance.

    Both have the shape (logs, channels). The variance is infinite where a log does not resolve a channel.

    Args:
        fleet: Robots of one type.
        robot: One of them.
        logs: Usable logs of this robot.
        channels: Channels to evaluate.
    """
    own = OwnParameters(fleet, channels)
    return own.channels(fleet.information(logs), robot.x, own.shared_covariance(robot.x_covariance))
