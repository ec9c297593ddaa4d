"""Sums of sinusoids: their derivatives, and how far they can go between samples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from steelyard.robot.spatial import Array

# Steps per radian of the fastest wave of a grid; with the remainder's bound the extent is wide by less than 0.1 %.
_STEPS_PER_RADIAN = 16.0


def waves(t: Array, omega: Array, derivative: int) -> Array:
    """(samples, 2·waves): derivatives of sin ω₁t … sin ω_k t, cos ω₁t … cos ω_k t."""
    # Quarter turns by exchange rather than by adding π/2: zeros at t = 0 stay exact.
    turned = np.outer(t, omega)
    s, c = np.sin(turned), np.cos(turned)
    sine, cosine = ((s, c), (c, -s), (-s, -c), (-c, s))[derivative % 4]
    scale = omega**derivative
    return np.hstack([sine * scale, cosine * scale])


def differentiate(amplitudes: Array, omega: Array, derivative: int) -> Array:
    """The sin and cos amplitudes of a derivative of Σ s sin ωt + c cos ωt."""
    sine, cosine = np.split(amplitudes, 2)
    for _ in range(derivative):
        sine, cosine = -omega * cosine, omega * sine
    return np.concatenate([sine, cosine])


def sinusoid_extent(constant: float, amplitudes: Array, omega: Array, duration: float) -> tuple[float, float]:
    """Least and greatest value of constant + Σ over [0, duration]; `amplitudes` are those of sin…, cos….

    On a grid of step h a function exceeds its neighbours by h²/8·max|f″| at most (the error of linear interpolation).
    max|f″| is bounded the same way from the grid and f⁗, and that from Σ ω⁴·√(a² + b²), which holds at all times.
    """
    values_of, seconds_of, share = _grid(tuple(omega.tolist()), duration)
    k = len(omega)
    fourth = float(np.hypot(amplitudes[:k], amplitudes[k:]) @ omega**4)
    second = float(np.abs(seconds_of @ amplitudes).max())
    values = constant + values_of @ amplitudes
    rounding = 1e-14 * (abs(constant) + float(np.abs(amplitudes).sum()))
    remainder = share * (second + share * fourth) + rounding
    return float(values.min()) - remainder, float(values.max()) + remainder


@lru_cache(maxsize=32)
def _grid(omega: tuple[float, ...], duration: float) -> tuple[Array, Array, float]:
    """The waves and their second derivatives on a grid, and h²/8; kept, for optimisers ask again and again."""
    steps = max(2, int(np.ceil(duration * max(omega) * _STEPS_PER_RADIAN)))
    t = np.linspace(0.0, duration, steps + 1)
    return waves(t, np.array(omega), 0), waves(t, np.array(omega), 2), (duration / steps) ** 2 / 8.0
