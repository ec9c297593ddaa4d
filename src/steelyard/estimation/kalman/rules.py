"""Rules of sigma points: how far out they lie, and what the propagated ones say about mean and covariance.

Points lie at x ± c·Lᵢ. With x⁺ᵢ, x⁻ᵢ, x⁰ after the step, D¹ᵢ = (x⁺ᵢ − x⁻ᵢ)/2c and D²ᵢ = (x⁺ᵢ + x⁻ᵢ − 2x⁰)/2c, all rules
have the mean x⁰ + Σ D²ᵢ/c and the covariance Σ D¹D¹ᵀ + what they make of D²; the cross-covariance is Σ D¹ᵢ Lᵢᵀ.
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
    """`reach` is c for `n` coordinates; `bend` are columns for the covariance.

    They are made of the `second` differences of the points, by column, and the `shift` of the mean.
    """

    def reach(self, n: int) -> float: ...
    def bend(self, second: Array, shift: Array) -> Array: ...


@dataclass(frozen=True)
class Unscented(Rule):
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
class Cubature(Rule):
    """The spherical-radial rule of degree 3 (Arasaratnam & Haykin 2009): c² = n, no centre, no setting.

    Its points lie √n standard deviations out: it needs a start that is good to a few percent.
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
            raise EstimationError(f"step is {self.step}; the interpolation needs 1 or more.")

    def reach(self, n: int) -> float:
        return self.step

    def bend(self, second: Array, shift: Array) -> Array:
        return np.asarray(np.sqrt(1.0 - 1.0 / self.step**2) * second)


@dataclass(frozen=True, eq=False)
class StepNoise:
    """Standard deviations of what a step adds: torque errors `(dof,)`, and the state directly `(2 · dof,)`."""

    torque: Array
    state: Array

    @cached_property
    def state_columns(self) -> Array:
        return np.diag(self.state)


class Predictor(Protocol):
    """One step of a Kalman filter."""

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        """Moves the belief; gives ∂(state)/∂(parameters, state), or what the points make of it, where that is wanted.

        Args:
            belief: mean and covariance of parameters and state.
            transition: a step of the model.
            start, end: torques (N m, N) at the step's beginning and end.
            noise: what the step adds.
            sloped: whether derivatives are wanted, for smoothing.
        """


@dataclass(frozen=True, eq=False)
class ByDerivatives(Predictor):
    """The extended Kalman filter: exact derivatives of the step as it is computed.

    With parameters `about` they are taken there, and the step is the tangent's: an iterated filter.
    """

    about: Array | None = None

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        about = belief.beta if self.about is None else self.about
        found = transition.linearised(belief.x, about, start, end)
        n = transition.dof
        columns = np.empty((2 * n, 3 * n))
        columns[:, :n], columns[:, n:] = found.by_torque * noise.torque, noise.state_columns
        x = found.x + found.by_parameters @ (belief.beta - about)
        belief.propagate(x, found.by_state, found.by_parameters, columns)
        return np.hstack([found.by_parameters, found.by_state]) if sloped else None


@dataclass(frozen=True)
class BySigmaPoints(Predictor):
    """Two points for every parameter, coordinate of the state and torque, and the centre."""

    rule: Rule

    def __call__(
        self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise, sloped: bool = False
    ) -> Array | None:
        L, p, n = belief.remember(), belief.p, transition.dof
        d, m = len(L), len(L) + n
        c = self.rule.reach(m)
        z = np.tile(belief.z, (2 * m + 1, 1))
        z[1 : d + 1] += c * L.T
        z[m + 1 : m + d + 1] -= c * L.T
        off = np.zeros((2 * m + 1, n))
        off[d + 1 : m + 1] = c * np.diag(noise.torque)
        off[m + d + 1 :] = -off[d + 1 : m + 1]
        x = transition.moved(z[:, p:], z[:, :p], start + off, end + off)
        plus, minus = x[1 : m + 1].T, x[m + 1 :].T
        first = (plus - minus) / (2.0 * c)
        second = (plus + minus - 2.0 * x[0][:, None]) / (2.0 * c)
        shift = second.sum(axis=1) / c
        # Before L is overwritten.
        slope = np.asarray(dtrtrs(L, first[:, :d].T, lower=1, trans=1)[0].T) if sloped else None
        columns = np.hstack([first[:, p:], self.rule.bend(second, shift), noise.state_columns])
        belief.propagate_points(x[0] + shift, first[:, :p], columns)
        return slope
