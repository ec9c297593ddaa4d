"""`Balance`: the basis of a scheme's equation: input equals change of storage plus losses.

Between two samples, a time h apart,

    mean of τ   = [P θ]/h + mean of D θ          (momentum, one equation per joint)
    mean of τᵀq̇ = [E θ]/h + mean of L θ          (energy, one equation)

with the momentum P θ, the remainder D θ, the energy E = K + U and the power L lost to friction. The brackets are exact,
and so is the left side if the torque is held between samples: ∫τ = h·τ_{k−1}, ∫τᵀq̇ = τ_{k−1}ᵀ(q_k − q_{k−1}). Only
the means of D and L are a quadrature (the trapezoid rule). Any linear operation on both sides (sums, filters) preserves
the balance from any start: no initial condition enters. At instants nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.function import Function, trace
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector
from steelyard.regression.rows import Equation, Rows
from steelyard.regression.schemes.still import KnownFriction
from steelyard.signals.prepare import Motion

# Torque between two samples: "held" at the earlier value (by a controller), "trapezoid": linear (for a sampling
# sensor), or "averaged": the later value is the mean (for an averaging sensor). "paper" holds everything, including
# states.
INTEGRATION_RULES = ("held", "trapezoid", "averaged", "paper")
# Rule for each behaviour of the torque that a user can state.
RULE_OF = {"held": "held", "sampled": "trapezoid", "averaged": "averaged"}

_Index = NDArray[np.int64]
State = tuple[Array, Array, Array]  # q, q̇, τ


@dataclass(frozen=True)
class Balance:
    """Regressors (functions of `Dynamics`) of stored quantities, which are differenced, and of losses, which are
    averaged.

    Args:
        name: Name of the quantity, and of an equation for the whole robot.
        stored: Regressors that are differenced; empty at instants.
        lost: Regressors that are integrated, or used directly at instants.
        scalar: One equation for the whole robot instead of one per joint; regressors with a row per joint are
            multiplied by q̇.
        reach: Default bandwidth of filters and windows, as a multiple of the motion's band.
    """

    name: str
    stored: tuple[str, ...]
    lost: tuple[str, ...]
    scalar: bool
    reach: float

    def rate(self, band_hz: float) -> float:
        """Return the default rate λ of filters [rad/s] for motions up to `band_hz`; the default window is 1/λ."""
        return self.reach * 2.0 * np.pi * band_hz

    def supplied(self, start: State, end: State, h: float, rule: str) -> Array:
        """Compute the left side over an interval: the mean of the torques, or of their power.

        Args:
            start: q, q̇, τ at its start, `(joints,)` or `(intervals, joints)`.
            end: The same at its end.
            h: Length of the interval [s].
            rule: One of `INTEGRATION_RULES`.
        """
        (q0, dq0, tau0), (q, dq, tau) = start, end
        if not self.scalar:
            return np.asarray({"trapezoid": 0.5 * (tau + tau0), "averaged": tau}.get(rule, tau0))
        if rule in ("held", "averaged"):
            return inner(tau0 if rule == "held" else tau, q - q0) / h
        return inner(tau0, dq0) if rule == "paper" else 0.5 * (inner(tau, dq) + inner(tau0, dq0))

    def traced(self, dynamics: Dynamics, columns: Sequence[int]) -> tuple[Function, _Index, _Index]:
        """Trace one function for the stored and then the lost entries, with their equations and columns.

        The function omits entries whose stored part and lost part are both always zero. Inputs are q and q̇; for
        equations at instants also τ and q̈.

        Args:
            dynamics: Physics of the robot with its terms.
            columns: Columns of the parameter vector.
        """
        robot = dynamics.robot
        rows = [0] if self.scalar else [j for j, used in enumerate(robot.torque_used) if used]
        row_of, column_of = {r: k for k, r in enumerate(rows)}, {c: k for k, c in enumerate(columns)}
        inputs = ("q", "dq") if self.stored else ("q", "dq", "tau", "ddq")
        widths = dict.fromkeys(inputs, robot.dof)
        if dynamics.terms.history:
            widths["history"] = len(dynamics.terms.history)

        def body(*signals: Vector) -> dict[tuple[int, ...], Any]:
            given = dict(zip(widths, signals, strict=True))
            sides = [self._entries(dynamics, names, given) for names in (self.stored, self.lost)]
            return {
                (side, row_of[row], column_of[column]): value
                for side, entries in enumerate(sides)
                for (row, column), value in entries.items()
                if row in row_of and column in column_of
            }

        shape = (2, len(rows), len(columns))
        whole = trace(self.name, widths, body, shape)
        side = shape[1] * shape[2]
        output = dict(zip(whole.places.tolist(), whole.outputs, strict=True))
        places = np.unique(whole.places % side)
        outputs = [output.get(int(p) + s * side, 0.0) for s in (0, 1) for p in places]
        count = np.arange(len(outputs), dtype=np.int64)
        picked = Function(self.name, whole.graph, whole.inputs, tuple(outputs), (len(outputs),), count)
        return picked, *np.divmod(places, len(columns))

    def _entries(self, dynamics: Dynamics, names: Sequence[str], signals: dict[str, Vector]) -> dict[Any, Any]:
        """Sum the named regressors over scalars, by (row, column)."""
        total: dict[Any, Any] = {}
        for name in names:
            for key, value in dynamics.over_scalars(name, signals).items():
                place = (0, key[-1]) if self.scalar else key
                part = signals["dq"][key[0]] * value if self.scalar and len(key) == 2 else value
                total[place] = total[place] + part if place in total else part
        return total


TORQUE = Balance("torque", (), ("torque_regressor",), scalar=False, reach=5.0)
POWER = Balance("power", (), ("torque_regressor",), scalar=True, reach=1.0)
# Five times the band, as Gautier recommends: slower filters overweight the slow part of the motion, and of all errors.
# One equation for all joints has less information, so faster filters would admit too much noise.
MOMENTUM = Balance("momentum", ("momentum_regressor",), ("remainder_regressor",), scalar=False, reach=5.0)
ENERGY = Balance(
    "energy",
    ("kinetic_energy_regressor", "potential_energy_regressor"),
    ("dissipation_regressor",),
    scalar=True,
    reach=1.0,
)


@dataclass(frozen=True)
class Quadrature:
    """The rule for the torque, and a factor for the brackets, which is 1 except for the paper's f1(z)."""

    rule: str
    bracket: float = 1.0

    @property
    def shares(self) -> tuple[float, float]:
        """Weights of the end and of the start of an interval in the mean over this interval."""
        return (0.0, 1.0) if self.rule == "paper" else (0.5, 0.5)

    def mean(self, x: Array) -> Array:
        """Compute means over the intervals of a function of the state with the values `x` at the samples."""
        return x[:-1] if self.rule == "paper" else 0.5 * (x[1:] + x[:-1])

    def change(self, x: Array, period: float) -> Array:
        """Compute rates of change over the intervals.

        Args:
            x: Values at the samples.
            period: Length of an interval [s].
        """
        return np.diff(x, axis=0) * (self.bracket / period)


