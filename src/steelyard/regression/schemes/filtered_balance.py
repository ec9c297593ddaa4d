"""Schemes with a low-pass, without acceleration: `FilteredDynamic` (momentum) and `FilteredPower` (energy)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, factorial, pi
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

# Sampling intervals that differ by less are equal up to rounding.
_SAME_CLOCK = 1e-9


@dataclass(frozen=True)
class _Filtered(Balanced):
    """f2(s) = (λ/(s + λ))ᵒʳᵈᵉʳ and f1(s) = s·f2(s) on both sides of a balance.

    With "held" and "trapezoid" the filter acts on the balance of every sampling interval and adds no error;
    "paper" are the f1(z) and f2(z) of Chávez-Olivares et al. 2012, which also hold the states and delay losses by half
    a sample.
    """

    cutoff_hz: float | None = option(None, "of the low-pass, λ/2π", "Hz")
    order: int = option(1, "of the low-pass")

    def __post_init__(self) -> None:
        if self.cutoff_hz is not None and not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0.0):
            raise SteelyardError(f"The filter's cut-off must be a positive number of Hz, not {self.cutoff_hz:g}.")
        if not (self.order == int(self.order) and 1 <= self.order <= 8):
            raise SteelyardError(f"The filter's order must be a whole number from 1 to 8, not {self.order}.")
        super().__post_init__()
        if self.rule == "paper" and self.order != 1:
            raise SteelyardError("The paper's filters f1(z), f2(z) are of order 1; choose 'held' for a higher order.")

    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        first = first_of(motions)
        rate = self._rate(band_of(first))
        bracket = _paper_bracket(rate * first.filter.period) if self.rule == "paper" else 1.0

        def sums(motion: Motion) -> _Cascade:
            return _Cascade(rate, self.order, motion.filter.period, motion.keep.step or 1)

        none = "No joint moves fast enough in two successive samples; lower `still`, or the mask."
        quadrature, still = Quadrature(self.rule_for(first), bracket), self.stillness(sides, mask)
        return over_intervals(sides, motions, quadrature, sums, first.row_period, still, none)

    def live(self, owner: NDArray[np.int64]) -> LiveSums:
        return _LiveCascade(self._rate(LIVE_BAND), self.order, owner)

    def _rate(self, band: float) -> float:
        """Return λ [rad/s]; by default it follows from the band of the motion [Hz]."""
        return self.balance.rate(band) if self.cutoff_hz is None else 2.0 * pi * self.cutoff_hz


@SCHEMES.register("filtered-dynamic")
@dataclass(frozen=True)
class FilteredDynamic(_Filtered):
    """f2[τ] = f1[P] θ + f2[D] θ, one equation per joint.

    Args:
        cutoff_hz: Cut-off of the low-pass [Hz]; default: five times the band of the motion.
        order: Order of the low-pass, 1 to 8.
        torque: Torque between samples: "held" (exact for a controller's), "trapezoid" (for a sensor's), "averaged" (for
            a sensor's mean since the sample before), or "paper"; "auto": from the preparation's `torque_between`, else
            held.
        still: Speed below which a joint with dry friction is at standstill [rad/s, m/s] (default 0.02 and 0.002; 0:
            never). Its static friction is unknown: its equation is excluded, and its filter restarts afterwards
            without loss.
    """

    name: ClassVar[str] = "filtered-dynamic"
    equation: ClassVar[str] = "f₂[τ] = f₁[P] θ + f₂[D] θ"
    about: ClassVar[str] = "torques through a low-pass, if accelerations are too noisy to compute"
    balance: ClassVar[Balance] = MOMENTUM
    torque: Literal["auto", "held", "trapezoid", "averaged", "paper"] = option("auto", "between samples")
    still: float | None = option(None, "slower joints are excluded", "rad/s, m/s")


@SCHEMES.register("filtered-power")
@dataclass(frozen=True)
class FilteredPower(_Filtered):
    """f2[q̇ᵀτ] = f1[E] θ + f2[L] θ, one equation for the robot.

    Args:
        cutoff_hz: Cut-off of the low-pass [Hz]; default: the band of the motion.
        order: Order of the low-pass, 1 to 8.
        work: Formula of the work that the drives supply. "held": τ_{k−1}ᵀ(q_k − q_{k−1}), exact for a torque that is
            constant between samples; in the paper's experiment it reduces the bias of noise-free data from 5 % to
            0.02 %. "trapezoid": trapezoidal rule of τᵀq̇. "averaged": τ_kᵀ(q_k − q_{k−1}). "paper": as printed.
            "auto": according to `torque_between` of the preparation, or "held" if that is not stated.
    """

    name: ClassVar[str] = "filtered-power"
    equation: ClassVar[str] = "f₂[q̇ᵀτ] = f₁[K + U] θ + f₂[L] θ"
    about: ClassVar[str] = "the power of all joints through a low-pass"
    balance: ClassVar[Balance] = ENERGY
    work: Literal["auto", "held", "trapezoid", "averaged", "paper"] = option("auto", "between samples")


# ---------------------------------------------------------------- equal first-order low-passes in a row


class _Cascade:
    """(λ/(s + λ))ᵒʳᵈᵉʳ from rest, with means of a signal over consecutive intervals as input.

    Stage i satisfies xᵢ' = λ(xᵢ₋₁ − xᵢ). Over an interval with constant input u the exact step is
    xᵢ ← Σⱼ e^{−λh}(λh)^{i−j}/(i−j)! xⱼ + γᵢ u, where γᵢ is the step response of i stages. First-order recursions
    avoid the high-order polynomial, which would lose digits for small λh.
    """

    def __init__(self, cutoff_rad_s: float, order: int, period: float, every: int = 1) -> None:
        self.order, self.every = order, every
        self._reach, self._gain = _exact_step(cutoff_rad_s * period, order)
        self.reset()

    def reset(self) -> None:
        self._state: list[Array] = []
        self._count = 0

    def add(self, means: Array) -> Array:
        """Filter means `(intervals, columns)`; returns the outputs at the ends of every `every`-th interval."""
        from scipy.signal import lfilter  # loading takes a second

        before = self._state or [np.zeros(means.shape[1])] * self.order
        decay = self._reach[0]
        stages: list[Array] = []
        for i in range(self.order):
            drive = self._gain[i] * means
            for j, stage in enumerate(stages):
                delayed = np.vstack([before[j][None], stage[:-1]])
                drive = drive + self._reach[i - j] * delayed
            stages.append(np.asarray(lfilter([1.0], [1.0, -decay], drive, axis=0, zi=decay * before[i][None])[0]))
        self._state = [stage[-1] for stage in stages]
        first = -(self._count + 1) % self.every
        self._count += len(means)
        return stages[-1][first :: self.every].copy()


class _LiveCascade:
    """The same filter, one interval of any length at a time."""

    def __init__(self, cutoff_rad_s: float, order: int, owner: NDArray[np.int64]) -> None:
        self.cutoff_rad_s, self.order, self._owner = cutoff_rad_s, order, owner
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
            self._update_coefficients(h)
        # From the last stage to the first, since each needs the old values of the earlier ones.
        for i in reversed(range(self.order)):
            stage = self._stages[i]
            stage *= self._reach[0]
            for j in range(i):
                stage += np.multiply(self._stages[j], self._reach[i - j], out=self._scratch)
            stage += np.multiply(mean, self._gain[i], out=self._scratch)
        return self._all

    def _update_coefficients(self, h: float) -> None:
        self._h = h
        self._reach, self._gain = _exact_step(self.cutoff_rad_s * h, self.order)

    def bracket(self, h: float) -> float:
        return _paper_bracket(self.cutoff_rad_s * h)

    def state(self) -> dict[str, Array]:
        return {"stages": self._stages.copy(), "interval": np.array(self._h)}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._stages[:] = state["stages"]
        if state["interval"] > 0.0:
            self._update_coefficients(float(state["interval"]))


def _paper_bracket(x: float) -> float:
    """Compute λh/(1 − a) for x = λh: the paper's f1(z) = λ(1 − z⁻¹)/(1 − a z⁻¹) has λ in place of (1 − a)/h."""
    return x / (1.0 - exp(-x))


def _exact_step(x: float, order: int) -> tuple[list[float], list[float]]:
    """Compute the response of a stage k stages later, and the step responses of 1, 2, … stages, over x = λh."""
    return [exp(-x) * (x**k / factorial(k)) for k in range(order)], [_step_response(i, x) for i in range(1, order + 1)]


def _step_response(stages: int, x: float) -> float:
    """Compute 1 − e^{−x} Σ_{k<stages} x^k/k! as the tail of the series, without cancellation for small x."""
    if x > 100.0:  # 1 to the last digit; the series would overflow
        return 1.0
    total, term, k = 0.0, x**stages / factorial(stages), stages
    while term > 1e-18 * total:
        total += term
        k += 1
        term *= x / k
    return exp(-x) * total
