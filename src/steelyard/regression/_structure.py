"""Identifiable structure of a robot: the row space of its regressor over all states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array
from steelyard.loops.mechanism import reduced_observation
from steelyard.robot.free import draw_orientations
from steelyard.robot.load import nearly_aligned
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import ConstantRatio

# Number of random states for the complete row space.


# Speeds and accelerations [rad/s, rad/s²] with effects about as strong as gravity on one metre: much weaker effects
# would be lost in rounding.
_SPEED = 3.0
_ACCELERATION = 10.0
# Friction terms differ only at low speed, so with terms a third of the states is slow: decades of speed [rad/s].
_SLOW_DECADES = (-3.0, 0.5)
# If a drive depends on posture but the joint has no limits, use this range around its zero [rad, m].
_NEAR = np.pi / 4


def random_states(robot: Robot, count: int, seed: int, slow: bool = False) -> tuple[Array, Array, Array]:
    """Draw positions, velocities and accelerations `(count, joints)`, the same on every machine.

    Joints turn fully whatever their limits, since structure does not depend on reach. Limits apply only if a drive
    depends on posture, because its formula may be invalid beyond.

    Args:
        robot: Robot.
        count: Number of states.
        seed: Seed.
        slow: Include slow states.
    """
    rng = np.random.default_rng(seed)
    length = characteristic_length(robot)
    unit = np.array([1.0 if joint.kind == "revolute" else length for joint in robot.joints])
    lower, upper = _range_of_motion(robot, length)
    q = draw_orientations(robot, rng.uniform(lower, upper, (count, robot.dof)), rng)
    dq = rng.uniform(-_SPEED, _SPEED, (count, robot.dof)) * unit
    ddq = rng.uniform(-_ACCELERATION, _ACCELERATION, (count, robot.dof)) * unit
    if slow:
        creeping = slice(0, count // 3)
        size = 10.0 ** rng.uniform(*_SLOW_DECADES, (count, robot.dof))
        dq[creeping] = (np.sign(dq) * size)[creeping] * unit
    return q, dq, ddq


def characteristic_length(robot: Robot) -> float:
    """Return the longest distance between successive joints of `robot` [m]; 1 if all axes meet."""
    longest = max(float(np.linalg.norm(link.translation)) for link in robot.links)
    return longest if longest > 0.0 else 1.0


def _range_of_motion(robot: Robot, length: float) -> tuple[Array, Array]:
    upper = np.array([np.pi if joint.kind == "revolute" else length for joint in robot.joints])
    lower = -upper
    for k in _posture_dependent(robot):
        joint = robot.joints[k]
        bounded = np.isfinite(joint.lower) and np.isfinite(joint.upper)
        lower[k], upper[k] = (joint.lower, joint.upper) if bounded else (-_NEAR, _NEAR)
    return lower, upper


def _posture_dependent(robot: Robot) -> set[int]:
    """Return the joints moved by drives whose ratio is not constant."""
    if robot.transmission is None:
        return set()
    rows = [w for w, r in zip(robot.transmission.matrix, robot.transmission.ratios, strict=True)
            if not isinstance(r, ConstantRatio)]  # fmt: skip
    return {int(k) for row in rows for k in np.flatnonzero(row)}


# Singular values of the scaled columns, relative to the largest. Over seventy robots, from a pendulum to a humanoid of
# 101 joints, structure is at 1e-3 or more and rounding at 1e-14 or less. In between are robots with axes that are
# aligned except for missing digits; below HIDDEN no measurement can identify the combination.
VISIBLE = 3e-5
HIDDEN = 1e-8
# Columns weaker than a tenth of the strongest of their kind are not scaled to unit norm: a right angle written as
# 1.5708 creates columns of 1e-6 that would appear as important as the others.
_WEAKEST = 0.1
_STATES = 120
_CHECKS = 24
_SEED, _CHECK_SEED = 20240229, 20240301


@dataclass(frozen=True, eq=False)
class Structure:
    """The row space of a regressor.

    `visible` has orthonormal rows, which span the same space as those of W/`scale` over all states. `singular_values`
    are those of the scaled columns, relative to the largest.
    """

    dynamics: Dynamics
    visible: Array
    scale: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        return int(self.visible.shape[0])

    @property
    def condition(self) -> float:
        """σ₁/σᵣ of all columns scaled to unit norm: a property of the structure, not of the excitation."""
        return float(1.0 / self.singular_values[self.rank - 1]) if self.rank else 1.0

    @property
    def gap(self) -> float:
        """σᵣ/σᵣ₊₁: clarity of the rank; infinite if no column is dependent."""
        kept, rest = self.singular_values[: self.rank], self.singular_values[self.rank :]
        if not kept.size or not rest.size or rest[0] == 0.0:
            return float("inf")
        return float(kept[-1] / rest[0])


def find_structure(dynamics: Dynamics, tolerance: float | None = None) -> Structure:
    """Compute the row space of the torque regressor from random states.

    Args:
        dynamics: Physics of the robot with its terms; rows of joints with unused torque are ignored.
        tolerance: Threshold for singular values, relative to the largest. By default the rank must be clear: no
            singular value may be between `HIDDEN` and `VISIBLE`.
    """
    W = compress(dynamics, _SEED, _STATES)
    scale = _scale(dynamics, W)
    _, s, v = np.linalg.svd(W / scale, full_matrices=False)
    relative: Array = s / s[0] if s.size and s[0] > 0.0 else np.zeros_like(s)
    if tolerance is None:
        _demand_gap(dynamics, relative)
    rank = int(np.sum(relative > (VISIBLE if tolerance is None else tolerance)))
    return Structure(dynamics, v[:rank], scale, relative)


def fresh_rows(dynamics: Dynamics) -> Array:
    """Compute a regressor at states other than those of the structure, with at least twice as many rows as columns."""
    rows = max(1, sum(dynamics.robot.torque_used))
    return observation(dynamics, _CHECK_SEED, max(_CHECKS, -(-2 * len(dynamics.parameters) // rows)))


def observation(dynamics: Dynamics, seed: int, count: int) -> Array:
    """Compute W: the torque regressor at random states, rows of used joints only.

    Args:
        dynamics: Physics of the robot.
        seed: Seed of the states.
        count: Number of states.
    """
    robot = dynamics.robot
    if robot.loops:
        return reduced_observation(dynamics, seed, count)
    states = random_states(robot, count, seed, slow=len(dynamics.terms) > 0)
    past = dynamics.terms.random_history(np.random.default_rng([seed, 1]), count)
    Y = dynamics.torque_regressor(*states, history=past)[:, np.array(robot.torque_used)]
    if not np.all(np.isfinite(Y)):
        raise StructureError(
            f"{robot.name}: the regressor is not finite at some postures; set limits for the joints whose drives "
            f"depend on posture."
        )
    return Y.reshape(-1, Y.shape[-1])


def compress(dynamics: Dynamics, seed: int, states: int) -> Array:
    """Compute the triangular factor of `observation` block by block, without storing the tall matrix.

    Args:
        dynamics: Physics of the robot.
        seed: Seed of the states.
        states: Number of states.
    """
    columns = len(dynamics.parameters)
    rows = max(1, sum(dynamics.robot.torque_used))
    states = max(states, -(-4 * columns // rows))
    block = max(1, -(-4 * columns // rows))
    factor: Array = np.zeros((0, columns))
    for k, start in enumerate(range(0, states, block)):
        W = observation(dynamics, seed + k, min(block, states - start))
        factor = np.asarray(np.linalg.qr(np.vstack([factor, W]), mode="r"))
    return factor


def _scale(dynamics: Dynamics, W: Array) -> Array:
    """Return norms of the columns, for links at least `_WEAKEST` times the largest of the same unit."""
    norms: Array = np.linalg.norm(W, axis=0)
    units = np.array([p.unit for p in dynamics.parameters])
    rigid = np.arange(norms.size) < dynamics.robot.inertial_count
    for unit in set(units[rigid]):
        same = rigid & (units == unit)
        norms[same] = np.maximum(norms[same], _WEAKEST * norms[same].max())
    return np.where(norms > 0.0, norms, 1.0)


def _demand_gap(dynamics: Dynamics, relative: Array) -> None:
    unclear = relative[(relative > HIDDEN) & (relative <= VISIBLE)]
    if not unclear.size:
        return
    robot = dynamics.robot
    askew = nearly_aligned(robot) or nearly_aligned(robot, 1e-2)
    cause = "give a tolerance"
    if askew:
        names = ", ".join(f"'{name}'" for name, _ in askew[:3]) + (", …" if len(askew) > 3 else "")
        deviation = max(d for _, d in askew)
        snap = f"{max(1e-4, 10.0 ** np.ceil(np.log10(deviation))):.0e}".replace("e-0", "e-")
        cause = (
            f"joints {names} are aligned except for {deviation:.1e}: if that is rounding, load the robot with --snap "
            f"{snap} (in Python: snap={snap}), else give a tolerance"
        )
    raise StructureError(
        f"{robot.name}: it is not clear which parameters are identifiable, because {unclear.size} combination(s) of "
        f"them have only {unclear.min():.0e} to {unclear.max():.0e} of the strongest effect; {cause}."
    )
