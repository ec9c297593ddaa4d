"""What a causal scheme does with the means over sampling intervals: low-pass them, or add them up over windows.

A vector of means holds the entries of several equations; `owner[k]` is the equation of entry k. An equation that is
left out for a while (its joint stands still) starts afresh afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, factorial, pi
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression.schemes import FilteredDynamic, FilteredPower, Momentum, Scheme
from steelyard.regression.schemes.balance import EnergyBalance, MomentumBalance

Flags = NDArray[np.bool_]

# A stream does not tell beforehand how fast the robot will move: a band of 1 Hz is assumed where no cut-off and no
# window is given.
DEFAULT_BAND = 1.0
# Intervals that differ by less are the same clock, read with rounding.
_SAME_CLOCK = 1e-9


class Accumulate(Protocol):
    """Takes means, one interval of h seconds at a time; `result` then holds the rows of the equations returned."""

    result: Array

    def reset(self) -> None: ...
    def leave_out(self, equations: Flags) -> None: ...
    def add(self, mean: Array, h: float) -> Flags: ...
    def bracket(self, h: float) -> float: ...
    def state(self) -> dict[str, Array]: ...
    def restore(self, state: Mapping[str, Array]) -> None: ...


def make_accumulator(scheme: Scheme, owner: NDArray[np.int64]) -> Accumulate:
    """What belongs to a scheme that needs no acceleration."""
    vector = isinstance(scheme, FilteredDynamic | Momentum)
    cutoff = 2.0 * pi * DEFAULT_BAND * (MomentumBalance if vector else EnergyBalance).reach
    if isinstance(scheme, FilteredDynamic | FilteredPower):
        return LowPasses(scheme.cutoff or cutoff, scheme.order, owner)
    chosen: Any = scheme  # Momentum or Energy
    return Integral(chosen.window or 1.0 / cutoff, chosen.samples, chosen.consecutive, chosen.growing, owner)


class LowPasses:
    """(λ/(s + λ))ᵒʳᵈᵉʳ from rest, the exact step for an input that is constant over the interval."""

    def __init__(self, cutoff: float, order: int, owner: NDArray[np.int64]) -> None:
        self.cutoff, self.order, self._owner = cutoff, order, owner
        self._stages = np.zeros((order, len(owner)))
        self.result = self._stages[-1]
        self._scratch = np.zeros(len(owner))
        self._all = np.ones(int(owner.max()) + 1, dtype=bool)
        self._h = 0.0

    def reset(self) -> None:
        self._stages[:] = 0.0

    def leave_out(self, equations: Flags) -> None:
        self._stages[:, equations[self._owner]] = 0.0

    def add(self, mean: Array, h: float) -> Flags:
        if abs(h - self._h) > _SAME_CLOCK * h:
            self._learn(h)
        # From the last stage to the first: each needs the earlier ones as they were.
        for i in reversed(range(self.order)):
            stage = self._stages[i]
            stage *= self._reach[0]
            for j in range(i):
                stage += np.multiply(self._stages[j], self._reach[i - j], out=self._scratch)
            stage += np.multiply(mean, self._gain[i], out=self._scratch)
        return self._all

    def _learn(self, h: float) -> None:
        from scipy.special import gammainc  # the step response of i equal stages

        x = self.cutoff * h
        self._h = h
        self._reach = [exp(-x) * x**k / factorial(k) for k in range(self.order)]
        self._gain = [float(gammainc(i, x)) for i in range(1, self.order + 1)]

    def bracket(self, h: float) -> float:
        """f1(z) of the paper takes every change as a jump at the sample: λ in place of (1 − a)/h."""
        x = self.cutoff * h
        return x / -float(np.expm1(-x))

    def state(self) -> dict[str, Array]:
        return {"stages": self._stages.copy(), "interval": np.array(self._h)}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._stages[:] = state["stages"]
        if state["interval"] > 0.0:
            self._learn(float(state["interval"]))


class Integral:
    """∫ over windows that slide from sample to sample, follow one another (`consecutive`), or grow.

    A window of some seconds is the nearest number of the first interval that it meets.
    """

    def __init__(
        self, seconds: float, samples: int | None, consecutive: bool, growing: bool, owner: NDArray[np.int64]
    ) -> None:
        self._seconds, self._samples, self._owner = seconds, samples, owner
        self._consecutive, self._growing = consecutive, growing
        self.result = np.zeros(len(owner))
        self._since = np.zeros(int(owner.max()) + 1, dtype=np.int64)  # intervals of each equation so far
        self._resize(samples or 0)

    def _resize(self, count: int) -> None:
        self._count, self._next = count, 0
        # A ring of the parts that the window holds; one that grows lets nothing go.
        self._parts = np.zeros((0 if self._growing else count, len(self._owner)))

    def reset(self) -> None:
        self.leave_out(np.ones(len(self._since), dtype=bool))

    def leave_out(self, equations: Flags) -> None:
        entries = equations[self._owner]
        self.result[entries] = 0.0
        self._parts[:, entries] = 0.0
        self._since[equations] = 0

    def add(self, mean: Array, h: float) -> Flags:
        if not self._count:
            self._resize(max(1, round(self._seconds / h)))
        self._since += 1
        if self._growing:
            self.result += h * mean
        else:
            self._slide(h * mean)
        every = self._count if self._consecutive else 1
        return np.asarray((self._since >= self._count) & ((self._since - self._count) % every == 0))

    def _slide(self, part: Array) -> None:
        self._parts[self._next] = part
        self._next = (self._next + 1) % self._count
        # Summed anew: adding and taking away would let rounding grow without end.
        np.sum(self._parts, axis=0, out=self.result)

    def bracket(self, h: float) -> float:
        return 1.0

    def state(self) -> dict[str, Array]:
        return {"parts": self._parts.copy(), "sum": self.result.copy(), "since": self._since.copy(),
                "place": np.array([self._count, self._next])}  # fmt: skip

    def restore(self, state: Mapping[str, Array]) -> None:
        self._resize(int(state["place"][0]))
        self._next = int(state["place"][1])
        self._parts[:] = state["parts"]
        self.result[:], self._since[:] = state["sum"], state["since"]
