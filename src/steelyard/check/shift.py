"""By how many samples one signal lags another."""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array


def best_shift(a: Array, b: Array, most: int) -> tuple[float, float]:
    """The lag of `b` behind `a`, in samples, where they have most in common, and the share r² they then have.

    Signs do not matter. The lag is refined between samples by a parabola through r².
    """
    most = min(most, len(a) // 4)
    x, y = a - a.mean(), b - b.mean()
    size = 1 << (len(x) + most).bit_length()
    product = np.fft.irfft(np.conj(np.fft.rfft(x, size)) * np.fft.rfft(y, size), size)
    lags = np.arange(-most, most + 1)
    before, after = np.cumsum(x * x), np.cumsum(y * y)
    common = np.array([_energy(before, after, int(s)) for s in lags])
    share = np.where(common > 0.0, product[lags] ** 2 / np.maximum(common, 1e-300), 0.0)
    best = int(np.argmax(share))
    return float(lags[best]) + vertex(share, best), float(min(share[best], 1.0))


def vertex(values: Array, place: int) -> float:
    """Where, relative to `place`, the parabola through it and its neighbours has its extreme; 0 at the ends."""
    if not 0 < place < len(values) - 1:
        return 0.0
    left, middle, right = values[place - 1 : place + 2]
    bend = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend != 0.0 else 0.0


def _energy(before: Array, after: Array, shift: int) -> float:
    """Σa² Σb² over the samples that overlap when b is taken `shift` later."""
    n = len(before)
    if shift >= 0:
        return float(before[n - shift - 1] * (after[-1] - (after[shift - 1] if shift else 0.0)))
    return float((before[-1] - before[-shift - 1]) * after[n + shift - 1])
