"""What is followed of every joint over time, in each log by itself: friction and its parts, offset, gain.

Links and load are those of the robot; the parameters that are its own, and the gains, are solved for in each log alone.
What is common to all logs of the robot, the errors of its own mean included, is the level of a series and tells nothing
of changes; what the links may be off by leaks into logs of other motions, and is in their variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._between import other_loads
from steelyard.fleet._information import Information
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.pooling import PooledFleet, PooledRobot
from steelyard.ground.arrays import Array

# Of what is followed a log may show anything, up to as much as the joint's torque; gains err by less.
_WIDE, _WIDE_GAIN = 1.0, 0.3
# A number of which a log shows less than this part is not told apart from others there.
_TOLD_APART = 0.5
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
    design = fleet.design
    own = np.flatnonzero([*design.own, *(True for _ in design.equations)])
    rest = np.setdiff1d(np.arange(design.size), own)
    scale = fleet.informed.scales[own]
    wide = np.where(own < design.rank, _WIDE, _WIDE_GAIN)
    rows = np.array([c.row[own] for c in channels]) * scale
    fixed = np.zeros_like(robot.x_covariance)
    fixed[np.ix_(rest, rest)] = robot.x_covariance[np.ix_(rest, rest)]
    values, variances = np.zeros((len(logs), len(channels))), np.full((len(logs), len(channels)), np.inf)
    for n, (log, other) in enumerate(zip(logs, other_loads(logs), strict=True)):
        info = fleet.information(log, other)
        delta, P, leaks = _solved(info, robot.x, own, scale, wide)
        noise = info.widened + info.J @ fixed @ info.J
        spread = P @ (noise[np.ix_(own, own)] * scale * scale[:, None]) @ P
        told = np.array([leaks[np.abs(row) > 1e-3 * np.abs(row).max(initial=0.0)].min(initial=1.0) for row in rows])
        told[np.abs(rows).max(axis=1, initial=0.0) == 0.0] = 0.0
        values[n] = rows @ delta
        variances[n] = np.where(told > _TOLD_APART, np.einsum("ca,ab,cb->c", rows, spread, rows, optimize=True), np.inf)
    return values, variances


def _solved(
    info: Information, x: Array, own: NDArray[np.intp], scale: Array, wide: Array
) -> tuple[Array, Array, Array]:
    """Changes of what is followed, in parts of the torque, what they are solved by, and how much of each is seen."""
    places = np.ix_(own, own)
    N = info.J[places] * scale * scale[:, None]
    P: Array = np.asarray(np.linalg.inv(N + np.diag(1.0 / wide**2)), dtype=float)
    return P @ (scale * (info.h - info.J @ x)[own]), P, np.asarray(np.einsum("ab,ba->a", P, N))
