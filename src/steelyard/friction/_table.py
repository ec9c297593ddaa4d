"""Friction over velocity from any motion: rigid-body parameters and a table of friction, fitted together.

Where a joint never turns at a constant speed (a sine, an exciting trajectory) there are no plateaus to average. But
gravity depends on position and inertia on acceleration, so that a regression tells them from a friction of any shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.assessment.holdout import moving_part
from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.friction.plateaus import Plateau
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING, FrictionTable
from steelyard.parameters.loads import Rotor
from steelyard.parameters.term import Term
from steelyard.parameters.terms import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare

# A joint whose way is shorter than this part of the longest one stands; it is locked where it is.
_STANDS = 0.02
# Knots of a table are so many times the filter's resolution apart, and this part of the motion lies between two.
_RESOLVED = 2.0
_SEEN = 0.02


def tabulated(robot: Robot, logs: Sequence[Log], joint: int, preparation: Preparation | None = None) -> list[Plateau]:
    """Points of friction of one joint at speeds that its motion has, each with its standard error."""
    settings = preparation or Preparation()
    moving = moving_joints(logs)
    if joint not in moving:
        raise SteelyardError(
            f"Joint '{robot.joint_names[joint]}' does not move in the logs; its friction stays unknown."
        )
    small, used = _reduced(robot, [moving_part(log) for log in logs], moving)
    cutoff = chosen_cutoff(used, settings)

    def motions() -> Iterator[Motion]:
        for log in used:
            yield from prepare(log, settings, cutoff)

    seen = list(motions())
    if not seen:
        raise SteelyardError("No piece of the logs is long enough to be filtered; log a longer motion.")
    own = moving.index(joint)
    speeds = [knots(seen, k, name) for k, name in enumerate(small.joint_names)]
    made: list[Term] = [Rotor()]
    smooth = SMOOTHING[robot.joints[joint].kind]
    for k, (name, levels) in enumerate(zip(small.joint_names, speeds, strict=True)):
        made.append(FrictionTable(where=(name,), speeds=levels, smooth=smooth, sides=_sides(seen, k)))
    bound = terms(small, *made)
    # Rigid body and friction are independent by structure; random states would rarely show the slow knots of a table.
    base = base_parameters(small, terms(small, Rotor()))
    dynamics = Dynamics(small, bound)
    tables = range(len(base.parameters), len(dynamics.parameters))
    columns = _Columns((*base.independent, *tables), (*base.names, *(dynamics.parameters[k].name for k in tables)))
    fit = WeightedLeastSquares().free(
        observe(dynamics, base, motions, rows=Rows(dynamics, columns.independent)), columns
    )
    errors = np.sqrt(np.maximum(np.diag(fit.covariance.matrix), 0.0))
    return _points(small, columns.names, fit.beta, errors, own, joint, speeds[own], smooth)


@dataclass(frozen=True)
class _Columns:
    """The unknowns of the regression: base parameters, then the knots of all tables."""

    independent: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def rank(self) -> int:
        return len(self.independent)


def moving_joints(logs: Sequence[Log]) -> list[int]:
    """The joints that go anywhere."""
    ways = np.max([np.ptp(log.q, axis=0) for log in logs], axis=0)
    return [int(k) for k in np.flatnonzero(ways > _STANDS * ways.max())]


def knots(motions: Sequence[Motion], joint: int, name: str) -> tuple[float, ...]:
    """Speeds from zero to nearly the fastest, dense where friction bends and where the motion is often.

    While the filter remembers (1/(2π cut-off)) the speed changes by so much; knots nearer than a few times that cannot
    be told apart.
    """
    velocity = _kept(motions, joint, "dq")
    if not np.any(velocity):
        raise SteelyardError(f"Joint '{name}' does not move; its friction stays unknown.")
    # The same knots serve both directions: they end where the slower one does.
    ways = {"p": velocity[velocity > 0.0], "n": -velocity[velocity < 0.0]}
    top = min(float(np.quantile(ways[side], 0.995)) for side in _sides(motions, joint))
    speed = np.abs(velocity)
    change = float(np.std(_kept(motions, joint, "ddq")))
    nearest = _RESOLVED * change / (2.0 * np.pi * motions[0].filter.cutoff)
    wanted = top * np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
    often = [wanted[0]]
    for high in wanted[1:]:
        between = np.mean((speed > often[-1]) & (speed <= high))
        if (between > _SEEN and high - often[-1] >= nearest) or high == wanted[-1]:
            often.append(high)
    return tuple(float(v) for v in often)


def _sides(motions: Sequence[Motion], joint: int) -> str:
    """The directions in which a joint really moves: beyond the jitter of standing."""
    speed = _kept(motions, joint, "dq")
    top = float(np.quantile(np.abs(speed), 0.995))
    ways = [("p", np.quantile(speed, 0.99) > 0.1 * top), ("n", np.quantile(speed, 0.01) < -0.1 * top)]
    return "".join(side for side, there in ways if there) or "pn"


def _kept(motions: Sequence[Motion], joint: int, signal: str) -> Array:
    return np.concatenate([getattr(m, signal)[m.keep, joint] for m in motions])


def _reduced(robot: Robot, logs: Sequence[Log], moving: Sequence[int]) -> tuple[Robot, list[Log]]:
    """The robot and its logs with the standing joints locked where they stand."""
    if len(moving) == robot.dof:
        return robot, list(logs)
    names = [robot.joint_names[k] for k in moving]
    held = {name: float(np.mean(logs[0].q[:, k])) for k, name in enumerate(robot.joint_names) if k not in moving}
    small = load_robot(robot, joints=names, locked=held)
    index = list(moving)
    cut = [
        Log(
            tuple(names),
            log.t,
            log.q[:, index],
            dq=None if log.dq is None else log.dq[:, index],
            tau=None if log.tau is None else log.tau[:, index],
            meta=log.meta,
            segments=log.segments,
        )
        for log in logs
    ]
    return small, cut


def _points(
    robot: Robot,
    names: Sequence[str],
    beta: Array,
    errors: Array,
    own: int,
    joint: int,
    speeds: Sequence[float],
    smooth: float,
) -> list[Plateau]:
    out = []
    empty = np.zeros((0, robot.dof))
    for side, sign in (("p", 1.0), ("n", -1.0)):
        for k, speed in enumerate(speeds):
            name = f"F{side}{k}_{own + 1}"
            # Slower than a few times the rounding of the jump a knot holds what the rounding leaves.
            if name in names and speed > 3.0 * smooth:
                at = list(names).index(name)
                out.append(
                    Plateau(
                        joint, 0.0, 0.0, sign * speed, sign * float(beta[at]), float(errors[at]), empty, np.zeros(0)
                    )
                )
    if not out:
        raise SteelyardError(f"The motion of joint '{robot.joint_names[own]}' does not show its friction.")
    return out
