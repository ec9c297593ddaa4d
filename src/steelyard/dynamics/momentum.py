"""`MomentumBalance`: momentum and its sources for one model, as a traced function with the model's numbers.

ṗ + d = τ + τ_ext with p = M(q) q̇ and d = −∂T/∂q + gravity + friction and all other terms. Monitoring evaluates both at
every sample, in Python and in C; so the numbers are constants of the function, and products with zero vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.dynamics import bodies
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.load_friction import with_rotors
from steelyard.dynamics.model import Model
from steelyard.ground.scalars import Scalar, Vector
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.hysteresis import RigidLoad, Stop


@short_repr
@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """The momentum balance of one model.

    Args:
        function: Computes p, then d [N m s, N m; on slides N s, N] of one state. Its inputs are `q`, `dq`; for friction
            under load, `ddq`; for friction with memory, `s`: the states of its stops.
        positions: Computes the coordinates of the stops from `q`; None without stops.
        widths: Widths of the stops [rad, m].
        over_scalars: `function` over scalars: returns a list for its inputs by name.
        positions_over_scalars: `positions` over scalars: returns a list for q.
    """

    function: Function
    positions: Function | None
    widths: tuple[float, ...]
    over_scalars: Callable[[Mapping[str, Vector]], list[Scalar]]
    positions_over_scalars: Callable[[Vector], list[Scalar]]

    @property
    def needs_acceleration(self) -> bool:
        return "ddq" in self.function.inputs


def momentum_balance(model: Model) -> MomentumBalance:
    """Create the balance of `model`, without a delay of the torque measurement (term `lag`)."""
    n, terms = model.robot.dof, model.terms
    theta = [float(x) for x in model.theta]
    history = terms.history
    stops = [k for k, (a, _) in enumerate(history) if isinstance(a, Stop)]
    loads = any(isinstance(a, RigidLoad) for a, _ in history)
    inputs = {"q": n, "dq": n} | ({"ddq": n} if loads else {}) | ({"s": len(stops)} if stops else {})

    def both(inputs: Mapping[str, Vector]) -> list[Scalar]:
        p, d = _over_scalars(model, theta, inputs, stops)
        return [*p, *d]

    def positions(q: Vector) -> list[Scalar]:
        return [history[place][1].position(q) for place in stops]

    def entries(values: list[Scalar]) -> dict[tuple[int], Scalar]:
        return {(k,): x for k, x in enumerate(values)}

    return MomentumBalance(
        trace("momentum_balance", inputs, lambda *x: entries(both(dict(zip(inputs, x, strict=True)))), (2 * n,)),
        trace("stop_positions", {"q": n}, lambda q: entries(positions(q)), (len(stops),)) if stops else None,
        tuple(a.width for a, _ in history if isinstance(a, Stop)),
        both,
        positions,
    )


def _over_scalars(
    model: Model, theta: Sequence[float], inputs: Mapping[str, Vector], stops: Sequence[int]
) -> tuple[list[Scalar], list[Scalar]]:
    dynamics, terms, links = model.dynamics, model.terms, model.robot.inertial_count
    q, dq = inputs["q"], inputs["dq"]
    p, d = bodies.momentum_and_remainder(model.robot, q, dq, theta[:links])
    signals: list[Scalar] = [0.0] * len(terms.history)
    if terms.history:
        rigid: list[Scalar] = [0.0] * model.robot.dof
        if "ddq" in inputs:
            bare = bodies.inverse_dynamics(model.robot, q, dq, inputs["ddq"], theta[:links])
            rigid = with_rotors(dynamics, bare, q, dq, inputs["ddq"], theta)
        signals = terms.steady(q, dq, rigid)
        for place, s in zip(stops, inputs.get("s", ()), strict=True):
            signals[place] = s
    for out, entries in ((p, terms.momentum(q, dq)), (d, terms.remainder(q, dq, signals))):
        for (joint, k), value in entries.items():
            out[joint] = out[joint] + theta[links + k] * value
    return p, d
