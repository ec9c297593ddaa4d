"""`Limits` of the joints' motion, and the protocol of a `Constraint`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ExcitationError, ShapeError, UnknownNameError
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

Pull = Callable[[Array], Array]


class Constraint(Protocol):
    """Values c(x) ≤ 0 on a grid of times for the optimiser, and a bound that holds at all times.

    Values are shares of the limit: 0.01 is an excess of one percent. The optimiser needs gradients (`pull`). A
    constraint without them (`smooth` is False) is checked only on the result, which is drawn back towards its centre
    until it holds. A `lazy` constraint is left out of the optimisation until a solution breaks it.
    """

    name: str
    smooth: bool
    lazy: bool

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        """Return the values for coefficients `x` at all times of the grid (flat), and pull(μ) = (∂c/∂x)ᵀ μ."""
        ...

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        """Return an upper bound of all values of the motion; ≤ 0 proves that the constraint holds at every instant.

        Args:
            trajectory: The motion.
            enough: If a value exceeds this, the method may return any larger number at once.
        """
        ...

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        """Return the values of standstill at posture `q` [rad, m], shape (joints,), and their pull on q."""
        ...

    def blame(self, trajectory: Trajectory) -> str:
        """Describe the largest violation of the motion `trajectory` and a remedy."""
        ...


# Defaults for a joint without limits: half a turn (or 0.5 m) in both directions, a quarter turn (or 0.25 m) per second.
_REACH = {"revolute": np.pi, "prismatic": 0.5}
_SPEED = {"revolute": np.pi / 2, "prismatic": 0.25}
# Robot descriptions state no acceleration. Arms of a few to a hundred kilograms reach three times the speed limit per
# second (full speed after a third of a second) without a fault.
_SPEED_UPS_PER_SECOND = 3.0


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of every joint; infinite means unlimited.

    Attributes:
        lower: Lower position limits [rad, m].
        upper: Upper position limits [rad, m].
        dq: Largest velocities [rad/s, m/s].
        ddq: Largest accelerations [rad/s², m/s²].
        jerk: Largest jerks [rad/s³, m/s³].
        tau: Largest torques [N m, N].
        power: Largest powers [W].
    """

    lower: Array
    upper: Array
    dq: Array
    ddq: Array
    jerk: Array
    tau: Array
    power: Array

    @property
    def middle(self) -> Array:
        """The posture farthest from the position limits; zero without limits."""
        with np.errstate(invalid="ignore"):
            half = 0.5 * (self.lower + self.upper)
        return np.where(np.isfinite(half), half, np.clip(0.0, self.lower, self.upper))

    def bounds(self, order: int) -> tuple[Array, Array]:
        """Return lower and upper bounds of position (`order` 0), velocity (1), acceleration (2) or jerk (3)."""
        if order == 0:
            return self.lower, self.upper
        size = (self.dq, self.ddq, self.jerk)[order - 1]
        return -size, size


def default_limits(robot: Robot) -> Limits:
    """Return the limits of `robot`'s description.

    Defaults for missing ones: positions ±π (±0.5 m), velocity π/2 rad/s (0.25 m/s). Descriptions never state
    acceleration:
    three times the velocity limit per second. Jerk and power are unlimited, torque is the effort limit.
    """
    kinds = [joint.kind for joint in robot.joints]
    reach, speed = (np.array([table[k] for k in kinds]) for table in (_REACH, _SPEED))
    lower, upper, velocity, effort = (
        np.array([getattr(joint, x) for joint in robot.joints]) for x in ("lower", "upper", "velocity", "effort")
    )
    dq = np.where(np.isfinite(velocity) & (velocity > 0.0), velocity, speed)
    none = np.full(robot.dof, np.inf)
    return Limits(
        np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2.0 * reach, -reach)),
        np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2.0 * reach, reach)),
        dq,
        _SPEED_UPS_PER_SECOND * dq,
        none,
        np.where(effort > 0.0, effort, np.inf),
        none,
    )


def limits_from(robot: Robot, limits: Mapping[str, ArrayLike] | Limits | None) -> Limits:
    """Return the limits of a robot with replacements.

    Args:
        robot: The robot.
        limits: All limits, or replacements by name. `q` is one number (±), one per joint (±), or pairs (lower, upper);
            `dq`, `ddq`, `jerk`, `tau`, `power` are one number or one per joint [rad, m, N m, N, W, s]; None lifts a
            limit.
    """
    if isinstance(limits, Limits):
        return _check(robot, limits)
    names = ("q", *(f.name for f in fields(Limits)))
    values = {f.name: getattr(default_limits(robot), f.name) for f in fields(Limits)}
    if limits and "dq" in limits and "ddq" not in limits:
        values["ddq"] = _SPEED_UPS_PER_SECOND * _per_joint(robot, "dq", limits["dq"])
    for name, value in (limits or {}).items():
        if name not in names:
            raise UnknownNameError("limit", name, names)
        if name == "q":
            values["lower"], values["upper"] = _positions(robot, value)
        else:
            values[name] = _per_joint(robot, name, value)
    return _check(robot, Limits(**values))


def _positions(robot: Robot, value: ArrayLike | None) -> tuple[Array, Array]:
    if value is None:
        return np.full(robot.dof, -np.inf), np.full(robot.dof, np.inf)
    table = np.asarray(value, dtype=float)
    if table.shape == (robot.dof, 2):
        return table[:, 0].copy(), table[:, 1].copy()
    size = _per_joint(robot, "q", value)
    return -size, size


def _per_joint(robot: Robot, name: str, value: ArrayLike | None) -> Array:
    table = np.asarray(np.inf if value is None else value, dtype=float)
    if table.shape not in ((), (robot.dof,)):
        pairs = ", or (lower, upper) pairs" if name == "q" else ""
        raise ShapeError(
            f"limits['{name}'] has shape {table.shape}; give one number, or {robot.dof}, one per joint{pairs}."
        )
    return np.array(np.broadcast_to(table, (robot.dof,)))


def _check(robot: Robot, limits: Limits) -> Limits:
    for joint, low, high in zip(robot.joints, limits.lower, limits.upper, strict=True):
        if np.isfinite(low) != np.isfinite(high):
            raise ExcitationError(
                f"Joint '{joint.name}' has one position limit, {low:g} … {high:g} {joint.unit}; give both or none."
            )
        if not low < high:
            raise ExcitationError(
                f"Joint '{joint.name}' cannot move: its positions are limited to {low:g} … {high:g} "
                f"{joint.unit}; give limits['q'] with lower < upper."
            )
    for name in ("dq", "ddq", "jerk", "tau", "power"):
        for joint, size in zip(robot.joints, getattr(limits, name), strict=True):
            if not size > 0.0:
                raise ExcitationError(
                    f"Joint '{joint.name}' cannot move: limits['{name}'] is {size:g}; give a positive number."
                )
    return limits
