"""`MomentumBalance`: momentum and what changes it, of one model, as a traced function with the model's numbers in it.

ṗ + d = τ + τ_ext with p = M(q) q̇ and d = −∂T/∂q + gravity + friction and all other terms. Who watches a robot evaluates
both at every sample, in Python and in C alike; so the numbers are constants of the function, and what they multiply by
zero is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.dynamics import bodies
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.loaded import with_rotors
from steelyard.dynamics.model import Model
from steelyard.ground.scalars import Scalar, Vector
from steelyard.parameters.hysteresis import RigidLoad, Stop


@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """The balance of one model.

    Args:
        function: p, then d (N m s, N m; on slides N s, N) of one state. Its inputs are `q`, `dq`; where friction goes
            by what a joint carries, `ddq`; where friction remembers, `s`: the states of its stops.
        positions: the coordinates that the stops follow, of `q`; None where there are none.
        widths: of the stops, rad or m.
        over_scalars: `function` over scalars, for those who trace more: of its inputs by name, a list.
        positions_over_scalars: the same of `positions`: of q, a list.
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
    """The balance of `model`. Torque that is measured late (term `lag`) is no part of the robot, and left out."""
    n, terms = model.robot.dof, model.terms
    theta = [float(x) for x in model.theta]
    history = terms.history
    stops = [k for k, (a, _) in enumerate(history) if isinstance(a, Stop)]
    loads = any(isinstance(a, RigidLoad) for a, _ in history)
    inputs = {"q": n, "dq": n} | ({"ddq": n} if loads else {}) | ({"s": len(stops)} if stops else {})

    def both(given: Mapping[str, Vector]) -> list[Scalar]:
        p, d = _over_scalars(model, theta, given, stops)
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
    model: Model, theta: Sequence[float], given: Mapping[str, Vector], stops: Sequence[int]
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
