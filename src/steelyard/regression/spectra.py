"""`Spectra`: Gram matrices of the rows [A y] by frequency band, for error bars with correlated residuals.

The Fourier transform of a block without gaps is unitary, so the Gram matrices of all bands sum to [A y]ᵀ[A y]. Since
the residuals y − Aβ are a combination of the columns, their power in every band follows for any β without another
pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.regression.rows import Equation

# Bands per octave; noise spectra of robots vary over decades, so few suffice.
_BANDS_PER_OCTAVE = 2
# Longer blocks are divided: correlation over more rows than this is ignored.
_LONGEST = 1 << 15
# The band of frequency zero, below all others.
_CONSTANT = -1000
_LOWEST = -round(_BANDS_PER_OCTAVE * np.log2(_LONGEST))
# Lower edges of the bands, the constant one first [cycles per row].
BAND_EDGES = np.concatenate([[0.0], 2.0 ** (np.arange(_LOWEST, 1 - _BANDS_PER_OCTAVE) / _BANDS_PER_OCTAVE)])


@dataclass(frozen=True, eq=False)
class Spectra:
    """Number of real Fourier coefficients and their Gram matrix over [A y], by (equation, band)."""

    equations: tuple[Equation, ...]
    counts: dict[tuple[int, int], float] = field(default_factory=dict)
    grams: dict[tuple[int, int], Array] = field(default_factory=dict)

    def add(self, equation: int, rows: Array) -> None:
        """Add consecutive rows without gaps.

        Args:
            equation: Number of the equation.
            rows: Rows [A y].
        """
        for a, b in _pieces(len(rows)):
            for band, count, gram in _transform(rows[a:b]):
                key = (equation, band)
                if key in self.grams:
                    self.grams[key] += gram
                    self.counts[key] += count
                else:
                    self.grams[key], self.counts[key] = gram, count

    def residual_power(self, theta: Array) -> tuple[Array, Array]:
        """Compute number of coefficients and power of y − A θ by equation and band, from the lowest.

        Args:
            theta: Full parameter vector.
        """
        counts, powers = np.zeros((2, len(self.equations), len(BAND_EDGES)))
        for (e, band), gram in self.grams.items():
            way = np.append(-theta[self.equations[e].columns], 1.0)
            place = 0 if band == _CONSTANT else band - _LOWEST + 1
            counts[e, place] += self.counts[e, band]
            powers[e, place] += max(float(way @ gram @ way), 0.0)
        return counts, powers

    def merge(self, *others: Spectra) -> Spectra:
        """Combine with `others`."""
        made = Spectra(self.equations, dict(self.counts), dict(self.grams))
        for other in others:
            for key, gram in other.grams.items():
                made.counts[key] = made.counts.get(key, 0.0) + other.counts[key]
                made.grams[key] = made.grams[key] + gram if key in made.grams else gram
        return made


def _pieces(rows: int) -> Iterator[tuple[int, int]]:
    """Divide a block into pieces of the maximum length."""
    count = -(-rows // _LONGEST)
    return pairwise(np.linspace(0, rows, count + 1).astype(int).tolist() if count else [0])


def _transform(rows: Array) -> Iterator[tuple[int, float, Array]]:
    """Transform along the first axis (unitary, real) and sum by band: (band, coefficients, Gram matrix)."""
    n = len(rows)
    both = np.fft.rfft(rows, axis=0)
    twice = np.full(len(both), 2.0)  # a frequency and its mirror image, except for 0 and Nyquist
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    both *= np.sqrt(twice / n)[:, None]
    numbers = np.full(len(both), _CONSTANT)
    numbers[1:] = np.floor(_BANDS_PER_OCTAVE * np.log2(np.arange(1, len(both)) / n + 1e-15)).astype(int)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    # Stack real and imaginary parts: one product per band.
    flat = np.stack([both.real, both.imag], axis=1).reshape(-1, rows.shape[1])
    for a, b in zip(starts, [*starts[1:], len(both)], strict=True):
        part = flat[2 * a : 2 * b]
        yield int(numbers[a]), float(twice[a:b].sum()), part.T @ part
