"""Rules of sigma points: their distance, and mean and covariance from the propagated points.

Points are x ± c·Lᵢ. With x⁺ᵢ, x⁻ᵢ, x⁰ after the step, D¹ᵢ = (x⁺ᵢ − x⁻ᵢ)/2c and D²ᵢ = (x⁺ᵢ + x⁻ᵢ − 2x⁰)/2c, all rules
have the mean x⁰ + Σ D²ᵢ/c and the covariance Σ D¹D¹ᵀ + a term in D² of the rule; the cross-covariance is Σ D¹ᵢ Lᵢᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dtrtrs

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.kalman._belief import Belief
from steelyard.estimation.kalman._transition import Transition
from steelyard.ground.arrays import Array


class Rule(Protocol):
    """A rule of sigma points."""

    def reach(self, n: int) -> float:
        """Return c for `n` coordinates."""

    def bend(self, second: Array, shift: Array) -> Array:
        """Compute columns of the covariance.

        Args:
            second: Second differences of the points, by column.
            shift: Shift of the mean.
        """


@dataclass(frozen=True)
class Unscented(Rule):
    """Julier & Uhlmann 2004; c² = α²(n + κ). The weight of the centre adds (β − α²) eeᵀ, e the shift of the mean.

    In this form nothing is subtracted, although the centre's weight is negative for small α. α = 0.1 keeps points
    within a standard deviation for up to a hundred unknowns: at √n standard deviations (α = 1) a robot with parameters
    known to 30 % has negative masses.
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
class Cubature(Rule):
    """The spherical-radial rule of degree 3 (Arasaratnam & Haykin 2009): c² = n, no centre, no setting.

    Its points are at √n standard deviations: it needs initial values that are accurate to a few percent.
    """

    def reach(self, n: int) -> float:
        return float(np.sqrt(n))

    def bend(self, second: Array, shift: Array) -> Array:
        return np.asarray(second - second.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class CentralDifference(Rule):
    """Stirling's interpolation (Nørgaard, Poulsen & Ravn 2000): c = `step`, √3 for Gaussian errors, whatever n."""

    step: float = 3.0**0.5

    def __post_init__(self) -> None:
        if not self.step >= 1.0:
            raise EstimationError(f"step is {self.step}; the interpolation needs at least 1.")

    def reach(self, n: int) -> float:
        return self.step

    def bend(self, second: Array, shift: Array) -> Array:
        return np.asarray(np.sqrt(1.0 - 1.0 / self.step**2) * second)


@dataclass(frozen=True, eq=False)
class StepNoise:
    """Standard deviations of the noise of a step: torque errors (dof,), and direct errors of the state (2 · dof,)."""

    torque: Array
    state: Array

    @cached_property
    def state_columns(self) -> Array:
        return np.diag(self.state)


class Predictor(Protocol):
    """Predicts one step of a Kalman filter."""

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        """Step the belief.

        Args:
            belief: Mean and covariance of parameters and state.
            transition: Step of the model.
            start: Torques [N m, N] at the start of the step.
            end: Torques at the end.
            noise: Noise of the step.
            sloped: Whether derivatives are needed, for smoothing.

        Returns:
            ∂(state)/∂(parameters, state), or its estimate from the points, if `sloped`.
        """


@dataclass(frozen=True, eq=False)
class ByDerivatives(Predictor):
    """The extended Kalman filter with exact derivatives of the computed step.

    With parameters `about`, derivatives are taken there and the step is that of the tangent: an iterated filter.
    """

    about: Array | None = None

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        about = belief.beta if self.about is None else self.about
        step = transition.linearise(belief.x, about, start, end)
        n = transition.dof
        columns = np.empty((2 * n, 3 * n))
        columns[:, :n], columns[:, n:] = step.by_torque * noise.torque, noise.state_columns
        x = step.x + step.by_parameters @ (belief.beta - about)
        belief.propagate(x, step.by_state, step.by_parameters, columns)
        return np.hstack([step.by_parameters, step.by_state]) if sloped else None


@dataclass(frozen=True)
class BySigmaPoints(Predictor):
    """Sigma points: the centre and two points for every parameter, coordinate of the state and torque."""

    rule: Rule

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        L, p, n = belief.save_root(), belief.p, transition.dof
        d, m = len(L), len(L) + n
        c = self.rule.reach(m)
        z = np.tile(belief.z, (2 * m + 1, 1))
        z[1 : d + 1] += c * L.T
        z[m + 1 : m + d + 1] -= c * L.T
        torque_errors = np.zeros((2 * m + 1, n))
        torque_errors[d + 1 : m + 1] = c * np.diag(noise.torque)
        torque_errors[m + d + 1 :] = -torque_errors[d + 1 : m + 1]
        x = transition.step(z[:, p:], z[:, :p], start + torque_errors, end + torque_errors)
        plus, minus = x[1 : m + 1].T, x[m + 1 :].T
        first = (plus - minus) / (2.0 * c)
        second = (plus + minus - 2.0 * x[0][:, None]) / (2.0 * c)
        shift = second.sum(axis=1) / c
        # Computed before L is overwritten.
        slope = np.asarray(dtrtrs(L, first[:, :d].T, lower=1, trans=1)[0].T) if sloped else None
        columns = np.hstack([first[:, p:], self.rule.bend(second, shift), noise.state_columns])
        belief.propagate_points(x[0] + shift, first[:, :p], columns)
        return slope
