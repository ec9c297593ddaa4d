"""`TracedLimit`: bounds on traced functions of the motion: torques, powers, positions of points."""

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
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent
from steelyard.ground.scalars import Vector, dot, matvec, plus
from steelyard.robot.robot import Robot

_ORDER = {"q": 0, "dq": 1, "ddq": 2}


class TracedLimit:
    """`lower` ≤ f(q, q̇, q̈) ≤ `upper` for a traced function f.

    Gradients are exact (the function's adjoint); the bound of `_certify.py` covers the times between those of the grid.

    Args:
        name: Name of the limited quantity.
        function: f.
        lower, upper: Bounds, shape (outputs,).
        scale: Divisor that converts differences to shares, shape (outputs,).
        families: Family of each joint.
        grid: Times [s] for the optimiser.
        advice: Remedy for a violation, for messages.
        lazy: Leave the limit out of the optimisation until a solution breaks it.
        metres: Whether shares are lengths [m].
        trajectory, enough, x, q: Arguments of the methods, as in `Constraint`.
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
        self.sampled = SampledMotions(families, grid, [_ORDER[x] for x in self._inputs])
        self._value, self._adjoint = Evaluator(function), Evaluator(function.adjoint())
        self._certifier = Certifier(function, lambda low, high: self._shares(low, high).max(axis=(0, -1)))

    def _shares(self, low: Array, high: Array) -> Array:
        """Return the excess over the upper and below the lower bound, shape (2, …, outputs); −1 without a bound."""
        out = np.stack([(high - self.upper) / self.scale, (self.lower - low) / self.scale])
        return np.where(np.isneginf(out), -1.0, out)

    def _linearise(self, inputs: dict[str, Array]) -> tuple[Array, Pull]:
        result = self._value(inputs)
        shares = self._shares(result, result)

        def pull(multipliers: Array) -> Array:
            above, below = multipliers.reshape(shares.shape)
            above, below = above * np.isfinite(self.upper), below * np.isfinite(self.lower)
            return self._adjoint({**inputs, "cotangent": (above - below) / self.scale})

        return shares.ravel(), pull

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        signals = dict(zip(self._inputs, self.sampled.signals(x), strict=True))
        values, joint_pull = self._linearise(signals)

        def pull(multipliers: Array) -> Array:
            return self.sampled.pull_signals([joint_pull(multipliers)])

        return values, pull

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        return self._certifier.excess([trajectory], enough)

    def excess_of_all(self, trajectories: Sequence[Trajectory], enough: float = np.inf) -> float:
        """Return the largest `excess` of several motions; for many short ones this is much faster than one by one.

        Args:
            trajectories: The motions.
            enough: As in `Constraint.excess`.
        """
        return self._certifier.excess(trajectories, enough)

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        still = {x: q if x == "q" else np.zeros_like(q) for x in self._inputs}
        values, joint_pull = self._linearise(still)
        first = self._inputs.index("q") * len(q)
        return values, lambda multipliers: joint_pull(multipliers)[first : first + len(q)]

    def blame(self, trajectory: Trajectory) -> str:
        excess = self.excess(trajectory)
        by = f"{excess:.3g} m" if self._metres else percent(100.0 * excess, 3)
        return f"the {self.name} cannot be kept: exceeded by {by}; {self._advice}"


def torque_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """Return the constraint |τ_j| ≤ (1 − margin)·limit_j.

    Args:
        model: Nominal model.
        limits: Limits of the joints [N m, N].
        families: Family of each joint.
        grid: Times [s] for the optimiser.
        margin: Share of the limits reserved for errors of the model.
        lazy: As in `TracedLimit`.
    """
    return _drive_limit("torque", "tau", model, (1.0 - margin) * limits.tau, families, grid, margin, lazy)


def power_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """Return the constraint |τ_j q̇_j| ≤ (1 − margin)·limit_j.

    Args:
        model, families, grid, margin, lazy: As in `torque_limit`.
        limits: Limits of the joints [W].
    """
    return _drive_limit("power", "power", model, (1.0 - margin) * limits.power, families, grid, margin, lazy)


def _drive_limit(
    quantity: str, key: str, model: Model, allowed: Array, families: Sequence[Family], grid: Array, margin: float,
    lazy: bool,
) -> TracedLimit:  # fmt: skip
    if not 0.0 <= margin < 1.0:
        raise ExcitationError(f"The margin is {margin:g}; give a share of the limit, 0 ≤ margin < 1.")
    n, theta = model.robot.dof, model.theta.tolist()

    def drives(q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        torque = model.dynamics.inverse_over_scalars(q, dq, ddq, theta)
        values = torque if key == "tau" else [t * v for t, v in zip(torque, dq, strict=True)]
        return {(j,): v for j, v in enumerate(values) if np.isfinite(allowed[j])}

    name = f"{quantity} limits"
    function = trace(name, {"q": n, "dq": n, "ddq": n}, drives, (n,))
    scale = np.where(np.isfinite(allowed), allowed, 1.0)
    advice = f"allow more {quantity} (limits['{key}'], None lifts it)"
    return TracedLimit(name, function, -allowed, allowed, scale, families, grid, advice, lazy)


@dataclass(frozen=True)
class Point:
    """A point of a link.

    Attributes:
        link: Name of the link.
        offset: Position from the origin of the link's joint frame [m].
        radius: Radius of a ball around the point [m].
    """

    link: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0


@dataclass(frozen=True)
class Plane:
    """A half-space normal·p ≤ distance in the base frame [m]; the normal may have any length."""

    normal: tuple[float, float, float]
    distance: float

    @staticmethod
    def floor(height: float = 0.0) -> Plane:
        """Return the half-space above `height` [m]."""
        return Plane((0.0, 0.0, -1.0), -height)


def box(lower: Sequence[float], upper: Sequence[float]) -> tuple[Plane, ...]:
    """Return the six planes of a box.

    Args:
        lower: Corner with the smallest coordinates, base frame [m].
        upper: Opposite corner [m].
    """
    if not all(a < b for a, b in zip(lower, upper, strict=True)):
        raise ExcitationError(f"The box {tuple(lower)} … {tuple(upper)} is empty; every lower must be below its upper.")
    axes = [tuple(float(i == k) for i in range(3)) for k in range(3)]
    high = [Plane(a, float(u)) for a, u in zip(axes, upper, strict=True)]  # type: ignore[arg-type]
    low = [Plane(tuple(-x for x in a), -float(u)) for a, u in zip(axes, lower, strict=True)]  # type: ignore[arg-type]
    return (*high, *low)


def heights_over(robot: Robot, points: Sequence[Point], planes: Sequence[Plane]) -> tuple[Function, Array]:
    """Trace the coordinate of every point along the normal of every plane over q [m]; return it with its upper bounds.

    Both have shape (points · planes,).

    Args:
        robot: The robot.
        points: The points.
        planes: The planes.
    """
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
            position = plus(origin, matvec(rotation, list(point.offset)))
            for unit, length in zip(units, lengths, strict=True):
                out[(len(out),)] = dot([float(x) / length for x in unit], position)
        return out

    function = trace("heights", {"q": robot.dof}, heights, (len(points) * len(planes),))
    upper = [p.distance / length - k.radius for k in points for p, length in zip(planes, lengths, strict=True)]
    return function, np.array(upper)


def workspace(
    robot: Robot, points: Sequence[Point], planes: Sequence[Plane], families: Sequence[Family], grid: Array
) -> TracedLimit:
    """Return the constraint that all points stay on the inner side of all planes; shares are lengths [m].

    Args:
        robot: The robot.
        points: The points.
        planes: The planes.
        families: Family of each joint.
        grid: Times [s] for the optimiser.
    """
    function, upper = heights_over(robot, points, planes)
    advice = "give a larger region, or one that the points can reach"
    none, ones = np.full(len(upper), -np.inf), np.ones(len(upper))
    return TracedLimit("region", function, none, upper, ones, families, grid, advice, metres=True)
