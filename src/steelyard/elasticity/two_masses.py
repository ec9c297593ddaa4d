"""A joint of two masses in the frequency domain: its dynamic stiffness, and the likelihood of a log.

    τ_m = (Ia s² + Fv s + Z·(Jl s² + g)/(Jl s² + g + Z))·θ + Fc·sgn θ̇,   Z = D s + K

with the rotor Ia, the link Jl, its gravity g about the pose, and the encoder on the motor. Torque and position both
carry noise, and a controller feeds one back to the other, so no transfer function of spectra is unbiased. The residual
of the equation has the variance σ_τ² + |P|² σ_θ², whose Whittle likelihood is (Pintelon & Schoukens 2012, chapter 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array

Spectrum = NDArray[np.complex128]

# Unknowns: log total inertia, log of link over rotor, log antiresonance [rad/s], log damping ratio there, then viscous
# friction, Coulomb friction and gravity in units of the total inertia, the log noise of the torque's equation, and the
# delay of the logged torque [ms].
_UNKNOWNS = 9
# Unknowns that the model of a rigid joint lacks.
_ELASTIC = (1, 2, 3)
# Leakage of a mean or a trend under a Hann window [bins].
_LEAKED = 3
# Upper end of the band, as a share of the sampling rate: anti-aliasing filters and holds act above it.
_HIGHEST = 0.4
# A line is excited if its power exceeds the noise by this factor; the band ends when less than half are excited.
_EXCITED, _BAND = 10.0, 0.01
# Grid of the search: antiresonances, ratios of the masses, damping ratio.
_FREQUENCIES, _RATIOS, _DAMPING = 80, (0.1, 0.3, 1.0, 3.0, 10.0), 0.03
# Maximum number of spectral lines in the search; the refinement uses all lines.
_SEARCHED = 1_500
# Number of the best grid points that start a refinement.
_REFINED = 6
# Continuation of the refinement: relative errors of the torque, in this order. The likelihood of an exact log has a
# very narrow peak; a larger error widens the peak, and its maximum starts the next refinement.
_RELATIVE = (0.3, 0.1, 0.03, 0.0)
# Neighbouring bins are correlated by leakage; their scores are summed before the squares.
_GROUP = 4
# Step of numerical derivatives of the residual.
_DELTA = 1e-5


@dataclass(frozen=True, eq=False)
class JointSpectra:
    """Spectra of a log of one joint, under a Hann window.

    Attributes:
        s: 2πi times the frequencies [rad/s].
        torque, position, direction: Spectra of torque, motor position and direction of motion.
        noise: Variance of the position noise, equal at all frequencies [rad² or m²].
        reached_hz: Highest frequency of motion above the noise, and end of the spectra.
    """

    s: Spectrum
    torque: Spectrum
    position: Spectrum
    direction: Spectrum
    noise: Array
    reached_hz: float

    @classmethod
    def of(cls, theta: Array, tau: Array, direction: Array, period: float) -> JointSpectra:
        """Transform signals.

        Args:
            theta: Motor positions over the gear [rad or m].
            tau: Torque of the motor over the gear [N m or N].
            direction: Direction of the motor's motion.
            period: Time between samples [s].
        """
        n = len(theta)
        window = np.hanning(n) / np.sqrt(np.sum(np.hanning(n) ** 2))
        u, p, d = (np.fft.rfft(window * (x - x.mean()))[_LEAKED : int(_HIGHEST * n)] for x in (tau, theta, direction))
        frequencies = np.fft.rfftfreq(n, period)[_LEAKED : int(_HIGHEST * n)]
        # Encoder noise is white, so its power is the power of the quietest band.
        width = max(int(_BAND * len(p)), 8)
        white = float(
            min(np.median(np.abs(p[k : k + width]) ** 2) for k in range(0, len(p) - width, width)) / np.log(2)
        )
        above = np.convolve(np.abs(p) ** 2 > _EXCITED * white, np.ones(width) / width, mode="same") > 0.5
        count = int(np.flatnonzero(above)[-1]) + 1 if above.any() else 0
        s = 2j * np.pi * frequencies[:count]
        reached = float(frequencies[count - 1]) if count else 0.0
        lines = [np.asarray(x[:count], dtype=np.complex128) for x in (s, u, p, d)]
        return cls(lines[0], lines[1], lines[2], lines[3], np.full(count, white), reached)


# s, torque, position, direction, and the variances of position noise and torque errors.
_Data = tuple[Spectrum, Spectrum, Spectrum, Spectrum, Array, Array]


@dataclass(frozen=True, eq=False)
class TwoMassFit:
    """The joint with the highest likelihood.

    Attributes:
        x: Unknowns.
        covariance: Covariance of the unknowns.
        gain: Log likelihood minus that of a rigid joint.
        reached_hz: Highest frequency of motion above the noise.
    """

    x: Array
    covariance: Array
    gain: float
    reached_hz: float


def numbers_of(x: Array) -> Array:
    """Convert unknowns to Ia, Jl, K, D, antiresonance [Hz] and resonance [Hz].

    Args:
        x: Unknowns.
    """
    J, ratio, wa, zeta = np.exp(x[:4])
    rotor = J / (1.0 + ratio)
    link = J - rotor
    return np.array([
        rotor, link, link * wa**2, 2.0 * zeta * wa * link, wa / (2 * np.pi), wa * np.sqrt(1.0 + ratio) / (2 * np.pi),
    ])  # fmt: skip


def dynamic_stiffness(s: Spectrum, x: Array) -> Spectrum:
    """Compute P(s) without Coulomb friction [N m/rad or N/m].

    Args:
        s: Complex frequencies [rad/s].
        x: Unknowns.
    """
    rotor, link, K, D = numbers_of(x)[:4]
    J = float(np.exp(x[0]))
    Z, load = D * s + K, link * s**2 + x[6] * J
    return np.asarray(rotor * s**2 + x[4] * J * s + Z * load / (load + Z))


def fit_two_masses(spectra: Sequence[JointSpectra]) -> TwoMassFit:
    """Fit a joint of two masses.

    Args:
        spectra: Spectra of the logs.
    """
    s, u, p, d, white = (
        np.concatenate([getattr(x, n) for x in spectra]) for n in ("s", "torque", "position", "direction", "noise")
    )
    starts, stiff = _starts((s, u, p, d)), (np.zeros(_UNKNOWNS), np.inf)
    data: _Data = (s, u, p, d, white, white)
    for relative in _RELATIVE:
        data = (s, u, p, d, white, relative**2 * np.abs(u) ** 2)
        tries = sorted((_refined(x, data) for x in starts), key=lambda r: r[1])
        starts = [x for x, _ in tries[: max(len(tries) // 2, 1)]]
        stiff_start = stiff[0] if np.isfinite(stiff[1]) else starts[0] + np.log(1e3) * (np.arange(_UNKNOWNS) == 2)
        stiff = _refined(stiff_start, data, stiff=True)
    x, cost = tries[0]
    return TwoMassFit(x, _covariance(x, data), stiff[1] - cost, max(one.reached_hz for one in spectra))


def _residual(x: Array, data: _Data) -> tuple[Spectrum, Array]:
    s, u, p, d, white, more = data
    P = dynamic_stiffness(s, x)
    error = u - (P * p + x[5] * np.exp(x[0]) * d) * np.exp(1e-3 * x[8] * s)
    return error, np.exp(2.0 * x[7]) + np.abs(P) ** 2 * white + more


def _cost(x: Array, data: _Data) -> float:
    """Return the negative log likelihood."""
    if abs(x[1]) > 12.0 or not -9.0 < x[3] < 1.0 or np.any(np.abs(x) > 1e8):
        return np.inf
    with np.errstate(all="ignore"):
        error, variance = _residual(x, data)
        value = float(np.sum(np.log(variance) + np.abs(error) ** 2 / variance))
    return value if np.isfinite(value) else np.inf


def _slopes(x: Array, data: _Data) -> tuple[Array, Array, Spectrum, Array]:
    """Return the derivatives of the error and of the log variance, shape (unknowns, frequencies), and both values."""
    error, variance = _residual(x, data)
    slopes, logs = [], []
    for k in range(_UNKNOWNS):
        move = np.zeros(_UNKNOWNS)
        move[k] = _DELTA * max(1.0, abs(x[k]) if k in (4, 5, 6) else 1.0)
        (a, va), (b, vb) = _residual(x + move, data), _residual(x - move, data)
        slopes.append((a - b) / (2.0 * move[k]))
        logs.append(np.log(va / vb) / (2.0 * move[k]))
    return np.array(slopes), np.array(logs), error, variance


def _scores(slopes: Array, logs: Array, error: Spectrum, variance: Array) -> tuple[Array, Array]:
    """Return the gradient of each line's cost, and the expected curvature of the sum."""
    size = np.abs(error) ** 2 / variance
    gradient = 2.0 * np.real(slopes.conj() * error) / variance + logs * (1.0 - size)
    return gradient, 2.0 * np.real((slopes.conj() / variance) @ slopes.T) + logs @ logs.T


