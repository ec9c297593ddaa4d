"""Friction over velocity from any motion: rigid-body parameters and friction tables are fitted together.

This works without constant speeds, such as for sines or exciting trajectories: gravity depends on position and
inertia on acceleration, so the regression separates them from friction of any shape.
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

# Joints with a range of motion below this fraction of the largest one are locked.
_STANDS = 0.02
# Least distance of two knots in multiples of the filter's resolution, and least share of the motion between them.
_RESOLVED = 2.0
_LEAST_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class Tables:
    """Friction at the knots of all moving joints, fitted together with the rigid body.

    Attributes:
        coordinates: Joints or drives of the robot with the standing joints locked.
        speeds: Knots of each moving coordinate [rad/s or m/s].
        points: Friction at every identifiable knot and its standard error [N m or N], by parameter.
        smooth: Speed of the smoothed jump at zero, which distorts slower knots [rad/s or m/s].
    """

    coordinates: Coordinates
    speeds: dict[str, tuple[float, ...]]
    points: dict[str, tuple[float, float]]
    smooth: float

    @classmethod
    def of(cls, study: Study, logs: Sequence[Log], kind: str, on: FrictionSide = "joint") -> Tables:
        """Fit the tables of all moving joints or drives.

        Args:
            study: Study of the complete robot.
            logs: Logs of the study to fit to.
            kind: Type of the joint of interest, "revolute" or "prismatic", which sets the smoothing speed.
            on: "joint" or "drive".
        """
        moving = moving_joints(logs)
        small, used = _reduced(study.robot, [moving_part(log) for log in logs], moving)
        coordinates = Coordinates.of(small, on)
        # Friction columns are independent of the rigid body by structure; a numerical rank test with random states
        # would rarely reach the slow knots.
        rigid = study.with_logs(used, small, terms(small, Rotor(on=on)))
        motions = list(rigid.motions())
        if not motions:
            raise SteelyardError("Every piece of the logs is too short for the filter; log a longer motion.")
        converted = [coordinates.motion(motion) for motion in motions]
        turning = moving_joints([coordinates.log(log) for log in used])
        speeds = {coordinates.names[k]: knots(converted, k, coordinates.names[k]) for k in turning}
        all_terms: list[Term] = [Rotor(on=on)]
        smooth = SMOOTHING_SPEED[kind]
        for k in turning:
            where, sides = (coordinates.names[k],), _sides(converted, k)
            all_terms.append(FrictionTable(on=on, where=where, speeds=speeds[where[0]], smooth=smooth, sides=sides))
        base, dynamics = rigid.base, replace(rigid, terms=terms(small, *all_terms)).dynamics
        tables = range(len(base.parameters), len(dynamics.parameters))
        columns = _Columns((*base.independent, *tables), (*base.names, *(dynamics.parameters[k].name for k in tables)))
        rows = observe(dynamics, base, lambda: motions, rows=Rows(dynamics, columns.independent))
        fit = WeightedLeastSquares().free(rows, columns)
        errors = np.sqrt(np.maximum(np.diag(fit.covariance.matrix), 0.0))
        values = zip(columns.names, fit.beta.tolist(), errors.tolist(), strict=True)
        return cls(coordinates, speeds, {name: (value, error) for name, value, error in values}, smooth)

    def points_of(self, name: str, joint: int) -> list[Plateau]:
        """Return the identifiable points of friction of a joint or drive.

        Args:
            name: Name of the joint or drive.
            joint: Index of the joint or drive on the complete robot.
        """
        own, out, empty = self.coordinates.index(name), [], np.zeros((0, self.coordinates.robot.dof))
        suffix = f"{own + 1}" if self.coordinates.on == "joint" else f"_{name}"
        for side, sign in (("p", 1.0), ("n", -1.0)):
            for k, speed in enumerate(self.speeds[name]):
                point = self.points.get(f"F{side}{k}_{suffix}")
                # The smoothing of the jump at zero distorts knots below a few times its speed.
                if point is not None and speed > 3.0 * self.smooth:
                    value, error = point
                    out.append(Plateau(joint, 0.0, 0.0, sign * speed, sign * value, error, empty, np.zeros(0)))
        if not out:
            raise SteelyardError(f"The friction of '{name}' is not identifiable from this motion.")
        return out


@dataclass(frozen=True)
class _Columns:
    """Unknowns of the regression: base parameters, then the knots of all tables."""

    independent: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def rank(self) -> int:
        return len(self.independent)


def moving_joints(logs: Sequence[Log]) -> list[int]:
    """Return the indices of the joints that move in any of the `logs`."""
    ranges = np.max([np.ptp(log.q, axis=0) for log in logs], axis=0)
    return [int(k) for k in np.flatnonzero(ranges > _STANDS * ranges.max())]


def knots(motions: Sequence[Motion], joint: int, name: str) -> tuple[float, ...]:
    """Choose the speeds of the knots of a joint, from zero to nearly its fastest speed.

    Knots are dense at low speeds and where the motion has many samples. Their distance is at least a few times the
    change of speed within the filter's memory, 1/(2π cut-off), which limits the resolution.

    Args:
        motions: Prepared motions.
        joint: Index of the joint.
        name: Name of the joint, for messages.
    """
    velocity = _joined(motions, joint, "dq")
    if not np.any(velocity):
        raise SteelyardError(f"Joint '{name}' does not move; its friction stays unknown.")
    # Both directions use the same knots, up to the top speed of the slower one.
    by_side = {"p": velocity[velocity > 0.0], "n": -velocity[velocity < 0.0]}
    top = min(float(np.quantile(by_side[side], 0.995)) for side in _sides(motions, joint))
    speed = np.abs(velocity)
    change = float(np.std(_joined(motions, joint, "ddq")))
    nearest = _RESOLVED * change / (2.0 * np.pi * motions[0].filter.cutoff_hz)
    candidates = top * np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
    chosen = [candidates[0]]
    for high in candidates[1:]:
        between = np.mean((speed > chosen[-1]) & (speed <= high))
        if (between > _LEAST_SHARE and high - chosen[-1] >= nearest) or high == candidates[-1]:
            chosen.append(high)
    return tuple(float(v) for v in chosen)


def _sides(motions: Sequence[Motion], joint: int) -> str:
    """Return the directions of motion of a joint, without the jitter of standing still."""
    speed = _joined(motions, joint, "dq")
    top = float(np.quantile(np.abs(speed), 0.995))
    sides = [("p", np.quantile(speed, 0.99) > 0.1 * top), ("n", np.quantile(speed, 0.01) < -0.1 * top)]
    return "".join(side for side, moves in sides if moves) or "pn"


def _joined(motions: Sequence[Motion], joint: int, signal: str) -> Array:
    return np.concatenate([getattr(m, signal)[m.keep, joint] for m in motions])


def _reduced(robot: Robot, logs: Sequence[Log], moving: Sequence[int]) -> tuple[Robot, list[Log]]:
    """Lock the standing joints at their positions; return the smaller robot and its logs."""
    if len(moving) == robot.dof:
        return robot, list(logs)
    names = [robot.joint_names[k] for k in moving]
    locked = {name: float(np.mean(logs[0].q[:, k])) for k, name in enumerate(robot.joint_names) if k not in moving}
    small = load_robot(robot, joints=names, locked=locked)

    def cut(log: Log) -> Log:
        q, dq, tau = (None if x is None else x[:, list(moving)] for x in (log.q, log.dq, log.tau))
        return replace(log, joints=tuple(names), q=q, dq=dq, ddq=None, tau=tau, channels={})  # type: ignore[arg-type]

    return small, [cut(log) for log in logs]
