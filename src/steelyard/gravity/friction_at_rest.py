"""Dry friction of a standing joint: noise, a torque against the last motion, or any value inside a tube.

At rest, friction takes the value that balances the joint, anywhere between −F and F. Only residuals outside
of the tube contain information about gravity. With f uniform in the tube and Gaussian noise σ, the density of r = f + e
is (Φ((F − r)/σ) − Φ((−F − r)/σ)) / 2F, which is log-concave in r. Its maximum over the parameters minimises the
distance of the residuals to the tube, and the width of the tube.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95

FrictionKind = Literal["noise", "side", "tube"]
# Noise below this share of the tube is not identifiable: only one of fifty poses would show it.
_LEAST_NOISE = 0.02
# Width of the search of a tube at its end, as a share of its limit and noise; thirty poses determine no more.
_FINEST = 0.03
_SQRT_2_PI = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True)
class FrictionAtRest:
    """Distribution of the residual torque of one joint at rest.

    Attributes:
        kind: "noise": Gaussian; "side": Coulomb friction against the last motion, and Gaussian noise; "tube": uniform
            within ± `limit`, and Gaussian noise.
        limit: Friction [N m or N]; 0 for "noise"; negative if the torque points along the last motion.
        noise: Standard deviation of the noise [N m or N].
    """

    kind: FrictionKind
    limit: float
    noise: float

    def log_density(self, r: Array, variance: Array | float = 0.0) -> Array:
        """Compute the logarithm of the density of residuals, without the friction of "side".

        Args:
            r: Residuals [N m or N].
            variance: Variance that adds to that of the noise.
        """
        noise = np.sqrt(self.noise**2 + variance)
        if self.kind != "tube":
            return np.asarray(-0.5 * (r / noise) ** 2 - np.log(noise * _SQRT_2_PI))
        return np.asarray(_log_difference(r, self.limit, noise) - np.log(2.0 * self.limit))

    def slope_and_weight(self, r: Array, variance: Array | float = 0.0) -> tuple[Array, Array]:
        """Compute the first derivative of the logarithm of the density, and minus the second one.

        Args:
            r: Residuals [N m or N].
            variance: Additional variance of the noise; a tube ignores it.
        """
        if self.kind != "tube":
            total = self.noise**2 + variance
            return -r / total, np.ones_like(r) / total
        log_d = _log_difference(r, self.limit, self.noise)
        u, v = (self.limit - r) / self.noise, (-self.limit - r) / self.noise
        pu, pv = (np.exp(np.minimum(-0.5 * x**2 - log_d, 600.0)) / _SQRT_2_PI for x in (u, v))
        slope = -(pu - pv) / self.noise
        weight = (u * pu - v * pv) / self.noise**2 + slope**2
        return slope, np.maximum(weight, 0.0)

    def information(self) -> float:
        """Compute the Fisher information of one residual about its mean [1/(N m)²]."""
        if self.kind != "tube":
            return float(self.noise**-2)
        ratios, logs = _information_table()
        return float(np.exp(np.interp(np.log(self.limit / self.noise), ratios, logs))) / self.noise**2

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval of the residuals [N m or N]."""
        if self.kind != "tube":
            return HALF_WIDTH_95 * self.noise
        r = np.linspace(0.0, self.limit + 5.0 * self.noise, 400)
        p = np.exp(self.log_density(r))
        share = np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]) * np.diff(r))])
        return float(np.interp(0.95 * share[-1], share, r))


@cache
def _information_table() -> tuple[Array, Array]:
    """Compute logarithms of the Fisher information of a tube in units of 1/σ², over those of F/σ, by quadrature."""
    ratios = np.linspace(np.log(1e-2), np.log(1.0 / _LEAST_NOISE), 80)
    r = np.linspace(0.0, 1.0 / _LEAST_NOISE + 8.0, 6001)
    logs = []
    for ratio in np.exp(ratios):
        tube = FrictionAtRest("tube", float(ratio), 1.0)
        slope = tube.slope_and_weight(r)[0]
        logs.append(np.log(2.0 * np.trapezoid(slope**2 * np.exp(tube.log_density(r)), r)))
    return ratios, np.array(logs)


def _log_difference(r: Array, limit: Array | float, noise: Array | float) -> Array:
    """Compute log(Φ((F − r)/σ) − Φ((−F − r)/σ)), also far outside of the tube."""
    from scipy.special import log_ndtr

    r = np.abs(r)
    near, far = log_ndtr((limit - r) / noise), log_ndtr((-limit - r) / noise)
    return np.asarray(near + np.log1p(-np.exp(np.minimum(far - near, -1e-12))))


def fit_tube(r: Array, start: FrictionAtRest | None = None, least_noise: float = 1e-12) -> FrictionAtRest:
    """Fit width and noise of a tube to residuals by maximum likelihood.

    Args:
        r: Residuals of one joint [N m or N].
        start: Result of the last iteration.
        least_noise: Least standard deviation of the noise [N m or N].
    """
    size = max(float(np.sqrt(np.mean(r**2))), least_noise)
    warm = start is not None and start.kind == "tube"
    limit, noise = (start.limit, start.noise) if start is not None and warm else (1.6 * size, 0.2 * size)
    x, width = np.log([limit, noise]), 0.1 if warm else 0.4
    moves = np.array([[a, b] for a in (0, -1, 1) for b in (0, -1, 1)])
    # A pattern search: of nine neighbours the best one, or half of the width.
    while width > _FINEST:
        limits, noises = np.exp(x + width * moves).T[:, :, None]
        noises = np.maximum(np.maximum(noises, _LEAST_NOISE * limits), least_noise)
        values = np.sum(_log_difference(r, limits, noises) - np.log(limits), axis=1)
        best = int(np.argmax(values))
        x = x + width * moves[best]
        width = width if best else 0.5 * width
        if np.any(x < np.log(1e-4 * size)):
            break
    limit = float(np.exp(x[0]))
    return FrictionAtRest("tube", limit, max(float(np.exp(x[1])), _LEAST_NOISE * limit, least_noise))
