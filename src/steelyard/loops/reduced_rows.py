"""`reduced_observation`: rows of a mechanism with closed loops at random states of its branch."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array
from steelyard.loops.mechanism import structure_of

# As for trees: speeds and accelerations with effects as large as gravity on one metre [rad/s, rad/s²].
_SPEED, _ACCELERATION = 3.0, 10.0
# Friction terms differ only at low speed. With terms, a third of the states is therefore slow: their speeds are _SPEED
# times 10 to a power in this range.
_SLOW_DECADES = (-3.0, 0.0)


def reduced_observation(dynamics: Dynamics, seed: int, count: int) -> Array:
    """Compute Nᵀ Y at random states, `(rows, parameters)`; N spans the velocities that keep the loops closed.

    The rows exclude joints without a usable torque.

    Args:
        dynamics: Physics of the open tree.
        seed: Seed of the states.
        count: Number of states.
    """
    robot = dynamics.robot
    structure = structure_of(robot)
    rng = np.random.default_rng([seed, 2])
    q = structure.random_poses(count, seed)
    N = structure.tangents(q)
    if not N.shape[2]:
        raise StructureError(f"{robot.name}: its loops leave no degree of freedom; correct their frames.")
    # Scaled tangents: a slide of the length of the longest link counts as one radian.
    V = N * structure.unit[:, None]
    dq = np.einsum("tnk,tk->tn", V, rng.uniform(-_SPEED, _SPEED, (count, N.shape[2])))
    if len(dynamics.terms):
        dq[: count // 3] *= 10.0 ** rng.uniform(*_SLOW_DECADES, (count // 3, 1))
    own = np.einsum("tnk,tk->tn", V, rng.uniform(-_ACCELERATION, _ACCELERATION, (count, N.shape[2])))
    ddq = own + structure.accelerations(q, dq)
    past = dynamics.terms.random_history(np.random.default_rng([seed, 1]), count)
    Y = dynamics.torque_regressor(q, dq, ddq, history=past)
    unused = ~np.array(robot.torque_used)
    if unused.any():
        # Combinations of the rows without the unknown torques.
        _, s, v = np.linalg.svd(V[:, unused], full_matrices=True)
        rank = int(np.median(np.sum(s > 1e-9, axis=1)))
        V = V @ np.swapaxes(v[:, rank:], 1, 2)
    return np.asarray((np.swapaxes(V, 1, 2) @ Y).reshape(-1, Y.shape[-1]))
