"""Limits of many motions in parallel: the excess over the bounds and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.dynamics.cuda.device import Device
from steelyard.dynamics.native.gram import blocks_of
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.constraints.traced_limit import TracedLimit
from steelyard.excitation.gpu_starts.many_motions import ManySampled
from steelyard.ground.arrays import Array


class ManyJointLimits:
    """`JointLimits` of many motions: shares (signal − centre)·scale must be within ±1.

    Args:
        limits: Limits of one motion.
        device: The GPU.
        x: Coefficients, shape (motions, size), for the methods.
        multipliers: Multipliers of the values, for the methods.
        calm: Coefficients of a calm motion, for `draw_back`.
    """

    motions_axis = 2

    def __init__(self, limits: JointLimits, device: Device) -> None:
        self.sampled = ManySampled(limits.sampled, device)
        # One row for each order and joint, constant over time.
        centre, scale = (x.reshape(self.sampled.orders, 1, -1, 1) for x in limits.centre_and_scale)
        self._centre, self._scale = device.place(centre), device.place(scale)

    def shares(self, x: Any) -> Any:
        """Return the shares of `x`, shape (orders, motions, joints, times)."""
        return (self.sampled.signals(x) - self._centre) * self._scale

    def evaluate(self, x: Any) -> Any:
        """Return the excess over the upper and lower bounds, shape (2, orders, motions, joints, times)."""
        share = self.shares(x)
        return np.stack([share - 1.0, -share - 1.0])

    def pull(self, x: Any, multipliers: Any) -> Any:
        """Return Σ multipliers · ∂value/∂x of every motion."""
        return self.sampled.pull((multipliers[0] - multipliers[1]) * self._scale)

    def draw_back(self, x: Any, calm: Any) -> Any:
        """Scale down every joint's deviation from the calm motion until it keeps the limits, as for one motion."""
        reached, still = self.shares(x), self.shares(calm[None])
        over = np.abs(reached) > 1.0
        away = np.where(over, np.abs(reached - still), 1.0)
        room = np.where(over, np.maximum(1.0 - np.sign(reached) * still, 0.0) / away, 1.0)
        joints = np.minimum(room, 1.0).min(axis=(0, 3))
        scale = np.empty_like(x)
        for j, part in enumerate(self.sampled.slices):
            scale[:, part] = joints[:, j : j + 1]
        return calm + scale * (x - calm)

    def multipliers_of(self, multipliers: Array) -> Array:
        """Convert the `multipliers` of one motion, shape (2, orders, joints, times), to the constraint's own order."""
        flat = [blocks_of(side.reshape(-1, side.shape[-1]).T).ravel() for side in multipliers]
        return np.concatenate(flat)


class ManyTracedLimit:
    """`TracedLimit` of many motions.

    Args:
        limit: Limit of one motion.
        device: The GPU.
        x: Coefficients, shape (motions, size), for the methods.
        multipliers: Multipliers of the values, for the methods.
    """

    motions_axis = 1

    def __init__(self, limit: TracedLimit, device: Device) -> None:
        self.sampled, self._names = ManySampled(limit.sampled, device), list(limit.function.inputs)
        widths = [limit.function.inputs[name] for name in self._names]
        self._forward = device.lanes(limit.function)
        self._backward = device.lanes(limit.function.adjoint(), outputs=widths)
        upper, lower = (np.where(np.isfinite(x), x, 0.0)[:, None] for x in (limit.upper, limit.lower))
        bounds = np.stack([upper, -lower])[:, None], np.isfinite(np.stack([limit.upper, limit.lower]))[:, None, :, None]
        self._bounds, self._finite = (device.place(x) for x in bounds)
        self._scale, self._sides = device.place(limit.scale[:, None]), device.place(np.array([1.0, -1.0]))

    def evaluate(self, x: Any) -> Any:
        """Return the excess over the upper and lower bounds, shape (2, motions, outputs, times)."""
        motions, times = len(x), self.sampled.samples
        signals = dict(zip(self._names, self.sampled.signals(x), strict=True))
        result = self._forward(motions, times, **signals).reshape(motions, -1, times)
        shares = (self._sides[:, None, None, None] * result - self._bounds) / self._scale
        return np.where(self._finite, shares, -1.0)

    def pull(self, x: Any, multipliers: Any) -> Any:
        """Return Σ multipliers · ∂value/∂x of every motion."""
        signals = self.sampled.signals(x)
        active = np.where(self._finite, multipliers, 0.0)
        cotangent = (active[0] - active[1]) / self._scale
        named = dict(zip(self._names, signals, strict=True))
        return self.sampled.pull(
            self._backward(len(x), self.sampled.samples, **named, cotangent=cotangent).reshape(signals.shape)
        )

    def multipliers_of(self, multipliers: Array) -> Array:
        """Convert the `multipliers` of one motion, shape (2, outputs, times), to the constraint's own order."""
        return np.swapaxes(multipliers, 1, 2).ravel()


ManyLimit = ManyJointLimits | ManyTracedLimit


def many_limits(constraints: Sequence[Constraint], device: Device) -> list[ManyLimit]:
    """Return a search's constraints for many motions; only built-in constraints are supported.

    Args:
        constraints: Constraints of one motion.
        device: The GPU.
    """
    out: list[ManyLimit] = []
    for one in constraints:
        if isinstance(one, JointLimits):
            out.append(ManyJointLimits(one, device))
        elif isinstance(one, TracedLimit):
            out.append(ManyTracedLimit(one, device))
        else:
            raise ExcitationError(f"The GPU search does not support the constraint '{one.name}'; leave the GPU out.")
    return out
