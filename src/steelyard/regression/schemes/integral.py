"""Schemes over windows of time, without acceleration: `Momentum` and `Energy`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes._blocks import Motions, band_of, first_of, over_intervals
from steelyard.regression.schemes.balance import ENERGY, MOMENTUM, Balance, BalanceRows, Quadrature
from steelyard.regression.schemes.scheme import LIVE_BAND, SCHEMES, Balanced, Flags, LiveSums, option
from steelyard.signals.prepare import Motion


@dataclass(frozen=True)
class _Integral(Balanced):
    """A balance summed over windows that slide from row to row, follow each other, or grow."""

    windowed: ClassVar[bool] = True
    rules: ClassVar[tuple[str, ...]] = ("held", "trapezoid", "averaged")
    window: float | None = option(None, "length of a window", "s")
    samples: int | None = option(None, "its length in sampling intervals")
    consecutive: bool = option(False, "windows follow each other")
    growing: bool = option(False, "all windows start at the beginning")

    def __post_init__(self) -> None:
        seconds, samples = self.window, self.samples
        if seconds is not None and samples is not None:
            raise SteelyardError("State a window in seconds (window) or in sampling intervals (samples), not both.")
        if seconds is not None and not (np.isfinite(seconds) and seconds > 0.0):
            raise SteelyardError(f"A window must be a positive number of seconds, not {seconds}.")
        if samples is not None and not (samples >= 1 and samples == int(samples)):
            raise SteelyardError(f"A window needs a whole number of sampling intervals from 1 on, not {samples}.")
        super().__post_init__()

    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        first = first_of(motions)
        period = first.filter.period
        count = self._count(first)

        def sums(motion: Motion) -> _Window:
            # Logs with different rates need the same time instead of the same number of samples.
            own = max(1, round(count * period / motion.filter.period))
            every = own if self.consecutive else motion.keep.step or 1
            return _Window(own, every, self.growing, motion.filter.period)

        start, stop, _ = first.keep.indices(len(first.t))
        too_long = (
            f"A window of {count * period:g} s is longer than every stretch of the log in which a joint moves (the "
            f"first piece is {max(0, stop - start - 1) * period:.4g} s long); choose a shorter one."
        )
        row_period = count * period if self.consecutive else first.row_period
        quadrature, still = Quadrature(self.rule_for(first)), self.stillness(sides, mask)
        return over_intervals(sides, motions, quadrature, sums, row_period, still, too_long)

    def _count(self, first: Motion) -> int:
        """Return the length of a window in sampling intervals."""
        if self.samples is not None:
            return self.samples
        seconds = 1.0 / self.balance.rate(band_of(first)) if self.window is None else self.window
        return max(1, round(seconds / first.filter.period))

    def live(self, owner: NDArray[np.int64]) -> LiveSums:
        seconds = self.window or 1.0 / self.balance.rate(LIVE_BAND)
        return _LiveWindow(seconds, self.samples, self.consecutive, self.growing, owner)


@SCHEMES.register("momentum")
@dataclass(frozen=True)
class Momentum(_Integral):
    """∫τ dt = [P θ] + ∫D θ dt over windows, one equation per joint.

    Args:
        window: Length of a window [s]; default: 1/λ, with λ five times 2π times the band of the motion.
        samples: Length of the window in sampling intervals.
        consecutive: Windows follow each other; otherwise they slide from row to row.
        growing: All windows start at the beginning.
        torque: Torque between samples: "held" (exact for a controller's), "trapezoid" (for a sensor's) or "averaged"
            (for a sensor's mean since the sample before); "auto": from the preparation's `torque_between`, else held.
        still: Exclude windows in which a joint with dry friction is slower than this [rad/s, m/s] (default 0.02 and
            0.002; 0: never); growing ones restart afterwards.
    """

    name: ClassVar[str] = "momentum"
    equation: ClassVar[str] = "∫τ = [P θ] + ∫D θ"
    about: ClassVar[str] = "torques integrated over windows, if accelerations are too noisy to compute"
    balance: ClassVar[Balance] = MOMENTUM
    torque: Literal["auto", "held", "trapezoid", "averaged"] = option("auto", "between samples")
    still: float | None = option(None, "slower joints are excluded", "rad/s, m/s")


@SCHEMES.register("energy")
@dataclass(frozen=True)
class Energy(_Integral):
    """∫q̇ᵀτ dt = [E θ] + ∫L θ dt over windows, one equation for the robot.

    Args:
        window: Length of a window [s]; default: 1/λ, with λ 2π times the band of the motion.
        samples: Length of the window in sampling intervals.
        consecutive: Windows follow each other (the short integral of Kozłowski & Dutkiewicz 1996); otherwise they
            slide.
        growing: All windows start at the beginning (their long integral, and the supplied-energy scheme of
            Chávez-Olivares et al. 2012).
        work: "held": τ_{k−1}ᵀ(q_k − q_{k−1}), exact for a torque held between samples, which on the latter's
            experiment reduces the bias of noise-free data from 30 % to 0.03 %; "trapezoid" of τᵀq̇, as printed;
            "averaged": τ_kᵀ(q_k − q_{k−1}); "auto": from the preparation's `torque_between`, else held.
    """

    name: ClassVar[str] = "energy"
    equation: ClassVar[str] = "∫q̇ᵀτ = [(K + U) θ] + ∫L θ"
    about: ClassVar[str] = "the work of all joints over windows"
    balance: ClassVar[Balance] = ENERGY
    work: Literal["auto", "held", "trapezoid", "averaged"] = option("auto", "between samples")


# ---------------------------------------------------------------- sums over windows


class _Window:
    """Integrals over the last `samples` sampling intervals, a new one after every `every`, from means over intervals.

    `growing` integrals all start with the first one.
    """

    def __init__(self, samples: int, every: int, growing: bool, period: float) -> None:
        self.samples, self.every, self.growing, self.period = samples, every, growing, period
        self.reset()

    def reset(self) -> None:
        self._kept: Array | None = None  # means that the next windows need; if growing, their sum
        self._count = 0

    def add(self, means: Array) -> Array:
        """Add means `(intervals, columns)`; returns one integral per completed window."""
        kept = np.zeros((1 if self.growing else 0, means.shape[1])) if self._kept is None else self._kept
        sums = np.cumsum(np.vstack([np.zeros((1, means.shape[1])), kept, means]), axis=0)
        # The first end at or after this chunk's first interval that is `samples` plus a multiple of `every`.
        behind = self._count + 1 - self.samples
        first = self._count + 1 + (-behind % self.every) if behind > 0 else self.samples
        ends = np.arange(first, self._count + len(means) + 1, self.every) - self._count + len(kept)
        self._count += len(means)
        if self.growing:
            self._kept = sums[-1:]
            return np.asarray(self.period * sums[ends])
        self._kept = np.vstack([kept, means])[-(self.samples - 1) :] if self.samples > 1 else kept
        return np.asarray(self.period * (sums[ends] - sums[ends - self.samples]))


class _LiveWindow:
    """The same sums, one interval at a time: windows slide from sample to sample, follow each other, or grow.

    A window in seconds is rounded to a number of intervals of the first interval's length.
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
        # A ring buffer of the parts in the window; a growing one never removes parts.
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
        # Sum again: adding and subtracting would accumulate rounding.
        np.sum(self._parts, axis=0, out=self.result)

    def bracket(self, h: float) -> float:
        return 1.0

    def state(self) -> dict[str, Array]:
        return {"parts": self._parts.copy(), "sum": self.result.copy(), "since": self._since.copy(),
                "place": np.array([self._count, self._next])}  # fmt: skip

    def restore(self, state: Mapping[str, Array]) -> None:
        count = int(state["place"][0])
        if len(state["parts"]) != (0 if self._growing else count) or not 0 <= state["place"][1] <= count:
            raise SteelyardError("the sums in the state are damaged; start from a new state.")
        self._resize(count)
        self._next = int(state["place"][1])
        self._parts[:] = state["parts"]
        self.result[:], self._since[:] = state["sum"], state["since"]
