"""`Spectra`: Gram matrices of the rows [A y] by frequency band, from which error bars of correlated residuals follow.

The Fourier transform of a gap-free block is unitary, so the Gram matrices of all bands add up to [A y]ᵀ[A y]; and since
the residuals y − Aβ are a combination of the columns, their power in every band is known for any β, without another
pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.regression.rows import Equation

# Bands per factor of two in frequency: noise spectra of robots fall by decades, not by octaves.
_BANDS_PER_OCTAVE = 2
# Longer blocks are cut: correlation over more rows than this is not looked for.
_LONGEST = 1 << 15
# The band of frequency zero, below all others.
_CONSTANT = -1000
_LOWEST = -round(_BANDS_PER_OCTAVE * np.log2(_LONGEST))
# Where every band begins, the constant one first, in cycles per row.
BAND_EDGES = np.concatenate([[0.0], 2.0 ** (np.arange(_LOWEST, 1 - _BANDS_PER_OCTAVE) / _BANDS_PER_OCTAVE)])


@dataclass(frozen=True, eq=False)
class Spectra:
    """By (equation, band): how many real Fourier coefficients it holds, and their Gram matrix over [A y]."""

    equations: tuple[Equation, ...]
    counts: dict[tuple[int, int], float] = field(default_factory=dict)
    grams: dict[tuple[int, int], Array] = field(default_factory=dict)

    def add(self, equation: int, rows: Array) -> None:
        """Take in consecutive `rows` [A y] of one `equation` (its number), free of gaps."""
        for a, b in _pieces(len(rows)):
            for band, count, gram in _transform(rows[a:b]):
                key = (equation, band)
                if key in self.grams:
                    self.grams[key] += gram
                    self.counts[key] += count
                else:
                    self.grams[key], self.counts[key] = gram, count

    def residual_power(self, theta: Array) -> tuple[Array, Array]:
        """Of every equation and band, from the lowest, how many coefficients it has and the power of y − A θ in them.

        Args:
            theta: the full vector of parameters.
        """
        counts, powers = np.zeros((2, len(self.equations), len(BAND_EDGES)))
        for (e, band), gram in self.grams.items():
            way = np.append(-theta[self.equations[e].columns], 1.0)
            place = 0 if band == _CONSTANT else band - _LOWEST + 1
            counts[e, place] += self.counts[e, band]
            powers[e, place] += max(float(way @ gram @ way), 0.0)
        return counts, powers

    def merge(self, *others: Spectra) -> Spectra:
        """Of these rows and those of `others` together."""
        made = Spectra(self.equations, dict(self.counts), dict(self.grams))
        for other in others:
            for key, gram in other.grams.items():
                made.counts[key] = made.counts.get(key, 0.0) + other.counts[key]
                made.grams[key] = made.grams[key] + gram if key in made.grams else gram
        return made


def _pieces(rows: int) -> Iterator[tuple[int, int]]:
    """Where a block is cut so that no piece is longer than what is looked at for correlation."""
    count = -(-rows // _LONGEST)
    return pairwise(np.linspace(0, rows, count + 1).astype(int).tolist() if count else [0])


def _transform(rows: Array) -> Iterator[tuple[int, float, Array]]:
    """Unitary real Fourier transform along the first axis, summed by band: (band, coefficients, Gram matrix)."""
    n = len(rows)
    both = np.fft.rfft(rows, axis=0)
    twice = np.full(len(both), 2.0)  # a frequency and its mirror image; 0 and Nyquist have none
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    both *= np.sqrt(twice / n)[:, None]
    numbers = np.full(len(both), _CONSTANT)
    numbers[1:] = np.floor(_BANDS_PER_OCTAVE * np.log2(np.arange(1, len(both)) / n + 1e-15)).astype(int)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    # Real and imaginary parts one below the other: one product a band.
    flat = np.stack([both.real, both.imag], axis=1).reshape(-1, rows.shape[1])
    for a, b in zip(starts, [*starts[1:], len(both)], strict=True):
        part = flat[2 * a : 2 * b]
        yield int(numbers[a]), float(twice[a:b].sum()), part.T @ part
