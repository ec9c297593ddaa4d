"""Closed loops with exact sensitivities, as lanes: each lane integrates the motion and one of its derivatives.

With x = (q, q̇) and a direction δθ of the parameters, s = ∂x/∂θ · δθ follows the same Runge–Kutta steps as x, with the
exact derivative of every stage. The derivative of q̈ comes from M q̈ + h = τ by implicit differentiation,

    M δq̈ = δτ − ∂(M q̈ + h)/∂(q, q̇, θ) · (δq, δq̇, δθ)   with q̈ held,

which needs no derivative of the mass matrix and shares its factorisation. A torque that is held over a control period
has a derivative that is held as well. So (q, δq) is the motion of a robot with twice as many joints, and the driver
that steps batches of robots does the work; the lanes of a batch are directions instead of robots. What a controller
remembers are joints too: their speed is the state, their acceleration its rate, held like the torque.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics import bodies
from steelyard.dynamics.function import Trace
from steelyard.dynamics.graph import Node, evaluate, forward
from steelyard.dynamics.native.code import vector_width
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import Kernel, aligned
from steelyard.dynamics.native.rk4 import ARGUMENTS, rk4_driver
from steelyard.dynamics.native.run import default_threads
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector
from steelyard.simulation.command import Schedule
from steelyard.simulation.controllers import Controller
from steelyard.simulation.plant import Plant

SIGNALS = ("q", "dq", "ddq", "tau")


class Loop:
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
        """Joints of the motion itself, and states of the controller."""
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
        return self._kernel(trace, held + self._moved(trace, held))

    def _acceleration(self) -> Kernel:
        trace = Trace({x: self.sizes[x] for x in ("q", "dq", "tau", "theta")})
        q, dq, tau, theta = trace.all()
        n, w, p = self.dof, self.width, self.numbers
        physics, full = self.plant.smooth, self.plant.spread(theta[:p])
        rate = physics.forward_over_scalars(q[:n], dq[:n], tau[:n], full)
        if not self.tangents:
            return self._kernel(trace, [*rate, *tau[n:w]])
        given = {"q": q[:n], "dq": dq[:n], "ddq": rate, "theta": theta[:p]}
        moves = {"move_q": q[w : w + n], "move_dq": dq[w : w + n], "move_theta": theta[p:]}
        moved = _inverse_tangent(self.plant, given, moves)
        right = [t - x for t, x in zip(tau[w : w + n], moved, strict=True)]
        order = bodies.elimination_order(self.plant.robot)
        slopes = bodies.solve_spd(physics.mass_over_scalars(q[:n], full), right, order)
        return self._kernel(trace, [*rate, *tau[n:w], *slopes, *tau[w + n :]])

    def _moved(self, trace: Trace, outputs: Sequence[Scalar]) -> list[Scalar]:
        """The derivatives of the controller's formulas along the state's."""
        if not self.tangents:
            return []
        moves = {(x, k): trace[x][self.width + k] for x in ("q", "dq") for k in range(self.width)}
        return forward(trace.graph, outputs, moves)


class _Inlined:
    """NumPy's functions on nodes, with which one graph is written into another."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def heaviside(x: Any, _: float) -> Any:
        return x.graph.unary("step", x) if isinstance(x, Node) else float(x > 0.0)


def _inverse_tangent(plant: Plant, given: Mapping[str, Vector], moves: Mapping[str, Vector]) -> list[Scalar]:
    """The derivative of the torque that a motion needs, its acceleration held."""
    trace = Trace({x: len(v) for x, v in given.items()})
    q, dq, ddq, theta = trace.all()
    torque = plant.smooth.inverse_over_scalars(q, dq, ddq, plant.spread(theta))
    seeds = {(x, k): trace.graph.input(f"move_{x}", k) for x in ("q", "dq", "theta") for k in range(len(given[x]))}
    return evaluate(trace.graph, forward(trace.graph, torque, seeds), {**given, **moves}, _Inlined())


_loops: dict[Hashable, Loop] = {}
_LOOPS_KEPT = 16


