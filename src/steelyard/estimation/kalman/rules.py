"""Rules of sigma points: how far out they lie, and what the propagated ones say about mean and covariance.

Points lie at x ± c·Lᵢ. With x⁺ᵢ, x⁻ᵢ, x⁰ after the step, D¹ᵢ = (x⁺ᵢ − x⁻ᵢ)/2c and D²ᵢ = (x⁺ᵢ + x⁻ᵢ − 2x⁰)/2c, all rules
have the mean x⁰ + Σ D²ᵢ/c and the covariance Σ D¹D¹ᵀ + what they make of D²; the cross-covariance is Σ D¹ᵢ Lᵢᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.robot.spatial import Array


class Rule(Protocol):
    """`reach(n)` is c for n coordinates; `bend(D2)` are columns for the covariance."""

    def reach(self, n: int) -> float: ...
    def bend(self, second: Array, shift: Array) -> Array: ...


@dataclass(frozen=True)
class Unscented:
    """Julier & Uhlmann 2004; c² = α²(n + κ). The weight of the centre adds (β − α²) eeᵀ, e the shift of the mean.

    Written so, nothing is ever subtracted, although the centre's weight is negative for small α. α = 0.1 keeps points
    within a standard deviation for up to a hundred unknowns: at √n standard deviations (α = 1) a robot whose parameters
    are known to 30 % has negative masses.
    """

    alpha: float = 0.1
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        if not (self.alpha > 0.0 and self.beta >= self.alpha**2 and self.kappa >= 0.0):
            raise EstimationError(
                f"alpha is {self.alpha}, beta {self.beta}, kappa {self.kappa}; alpha must be positive, beta at least "
                "alpha², kappa at least 0: otherwise the covariance may become negative."
            )

    def reach(self, n: int) -> float:
        return float(self.alpha * np.sqrt(n + self.kappa))

    def bend(self, second: Array, shift: Array) -> Array:
        return np.hstack([second, np.sqrt(self.beta - self.alpha**2) * shift[:, None]])


@dataclass(frozen=True)
class Cubature:
    """The spherical-radial rule of degree 3 (Arasaratnam & Haykin 2009): c² = n, no centre, no setting.

    Its points lie √n standard deviations out: it needs a start that is good to a few percent.
    """

    def reach(self, n: int) -> float:
        return float(np.sqrt(n))

    def bend(self, second: Array, shift: Array) -> Array:
        return np.asarray(second - second.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class CentralDifference:
    """Stirling's interpolation (Nørgaard, Poulsen & Ravn 2000): c = `step`, √3 for Gaussian errors, whatever n."""

    step: float = 3.0**0.5

    def __post_init__(self) -> None:
        if not self.step >= 1.0:
            raise EstimationError(f"step is {self.step}; the interpolation needs 1 or more.")

    def reach(self, n: int) -> float:
        return self.step

    def bend(self, second: Array, shift: Array) -> Array:
        return np.asarray(np.sqrt(1.0 - 1.0 / self.step**2) * second)
