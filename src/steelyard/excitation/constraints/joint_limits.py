"""`JointLimits`: bounds of positions, velocities, accelerations and jerks; linear in the coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.native.gram import blocks_of
from steelyard.excitation.constraints.limits import Limits, Pull
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number

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
