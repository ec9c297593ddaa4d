"""Rows y = A θ from one sample after the other: the schemes of `regression/schemes/`, causal and without a log.

Between two samples, h apart, the balance holds that `regression.schemes.balance` states for whole logs,

    mean of τ = [P θ]/h + mean of D θ     or     mean of τᵀq̇ = [E θ]/h + mean of L θ,

and what comes after it (a low-pass, a window) needs no more than a state of its own size. h is measured from sample to
sample, so that a clock that jitters does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import LogError
from steelyard.estimation.recursion.accumulate import Accumulate, Flags, make_accumulator
from steelyard.estimation.recursion.balance_kernel import BalanceKernel
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.schemes import Dynamic, FilteredDynamic, Momentum, Power, Scheme
from steelyard.regression.schemes.balance import check_all_torques
from steelyard.regression.schemes.known_friction import KnownFriction
from steelyard.regression.schemes.still import Stillness

# An interval so many times as long as the one before is a gap, which nothing may be filtered or integrated across.
GAP = 5.0


class LiveRows(Protocol):
    """Fills `out` `(equations, columns)`, contiguous, with [A y] at every sample at which the scheme gives rows.

    `sample` holds q, q̇, τ and q̈ (where needed) one after the other; write there, then `add`.
    """

    equations: int
    sample: Array
    out: Array
    filled: int  # how many equations the last rows are of; the others' rows are zero

    def add(self, t: float) -> bool: ...

    def reset(self) -> None:
        """Forget the samples so far: the next one follows a gap."""

    def state(self) -> dict[str, Array]: ...

    def restore(self, state: Mapping[str, Array]) -> None: ...


def live_rows(dynamics: Dynamics, base: BaseParameters, scheme: Scheme) -> LiveRows:
    """The rows of a scheme; tell them where to go by `out`."""
    made = Instants if scheme.uses_acceleration else Balance
    return made(dynamics, base, scheme)


class _Rows:
    """Where entries go: the buffer, and the places in it of the kernel's entries and of the right sides."""

    def __init__(self, kernel: BalanceKernel, equations: int, rank: int) -> None:
        self._kernel, self.equations, self.filled, self._rank = kernel, equations, equations, rank
        self.out = np.zeros((equations, rank + 1))

    @property
    def out(self) -> Array:
        return self._out

    @out.setter
    def out(self, out: Array) -> None:
        """Contiguous, and at least as wide as [A y]."""
        self._out, width = out, out.shape[1]
        self._flat = out.reshape(-1)
        entries = self._kernel.equations * width + self._kernel.columns
        self._targets = np.concatenate([entries, np.arange(self.equations) * width + self._rank]).astype(np.int64)

    def _put(self, values: Array) -> None:
        self._flat[:] = 0.0
        self._flat[self._targets] = values


class Instants(_Rows):
    """τ = Y θ, or q̇ᵀτ = q̇ᵀY θ, at every sample."""

    def __init__(self, dynamics: Dynamics, base: BaseParameters, scheme: Scheme) -> None:
        self._scalar = isinstance(scheme, Power)
        if self._scalar:
            check_all_torques(dynamics)
        n = dynamics.robot.dof
        self.sample = np.zeros(4 * n)
        _, self._dq, self._tau, _ = self.sample.reshape(4, n)
        self._joints = np.flatnonzero(dynamics.robot.torque_used)
        kernel = BalanceKernel(dynamics, base, "power" if self._scalar else "torque", self.sample)
        kernel.shares(1.0, 0.0)
        super().__init__(kernel, 1 if self._scalar else len(self._joints), base.rank)
        self._values = np.zeros(len(kernel.mean) + self.equations)

    def add(self, t: float) -> bool:
        mean = self._kernel(0.0)
        self._values[: len(mean)] = mean
        self._values[len(mean) :] = self._dq @ self._tau if self._scalar else self._tau[self._joints]
        self._put(self._values)
        return True

    def reset(self) -> None: ...

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: Mapping[str, Array]) -> None: ...


