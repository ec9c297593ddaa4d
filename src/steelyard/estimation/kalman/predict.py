"""How a belief goes from one sample to the next: by derivatives (extended) or by sigma points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dtrtrs

from steelyard.estimation.kalman.belief import Belief
from steelyard.estimation.kalman.rules import Rule
from steelyard.estimation.kalman.transition import Transition
from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class StepNoise:
    """Standard deviations of what a step adds: torque errors `(dof,)`, and the state directly `(2 · dof,)`."""

    torque: Array
    state: Array


class Predictor(Protocol):
    def __call__(self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise) -> Array:
        """Moves the belief; gives ∂(state)/∂(parameters, state), or what the points make of it, for smoothing."""


@dataclass(frozen=True)
class ByDerivatives:
    """The extended Kalman filter: exact derivatives of the step as it is computed."""

    def __call__(self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise) -> Array:
        found = transition.linearised(belief.x, belief.beta, start, end)
        columns = np.hstack([found.by_torque * noise.torque, np.diag(noise.state)])
        belief.propagate(found.x, found.by_state, found.by_parameters, columns)
        return np.hstack([found.by_parameters, found.by_state])


@dataclass(frozen=True)
class BySigmaPoints:
    """Two points for every parameter, coordinate of the state and torque, and the centre."""

    rule: Rule

    def __call__(self, belief: Belief, transition: Transition, start: Array, end: Array, noise: StepNoise) -> Array:
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
        slope = np.asarray(dtrtrs(L, first[:, :d].T, lower=1, trans=1)[0].T)  # before L is overwritten
        columns = np.hstack([first[:, p:], self.rule.bend(second, shift), np.diag(noise.state)])
        belief.spread_out(x[0] + shift, first[:, :p], columns)
        return slope
