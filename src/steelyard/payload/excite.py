"""`excite_payload`: designs a motion for identifying a payload with a wrist sensor, within the robot's limits.

The regression is W = K(q, q̇, q̈) θ. K is traced over scalars, so that the room `excitation` gets exact gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.dynamics.function import Function, trace
from steelyard.errors import SteelyardError
from steelyard.excitation._motion_rows import TorqueRows
from steelyard.excitation.constraints import Limits
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.criteria import Criterion, Linear, criterion_named
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.goal import Goal
from steelyard.excitation.plan import Plan
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.search import Search, SearchSettings
from steelyard.excitation.search_problem import SearchProblem, requirements
from steelyard.excitation.settle import find_centre
from steelyard.excitation.trajectories import Family, Fourier, Trajectory
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.scalars import Scalar, Vector
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.payload.sensor import WRENCH_AXES, wrench_regressor
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

# Noise of a sensor like the JR3 of Kozłowski & Dutkiewicz 1996: 0.3 N and 0.02 N m.
WRENCH_NOISE = (0.3, 0.3, 0.3, 0.02, 0.02, 0.02)
# Singular values of K on random motions below this ratio to the largest count as zero.
_RANK_TOLERANCE = 1e-9
_UNITS = ("kg", *["kg m"] * 3, *["kg m²"] * 6)


def excite_payload(
    robot: RobotLike,
    frame: str = "",
    *,
    duration: float = 5.0,
    rate: float = 31.25,
    limits: Mapping[str, ArrayLike] | Limits | None = None,
    noise: ArrayLike = WRENCH_NOISE,
    sizes: ArrayLike = (2.0, 0.15),
    criterion: str | Criterion = "a",
    family: Family | None = None,
    seed: int = 0,
    search: SearchSettings | None = None,
) -> Plan:
    """Design a motion, from rest to rest, that identifies a payload with a force–torque sensor.

    Args:
        robot: Robot, as `load_robot` takes it.
        frame: Frame of the sensor; default: the last link.
        duration: Duration [s].
        rate: Sampling rate [Hz].
        limits: As for `excite`.
        noise: Standard deviation of fx, fy, fz [N] and tx, ty, tz [N m].
        sizes: Expected mass [kg] and distance from the sensor [m]. They scale the parameters by (m, m·l, m·l²), so
            that criterion "a" minimises the sum of relative variances.
        criterion: As for `excite`; "information" is cond₂(KᵀK).
        family: Family of trajectories; default: a Fourier series of five harmonics.
        seed: Seed of the random starts.
        search: Settings of the search; None for the default ones.

    Raises:
        SteelyardError: If no motion identifies the whole payload.
    """
    robot = as_robot(robot)
    robot.moving_frame(frame)
    sigma = np.broadcast_to(np.asarray(noise, dtype=float), (6,))
    if not np.all(sigma > 0.0):
        raise SteelyardError("The noise of every axis of the sensor must be positive.")
    _check_identifiable(robot, frame)
    bounds = limits_from(robot, limits)
    families = (family or Fourier(5, duration),) * robot.dof
    times = Trajectory.standing(families, np.zeros(robot.dof)).times(rate)
    with one_blas_thread():
        rows = TorqueRows(cast(Dynamics, _Sensor(robot, frame)), range(10), SampledMotions(families, times), range(6))
        goal = Goal(rows, criterion_named(criterion), INERTIAL_NAMES, (_expected(sizes),), 1.0 / sigma, None,
                    "rows over the noise of their axis")  # fmt: skip
        needs = requirements(robot, families, bounds, ExciteOptions())
        problem = SearchProblem(goal, find_centre(families, bounds, needs, seed), needs)
        run = Search(problem, search or SearchSettings(), seed, None, None, "")
        plan = run.plan(INERTIAL_NAMES, _UNITS, joint_names=robot.joint_names, rate=rate, limits=bounds)
    if not np.isfinite(plan.condition_number) or plan.condition_number > 1.0 / np.finfo(float).eps:
        raise SteelyardError(
            f"No motion of {duration:g} s within the limits of {robot.name} identifies the whole payload: increase the "
            "duration (--duration), or check the limits."
        )
    return plan


def _check_identifiable(robot: Robot, frame: str) -> None:
    """Refuse a robot whose motions cannot identify a whole payload, such as one with parallel axes."""
    rng = np.random.default_rng(0)
    at = FrameKinematics(robot, robot.frame(frame))(*rng.normal(size=(3, 50, robot.dof)))
    rows = wrench_regressor(at).reshape(-1, 10)
    _, sizes, directions = np.linalg.svd(rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-300))
    null_space = directions[sizes < _RANK_TOLERANCE * sizes[0]]
    hidden = [name for name, part in zip(INERTIAL_NAMES, np.abs(null_space).max(axis=0, initial=0.0), strict=True)
              if part > 1e-6]  # fmt: skip
    if hidden:
        raise SteelyardError(
            f"No motion of {robot.name} identifies the whole payload with a sensor at '{frame or 'the last link'}': "
            f"{', '.join(hidden)} are not identifiable, or only in combination, because it never turns about other "
            "axes. Use the joint torques of any motion instead (steelyard payload … --without LOG --with LOG)."
        )


def _expected(sizes: ArrayLike) -> Linear:
    mass, length = np.asarray(sizes, dtype=float)
    scale = np.array([mass, *[mass * length] * 3, *[mass * length**2] * 6])
    return Linear(np.diag(scale), f"in units of {mass:g} kg and {length:g} m")


@dataclass(frozen=True)
class _Axes:
    joint_names: tuple[str, ...] = WRENCH_AXES


class _Sensor:
    """Replaces the robot's dynamics in `TorqueRows`: its "torque regressor" is the K of the sensor, shape (6, 10)."""

    robot = _Axes()

    def __init__(self, robot: Robot, frame: str) -> None:
        self._kinematics = FrameKinematics(robot, robot.frame(frame))
        widths = {"q": robot.dof, "dq": robot.dof, "ddq": robot.dof}
        self._function = trace("torque_regressor", widths, self._over_scalars, (6, 10))

    def function(self, name: str) -> Function:
        return self._function

    def _over_scalars(self, q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        """Compute the entries of `wrench_regressor` over scalars."""
        values: list[Scalar] = list(self._kinematics.over_scalars(q, dq, ddq).values())
        w, turn, pull = values[0:3], values[3:6], values[9:12]
        entries: dict[tuple[int, ...], Any] = {(i, 0): pull[i] for i in range(3)}
        spin_of = _tensor(w)
        for i in range(3):
            for j in range(3):
                # [ω̇×] + [ω×][ω×], with [ω×]² = ω ωᵀ − |ω|² 1
                square = w[i] * w[j] - ((w[0] * w[0] + w[1] * w[1] + w[2] * w[2]) if i == j else 0.0)
                entries[i, 1 + j] = _cross(turn, i, j) + square
                entries[3 + i, 1 + j] = -1.0 * _cross(pull, i, j)
            for k, column in enumerate(_tensor(turn)):
                rolled = sum((_cross(w, i, m) * spin_of[k][m] for m in range(3)), start=0.0)
                entries[3 + i, 4 + k] = column[i] + rolled
        return entries


def _cross(v: Sequence[Scalar], i: int, j: int) -> Scalar:
    """Entry i, j of [v×]."""
    if i == j:
        return 0.0
    k = 3 - i - j
    return v[k] if (j - i) % 3 == 2 else -1.0 * v[k]


def _tensor(w: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the six columns of [•ω], in the order Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    x, y, z = w
    return [[x, 0.0, 0.0], [y, x, 0.0], [0.0, y, 0.0], [z, 0.0, x], [0.0, z, y], [0.0, 0.0, z]]