class Balance(_Rows):
    """The balance of every interval, through what the scheme puts behind it. Only entries that are ever used move."""

    def __init__(self, dynamics: Dynamics, base: BaseParameters, scheme: Scheme) -> None:
        self._scalar = not isinstance(scheme, Dynamic | FilteredDynamic | Momentum)
        if self._scalar:
            check_all_torques(dynamics)
        n = dynamics.robot.dof
        self.sample, self._before = np.zeros(3 * n), np.zeros(3 * n)
        self._now_parts, self._before_parts = self.sample.reshape(3, n), self._before.reshape(3, n)
        self._joints = np.flatnonzero(dynamics.robot.torque_used)
        settings: Any = scheme
        self._rule: str = settings.work if self._scalar else settings.torque
        kernel = BalanceKernel(dynamics, base, "energy" if self._scalar else "momentum", self.sample)
        kernel.shares(*((0.0, 1.0) if self._rule == "paper" else (0.5, 0.5)))
        super().__init__(kernel, 1 if self._scalar else len(self._joints), base.rank)
        count = len(kernel.mean)
        self._mean = np.zeros(count + self.equations)
        self._right = self._mean[count:]
        self._owner = np.concatenate([self._kernel.equations, np.arange(self.equations)]).astype(np.int64)
        self._accumulate: Accumulate = make_accumulator(scheme, self._owner)
        none = KnownFriction.of(dynamics.robot, None)
        speed = 0.0 if self._scalar else settings.still
        self._still = _Still(Stillness.of(dynamics, none, speed, 0.0), self._joints) if speed != 0.0 else None
        self._time = self._interval = np.nan

    def reset(self) -> None:
        self._time = self._interval = np.nan
        self._accumulate.reset()

    def add(self, t: float) -> bool:
        h = t - self._time
        if h <= 0.0:
            raise LogError(f"The time does not increase: t = {t:g} s after {self._time:g} s; sort the samples.")
        gap = h > GAP * self._interval or h != h
        paper = self._rule == "paper"
        mean = self._kernel(0.0 if gap else (self._accumulate.bracket(h) if paper else 1.0) / h)
        still = self._still(self._now_parts[1]) if self._still is not None else None
        ready = False
        if gap:
            self._accumulate.reset()
        else:
            self._interval = h
            self._mean[: len(mean)] = mean
            self._right[:] = self._work(h) if self._scalar else self._torque()
            ready = self._fill(h, still)
        self._time = t
        self._before[:] = self.sample
        return ready

    def _fill(self, h: float, still: Flags | None) -> bool:
        ready = self._accumulate.add(self._mean, h)
        if still is not None:
            ready = ready & ~still
            self._accumulate.leave_out(still)
        self.filled = int(np.count_nonzero(ready))
        if not self.filled:
            return False
        result = self._accumulate.result
        self._put(result if self.filled == self.equations else result * ready[self._owner])
        return True

    def _torque(self) -> Array:
        before = self._before_parts[2]
        tau = 0.5 * (before + self._now_parts[2]) if self._rule == "trapezoid" else before
        return np.asarray(tau[self._joints])

    def _work(self, h: float) -> float:
        (q, dq, tau), (q0, dq0, tau0) = self._now_parts, self._before_parts
        if self._rule == "held":
            return float(tau0 @ (q - q0)) / h
        start = float(tau0 @ dq0)
        return start if self._rule == "paper" else 0.5 * (start + float(tau @ dq))

    def state(self) -> dict[str, Array]:
        kernel, time = self._kernel, np.array([self._time, self._interval])
        last = {"stored": kernel.stored.copy(), "lost": kernel.lost.copy(), "sample": self._before.copy()}
        return {"time": time, **last, **self._accumulate.state()}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._time, self._interval = (float(x) for x in state["time"])
        self._kernel.stored[:], self._kernel.lost[:] = state["stored"], state["lost"]
        self._before[:] = state["sample"]
        self._accumulate.restore(state)
        if self._still is not None:
            self._still(self._before_parts[1])


class _Still:
    """Which equations cannot be trusted over an interval: dry friction rubs too slowly at one of its ends."""

    def __init__(self, stillness: Stillness, joints: NDArray[np.int64]) -> None:
        self._directions, self._limits = stillness.directions, stillness.limits
        self._reaches = stillness.reaches[:, joints]
        self._before = np.zeros(len(self._limits), dtype=bool)

    def __call__(self, dq: Array) -> Flags | None:
        """None where all can be trusted, which is nearly always."""
        now = np.abs(self._directions @ dq) < self._limits
        slow, self._before = now | self._before, now
        if not slow.any():
            return None
        return np.asarray(self._reaches[slow].any(axis=0))