def loop_of(plant: Plant, controller: Controller, tangents: bool) -> Loop:
    """The traced loop; the last few are kept, since their code takes a second to make."""
    key = (plant, controller.structure, tangents)
    if key not in _loops:
        while len(_loops) >= _LOOPS_KEPT:
            del _loops[next(iter(_loops))]
        _loops[key] = Loop(plant, controller, tangents)
    return _loops[key]


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run begins: positions, speeds, states of the controller `(lanes, …)`, and lumped parameters."""

    q: Array
    dq: Array
    states: Array
    theta: Array
    directions: Array | None = None

    @classmethod
    def along(cls, q: Array, dq: Array, states: Array, theta: Array, directions: Array) -> Start:
        """One motion, with a lane for every direction (lumped) in which its parameters may move."""

        def lanes(x: Array) -> Array:
            return np.broadcast_to(x, (len(directions), len(x)))

        return cls(lanes(q), lanes(dq), lanes(states), lanes(theta), directions)

    def __len__(self) -> int:
        return len(self.q)


def run_loop(
    plant: Plant, controller: Controller, schedule: Schedule, table: Array, start: Start,
    wanted: Sequence[str] = SIGNALS, threads: int | None = None,
) -> dict[str, Array]:  # fmt: skip
    """The wanted signals `(lanes, samples, joints · (1 or 2))`: each motion, followed by its derivative if any.

    `table` holds the reference `(lanes or 1, instants, 3 · dof)`.
    """
    loop = loop_of(plant, controller, start.directions is not None)
    shape = (len(start), schedule.samples, loop.joints)
    spare = np.empty(shape) if len(wanted) < len(SIGNALS) else None
    results = {x: np.empty(shape) if x in wanted or spare is None else spare for x in SIGNALS}
    width = 1 if len(start) == 1 else vector_width()
    vectors = -(-len(start) // width)
    count = min(threads or default_threads(), vectors)
    block = min(LANES, -(-vectors // count) * width)

    def work(first: int) -> None:
        _step(loop, controller, schedule, table, start, results, slice(first, min(first + block, len(start))), width)

    firsts = range(0, len(start), block)
    if count == 1:
        for first in firsts:
            work(first)
    else:
        with ThreadPoolExecutor(count) as pool:
            for job in [pool.submit(work, first) for first in firsts]:
                job.result()
    w, n = loop.width, loop.dof
    keep = np.r_[0:n, w : w + n] if loop.tangents else np.arange(n)
    whole = len(keep) == loop.joints
    return {x: results[x] if whole else np.ascontiguousarray(results[x][..., keep]) for x in wanted}


def _step(
    loop: Loop, controller: Controller, schedule: Schedule, table: Array, start: Start, results: dict[str, Array],
    part: slice, width: int,
) -> None:  # fmt: skip
    """All steps of some lanes; lanes that are left over repeat the last."""
    n, w, J = loop.dof, loop.width, loop.joints
    count = part.stop - part.start
    vectors = -(-count // width)
    chosen = np.minimum(part.start + np.arange(vectors * width), part.stop - 1)
    used = slice(0, len(chosen))
    inputs, outputs, state = aligned(loop.row_count), aligned(J), aligned(4 * J)
    rows, states = inputs.reshape(-1, STRIDE), state.reshape(-1, STRIDE)
    rows[:n, used] = start.q[chosen].T
    rows[J : J + n, used] = start.dq[chosen].T
    rows[J + n : J + w, used] = start.states[chosen].T
    states[: 2 * J, used] = rows[: 2 * J, used]
    first = loop.rows["theta"]
    rows[first : first + loop.numbers, used] = start.theta[chosen].T
    if start.directions is not None:
        rows[first + loop.numbers : first + 2 * loop.numbers, used] = start.directions[chosen].T
    rows[loop.rows["settings"] : loop.row_count, used] = controller.settings[:, None]
    h = schedule.step
    lengths = np.array([h / 2.0, h, h / 6.0, h / 3.0])
    arguments = {
        "plant": loop.acceleration.address(width), "law": loop.law.address(width), "rows_in": inputs.ctypes.data,
        "rows_out": outputs.ctypes.data, "state": state.ctypes.data, "joints": J, "vectors": vectors, "begin": 0,
        "end": schedule.steps + 1, "steps": schedule.steps, "lengths": lengths.ctypes.data, "hold": schedule.hold,
        "reference": table.ctypes.data, "reference_row": loop.rows["reference"], "reference_width": table.shape[-1],
        "reference_next": 0 if table.shape[1] == 1 else table.shape[-1],
        "reference_robot": 0 if len(table) == 1 else table.shape[1] * table.shape[2],
        "every": schedule.every, "samples": schedule.samples, "first": part.start, "robots": part.stop,
        **{name: array.ctypes.data for name, array in results.items()},
    }  # fmt: skip
    rk4_driver(width)(*[arguments[name] for name in ARGUMENTS])
