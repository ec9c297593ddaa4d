"""Zero-phase low-pass filters and derivatives of uniformly sampled signals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, placed_like
from steelyard.signals._blockwise import Make, both_ways, both_ways_of, butterworth
from steelyard.signals._blockwise import Sparse as Sparse

# Least cut-off relative to the sampling rate; lower ones would leave no signal of any log.
_LOWEST = 1e-9
# Share of a smooth signal that may alias into its rows, and the highest frequency that a filter passes, in cut-offs.
_FOLDED, _PASSED = 1e-7, 3.0
# Least number of samples of a smooth signal from one row to the next: filtering them costs less than the rows.
_TO_A_ROW = 4

Derivative = Literal["central", "savgol", "spline", "fourier"]


@dataclass(frozen=True)
class LowPass:
    """A Butterworth low-pass that runs forwards and backwards: no delay, −6 dB at the cut-off.

    Attributes:
        cutoff_hz: Cut-off [Hz].
        period: Time between samples [s].
        order: Order of the filter.
    """

    cutoff_hz: float
    period: float
    order: int = 4

    def __post_init__(self) -> None:
        if not _LOWEST / self.period < self.cutoff_hz < 0.5 / self.period:
            raise SteelyardError(
                f"A cut-off of {self.cutoff_hz:g} Hz is not between 0 and half the sampling rate "
                f"({0.5 / self.period:g} Hz); choose another."
            )

    @property
    def memory(self) -> int:
        """Samples after which the response has decayed to about 1e-4: three periods of the cut-off."""
        return int(np.ceil(3.0 / (self.cutoff_hz * self.period)))

    @cached_property
    def reach(self) -> int:
        """Samples beyond which the filter's weight is below 1e-9, on either side."""
        # Far from the centre only the slowest pole remains, with at most a few times the total weight.
        radius = butterworth(self.order, self.cutoff_hz * self.period).radius
        return int(np.ceil(np.log(1e-10) / np.log(max(radius, 1e-10))))

    def of(self, make: Make, samples: int, rows: slice, sparse: Sparse | None = None) -> Array:
        """Filter a signal that is computed in parts.

        Args:
            make: Function of (start, stop) that computes a part of the signal.
            samples: Number of samples.
            rows: Rows to return.
            sparse: Spacing of the samples that `make` computes if the signal is smooth; None: `make` computes all.
        """
        pad = min(self.memory, samples - 1)
        return both_ways_of(make, samples, self.order, self.cutoff_hz * self.period, pad, rows, sparse)

    def spacing(self, smooth_hz: float | None, step: int) -> int:
        """Compute the spacing of the samples of a smooth signal that its filtered rows need.

        Power near the rate of these samples aliases into the filter's band, where it is less than 1e-7 of its size
        before the smoothing.

        Args:
            smooth_hz: Cut-off of the smoothing, which had this order [Hz]; None: unknown.
            step: Samples from one row to the next; the signal has four samples or more between them.
        """
        if smooth_hz is None:
            return 1
        least = smooth_hz * _FOLDED ** (-0.5 / self.order) + _PASSED * self.cutoff_hz
        return max(min(step // _TO_A_ROW, int(1.0 / (least * self.period))), 1)

    def __call__(self, x: Array, rows: slice = slice(None)) -> Array:
        """Filter a signal as scipy.signal.sosfiltfilt with `memory` samples of padding.

        Args:
            x: Signal, with samples along the first axis.
            rows: Rows to compute and return; default: all.
        """
        if x.size == 0:
            return np.asarray(x[rows], dtype=float)
        pad = min(self.memory, len(x) - 1)
        flat = both_ways(x.reshape(len(x), -1), self.order, self.cutoff_hz * self.period, pad, rows)
        return flat.reshape(-1, *x.shape[1:])


def derivative(x: Array, period: float, how: Derivative = "central") -> Array:
    """Differentiate a signal over time.

    Args:
        x: Samples along the first axis.
        period: Time between samples [s].
        how: "central" differences; "savgol": a local parabola over 7 samples; "spline": a smoothing cubic spline with a
            stiffness by generalised cross-validation (Wahba 1990); "fourier": exact for whole periods of a periodic
            motion.
    """
    if how == "central":
        slope: Array = np.gradient(x, period, axis=0)  # also for arrays on a GPU
        return slope
    if how == "savgol":
        from scipy.signal import savgol_filter

        return np.asarray(savgol_filter(x, 7, 2, deriv=1, delta=period, axis=0))
    if how == "spline":
        from scipy.interpolate import make_smoothing_spline

        # The knots are one apart, because SciPy's search for the stiffness is scaled for that.
        k = np.arange(len(x), dtype=float)
        columns = [make_smoothing_spline(k, column).derivative()(k) for column in x.reshape(len(x), -1).T]
        return np.stack(columns, axis=-1).reshape(x.shape) / period
    if how == "fourier":
        rates = 2j * np.pi * np.fft.rfftfreq(len(x), period)
        if len(x) % 2 == 0:
            rates[-1] = 0.0  # the derivative at the highest frequency of an even count is undefined
        return np.asarray(np.fft.irfft(rates[:, None] * np.fft.rfft(x, axis=0), len(x), axis=0))
    raise SteelyardError(f"Unknown derivative '{how}'; choose central, savgol, spline or fourier.")


# Samples on either side for interpolation by a polynomial of degree six. Its error is below 1e-6 for a sine with ten
# samples per period.
_EITHER_SIDE = 3


def earlier(x: Array, samples: float) -> Array:
    """Shift a smooth signal by a fraction of a sample: the value at k − `samples`, by Lagrange's polynomial.

    Args:
        x: Samples along the first axis.
        samples: Shift to earlier values, −1 to 1 [samples].
    """
    nodes = np.arange(-_EITHER_SIDE, _EITHER_SIDE + 1)
    weights = [float(np.prod([(-samples - m) / (j - m) for m in nodes if m != j])) for j in nodes]
    # The ends are reflected about their values, which preserves straight lines.
    pad = [(_EITHER_SIDE, _EITHER_SIDE)] + [(0, 0)] * (x.ndim - 1)
    longer = np.pad(x, pad, mode="reflect", reflect_type="odd")
    return np.asarray(sum(w * longer[k : k + len(x)] for k, w in enumerate(weights)))


def delayed(x: Array, samples: float) -> Array:
    """Delay a smooth signal by any number of samples; it is constant beyond its ends.

    Args:
        x: Samples along the first axis.
        samples: The delay, negative for an advance [samples].
    """
    whole = round(samples)
    at = np.clip(np.arange(len(x)) - whole, 0, len(x) - 1)
    rest = samples - whole
    return (earlier(x, rest) if rest else x)[at]


def motion_band(position: Array, period: float, share: float = 0.999, trends: bool = False) -> float:
    """Compute the frequency [Hz] that bounds most of the position's power, for the joint where it is highest.

    For a given acceleration the power of positions falls with the fourth power of frequency. So lines far above the
    motion (beating clocks, repeated rows, structural modes) have little power of position, even if they dominate the
    velocity. White noise, estimated from the upper half of the spectrum, is removed first.

    Args:
        position: Positions [rad or m], shape (samples, joints).
        period: Time between samples [s].
        share: Share of the power below the frequency.
        trends: Count a linear trend as the slowest motion; otherwise it is removed.
    """
    return float(motion_bands(position[..., None], period, share, trends)[0])


def motion_bands(positions: Array, period: float, share: float = 0.999, trends: bool = False) -> Array:
    """Compute the `motion_band` of each of many robots.

    Args:
        positions: Shape (samples, joints, robots) [rad, m].
        period: Time between samples [s].
        share: As in `motion_band`.
        trends: As in `motion_band`.
    """
    x = positions.reshape(len(positions), -1)
    t = np.linspace(-1.0, 1.0, len(x))[:, None]
    trend = placed_like(np.hstack([np.ones_like(t), t]), x)
    line = trend @ ((trend.T @ x) / np.sum(trend**2, axis=0)[:, None])  # its columns are orthogonal
    level, window = x - line, placed_like(np.hanning(len(x))[:, None], x)
    spectrum = np.fft.rfft(level * window, axis=0)
    power = spectrum.real**2 + spectrum.imag**2  # without the roots that np.abs takes
    frequency = placed_like(np.fft.rfftfreq(len(level), period), x)
    # Single lines of a noise spectrum reach several times its median, but very rarely twenty times.
    lines = np.where(power > 20.0 * np.median(power[len(power) // 2 :], axis=0), power, 0.0)
    lines[0] = 0.0
    if trends:  # by Parseval's theorem
        lines[1] += 0.5 * len(x) * np.sum(((line - line.mean(axis=0)) * window) ** 2, axis=0)
    total = lines.sum(axis=0)
    growth = np.cumsum(lines, axis=0) / np.where(total > 0.0, total, 1.0)
    bands = frequency[np.argmax(growth >= share, axis=0)].reshape(positions.shape[1:])
    total = total.reshape(bands.shape)
    highest: Array = np.where(total > 1e-4 * total.max(axis=0), bands, 0.0).max(axis=0)
    return highest
