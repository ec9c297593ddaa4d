"""`MomentumBalance`: momentum and what changes it, of one model, as a traced function with the model's numbers in it.

ṗ + d = τ + τ_ext with p = M(q) q̇ and d = −∂T/∂q + gravity + friction and all other terms. Who watches a robot evaluates
both at every sample, in Python and in C alike; so the numbers are constants of the function, and what they multiply by
zero is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics import bodies
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.loaded import with_rotors
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector
from steelyard.parameters.history import RigidLoad, Stop


@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """The balance of one model.

    Args:
        function: p, then d (N m s, N m; on slides N s, N) of one state. Its inputs are `q`, `dq`; where friction goes
            by what a joint carries, `ddq`; where friction remembers, `s`: the states of its stops.
        positions: the coordinates that the stops follow, of `q`; None where there are none.
        widths: of the stops, rad or m.
    """

    function: Function
    positions: Function | None
    widths: tuple[float, ...]

    @property
    def needs_acceleration(self) -> bool:
        return "ddq" in self.function.inputs


def momentum_balance(model: Model) -> MomentumBalance:
    """The balance of `model`. Torque that is measured late (term `lag`) is no part of the robot, and left out."""
    n, terms = model.robot.dof, model.terms
    theta = [float(x) for x in model.theta]
    history = terms.history
    stops = [k for k, (a, _) in enumerate(history) if isinstance(a, Stop)]
    loads = any(isinstance(a, RigidLoad) for a, _ in history)
    inputs = {"q": n, "dq": n} | ({"ddq": n} if loads else {}) | ({"s": len(stops)} if stops else {})

    def both(*given: Vector) -> dict[tuple[int], Scalar]:
        values = dict(zip(inputs, given, strict=True))
        p, d = _over_scalars(model, theta, values, stops)
        return {(k,): x for k, x in enumerate([*p, *d])}

    def positions(q: Vector) -> dict[tuple[int], Scalar]:
        return {(k,): history[place][1].position(q) for k, place in enumerate(stops)}

    return MomentumBalance(
        trace("momentum_balance", inputs, both, (2 * n,)),
        trace("stop_positions", {"q": n}, positions, (len(stops),)) if stops else None,
        tuple(a.width for a, _ in history if isinstance(a, Stop)),
    )


def _over_scalars(
    model: Model, theta: Sequence[float], given: dict[str, Vector], stops: Sequence[int]
) -> tuple[list[Scalar], list[Scalar]]:
    dynamics, terms, links = model.dynamics, model.terms, model.robot.inertial_count
    q, dq = given["q"], given["dq"]
    p, d = bodies.momentum_and_remainder(model.robot, q, dq, theta[:links])
    signals: list[Scalar] = [0.0] * len(terms.history)
    if terms.history:
        rigid: list[Scalar] = [0.0] * model.robot.dof
        if "ddq" in given:
            bare = bodies.inverse_dynamics(model.robot, q, dq, given["ddq"], theta[:links])
            rigid = with_rotors(dynamics, bare, q, dq, given["ddq"], theta)
        signals = terms.steady(q, dq, rigid)
        for place, s in zip(stops, given.get("s", ()), strict=True):
            signals[place] = s
    for out, entries in ((p, terms.momentum(q, dq)), (d, terms.remainder(q, dq, signals))):
        for (joint, k), value in entries.items():
            out[joint] = out[joint] + theta[links + k] * value
    return p, d


def follow_stops(s: Array, u: Array, before: Array, widths: Array) -> Array:
    """The states of stops after a move of their coordinates.

    Args:
        s: the states so far, −1 … 1.
        u: the positions now, rad or m.
        before: the positions at which they were `s`.
        widths: of the stops, rad or m.
    """
    return np.asarray(np.minimum(np.maximum(s + (u - before) / widths, -1.0), 1.0))
