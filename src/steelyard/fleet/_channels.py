"""What is followed of every joint over time, in each log by itself: friction and its parts, offset, gain.

Links and load are those of the robot; the parameters that are its own, and the gains, are solved for in each log alone.
What is common to all logs of the robot, the errors of its own mean included, is the level of a series and tells nothing
of changes; what the links may be off by leaks into logs of other motions, and is in their variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.fleet._information import Information
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.pooling import PooledFleet, PooledRobot
from steelyard.ground.arrays import Array

# Of what is followed a log may show anything, up to as much as the joint's torque; gains err by less.
_WIDE, _WIDE_GAIN = 1.0, 0.3
# A number of which a log shows less than this part is not told apart from others there.
TOLD_APART = 0.5
FRICTION_CHANNEL = "friction"


@dataclass(frozen=True, eq=False)
class Channel:
    """A number of a joint that is followed.

    Attributes:
        joint: its name.
        what: "friction" (that at the joint's usual speed, all its terms together), the kind of a term, or "gain".
        unit: of its values.
        row: the number as a combination of a robot's coordinates.
        reference: what it is told as a part of, as such a combination: the joint's friction; zeros for gains.
        friction: whether it is friction.
    """

    joint: str
    what: str
    unit: str
    row: Array
    reference: Array
    friction: bool

    def size(self, x: Array) -> float:
        """What changes are told as parts of, for a robot with the coordinates `x`; 1 for gains."""
        return float(abs(self.reference @ x)) if np.any(self.reference) else 1.0


def channels_of(fleet: PooledFleet) -> list[Channel]:
    """All channels of a model, joint by joint."""
    design, grams = fleet.design, fleet.informed.grams
    p, d = design.rank, design.size
    units = np.eye(d)
    out: list[Channel] = []
    for joint in dict.fromkeys(
        (*design.equations, *(j for j, own in zip(design.joints, design.own, strict=True) if own))
    ):
        own = [k for k in range(p) if design.own[k] and design.joints[k] == joint and fleet.informed.scales[k] > 0.0]
        rubs = [k for k in own if design.friction[k]]
        level = np.zeros(d)
        if rubs:
            e = int(np.argmax(grams[:, rubs, rubs].sum(axis=1)))
            along = grams[e, rubs, rubs[0]]
            level[rubs] = np.where(along < 0.0, -1.0, 1.0) * np.sqrt(grams[e, rubs, rubs])
            unit = next((design.units[k] for k in rubs if design.units[k] in ("N m", "N")), "N m")
            if len(rubs) > 1:
                out.append(Channel(joint, FRICTION_CHANNEL, unit, level, level, True))
        out += [Channel(joint, design.kinds[k], design.units[k], units[k], level, design.friction[k]) for k in own]
        if joint in design.equations:
            out.append(Channel(joint, GAIN_KIND, "1", units[p + design.equations.index(joint)], np.zeros(d), False))
    return out


class OwnPart:
    """Solves for what is each robot's own, links and load being given.

    Args:
        fleet: the robots of the model.
        channels: what is followed.
    """

    def __init__(self, fleet: PooledFleet, channels: Sequence[Channel]) -> None:
        design = fleet.design
        self.own = np.flatnonzero([*design.own, *(True for _ in design.equations)])
        self.rest = np.setdiff1d(np.arange(design.size), self.own)
        self.scale = fleet.informed.scales[self.own]
        self._wide = np.where(self.own < design.rank, _WIDE, _WIDE_GAIN)
        self._rows = np.array([c.row[self.own] for c in channels]).reshape(-1, len(self.own)) * self.scale

    def fixed(self, covariance: Array) -> Array:
        """The `covariance` of a robot's coordinates, without what is its own."""
        out = np.zeros_like(covariance)
        places = np.ix_(self.rest, self.rest)
        out[places] = covariance[places]
        return out

    def solved(self, info: Information, x: Array, fixed: Array) -> tuple[Array, Array, Array]:
        """By how much the robot's own coordinates differ from `x`, as parts of the torque, the covariance of that, and
        how much of each is seen; of several logs each by itself, these first.

        Args:
            info: what a log, or several, say.
            x: coordinates of a robot.
            fixed: covariance of those of its coordinates that are not its own.
        """
        scale = self.scale
        N = info.J[..., self.own[:, None], self.own] * scale * scale[:, None]
        P: Array = np.asarray(np.linalg.inv(N + np.diag(1.0 / self._wide**2)), dtype=float)
        across = info.J[..., self.own, :]
        noise = info.widened[..., self.own[:, None], self.own] + across @ fixed @ np.swapaxes(across, -1, -2)
        covariance = P @ (noise * scale * scale[:, None]) @ P
        away = scale * (info.h[..., self.own] - across @ x)
        return (P @ away[..., None])[..., 0], covariance, np.sum(P * np.swapaxes(N, -1, -2), axis=-1)

    def channels(self, info: Information, x: Array, fixed: Array) -> tuple[Array, Array]:
        """By how much every channel differs from that of `x`, and the variance of that, infinite where it is not told.

        Args:
            info: what a log, or several, say.
            x: coordinates of a robot.
            fixed: covariance of those of its coordinates that are not its own.
        """
        delta, covariance, seen = self.solved(info, x, fixed)
        rows = self._rows
        size = np.abs(rows).max(axis=1, initial=0.0)
        told = np.where(np.abs(rows) > 1e-3 * size[:, None], seen[..., None, :], 1.0).min(axis=-1, initial=1.0)
        variance = np.sum((rows @ covariance) * rows, axis=-1)
        return delta @ rows.T, np.where((told > TOLD_APART) & (size > 0.0), variance, np.inf)


def deviations(
    fleet: PooledFleet, robot: PooledRobot, logs: Sequence[LogFactors], channels: Sequence[Channel]
) -> tuple[Array, Array]:
    """Of each log, by how much every channel differs from the robot's own, and the variance of that; both
    `(logs, channels)`, infinite variance where a log does not tell.

    Args:
        fleet: the robots of the model.
        robot: one of them.
        logs: its logs, all usable.
        channels: what is followed.
    """
    part = OwnPart(fleet, channels)
    return part.channels(fleet.information(logs), robot.x, part.fixed(robot.x_covariance))
