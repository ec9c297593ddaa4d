"""Balances over one sampling interval: what went in equals what is stored plus what is lost.

Between two samples, a time h apart,

    mean of τ   = [P θ]/h + mean of D θ          (momentum, one equation per joint)
    mean of τᵀq̇ = [E θ]/h + mean of L θ          (energy, one equation)

with the momentum P θ, the remainder D θ, the energy E = K + U and the power L lost to friction. The brackets are exact,
and so is the left side where the torque is held between samples: ∫τ = h·τ_{k−1}, ∫τᵀq̇ = τ_{k−1}ᵀ(q_k − q_{k−1}). Only
the means of D and L are a quadrature (the trapezoid rule). Whatever linear thing is then done to both sides (sums,
filters) keeps the balance, starting anywhere: no initial condition enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.regression.rows import Equation, Rows
from steelyard.regression.schemes.known_friction import KnownFriction
from steelyard.signals.prepare import Motion

# How the torque runs between two samples: "held" at the earlier one's value (what a controller does), or "trapezoid":
# straight from one to the other (what a sensor saw). "paper" holds everything, states included.
Rule = Literal["held", "trapezoid", "paper"]
RULES = ("held", "trapezoid", "paper")


@dataclass(frozen=True)
class Quadrature:
    """The rule for the torque, and a factor on the brackets, which is 1 but for the paper's f1(z)."""

    rule: Rule
    bracket: float = 1.0

    def mean(self, x: Array) -> Array:
        """Of a function of the state."""
        return x[:-1] if self.rule == "paper" else 0.5 * (x[1:] + x[:-1])

    def change(self, x: Array, period: float) -> Array:
        return np.diff(x, axis=0) * (self.bracket / period)


class MomentumBalance:
    """One equation per joint whose torque is used."""

    # Filters and windows that are not stated reach to so many times the band of the motion: five, as Gautier asks of
    # filters for what is to be seen. Slower ones let the slow part of the motion, and of all errors, count too much.
    reach: ClassVar[float] = 5.0

    def __init__(self, dynamics: Dynamics, columns: Sequence[int], friction: KnownFriction) -> None:
        self.dynamics, self.friction = dynamics, friction
        self.columns = np.array(columns, dtype=np.int64)
        self.joints = np.flatnonzero(dynamics.robot.torque_used)
        self.equations = Rows(dynamics, columns).equations

    def means(self, motion: Motion, part: slice, quadrature: Quadrature) -> Array:
        """[A y] of every interval between samples of `part`, `(intervals, equations, columns + 1)`."""
        q, dq, tau, h = motion.q[part], motion.dq[part], motion.tau[part], motion.filter.period
        pick = np.ix_(np.arange(len(q)), self.joints, self.columns)
        momentum = self.dynamics.momentum_regressor(q, dq)[pick]
        remainder = self.dynamics.remainder_regressor(q, dq)[pick]
        A = quadrature.change(momentum, h) + quadrature.mean(remainder)
        torque = 0.5 * (tau[1:] + tau[:-1]) if quadrature.rule == "trapezoid" else tau[:-1]
        y = torque - quadrature.mean(self.friction.torque(dq))
        return np.concatenate([A, y[:, self.joints, None]], axis=2)


class EnergyBalance:
    """One equation for the whole robot."""

    # One equation for all joints has little to spare: faster filters let noise of the torque in.
    reach: ClassVar[float] = 1.0

    def __init__(self, dynamics: Dynamics, columns: Sequence[int], friction: KnownFriction) -> None:
        check_all_torques(dynamics)
        self.dynamics, self.friction = dynamics, friction
        self.columns = np.array(columns, dtype=np.int64)
        self.joints = np.zeros(1, dtype=np.int64)
        self.equations = (Equation("energy", np.sort(self.columns)),)

    def means(self, motion: Motion, part: slice, quadrature: Quadrature) -> Array:
        """[A y] of every interval between samples of `part`, `(intervals, 1, columns + 1)`."""
        q, dq, tau, h = motion.q[part], motion.dq[part], motion.tau[part], motion.filter.period
        d = self.dynamics
        energy = (d.kinetic_energy_regressor(q, dq) + d.potential_energy_regressor(q))[:, self.columns]
        lost = d.dissipation_regressor(q, dq)[:, self.columns]
        A = quadrature.change(energy, h) + quadrature.mean(lost)
        if quadrature.rule == "held":
            power = np.sum(tau[:-1] * np.diff(q, axis=0), axis=1) / h
        else:
            power = quadrature.mean(np.sum(tau * dq, axis=1))
        y = power - quadrature.mean(np.sum(self.friction.torque(dq) * dq, axis=1))
        return np.column_stack([A, y])[:, None]


def check_all_torques(dynamics: Dynamics) -> None:
    unused = [n for n, used in zip(dynamics.robot.joint_names, dynamics.robot.torque_used, strict=True) if not used]
    if unused:
        raise SteelyardError(
            f"Energy and power add up all joints, but the torque of '{unused[0]}' is not used; choose the scheme "
            "dynamic, filtered-dynamic or momentum."
        )


def check_rule(rule: str, rules: Sequence[str] = RULES) -> None:
    if rule not in rules:
        raise SteelyardError(f"Torque between samples can be {' or '.join(rules)}, not '{rule}'.")
