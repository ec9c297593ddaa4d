"""`TracedLimit`: bounds on anything that can be written over scalars: torques, powers, places of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.kinematics import base_pose, placements
from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation.constraints._certify import Certifier
from steelyard.excitation.constraints.limits import Limits, Pull
from steelyard.excitation.sampled import Sampled
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent
from steelyard.ground.scalars import Vector, dot, matvec, plus
from steelyard.robot.robot import Robot

_ORDER = {"q": 0, "dq": 1, "ddq": 2}


class TracedLimit:
    """`lower` ≤ f(q, q̇, q̈) ≤ `upper` for a traced `function` f; shares are differences over `scale`.

    Gradients are exact (the function's adjoint); between the times of the grid the bound of `_certify.py` holds: for
    every instant of a `trajectory` (or several `trajectories`), or until more than `enough` is found.

    Args:
        name: what is limited, in words; `advice` says what would help, `metres` that shares are lengths.
        families, grid: the motions, with coefficients `x`, and the times (s) at which the optimiser looks.
        lazy: left out of the optimisation until a solution breaks it.
        q: a posture (rad, m), for `at_rest`.
    """

    smooth = True

    def __init__(
        self,
        name: str,
        function: Function,
        lower: Array,
        upper: Array,
        scale: Array,
        families: Sequence[Family],
        grid: Array,
        advice: str,
        lazy: bool = False,
        metres: bool = False,
    ) -> None:
        self.name, self.lazy, self._advice, self._metres = name, lazy, advice, metres
        self.lower, self.upper, self.scale = lower, upper, scale
        self.function, self._inputs = function, list(function.inputs)
        self.sampled = Sampled(families, grid, [_ORDER[x] for x in self._inputs])
        self._value, self._adjoint = Evaluator(function), Evaluator(function.adjoint())
        self._certifier = Certifier(function, lambda low, high: self._shares(low, high).max(axis=(0, -1)))

    def _shares(self, low: Array, high: Array) -> Array:
        """(2, …, outputs): above the upper bound, below the lower one; −1 where there is none."""
        out = np.stack([(high - self.upper) / self.scale, (self.lower - low) / self.scale])
        return np.where(np.isneginf(out), -1.0, out)

    def _linearised(self, inputs: dict[str, Array]) -> tuple[Array, Pull]:
        result = self._value(inputs)
        shares = self._shares(result, result)

        def pull(multipliers: Array) -> Array:
            above, below = multipliers.reshape(shares.shape)
            above, below = above * np.isfinite(self.upper), below * np.isfinite(self.lower)
            return self._adjoint({**inputs, "cotangent": (above - below) / self.scale})

        return shares.ravel(), pull

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        signals = dict(zip(self._inputs, self.sampled.signals(x), strict=True))
        values, joint_pull = self._linearised(signals)

        def pull(multipliers: Array) -> Array:
            return self.sampled.pull_signals([joint_pull(multipliers)])

        return values, pull

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        return self._certifier.excess([trajectory], enough)

    def excess_of_all(self, trajectories: Sequence[Trajectory], enough: float = np.inf) -> float:
        """The largest `excess` of several motions, looked at together: of many short ones much quicker."""
        return self._certifier.excess(trajectories, enough)

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        still = {x: q if x == "q" else np.zeros_like(q) for x in self._inputs}
        values, joint_pull = self._linearised(still)
        first = self._inputs.index("q") * len(q)
        return values, lambda multipliers: joint_pull(multipliers)[first : first + len(q)]

    def blame(self, trajectory: Trajectory) -> str:
        excess = self.excess(trajectory)
        by = f"{excess:.3g} m" if self._metres else percent(100.0 * excess, 3)
        return f"the {self.name} cannot be kept (by {by}); {self._advice}"


def torque_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """|τ_j| ≤ (1 − `margin`)·limit_j; the margin is for what the nominal `model` does not know. Of `limits` (N m, N),
    for motions of `families`, on a `grid` of times (s); `lazy` as in `TracedLimit`."""
    return _drive_limit("torque", "tau", model, (1.0 - margin) * limits.tau, families, grid, margin, lazy)


def power_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """|τ_j q̇_j| ≤ (1 − `margin`)·limit_j (W); `model`, `limits`, `families`, `grid`, `lazy` as for torques."""
    return _drive_limit("power", "power", model, (1.0 - margin) * limits.power, families, grid, margin, lazy)


def _drive_limit(
    what: str, key: str, model: Model, allowed: Array, families: Sequence[Family], grid: Array, margin: float,
    lazy: bool,
) -> TracedLimit:  # fmt: skip
    if not 0.0 <= margin < 1.0:
        raise ExcitationError(f"The margin is {margin:g}; give the share of the limit to keep free, 0 ≤ margin < 1.")
    n, theta = model.robot.dof, model.theta.tolist()

    def drives(q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        torque = model.dynamics.inverse_over_scalars(q, dq, ddq, theta)
        values = torque if key == "tau" else [t * v for t, v in zip(torque, dq, strict=True)]
        return {(j,): v for j, v in enumerate(values) if np.isfinite(allowed[j])}

    name = f"{what} limits"
    function = trace(name, {"q": n, "dq": n, "ddq": n}, drives, (n,))
    scale = np.where(np.isfinite(allowed), allowed, 1.0)
    advice = f"allow more {what} (limits['{key}'], None lifts it)"
    return TracedLimit(name, function, -allowed, allowed, scale, families, grid, advice, lazy)


@dataclass(frozen=True)
class Point:
    """A point of a link, `offset` (m) from the origin of the link's joint frame; `radius` of a ball around it (m)."""

    link: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0


@dataclass(frozen=True)
class Plane:
    """The points stay where normal·p ≤ distance (base frame, m); the normal may have any length."""

    normal: tuple[float, float, float]
    distance: float

    @staticmethod
    def floor(height: float = 0.0) -> Plane:
        """Nothing below `height` (m)."""
        return Plane((0.0, 0.0, -1.0), -height)


def box(lower: Sequence[float], upper: Sequence[float]) -> tuple[Plane, ...]:
    """The six planes of a box with corners `lower` and `upper` (base frame, m)."""
    if not all(a < b for a, b in zip(lower, upper, strict=True)):
        raise ExcitationError(f"The box {tuple(lower)} … {tuple(upper)} is empty; every lower must be below its upper.")
    axes = [tuple(float(i == k) for i in range(3)) for k in range(3)]
    high = [Plane(a, float(u)) for a, u in zip(axes, upper, strict=True)]  # type: ignore[arg-type]
    low = [Plane(tuple(-x for x in a), -float(u)) for a, u in zip(axes, lower, strict=True)]  # type: ignore[arg-type]
    return (*high, *low)


def heights_over(robot: Robot, points: Sequence[Point], planes: Sequence[Plane]) -> tuple[Function, Array]:
    """How far every point of `points` is out along the normal of every plane of `planes` (m), traced over q of `robot`,
    and how far it may be: `(points · planes,)`."""
    names = robot.link_names
    for point in points:
        if point.link not in names:
            raise UnknownNameError("link", point.link, names)
    units = [np.array(p.normal, dtype=float) for p in planes]
    if not points or not planes or any(np.linalg.norm(u) == 0.0 for u in units):
        raise ExcitationError("A region needs at least one point, one plane, and planes whose normals are not zero.")
    lengths = [float(np.linalg.norm(u)) for u in units]

    def heights(q: Vector) -> dict[tuple[int, ...], Any]:
        poses = base_pose(robot, placements(robot, q))
        out: dict[tuple[int, ...], Any] = {}
        for point in points:
            rotation, origin = poses[names.index(point.link)]
            place = plus(origin, matvec(rotation, list(point.offset)))
            for unit, length in zip(units, lengths, strict=True):
                out[(len(out),)] = dot([float(x) / length for x in unit], place)
        return out

    function = trace("heights", {"q": robot.dof}, heights, (len(points) * len(planes),))
    upper = [p.distance / length - k.radius for k in points for p, length in zip(planes, lengths, strict=True)]
    return function, np.array(upper)


def workspace(
    robot: Robot, points: Sequence[Point], planes: Sequence[Plane], families: Sequence[Family], grid: Array
) -> TracedLimit:
    """All `points` of `robot` on the inner side of all `planes`, for `families` at times `grid` (s); shares are m."""
    function, upper = heights_over(robot, points, planes)
    advice = "give a larger region, or another one that the points can reach"
    none, ones = np.full(len(upper), -np.inf), np.ones(len(upper))
    return TracedLimit("region", function, none, upper, ones, families, grid, advice, metres=True)
