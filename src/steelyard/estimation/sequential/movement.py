"""`Movement`: one step of a sequential identification: who moves, which torques count, what is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion

# A parameter by its name, or a sum of parameters: coefficient by name.
Combination = str | Mapping[str, float]

# A coordinate stands still when its speed is below this part of the slowest one that moves.
_STILL = 0.02
# What a sum of parameters may miss of what the motion can show, relative to its largest coefficient: rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Movement:
    """A motion of some joints or motors, and what is to be learnt from it.

    Attributes:
        name: how reports call it.
        log: one log or several, as paths, `Log`s, frames or dicts of arrays.
        moves: joints, or motors of the robot's transmission, that move; all others rest. "motor2" moves as the
            transmission has it: on the IRp-6 that is q̇3 = −q̇2, the forearm keeps its attitude.
        finds: names of parameters, or a mapping from names of one's own to sums of parameters ({"J": {"Izz2": 1.0,
            "m3": 0.2}}); parameters are the ten of each link and the terms'.
        equations: joints or motors whose torques count; default: those that move. The torque of a motor that rests
            holds against dry friction that nobody knows, so motors are the better choice on coupled drives.
        known: what was found before (or given) and is subtracted; default: all of it that is not found anew.
        neglects: parameters that are taken for zero, by name; "rest": all base parameters that no movement finds.
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
        given: Any = self.log  # logs, by the time that somebody asks
        return (given,) if isinstance(given, Log) else tuple(given)

    @property
    def combinations(self) -> dict[str, Combination]:
        """What is found, by name."""
        if isinstance(self.finds, Mapping):
            return dict(self.finds)
        return {name: name for name in ([self.finds] if isinstance(self.finds, str) else self.finds)}

    @staticmethod
    def path(robot: Robot, profiles: Mapping[str, ArrayLike], rest: ArrayLike | None = None) -> Array:
        """Joint positions `(samples, joints)` when joints or motors of `robot` follow `profiles`, by name, others rest.

        Motors are given at the output of their gears (drive coordinates); `rest` are joint positions. The same
        function makes velocities of velocities and accelerations of accelerations (with `rest` zero).
        """
        to_coordinates = coordinates(robot, tuple(profiles))[1]
        values = [np.asarray(p, dtype=float) for p in profiles.values()]
        start = np.zeros(robot.dof) if rest is None else np.asarray(rest, dtype=float)
        if start.shape != (robot.dof,) or any(v.ndim != 1 or len(v) != len(values[0]) for v in values):
            raise ShapeError("Profiles are (samples,) each, and rest is one position per joint.")
        names = _names(robot, tuple(profiles))
        u = np.tile(to_coordinates @ start, (len(values[0]), 1))
        for name, value in zip(profiles, values, strict=True):
            u[:, names.index(name)] = value
        return np.asarray(np.linalg.solve(to_coordinates, u.T).T)

    def check_still(self, robot: Robot, motion: Motion) -> None:
        """Refuse a `motion` of `robot` in which something moves that should rest."""
        names, to_coordinates = _names(robot, tuple(self.moves)), coordinates(robot, tuple(self.moves))[1]
        speed = np.sqrt(np.mean((motion.dq @ to_coordinates.T) ** 2, axis=0))
        moving = [names.index(name) for name in self.moves]
        slowest = speed[moving].min()
        for k, name in enumerate(names):
            if k in moving and speed[k] == 0.0:
                raise EstimationError(f"Movement '{self.name}': '{name}' does not move in its log.")
            if k not in moving and speed[k] > _STILL * slowest:
                raise EstimationError(
                    f"Movement '{self.name}' moves {', '.join(self.moves)} only, but '{name}' moves too "
                    f"({speed[k]:.3g} against {slowest:.3g} rad/s or m/s); name it in `moves`, or use another log."
                )


def _names(robot: Robot, given: Sequence[str]) -> tuple[str, ...]:
    """The names among which the given ones are: motors where there are such, else joints."""
    motors = robot.transmission.motors if robot.transmission is not None else ()
    for names in (motors, robot.joint_names):
        if all(name in names for name in given):
            return names
    unknown = next((n for n in given if n not in motors and n not in robot.joint_names), None)
    if unknown is not None:
        raise UnknownNameError("joint or motor", unknown, (*robot.joint_names, *motors))
    raise SteelyardError(f"{', '.join(given)}: name joints or motors, not some of both.")


def coordinates(robot: Robot, given: Sequence[str]) -> tuple[Array, Array]:
    """For joints or motors of `robot`, `given` by name: rows from joint torques to theirs; the map from q to u."""
    names = _names(robot, given)
    if names == robot.joint_names or robot.transmission is None:
        to_coordinates = np.eye(robot.dof)
    else:
        to_coordinates = np.asarray(robot.transmission.matrix)
        if to_coordinates.shape[0] != robot.dof or np.linalg.matrix_rank(to_coordinates) < robot.dof:
            raise SteelyardError(
                f"'{robot.name}' has {len(names)} motors for {robot.dof} joints; sequential identification by motors "
                "needs as many. Name joints instead."
            )
    torques = np.asarray(np.linalg.inv(to_coordinates).T, dtype=np.float64)  # τ_q = Aᵀ τ_u
    return torques[[names.index(name) for name in given]], to_coordinates


def functional(base: BaseParameters, combination: Combination) -> Array:
    """The coefficients over `base` of a `combination`, a sum of parameters; refuses what no motion can show."""
    names = [p.name for p in base.parameters]
    wanted = {combination: 1.0} if isinstance(combination, str) else combination
    if isinstance(combination, str) and combination in base.names:
        return np.asarray(np.eye(base.rank)[base.names.index(combination)])
    full = np.zeros(len(names))
    for name, coefficient in wanted.items():
        if name not in names:
            raise UnknownNameError("parameter", name, names)
        full[names.index(name)] = coefficient
    over_base = full[list(base.independent)]
    if np.abs(over_base @ base.matrix - full).max() > _ROUNDING * np.abs(full).max(initial=1e-300):
        text = combination if isinstance(combination, str) else " + ".join(f"{c:g}·{n}" for n, c in wanted.items())
        raise EstimationError(
            f"No motion of '{base.robot.name}' shows {text} by itself; `steelyard inspect` lists the sums that show."
        )
    return np.asarray(over_base)
