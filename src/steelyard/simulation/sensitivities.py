"""Closed loops with exact sensitivities, as lanes: each lane integrates the motion and one of its derivatives.

With x = (q, q̇) and a direction δθ of the parameters, s = ∂x/∂θ · δθ follows the same Runge–Kutta steps as x, with the
exact derivative of every stage. The derivative of q̈ comes from M q̈ + h = τ by implicit differentiation,

    M δq̈ = δτ − ∂(M q̈ + h)/∂(q, q̇, θ) · (δq, δq̇, δθ)   with q̈ constant,

which needs no derivative of the mass matrix and shares its factorisation. If the torque is constant over a control
period, so is its derivative. So (q, δq) is the motion of a robot with twice as many joints, and the driver for batches
of robots applies, with directions as lanes instead of robots. States of a controller are joints as well: their speed is
the state, their acceleration its rate, constant over a control period like the torque.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics import bodies
from steelyard.dynamics.function import Trace
from steelyard.dynamics.graph import Node, evaluate_graph, forward
from steelyard.dynamics.native.kernel import Kernel
from steelyard.dynamics.native.rk4 import Stepper, in_blocks
from steelyard.ground.arrays import Array
from steelyard.ground.recent_values import Recent
from steelyard.ground.scalars import Scalar, Vector
from steelyard.simulation.command import Schedule
from steelyard.simulation.controllers import Controller
from steelyard.simulation.plant import Plant

_SIGNALS = ("q", "dq", "ddq", "tau")


class _Loop:
    """A plant under a controller, traced for the driver; with `tangents` every coordinate has its derivative."""

    def __init__(self, plant: Plant, controller: Controller, tangents: bool) -> None:
        self.plant, self.tangents = plant, tangents
        self.dof, self.states = plant.robot.dof, controller.states
        self.joints = (1 + tangents) * self.width
        self.numbers = plant.widths["theta"]
        sizes = {
            "q": self.joints, "dq": self.joints, "tau": self.joints, "theta": (1 + tangents) * self.numbers,
            "reference": 3 * self.dof, "settings": len(controller.settings),
        }  # fmt: skip
        starts = np.cumsum([0, *sizes.values()])
        self.sizes, self.rows = sizes, dict(zip(sizes, (int(k) for k in starts[:-1]), strict=True))
        self.row_count = int(starts[-1])
        self.law = self._law(controller)
        self.acceleration = self._acceleration()

    @property
    def width(self) -> int:
        """Number of joints and controller states."""
        return self.dof + self.states

    def _kernel(self, trace: Trace, outputs: Sequence[Scalar]) -> Kernel:
        return Kernel(trace.graph, outputs, {x: self.rows[x] for x in trace.inputs})

    def _law(self, controller: Controller) -> Kernel:
        trace = Trace({x: self.sizes[x] for x in ("q", "dq", "reference", "settings")})
        q, dq, reference, settings = trace.all()
        n = self.dof
        parts = reference[:n], reference[n : 2 * n], reference[2 * n :]
        states = dq[n : self.width]
        memory = {"states": states} if self.states else {}
        torque = controller.law(q[:n], dq[:n], *parts, settings, **memory)
        held = [*torque, *controller.rates(q[:n], dq[:n], parts[0], states, settings)]
        return self._kernel(trace, held + self._tangents(trace, held))

    def _acceleration(self) -> Kernel:
        trace = Trace({x: self.sizes[x] for x in ("q", "dq", "tau", "theta")})
        q, dq, tau, theta = trace.all()
        n, w, p = self.dof, self.width, self.numbers
        physics, full = self.plant.smooth, self.plant.full_parameters(theta[:p])
        rate = physics.forward_over_scalars(q[:n], dq[:n], tau[:n], full)
        if not self.tangents:
            return self._kernel(trace, [*rate, *tau[n:w]])
        arguments = {"q": q[:n], "dq": dq[:n], "ddq": rate, "theta": theta[:p]}
        moves = {"move_q": q[w : w + n], "move_dq": dq[w : w + n], "move_theta": theta[p:]}
        moved = _inverse_tangent(self.plant, arguments, moves)
        right = [t - x for t, x in zip(tau[w : w + n], moved, strict=True)]
        order = bodies.elimination_order(self.plant.robot)
        slopes = bodies.solve_spd(physics.mass_over_scalars(q[:n], full), right, order)
        return self._kernel(trace, [*rate, *tau[n:w], *slopes, *tau[w + n :]])

    def _tangents(self, trace: Trace, outputs: Sequence[Scalar]) -> list[Scalar]:
        """Compute derivatives of the controller's formulas along those of the state."""
        if not self.tangents:
            return []
        moves = {(x, k): trace[x][self.width + k] for x in ("q", "dq") for k in range(self.width)}
        return forward(trace.graph, outputs, moves)


