"""Friction over velocity from any motion: rigid-body parameters and a table of friction, fitted together.

Where a joint never turns at a constant speed (a sine, an exciting trajectory) there are no plateaus to average. But
gravity depends on position and inertia on acceleration, so that a regression tells them from a friction of any shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.estimation.wls import WeightedLeastSquares
from steelyard.friction.plateaus import Plateau
from steelyard.parameters.library import FrictionTable, Rotor
from steelyard.parameters.term import Term
from steelyard.parameters.terms import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.observe import observe
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare

# A joint whose way is shorter than this part of the longest one stands; it is locked where it is.
_STANDS = 0.02
_KNOTS = 8


def tabulated(robot: Robot, logs: Sequence[Log], joint: int, preparation: Preparation | None = None) -> list[Plateau]:
    """Points of friction of one joint at speeds that its motion has, each with its standard error."""
    settings = preparation or Preparation()
    moving = moving_joints(logs)
    if joint not in moving:
        raise SteelyardError(
            f"Joint '{robot.joint_names[joint]}' does not move in the logs; its friction stays unknown."
        )
    small, used = _reduced(robot, logs, moving)
    own = moving.index(joint)
    speeds = [knots(used, k) for k in range(len(moving))]
    made: list[Term] = [Rotor()]
    smooth = 0.01 if robot.joints[joint].kind == "revolute" else 0.001
    for k, (name, levels) in enumerate(zip(small.joint_names, speeds, strict=True)):
        made.append(FrictionTable(where=(name,), speeds=levels, smooth=smooth, sides=_sides(used, k)))
    bound = terms(small, *made)
    base = base_parameters(small, bound)
    cutoff = chosen_cutoff(used, settings)

    def motions() -> Iterator[Motion]:
        for log in used:
            yield from prepare(log, settings, cutoff)

    estimate = WeightedLeastSquares().fit(observe(Dynamics(small, bound), base, motions), base)
    return _points(small, base.names, estimate.beta, estimate.standard_errors, own, joint, speeds[own], smooth)


def moving_joints(logs: Sequence[Log]) -> list[int]:
    """The joints that go anywhere."""
    ways = np.max([np.ptp(log.q, axis=0) for log in logs], axis=0)
    return [int(k) for k in np.flatnonzero(ways > _STANDS * ways.max())]


def knots(logs: Sequence[Log], joint: int) -> tuple[float, ...]:
    """Speeds from zero to nearly the fastest, dense where friction bends and where the motion is often."""
    speed = np.concatenate([np.abs(_speed(log, joint)) for log in logs])
    top = float(np.quantile(speed, 0.995))
    if not top > 0.0:
        raise SteelyardError(f"Joint '{logs[0].joints[joint]}' does not move; its friction stays unknown.")
    wanted = top * np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])[:_KNOTS]
    often = [wanted[0]]
    for low, high in itertools.pairwise(wanted):
        if np.mean((speed > low) & (speed <= high)) > 0.005 or high == wanted[-1]:
            often.append(high)
    return tuple(float(v) for v in often)


def _sides(logs: Sequence[Log], joint: int) -> str:
    """The directions in which a joint really moves: beyond the jitter of standing."""
    speed = np.concatenate([_speed(log, joint) for log in logs])
    top = float(np.quantile(np.abs(speed), 0.995))
    ways = [("p", np.quantile(speed, 0.99) > 0.1 * top), ("n", np.quantile(speed, 0.01) < -0.1 * top)]
    return "".join(side for side, there in ways if there) or "pn"


def _speed(log: Log, joint: int) -> Array:
    return np.asarray(np.gradient(log.q[:, joint], log.t) if log.dq is None else log.dq[:, joint])


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
