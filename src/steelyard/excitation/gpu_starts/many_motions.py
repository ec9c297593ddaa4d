"""Many motions in parallel: their torque rows, the criterion, and the excess over the limits with its gradient.

Coefficients are stacked with shape (motions, size).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from steelyard.dynamics.cuda.device import Device
from steelyard.dynamics.cuda.lanes import LaneGroups
from steelyard.dynamics.native.gram import blocks_of
from steelyard.errors import ExcitationError
from steelyard.excitation._motion_rows import TorqueRows
from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.constraints.traced_limit import TracedLimit
from steelyard.excitation.criteria import Linear, Norms, UnitColumns
from steelyard.excitation.goal import Goal
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.ground.arrays import Array

# Largest size of rows in memory [bytes]; a gradient writes and reads them twice.
_MOST_BYTES = 6 << 30


class ManySampled:
    """`SampledMotions` for many motions: signals, shape (orders, motions, joints, samples), and the transposed map.

    Args:
        sampled: Families, times and orders.
        device: The GPU.
    """

    def __init__(self, sampled: SampledMotions, device: Device) -> None:
        self.joints, self.samples, self.orders = sampled.joints, sampled.samples, len(sampled.orders)
        ends = np.cumsum([0, *(f.size for f in sampled.families)])
        self.size, self.slices = int(ends[-1]), [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self._groups: list[tuple[Any, Any, list[tuple[Any, Any]]]] = []
        for family in dict.fromkeys(sampled.families):
            members = [j for j, f in enumerate(sampled.families) if f == family]
            where = np.array([np.arange(ends[j], ends[j + 1]) for j in members], dtype=np.int64)
            parts = [family.basis(sampled.times, order) for order in sampled.orders]
            bases = [(device.place(np.ascontiguousarray(b.T)), device.place(c)) for b, c in parts]
            self._groups.append((device.place(np.array(members)), device.place(where), bases))

    def signals(self, x: Any) -> Any:
        """Return the signals of motions with coefficients `x`."""
        out = np.empty_like(x, shape=(self.orders, len(x), self.joints, self.samples))
        for members, where, bases in self._groups:
            own = x[:, where].reshape(-1, where.shape[1])
            for k, (basis, still) in enumerate(bases):
                out[k][:, members] = (own @ basis + still).reshape(len(x), -1, self.samples)
        return out

    def pull(self, bars: Any) -> Any:
        """Apply the transposed map: cotangents of the signals, `bars`, to cotangents of the coefficients."""
        out = np.empty_like(bars, shape=(bars.shape[1], self.size))
        for members, where, bases in self._groups:
            total: Any = 0.0
            for k, (basis, _) in enumerate(bases):
                total = total + bars[k][:, members].reshape(-1, self.samples) @ basis.T
            out[:, where] = total.reshape(len(out), *where.shape)
        return out


class ManyGoal:
    """`Goal` for many motions, with the parts that a GPU supports: torque rows, norm criteria, column scaling.

    Args:
        goal: Objective of one motion.
        device: The GPU.
        x: Coefficients, shape (motions, size), for the methods.
    """

    def __init__(self, goal: Goal, device: Device) -> None:
        rows = goal.observation
        if not isinstance(rows, TorqueRows):
            raise ExcitationError("The GPU search supports only torque rows; leave the scheme or the GPU out.")
        if not isinstance(goal.criterion.objective, Norms):
            raise ExcitationError(
                f"The GPU search does not support criterion '{goal.criterion.name}'; leave the GPU out."
            )
        if not all(isinstance(view, Linear | UnitColumns) for view in goal.views):
            raise ExcitationError("The GPU search does not support wanted parameters; leave them or the GPU out.")
        self.goal, self.norms, self.device = goal, goal.criterion.objective, device
        self.sampled = ManySampled(rows.sampled, device)
        self.widths = [len(p) for p in rows.places]
        function, joints = rows.function, self.sampled.joints
        self._forward = device.lanes(function, outputs=self.widths)
        self._backward = device.lanes(function.adjoint(), {"cotangent": self.widths}, [joints] * 3)
        self._groups = LaneGroups(self.widths)
        self._places = [device.place(p) for p in rows.places]
        self._prior = None if goal.prior is None else device.place(goal.prior)

    def _parts(self, count: int) -> list[slice]:
        most = max(1, _MOST_BYTES // (8 * sum(self.widths) * self.sampled.samples))
        return [slice(k, min(k + most, count)) for k in range(0, count, most)]

    def grams(self, x: Any) -> Any:
        """Return the information of each motion without prior, shape (motions, columns, columns)."""
        return np.concatenate([self._grams(x[part])[0] for part in self._parts(len(x))])

    def criterion_matrix(self, grams: Any) -> Any:
        """Return the matrices that the criterion evaluates, from `grams`."""
        return self._view_steps(grams)[-1]

    def _view_steps(self, grams: Any) -> list[Any]:
        steps = [grams if self._prior is None else grams + self._prior]
        for view in self.goal.views:
            steps.append(view.forward(steps[-1]))
        return steps

    def _grams(self, x: Any) -> tuple[Any, Any, list[Any]]:
        signals = self.sampled.signals(x)
        buffer = self._forward(len(x), self.sampled.samples, **_by_name(signals))
        rows = self._groups.views(buffer, len(x), self.sampled.samples)
        size = len(self.goal.columns)
        total = np.zeros_like(x, shape=(len(x), size, size))
        for lanes, place, square in zip(rows, self._places, self.goal.squares, strict=True):
            total[:, place[:, None], place] += float(square) * (lanes @ np.swapaxes(lanes, 1, 2))
        return total, signals, rows

    def objective(self, x: Any, sharpness: int) -> tuple[Any, Any]:
        """Compute the minimised values and their gradients.

        Args:
            x: Coefficients.
            sharpness: Exponent of the p-norm, as in `Criterion`.
        """
        parts = [self._objective(x[part], sharpness) for part in self._parts(len(x))]
        return np.concatenate([v for v, _ in parts]), np.concatenate([g for _, g in parts])

    def _objective(self, x: Any, sharpness: int) -> tuple[Any, Any]:
        gram, signals, rows = self._grams(x)
        steps = self._view_steps(gram)
        value, slope = self.norms.of_matrices(steps[-1], sharpness)
        for view, before in zip(reversed(self.goal.views), reversed(steps[:-1]), strict=True):
            slope = view.backward(before, slope)
        bars = np.empty_like(x, shape=(self._groups.total * len(x) * self.sampled.samples,))
        doubled = zip(
            self._groups.views(bars, len(x), self.sampled.samples), rows, self._places, self.goal.squares, strict=True
        )
        for bar, lanes, place, square in doubled:
            weights = 2.0 * float(square) * slope[:, place[:, None], place]
            np.matmul(weights, lanes, out=bar)
        gradient = self._backward(len(x), self.sampled.samples, **_by_name(signals), cotangent=bars)
        return value, self.sampled.pull(gradient.reshape(signals.shape))


def _by_name(signals: Any) -> dict[str, Any]:
    return dict(zip(("q", "dq", "ddq"), signals, strict=True))


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
