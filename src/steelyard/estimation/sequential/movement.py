"""One movement of a sequential identification: moving joints, equations, estimated sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion

# A parameter by its name, or a sum of parameters: coefficient by name.
Combination = str | Mapping[str, float]

# Coordinates slower than this part of the slowest moving one count as standing still.
_MAX_REST_SPEED = 0.02
# Tolerance for identifiable sums, relative to the largest coefficient: rounding.
_ROUNDING = 1e-9


@short_repr
@dataclass(frozen=True, eq=False)
class Movement:
    """A motion of some joints or motors, and the parameters to estimate from it.

    Attributes:
        name: Name in reports.
        log: One log or several, as paths, `Log`s, frames or dicts of arrays.
        moves: Joints, or motors of the robot's transmission, that move; all others rest. A motor moves joints as the
            transmission defines: on the IRp-6 "motor2" gives q̇3 = −q̇2, and the forearm keeps its attitude.
        finds: Names of parameters, or a mapping from new names to sums of parameters ({"J": {"Izz2": 1.0, "m3": 0.2}});
            parameters are the ten of each link and the terms'.
        equations: Joints or motors with used torques; default: those that move. A resting motor works against unknown
            dry friction, so motors are the better choice for coupled drives.
        known: Earlier or given results that are subtracted; default: all that are not estimated again.
        neglects: Names of parameters that count as zero; "rest": all base parameters that no movement estimates.
    """

    name: str
    log: LogsLike
    moves: Sequence[str]
    finds: Sequence[str] | Mapping[str, Combination]
    equations: Sequence[str] | None = None
    known: Sequence[str] | None = None
    neglects: Sequence[str] | Literal["rest"] = ()

    @property
    def logs(self) -> tuple[Log, ...]:
        logs: Any = self.log  # always logs when this is called
        return (logs,) if isinstance(logs, Log) else tuple(logs)

    @property
    def combinations(self) -> dict[str, Combination]:
        """Estimated sums by name."""
        if isinstance(self.finds, Mapping):
            return dict(self.finds)
        return {name: name for name in ([self.finds] if isinstance(self.finds, str) else self.finds)}

    @staticmethod
    def path(robot: Robot, profiles: Mapping[str, ArrayLike], rest: ArrayLike | None = None) -> Array:
        """Compute joint positions (samples, joints) of a movement.

        With velocities or accelerations as profiles (and `rest` zero) the result are joint velocities or accelerations.

        Args:
            robot: The robot.
            profiles: Positions of joints or motors by name; motors at the output of their gears (drive coordinates).
                Others rest.
            rest: Joint positions at rest; None: zero.
        """
        to_coordinates = coordinates(robot, tuple(profiles))[1]
        values = [np.asarray(p, dtype=float) for p in profiles.values()]
        start = np.zeros(robot.dof) if rest is None else np.asarray(rest, dtype=float)
        if start.shape != (robot.dof,) or any(v.ndim != 1 or len(v) != len(values[0]) for v in values):
            raise ShapeError(
                "All profiles must have the same shape (samples,), and `rest` must have one position per joint."
            )
        names = _names(robot, tuple(profiles))
        u = np.tile(to_coordinates @ start, (len(values[0]), 1))
        for name, value in zip(profiles, values, strict=True):
            u[:, names.index(name)] = value
        return np.asarray(np.linalg.solve(to_coordinates, u.T).T)

    def check_still(self, robot: Robot, motion: Motion) -> None:
        """Raise an error if a joint or motor moves that should rest, or the reverse.

        Args:
            robot: The robot.
            motion: Motion of the log.
        """
        names, to_coordinates = _names(robot, tuple(self.moves)), coordinates(robot, tuple(self.moves))[1]
        speed = np.sqrt(np.mean((motion.dq @ to_coordinates.T) ** 2, axis=0))
        moving = [names.index(name) for name in self.moves]
        slowest = speed[moving].min()
        for k, name in enumerate(names):
            if k in moving and speed[k] == 0.0:
                raise EstimationError(f"Movement '{self.name}': '{name}' does not move in its log.")
            if k not in moving and speed[k] > _MAX_REST_SPEED * slowest:
                raise EstimationError(
                    f"Movement '{self.name}' should move only {', '.join(self.moves)}, but '{name}' also moves "
                    f"({speed[k]:.3g} against {slowest:.3g} rad/s or m/s); add it to `moves`, or use another log."
                )


def _names(robot: Robot, moving: Sequence[str]) -> tuple[str, ...]:
    """Names of all motors if the given names are motors, else of all joints."""
    motors = robot.transmission.motors if robot.transmission is not None else ()
    for names in (motors, robot.joint_names):
        if all(name in names for name in moving):
            return names
    unknown = next((n for n in moving if n not in motors and n not in robot.joint_names), None)
    if unknown is not None:
        raise UnknownNameError("joint or motor", unknown, (*robot.joint_names, *motors))
    raise SteelyardError(f"{', '.join(moving)}: use names of joints or of motors only.")


def coordinates(robot: Robot, moving: Sequence[str]) -> tuple[Array, Array]:
    """Compute the coordinates of joints or motors.

    Args:
        robot: The robot.
        moving: Names of joints or motors.

    Returns:
        Rows from joint torques to their torques; matrix from q to the coordinates u.
    """
    names = _names(robot, moving)
    if names == robot.joint_names or robot.transmission is None:
        to_coordinates = np.eye(robot.dof)
    else:
        to_coordinates = np.asarray(robot.transmission.matrix)
        if to_coordinates.shape[0] != robot.dof or np.linalg.matrix_rank(to_coordinates) < robot.dof:
            raise SteelyardError(
                f"'{robot.name}' has {len(names)} motors for {robot.dof} joints; sequential identification by motors "
                "needs equal numbers. Use names of joints instead."
            )
    torques = np.asarray(np.linalg.inv(to_coordinates).T, dtype=np.float64)  # τ_q = Aᵀ τ_u
    return torques[[names.index(name) for name in moving]], to_coordinates


def functional(base: BaseParameters, combination: Combination) -> Array:
    """Compute the coefficients of a sum of parameters over the base parameters; raises an error if it is not
    identifiable.

    Args:
        base: Base parameters.
        combination: A parameter, or a sum of parameters.
    """
    names = [p.name for p in base.parameters]
    coefficients = {combination: 1.0} if isinstance(combination, str) else combination
    if isinstance(combination, str) and combination in base.names:
        return np.asarray(np.eye(base.rank)[base.names.index(combination)])
    full = np.zeros(len(names))
    for name, coefficient in coefficients.items():
        if name not in names:
            raise UnknownNameError("parameter", name, names)
        full[names.index(name)] = coefficient
    over_base = full[list(base.independent)]
    if np.abs(over_base @ base.matrix - full).max() > _ROUNDING * np.abs(full).max(initial=1e-300):
        text = (
            combination if isinstance(combination, str) else " + ".join(f"{c:g}·{n}" for n, c in coefficients.items())
        )
        raise EstimationError(
            f"{text} is not identifiable for '{base.robot.name}'; `steelyard inspect` lists the identifiable sums."
        )
    return np.asarray(over_base)