class _GraphFunctions:
    """NumPy's functions on nodes, to insert one graph into another."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def heaviside(x: Any, _: float) -> Any:
        return x.graph.unary("step", x) if isinstance(x, Node) else float(x > 0.0)


def _inverse_tangent(plant: Plant, arguments: Mapping[str, Vector], moves: Mapping[str, Vector]) -> list[Scalar]:
    """Compute the derivative of the torque of a motion at constant acceleration."""
    trace = Trace({x: len(v) for x, v in arguments.items()})
    q, dq, ddq, theta = trace.all()
    torque = plant.smooth.inverse_over_scalars(q, dq, ddq, plant.full_parameters(theta))
    seeds = {(x, k): trace.graph.input(f"move_{x}", k) for x in ("q", "dq", "theta") for k in range(len(arguments[x]))}
    return evaluate_graph(trace.graph, forward(trace.graph, torque, seeds), {**arguments, **moves}, _GraphFunctions())


_loops: Recent[_Loop] = Recent(16)


def _loop_of(plant: Plant, controller: Controller, tangents: bool) -> _Loop:
    """Return a traced loop from a small cache, since compiling one takes a second."""
    return _loops.get((plant, controller.structure, tangents), lambda: _Loop(plant, controller, tangents))


@dataclass(frozen=True, eq=False)
class Start:
    """Initial state of a run: positions, speeds and controller states `(lanes, …)`, and lumped parameters."""

    q: Array
    dq: Array
    states: Array
    theta: Array
    directions: Array | None = None

    @classmethod
    def along(cls, q: Array, dq: Array, states: Array, theta: Array, directions: Array) -> Start:
        """Start one motion with a lane for each direction of its parameters.

        Args:
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
            states: Controller states.
            theta: Lumped parameters.
            directions: Directions of the lumped parameters, one per lane.
        """

        def lanes(x: Array) -> Array:
            return np.broadcast_to(x, (len(directions), len(x)))

        return cls(lanes(q), lanes(dq), lanes(states), lanes(theta), directions)

    def __len__(self) -> int:
        return len(self.q)


def run_loop(
    plant: Plant, controller: Controller, schedule: Schedule, table: Array, start: Start,
    signals: Sequence[str] = _SIGNALS, threads: int | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Simulate lanes; returns signals `(lanes, samples, joints · (1 or 2))`: each motion and its derivative, if any.

    Args:
        plant: Plant.
        controller: Controller.
        schedule: Time grid.
        table: References `(lanes or 1, instants, 3 · dof)`.
        start: Initial state.
        signals: Names of the signals to return.
        threads: Number of threads; default: all processors.
    """
    loop = _loop_of(plant, controller, start.directions is not None)
    shape = (len(start), schedule.samples, loop.joints)
    spare = np.empty(shape) if len(signals) < len(_SIGNALS) else None
    results = {x: np.empty(shape) if x in signals or spare is None else spare for x in _SIGNALS}

    def work(first: int, count: int) -> None:
        _step(loop, controller, schedule, table, start, results, slice(first, first + count))

    in_blocks(work, len(start), threads)
    w, n = loop.width, loop.dof
    keep = np.r_[0:n, w : w + n] if loop.tangents else np.arange(n)
    whole = len(keep) == loop.joints
    return {x: results[x] if whole else np.ascontiguousarray(results[x][..., keep]) for x in signals}


def _step(
    loop: _Loop, controller: Controller, schedule: Schedule, table: Array, start: Start, results: dict[str, Array],
    part: slice,
) -> None:  # fmt: skip
    """Do all steps of some lanes."""
    n, J, theta = loop.dof, loop.joints, loop.rows["theta"]
    single = len(start) == 1
    lanes = Stepper(loop.acceleration, J, loop.row_count, part.stop - part.start, schedule.step, loop.law, single)
    for row, values in {0: start.q, J: start.dq, J + n: start.states, theta: start.theta}.items():
        lanes.put(row, values[part])
    if start.directions is not None:
        lanes.put(theta + loop.numbers, start.directions[part])
    lanes.put(loop.rows["settings"], controller.settings)
    lanes.start()
    lanes.drive(table, loop.rows["reference"], schedule.hold)
    lanes.record(results, part.start, schedule.every, schedule.steps)
    lanes.run(0, schedule.steps + 1)
