"""`Cascade`: equal first-order low-passes in a row, exact for inputs that are constant over each sampling interval."""

from __future__ import annotations

from math import exp, factorial

import numpy as np

from steelyard.ground.arrays import Array


class Cascade:
    """(λ/(s + λ))ᵒʳᵈᵉʳ from rest, fed with the means of a signal over consecutive intervals.

    Stage i holds xᵢ' = λ(xᵢ₋₁ − xᵢ). Over an interval with constant input u the exact step is
    xᵢ ← Σⱼ e^{−λh}(λh)^{i−j}/(i−j)! xⱼ + γᵢ u, where γᵢ is the step response of i stages. Stage after stage as
    first-order recursions: no high-order polynomial that would lose digits where λh is small.
    """

    def __init__(self, cutoff: float, order: int, period: float, every: int = 1) -> None:
        self.order, self.every = order, every
        x = cutoff * period
        self._decay = exp(-x)
        self._reach = [x**k / factorial(k) for k in range(order)]  # times the decay: k stages on
        self._gain = [_step_response(i, x) for i in range(1, order + 1)]
        self.reset()

    def reset(self) -> None:
        self._state: list[Array] = []
        self._count = 0

    def add(self, means: Array) -> Array:
        """Means `(intervals, columns)` in, the outputs at the ends of every `every`-th interval out."""
        from scipy.signal import lfilter  # takes a second to load: only where something is filtered

        before = self._state or [np.zeros(means.shape[1])] * self.order
        a = self._decay
        stages: list[Array] = []
        for i in range(self.order):
            drive = self._gain[i] * means
            for j, stage in enumerate(stages):
                delayed = np.vstack([before[j][None], stage[:-1]])
                drive = drive + a * self._reach[i - j] * delayed
            stages.append(np.asarray(lfilter([1.0], [1.0, -a], drive, axis=0, zi=a * before[i][None])[0]))
        self._state = [stage[-1] for stage in stages]
        first = -(self._count + 1) % self.every
        self._count += len(means)
        return stages[-1][first :: self.every].copy()


def _step_response(stages: int, x: float) -> float:
    """1 − e^{−x} Σ_{k<stages} x^k/k!, without cancellation for small x: the tail of the series."""
    total, term, k = 0.0, x**stages / factorial(stages), stages
    while term > 1e-18 * total:
        total += term
        k += 1
        term *= x / k
    return exp(-x) * total
