"""Rows y = A θ sample by sample: causal versions of the schemes in `regression/schemes/`.

Between two samples, h apart, `regression.schemes.balance` gives the balance

    mean of τ = [P θ]/h + mean of D θ     or     mean of τᵀq̇ = [E θ]/h + mean of L θ,

and a low-pass or window after it needs only its own state. h is measured for each interval, so that jitter of
the clock causes no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.native.interval_means import IntervalMeans
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.schemes import Scheme
from steelyard.regression.schemes.balance import Quadrature, State, check_all_torques, inner
from steelyard.regression.schemes.scheme import Balanced, Flags
from steelyard.regression.schemes.still import KnownFriction, Stillness

# An interval longer than the one before by this factor is a gap; filters and integrals restart there.
GAP = 5.0
# Number of noise samples for the noise gain of a scheme.
_NOISE_SAMPLES = 4000


class LiveRows(Protocol):
    """Writes [A y] to `out` (equations, columns), contiguous, at every sample for which the scheme gives rows.

    `sample` contains q, q̇, τ and q̈ (if needed) one after the other; write there, then call `add` with the time `t`
    [s]. `restore` takes the arrays of `state`.
    """

    equations: int
    sample: Array
    out: Array
    filled: int  # number of equations with rows; the rows of the others are zero

    def add(self, t: float) -> bool: ...

    def noise_gain(self) -> float:
        """Return the variance of a row's right side over that of white torque noise; zero if unknown."""

    def reset(self) -> None:
        """Forget all samples; the next one follows a gap."""

    def state(self) -> dict[str, Array]: ...

    def restore(self, state: Mapping[str, Array]) -> None: ...


def live_rows(dynamics: Dynamics, base: BaseParameters, scheme: Scheme) -> LiveRows:
    """Create the rows of a scheme; set `out` to choose their destination.

    Args:
        dynamics: Dynamics of the robot.
        base: Base parameters of the columns.
        scheme: The scheme.
    """
    if isinstance(scheme, Balanced):
        return _Intervals(dynamics, base, scheme)
    return _Instants(dynamics, base, scheme)


class _Rows:
    """The buffer, and the positions of the balance's entries and right sides in it.

    Only entries that are not always zero are computed. `sample` contains q, q̇, τ (and at instants q̈) one after the
    other.
    """

    def __init__(self, dynamics: Dynamics, base: BaseParameters, scheme: Scheme, sample: Array) -> None:
        self._balance, self.sample, self._rank = scheme.balance, sample, base.rank
        dynamics.terms.refuse_history("A stream of samples")
        if self._balance.scalar:
            check_all_torques(dynamics)
        function, self._equations, self._columns = self._balance.traced(dynamics, base.independent)
        self._means = IntervalMeans(function, sample)
        self._joints = np.flatnonzero(dynamics.robot.torque_used)
        self.equations = self.filled = 1 if self._balance.scalar else len(self._joints)
        # The entries, followed by the right sides.
        self._values = np.zeros(len(self._columns) + self.equations)
        self._left, self._right = np.split(self._values, [len(self._columns)])
        self.out = np.zeros((self.equations, base.rank + 1))

    @property
    def out(self) -> Array:
        return self._out

    @out.setter
    def out(self, out: Array) -> None:
        """Set the buffer: contiguous, and at least as wide as [A y]."""
        self._out, width = out, out.shape[1]
        self._flat = out.reshape(-1)
        entries = self._equations * width + self._columns
        self._targets = np.concatenate([entries, np.arange(self.equations) * width + self._rank]).astype(np.int64)

    def _put(self, values: Array) -> None:
        self._flat[:] = 0.0
        self._flat[self._targets] = values


class _Instants(_Rows):
    """τ = Y θ, or q̇ᵀτ = q̇ᵀY θ, at every sample."""

    def __init__(self, dynamics: Dynamics, base: BaseParameters, scheme: Scheme) -> None:
        n = dynamics.robot.dof
        super().__init__(dynamics, base, scheme, np.zeros(4 * n))
        _, self._dq, self._tau, _ = self.sample.reshape(4, n)
        self._means.set_shares(1.0, 0.0)

    def add(self, t: float) -> bool:
        self._left[:] = self._means(0.0)
        self._right[:] = inner(self._dq, self._tau) if self._balance.scalar else self._tau[self._joints]
        self._put(self._values)
        return True

    def noise_gain(self) -> float:
        return 0.0 if self._balance.scalar else 1.0  # the gain of power depends on the velocities

    def reset(self) -> None: ...

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: Mapping[str, Array]) -> None: ...


