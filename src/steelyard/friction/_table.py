"""Friction over velocity from any motion: rigid-body parameters and a table of friction, fitted together.

Where a joint never turns at a constant speed (a sine, an exciting trajectory) there are no plateaus to average. But
gravity depends on position and inertia on acceleration, so that a regression tells them from a friction of any shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.assessment.holdout import moving_part
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.friction.coordinates import Coordinates, FrictionSide
from steelyard.friction.plateaus import Plateau
from steelyard.ground.arrays import Array
from steelyard.parameters.actuators import Rotor
from steelyard.parameters.friction import SMOOTHING_SPEED, FrictionTable
from steelyard.parameters.term import Term
from steelyard.parameters.terms import terms
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# A joint whose way is shorter than this part of the longest one stands; it is locked where it is.
_STANDS = 0.02
# Knots of a table are so many times the filter's resolution apart, and this part of the motion lies between two.
_RESOLVED = 2.0
_SEEN = 0.02


@dataclass(frozen=True, eq=False)
class Tables:
    """Friction at the knots of all joints that move, fitted together with the rigid body.

    Attributes:
        places: joints or drives of the robot with the standing joints locked.
        speeds: the knots of each that moves, rad/s or m/s.
        points: friction at every knot that the motion shows and its standard error, N m or N, by parameter.
        smooth: the speed below which a knot holds what the rounding of the jump leaves, rad/s or m/s.
    """

    places: Coordinates
    speeds: dict[str, tuple[float, ...]]
    points: dict[str, tuple[float, float]]
    smooth: float

    @classmethod
    def of(cls, study: Study, logs: Sequence[Log], kind: str, on: FrictionSide = "joint") -> Tables:
        """Fit the tables of all joints that move, or of all drives.

        Args:
            study: of the robot as it was logged.
            logs: those of the study to fit to.
            kind: of the joint that is asked for, "revolute" or "prismatic": how sharply friction jumps at zero.
            on: "joint" or "drive".
        """
        moving = moving_joints(logs)
        small, used = _reduced(study.robot, [moving_part(log) for log in logs], moving)
        places = Coordinates.of(small, on)
        # Rigid body and friction are independent by structure; random states would rarely show the slow knots.
        rigid = study.with_logs(used, small, terms(small, Rotor(on=on)))
        seen = list(rigid.motions())
        if not seen:
            raise SteelyardError("No piece of the logs is long enough to be filtered; log a longer motion.")
        turned = [places.motion(motion) for motion in seen]
        turning = moving_joints([places.log(log) for log in used])
        speeds = {places.names[k]: knots(turned, k, places.names[k]) for k in turning}
        made: list[Term] = [Rotor(on=on)]
        smooth = SMOOTHING_SPEED[kind]
        for k in turning:
            where, sides = (places.names[k],), _sides(turned, k)
            made.append(FrictionTable(on=on, where=where, speeds=speeds[where[0]], smooth=smooth, sides=sides))
        base, dynamics = rigid.base, replace(rigid, terms=terms(small, *made)).dynamics
        tables = range(len(base.parameters), len(dynamics.parameters))
        columns = _Columns((*base.independent, *tables), (*base.names, *(dynamics.parameters[k].name for k in tables)))
        rows = observe(dynamics, base, lambda: seen, rows=Rows(dynamics, columns.independent))
        fit = WeightedLeastSquares().free(rows, columns)
        errors = np.sqrt(np.maximum(np.diag(fit.covariance.matrix), 0.0))
        values = zip(columns.names, fit.beta.tolist(), errors.tolist(), strict=True)
        return cls(places, speeds, {name: (value, error) for name, value, error in values}, smooth)

    def named(self, name: str, joint: int) -> list[Plateau]:
        """Points of friction of the joint or drive called `name`, number `joint` of the whole robot's, at speeds that
        its motion has, each with its standard error."""
        own, out, empty = self.places.index(name), [], np.zeros((0, self.places.robot.dof))
        suffix = f"{own + 1}" if self.places.on == "joint" else f"_{name}"
        for side, sign in (("p", 1.0), ("n", -1.0)):
            for k, speed in enumerate(self.speeds[name]):
                point = self.points.get(f"F{side}{k}_{suffix}")
                # Slower than a few times the rounding of the jump a knot holds what the rounding leaves.
                if point is not None and speed > 3.0 * self.smooth:
                    value, error = point
                    out.append(Plateau(joint, 0.0, 0.0, sign * speed, sign * value, error, empty, np.zeros(0)))
        if not out:
            raise SteelyardError(f"The motion of '{name}' does not show its friction.")
        return out


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
    nearest = _RESOLVED * change / (2.0 * np.pi * motions[0].filter.cutoff_hz)
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

    def cut(log: Log) -> Log:
        q, dq, tau = (None if x is None else x[:, list(moving)] for x in (log.q, log.dq, log.tau))
        return replace(log, joints=tuple(names), q=q, dq=dq, ddq=None, tau=tau, channels={})  # type: ignore[arg-type]

    return small, [cut(log) for log in logs]