def _refined(start: Array, data: _Data, stiff: bool = False) -> tuple[Array, float]:
    """Minimise the cost by Fisher scoring with the damping of Levenberg and Marquardt."""
    free = np.array([k for k in range(_UNKNOWNS) if not (stiff and k in _ELASTIC)])
    x, cost, damping = start.copy(), _cost(start, data), 1e-2
    for _ in range(200):
        gradient, curvature = _scores(*_slopes(x, data))
        g, H = gradient.sum(axis=1)[free], curvature[np.ix_(free, free)]
        better = False
        while damping < 1e8:
            diagonal = np.maximum(np.diag(H), 1e-12 * np.max(np.diag(H)))
            step = np.zeros(_UNKNOWNS)
            step[free] = -np.linalg.lstsq(H + damping * np.diag(diagonal), g, rcond=1e-14)[0]
            new = _cost(x + step, data)
            if new < cost:
                gain, better = cost - new, True
                x, cost, damping = x + step, new, max(0.2 * damping, 1e-9)
                break
            damping *= 4.0
        if not better or gain < 1e-6:
            break
    return x, cost


def _covariance(x: Array, data: _Data) -> Array:
    """Return the sandwich covariance; sums the scores of neighbouring lines, because the window correlates them."""
    scores, curvature = _scores(*_slopes(x, data))
    groups = np.add.reduceat(scores, np.arange(0, scores.shape[1], _GROUP), axis=1)
    inverse = np.linalg.pinv(curvature)
    return np.asarray(inverse @ (groups @ groups.T) @ inverse)


