"""`Limits` of the joints' motion, the protocol of a `Constraint`, and `JointLimits`.

`JointLimits` bound positions, velocities, accelerations and jerks; they are linear in the coefficients of a motion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.native.gram import blocks_of
from steelyard.errors import ExcitationError, ShapeError, UnknownNameError
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
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


_QUANTITIES = ("position", "velocity", "acceleration", "jerk")


class JointLimits:
    """Finite bounds of the joints' derivatives on motions with coefficients `x`.

    The optimiser uses the times of the grid; the families' own bounds (`extent`) cover all times.

    Args:
        limits: The bounds.
        families: Family of each joint.
        grid: Times [s] for the optimiser.
        names: Names of the joints, for messages.
        trajectory, enough, x, q: Arguments of the methods, as in `Constraint`; `enough` has no effect.
    """

    name = "joint limits"
    smooth = True
    lazy = False

    def __init__(self, limits: Limits, families: Sequence[Family], grid: Array, names: Sequence[str] = ()) -> None:
        self.limits, self.names = limits, tuple(names)
        self.orders = [k for k in range(4) if np.any(np.isfinite(np.concatenate(limits.bounds(k))))]
        self.sampled = SampledMotions(families, grid, self.orders)
        centre, scale = zip(*(_centre_and_scale(*limits.bounds(k)) for k in self.orders), strict=True)
        still = np.zeros((len(self.orders), len(families)))
        still[:] = centre
        self.centre_and_scale = still, np.array(scale)  # (orders, joints)
        # (signal − centre)·scale is within ±1; the padding after the last sample is zero and must stay zero.
        blocks = blocks_of(np.ones((self.sampled.samples, 1)))
        self._centre = still.ravel()[None, :, None] * blocks
        self._scale = np.concatenate(scale)[None, :, None]

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        share = (self.sampled.in_blocks(x) - self._centre) * self._scale
        values = np.concatenate([share.ravel() - 1.0, -share.ravel() - 1.0])

        def pull(multipliers: Array) -> Array:
            above, below = multipliers.reshape(2, *share.shape)
            return self.sampled.pull((above - below) * self._scale)

        return values, pull

    def draw_back(self, x: Array, calm: Array) -> Array:
        """Scale down every joint's deviation from a calm motion until it keeps the limits at the times of the grid.

        Args:
            x: Coefficients.
            calm: Coefficients of the calm motion.
        """
        reached = (self.sampled.in_blocks(x) - self._centre) * self._scale
        still = (self.sampled.in_blocks(calm) - self._centre) * self._scale
        over = np.abs(reached) > 1.0
        away = np.where(over, np.abs(reached - still), 1.0)
        room = np.where(over, np.maximum(1.0 - np.sign(reached) * still, 0.0) / away, 1.0)
        joints = np.minimum(room, 1.0).min(axis=(0, 2)).reshape(len(self.orders), -1).min(axis=0)
        sizes = [f.size for f in self.sampled.families]
        out: Array = calm + np.repeat(joints, sizes) * (x - calm)
        return out

    def shares(self, trajectory: Trajectory) -> Array:
        """Return the largest excess of every joint over its bounds, shape (orders, joints); ≤ 0 within them."""
        return np.array([_excess(*trajectory.extents(k), *self.limits.bounds(k)) for k in self.orders])

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        return float(self.shares(trajectory).max(initial=-1.0))

    def blame(self, trajectory: Trajectory) -> str:
        shares = self.shares(trajectory)
        order, joint = (int(k) for k in np.unravel_index(int(np.argmax(shares)), shares.shape))
        name = self.names[joint] if self.names else str(joint + 1)
        quantity, percent = _QUANTITIES[self.orders[order]], 100.0 * shares[order, joint]
        return (
            f"the {quantity} of joint '{name}' exceeds its limit by {number(percent, 3)} %; "
            "give wider limits, a longer duration or fewer conditions on the motion"
        )

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        centre, scale = _centre_and_scale(self.limits.lower, self.limits.upper)
        share = (q - centre) * scale
        return np.concatenate([share - 1.0, -share - 1.0]), lambda m: (m[: len(q)] - m[len(q) :]) * scale


def _centre_and_scale(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return centre and scale that map lower … upper to ±1; both are 0 unless both bounds are finite."""
    both = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        centre = np.where(both, 0.5 * (lower + upper), 0.0)
        scale = np.where(both, 2.0 / np.where(both, upper - lower, 1.0), 0.0)
    return centre, scale


def _excess(low: Array, high: Array, lower: Array, upper: Array) -> Array:
    """Return how far [low, high] exceeds [lower, upper], as a share of half its width; −1 without limits.

    The differences come first, so that a motion that touches its limit exactly has exactly 0.
    """
    _, scale = _centre_and_scale(lower, upper)
    with np.errstate(invalid="ignore"):
        beyond = np.maximum(high - upper, lower - low) * scale
    return np.where(scale > 0.0, beyond, -1.0)