class BalanceRows:
    """Both sides of a balance for samples of a prepared motion.

    Args:
        balance: Balance.
        dynamics: Physics of the robot with its terms.
        columns: Columns of the parameter vector.
        friction: Known friction, which is subtracted from the torque.
        motion: Prepared motion.
        part: Samples of the motion.
        quadrature: Rule for means over an interval.
    """

    def __init__(self, balance: Balance, dynamics: Dynamics, columns: Sequence[int], friction: KnownFriction) -> None:
        self.balance, self.dynamics, self.friction = balance, dynamics, friction
        self.columns = np.array(columns, dtype=np.int64)
        if balance.scalar:
            check_all_torques(dynamics)
            self.joints = np.zeros(1, dtype=np.int64)
            self.equations: tuple[Equation, ...] = (Equation(balance.name, np.sort(self.columns)),)
        else:
            self.joints = np.flatnonzero(dynamics.robot.torque_used)
            self.equations = Rows(dynamics, columns).equations

    def means(self, motion: Motion, part: slice, quadrature: Quadrature) -> Array:
        """Compute [A y] of every interval between samples of `part`, `(intervals, equations, columns + 1)`."""
        q, dq, tau, h = motion.q[part], motion.dq[part], motion.tau[part], motion.filter.period
        stored, lost = (self._regressor(names, motion, part) for names in (self.balance.stored, self.balance.lost))
        A = quadrature.change(stored, h) + quadrature.mean(lost)
        start, end = ((q[s], dq[s], tau[s]) for s in (slice(None, -1), slice(1, None)))
        given = self.balance.supplied(start, end, h, quadrature.rule)
        return self._with_right_side(A, given - quadrature.mean(self._supplied(self.friction.torque(dq), dq)))

    def instants(self, motion: Motion, part: slice) -> Array:
        """Compute [A y] of the samples of `part`, `(samples, equations, columns + 1)`, for a balance without
        storage.
        """
        dq = motion.dq[part]
        A = self._regressor(self.balance.lost, motion, part)
        return self._with_right_side(A, self._supplied(motion.tau[part] - self.friction.torque(dq), dq))

    def _regressor(self, names: Sequence[str], motion: Motion, part: slice) -> Array:
        """Sum the named regressors, `(samples, equations, columns)`."""
        total: Array | None = None
        for name in names:
            run = self.dynamics.evaluator(name)
            values = run({x: getattr(motion, x)[part] for x in run.function.inputs})
            if self.balance.scalar:
                row = values if values.ndim == 2 else np.einsum("nj,njp->np", motion.dq[part], values)
                values = row[:, None, self.columns]
            else:
                values = values[np.ix_(np.arange(len(values)), self.joints, self.columns)]
            total = values if total is None else total + values
        assert total is not None
        return total

    def _supplied(self, torque: Array, dq: Array) -> Array:
        return inner(dq, torque) if self.balance.scalar else torque

    def _with_right_side(self, A: Array, y: Array) -> Array:
        right = y[:, None, None] if self.balance.scalar else y[:, self.joints, None]
        return np.concatenate([A, right], axis=2)


def inner(a: Array, b: Array) -> Array:
    """Compute aᵀb row by row, by the fastest way for the number of rows.

    Args:
        a: First vectors.
        b: Second vectors.
    """
    return np.asarray(a @ b) if a.ndim == 1 else np.asarray(np.sum(a * b, axis=-1))


def check_all_torques(dynamics: Dynamics) -> None:
    """Refuse `dynamics` of a robot with unused torques, since energy and power sum all joints."""
    unused = [n for n, used in zip(dynamics.robot.joint_names, dynamics.robot.torque_used, strict=True) if not used]
    if unused:
        raise SteelyardError(
            f"Energy and power sum all joints, but the torque of '{unused[0]}' is not used; choose a scheme with an "
            "equation per joint, such as dynamic or momentum."
        )


def check_rule(rule: str, rules: Sequence[str] = INTEGRATION_RULES) -> None:
    """Refuse an unknown rule for the torque between samples.

    Args:
        rule: Rule.
        rules: Allowed rules.
    """
    if rule not in rules:
        raise SteelyardError(f"Torque between samples must be {' or '.join(rules)}, not '{rule}'.")