class _Intervals(_Rows):
    """The balance of every interval, followed by the filter of the scheme."""

    def __init__(self, dynamics: Dynamics, base: BaseParameters, scheme: Balanced) -> None:
        n = dynamics.robot.dof
        super().__init__(dynamics, base, scheme, np.zeros(3 * n))
        self._before = np.zeros(3 * n)
        self._now_parts: State = tuple(self.sample.reshape(3, n))  # type: ignore[assignment]
        self._before_parts: State = tuple(self._before.reshape(3, n))  # type: ignore[assignment]
        self._rule = scheme.rule
        self._means.set_shares(*Quadrature(self._rule).shares)
        self._owner = np.concatenate([self._equations, np.arange(self.equations)]).astype(np.int64)
        self._sums = scheme.live(self._owner)
        none, speed = KnownFriction.of(dynamics.robot, None), scheme.still_speed
        self._still = _Still(Stillness.of(dynamics, none, speed, 0.0), self._joints) if speed != 0.0 else None
        self._time = self._interval = np.nan
        self._scheme, self._gain = scheme, (np.nan, 0.0)

    def noise_gain(self) -> float:
        h = self._interval
        if self._balance.scalar or not h > 0.0:
            return 0.0
        if self._gain[0] != h:  # noise is processed like torques
            sums, share = self._scheme.live(np.zeros(1, dtype=np.int64)), 0.5 if self._rule == "trapezoid" else 0.0
            noise = np.random.default_rng(0).normal(size=_NOISE_SAMPLES)
            rows = [float(sums.result[0]) for x in noise[:-1] * (1.0 - share) + noise[1:] * share
                    if sums.add(np.array([x]), h)[0]]  # fmt: skip
            self._gain = (h, float(np.mean(np.square(rows[len(rows) // 4 :]))) if rows else 0.0)
        return self._gain[1]

    def reset(self) -> None:
        self._time = self._interval = np.nan
        self._sums.reset()

    def add(self, t: float) -> bool:
        h = t - self._time
        if h <= 0.0:
            raise LogError(f"The time does not increase: t = {t:g} s after {self._time:g} s; sort the samples.")
        gap = h > GAP * self._interval or h != h
        bracket = self._sums.bracket(h) if self._rule == "paper" else 1.0
        mean = self._means(0.0 if gap else bracket / h)
        still = self._still(self._now_parts[1]) if self._still is not None else None
        ready = False
        if gap:
            self._sums.reset()
        else:
            self._interval = h
            self._left[:] = mean
            supplied = self._balance.supplied(self._before_parts, self._now_parts, h, self._rule)
            self._right[:] = supplied if self._balance.scalar else supplied[self._joints]
            ready = self._fill(h, still)
        self._time = t
        self._before[:] = self.sample
        return ready

    def _fill(self, h: float, still: Flags | None) -> bool:
        ready = self._sums.add(self._values, h)
        if still is not None:
            ready = ready & ~still
            self._sums.leave_out(still)
        self.filled = int(np.count_nonzero(ready))
        if not self.filled:
            return False
        result = self._sums.result
        self._put(result if self.filled == self.equations else result * ready[self._owner])
        return True

    def state(self) -> dict[str, Array]:
        means, time = self._means, np.array([self._time, self._interval])
        last = {"stored": means.stored.copy(), "lost": means.lost.copy(), "sample": self._before.copy()}
        return {"time": time, **last, **self._sums.state()}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._time, self._interval = (float(x) for x in state["time"])
        self._means.stored[:], self._means.lost[:] = state["stored"], state["lost"]
        self._before[:] = state["sample"]
        self._sums.restore(state)
        if self._still is not None:
            self._still(self._before_parts[1])


class _Still:
    """Equations that are unreliable over an interval, because dry friction moves too slowly at one of its ends."""

    def __init__(self, stillness: Stillness, joints: NDArray[np.int64]) -> None:
        self._directions, self._limits = stillness.directions, stillness.limits
        self._reaches = stillness.reaches[:, joints]
        self._before = np.zeros(len(self._limits), dtype=bool)

    def __call__(self, dq: Array) -> Flags | None:
        """Return the flags; None if all equations are reliable."""
        now = np.abs(self._directions @ dq) < self._limits
        slow, self._before = now | self._before, now
        if not slow.any():
            return None
        return np.asarray(self._reaches[slow].any(axis=0))
