"""`TracedLimit`: bounds on anything that can be written over scalars: torques, powers, places of points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function
from steelyard.excitation.constraints.certify import Certifier
from steelyard.excitation.constraints.constraint import Pull
from steelyard.excitation.sampled import Sampled
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.robot.spatial import Array

_ORDER = {"q": 0, "dq": 1, "ddq": 2}


class TracedLimit:
    """lower ≤ f(q, q̇, q̈) ≤ upper for a traced function f; shares are differences over `scale`.

    Gradients are exact (the function's adjoint); between the times of the grid the bound of `certify.py` holds.
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
        self._inputs = list(function.inputs)
        self._sampled = Sampled(families, grid, [_ORDER[x] for x in self._inputs])
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
        signals = dict(zip(self._inputs, self._sampled.signals(x), strict=True))
        values, joint_pull = self._linearised(signals)

        def pull(multipliers: Array) -> Array:
            return self._sampled.pull_signals([joint_pull(multipliers)])

        return values, pull

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        return self._certifier.excess(trajectory, enough)

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        still = {x: q if x == "q" else np.zeros_like(q) for x in self._inputs}
        values, joint_pull = self._linearised(still)
        first = self._inputs.index("q") * len(q)
        return values, lambda multipliers: joint_pull(multipliers)[first : first + len(q)]

    def blame(self, trajectory: Trajectory) -> str:
        excess = self.excess(trajectory)
        by = f"{excess:.3g} m" if self._metres else f"{100.0 * excess:.3g} %"
        return f"the {self.name} cannot be kept (by {by}); {self._advice}"