def _starts(data: tuple[Spectrum, ...]) -> list[Array]:
    """Return the best joints of a grid, with linear least squares for inertia and friction."""
    thin = max(1, len(data[0]) // _SEARCHED)
    s, u, p, d = (x[::thin] for x in data)
    low, high = np.min(np.abs(s)), np.max(np.abs(s))
    weight = 1.0 / np.maximum(np.abs(u), 0.1 * np.median(np.abs(u)))  # relative errors balance both ends of the band
    y = np.concatenate([(u * weight).real, (u * weight).imag])
    out = []
    for wa in np.geomspace(3.0 * low, high, _FREQUENCIES):
        for ratio in _RATIOS:
            x = np.zeros(_UNKNOWNS)
            x[1:4] = np.log([ratio, wa, _DAMPING])
            columns = np.column_stack([dynamic_stiffness(s, x) * p, s * p, d]) * weight[:, None]
            A = np.vstack([columns.real, columns.imag])
            scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
            beta = np.linalg.lstsq(A / scale, y, rcond=None)[0] / scale
            if beta[0] > 0.0:
                J = beta[0]
                noise = 0.5 * np.log(max(np.median(np.abs(u - (columns @ beta) / weight) ** 2), 1e-300))
                x[[0, 4, 5, 7]] = np.log(J), max(beta[1], 0.0) / J, beta[2] / J, noise
                out.append((float(np.sum((y - A @ beta) ** 2)), x))
    out.sort(key=lambda one: one[0])
    starts: list[Array] = []
    for _, x in out:  # starts with different antiresonances
        if all(abs(x[2] - other[2]) > 0.1 for other in starts):
            starts.append(x)
        if len(starts) == _REFINED:
            break
    return starts
