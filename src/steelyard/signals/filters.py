"""Zero-phase low-pass filters and derivatives of uniformly sampled signals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, placed_like
from steelyard.ground.renamed import renamed
from steelyard.signals._blockwise import Make, both_ways, both_ways_of, butterworth
from steelyard.signals._blockwise import Sparse as Sparse

# Of the sampling rate; a filter that remembers a billion samples keeps nothing of any log.
_LOWEST = 1e-9
# What may fold into the rows of a smooth signal; in cut-offs, up to where a filter lets anything pass.
_FOLDED, _PASSED = 1e-7, 3.0
# Samples of a smooth signal from one row to the next, at least: what the filter does to them costs less than the rows.
_TO_A_ROW = 4

Derivative = Literal["central", "savgol", "spline", "fourier"]


@renamed(cutoff="cutoff_hz")
@dataclass(frozen=True)
class LowPass:
    """A Butterworth low-pass run forwards and backwards: no delay, −6 dB at the cut-off (Hz)."""

    cutoff_hz: float
    period: float
    order: int = 4

    def __post_init__(self) -> None:
        if not _LOWEST / self.period < self.cutoff_hz < 0.5 / self.period:
            raise SteelyardError(
                f"A cut-off of {self.cutoff_hz:g} Hz is not between 0 and half the sampling rate "
                f"({0.5 / self.period:g} Hz)."
            )

    @property
    def memory(self) -> int:
        """Samples after which the filter has forgotten (to about 1e-4): three periods of the cut-off."""
        return int(np.ceil(3.0 / (self.cutoff_hz * self.period)))

    @cached_property
    def reach(self) -> int:
        """Samples beyond which less than 1e-9 of the filter's weight lies, on either side."""
        # Far out the slowest pole is all that is left, and its share is at most a few times the whole.
        radius = butterworth(self.order, self.cutoff_hz * self.period).radius
        return int(np.ceil(np.log(1e-10) / np.log(max(radius, 1e-10))))

    def of(self, make: Make, samples: int, rows: slice, sparse: Sparse | None = None) -> Array:
        """`rows` of a signal of `samples` rows, filtered; the function `make` of (start, stop) gives parts of it.

        Of a smooth one, which may be `sparse`, `make` gives some of the samples alone.
        """
        pad = min(self.memory, samples - 1)
        return both_ways_of(make, samples, self.order, self.cutoff_hz * self.period, pad, rows, sparse)

    def spacing(self, smooth_hz: float | None, step: int) -> int:
        """Every how many samples a smooth signal is needed for its filtered rows, one every `step` samples.

        What the signal holds near the rate of these samples folds into the filter's band, where it is less than 1e-7 of
        what it was before the smoothing.

        Args:
            smooth_hz: Cut-off of the smoothing, which was of this order [Hz]; None: nobody knows.
            step: Samples from one row to the next; four or more samples of the signal lie between them.
        """
        if smooth_hz is None:
            return 1
        least = smooth_hz * _FOLDED ** (-0.5 / self.order) + _PASSED * self.cutoff_hz
        return max(min(step // _TO_A_ROW, int(1.0 / (least * self.period))), 1)

    def __call__(self, x: Array, rows: slice = slice(None)) -> Array:
        """`x` filtered, or some `rows` of it, the only ones that are computed; samples run along the first axis.

        The same as scipy.signal.sosfiltfilt with as many samples of padding as the filter remembers.
        """
        if x.size == 0:
            return np.asarray(x[rows], dtype=float)
        pad = min(self.memory, len(x) - 1)
        flat = both_ways(x.reshape(len(x), -1), self.order, self.cutoff_hz * self.period, pad, rows)
        return flat.reshape(-1, *x.shape[1:])


def derivative(x: Array, period: float, how: Derivative = "central") -> Array:
    """d/dt of samples `x`, one every `period` (s), along the first axis; `how` is one of four ways.

    "central" differences; "savgol": a local parabola over 7 samples; "spline": of a smoothing cubic spline whose
    stiffness generalised cross-validation chooses (Wahba 1990);
    "fourier": exact for a whole number of periods of a periodic motion.
    """
    if how == "central":
        slope: Array = np.gradient(x, period, axis=0)  # of many robots at once they may lie on a GPU
        return slope
    if how == "savgol":
        from scipy.signal import savgol_filter

        return np.asarray(savgol_filter(x, 7, 2, deriv=1, delta=period, axis=0))
    if how == "spline":
        from scipy.interpolate import make_smoothing_spline

        # In samples, not seconds: the search for the stiffness is scaled for knots one apart.
        k = np.arange(len(x), dtype=float)
        columns = [make_smoothing_spline(k, column).derivative()(k) for column in x.reshape(len(x), -1).T]
        return np.stack(columns, axis=-1).reshape(x.shape) / period
    if how == "fourier":
        rates = 2j * np.pi * np.fft.rfftfreq(len(x), period)
        if len(x) % 2 == 0:
            rates[-1] = 0.0  # the highest frequency of an even count has no derivative of its own
        return np.asarray(np.fft.irfft(rates[:, None] * np.fft.rfft(x, axis=0), len(x), axis=0))
    raise SteelyardError(f"There is no derivative '{how}'; choose central, savgol, spline or fourier.")


# Samples on either side of a place between samples that its value comes from: a polynomial of degree six, whose error
# is below 1e-6 of a sine of ten samples per period.
_EITHER_SIDE = 3


def earlier(x: Array, samples: float) -> Array:
    """Shift a smooth signal by a part of a sample: the value at k − `samples`, by Lagrange's polynomial.

    Args:
        x: Samples along the first axis.
        samples: How much earlier the wanted values are, −1 to 1 [samples].
    """
    nodes = np.arange(-_EITHER_SIDE, _EITHER_SIDE + 1)
    weights = [float(np.prod([(-samples - m) / (j - m) for m in nodes if m != j])) for j in nodes]
    # Ends are mirrored about their values, so that a straight line stays one.
    pad = [(_EITHER_SIDE, _EITHER_SIDE)] + [(0, 0)] * (x.ndim - 1)
    longer = np.pad(x, pad, mode="reflect", reflect_type="odd")
    return np.asarray(sum(w * longer[k : k + len(x)] for k, w in enumerate(weights)))


def delayed(x: Array, samples: float) -> Array:
    """Delay a smooth signal by any number of samples; beyond its ends it stays as it was there.

    Args:
        x: Samples along the first axis.
        samples: The delay, negative for an advance [samples].
    """
    whole = round(samples)
    at = np.clip(np.arange(len(x)) - whole, 0, len(x) - 1)
    rest = samples - whole
    return (earlier(x, rest) if rest else x)[at]


def motion_band(position: Array, period: float, share: float = 0.999, trends: bool = False) -> float:
    """The frequency (Hz) below which `share` of the position's power lies, on the joint where it is highest.

    `position` `(samples, joints)` is sampled every `period` (s). A motion is where a joint goes: power of positions
    falls with the fourth power of frequency at a given acceleration, so that a line far above the motion (two clocks
    that beat, held rows, a mode of the structure), which may well hold most of the velocity's power, holds next to
    nothing of the position's. White noise, which the upper half of the spectrum shows, is taken off first.
    With `trends` a trend counts as the slowest motion that a piece shows; otherwise it does not count.
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
    # Single lines of a noise spectrum reach several times its median; twenty times is beyond nearly all of them.
    lines = np.where(power > 20.0 * np.median(power[len(power) // 2 :], axis=0), power, 0.0)
    lines[0] = 0.0
    if trends:  # by Parseval's theorem
        lines[1] += 0.5 * len(x) * np.sum(((line - line.mean(axis=0)) * window) ** 2, axis=0)
    total = lines.sum(axis=0)
    growth = np.cumsum(lines, axis=0) / np.where(total > 0.0, total, 1.0)
    bands = frequency[np.argmax(growth >= share, axis=0)].reshape(positions.shape[1:])
    total = total.reshape(bands.shape)
    found: Array = np.where(total > 1e-4 * total.max(axis=0), bands, 0.0).max(axis=0)
    return found
