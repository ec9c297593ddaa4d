"""Transition (state, base parameters) at one sample → state at the next, for many lanes or with derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from steelyard.dynamics.function import Trace
from steelyard.dynamics.graph import forward
from steelyard.dynamics.native.kernel import Kernel
from steelyard.dynamics.native.rk4 import MOST, Stepper
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar
from steelyard.simulation.plant import Plant

# `Flow`: the motion of a robot over one step of a log, traced for lanes of states, optionally with exact derivatives.
#
# The torque is linear between samples (held torque: both ends equal). The driver of simulations does the stepping. So
# the elapsed fraction of the step is an additional joint with a speed of one per step, and derivatives are additional
# joints as in `steelyard.simulation.sensitivities`.


class Flow:
    """q̈ of the state's lanes, and with `tangents` δq̈ along (δq, δq̇, δτ, δθ); `rows` are the first rows of the
    inputs."""

    def __init__(self, plant: Plant, tangents: bool) -> None:
        self.plant, self.tangents = plant, tangents
        n, numbers = plant.robot.dof, plant.widths["theta"]
        self.dof, self.numbers = n, numbers
        self.joints = 2 * n + 1 if tangents else n + 1
        sizes = {"q": self.joints, "dq": self.joints, "pull": 2 * n, "theta": numbers}
        if tangents:
            sizes |= {"move_tau": n, "move_theta": numbers}
        starts = np.cumsum([0, *sizes.values()])
        self.sizes, self.rows = sizes, dict(zip(sizes, (int(k) for k in starts[:-1]), strict=True))
        self.row_count = int(starts[-1])
        self.kernel = self._kernel()

    def _kernel(self) -> Kernel:
        n = self.dof
        trace = Trace(dict(self.sizes))
        q, dq, pull, theta = (trace[x] for x in ("q", "dq", "pull", "theta"))
        tau = [pull[j] + q[n] * (pull[n + j] - pull[j]) for j in range(n)]
        physics, full = self.plant.smooth, self.plant.full_parameters(theta)
        rate = physics.forward_over_scalars(q[:n], dq[:n], tau, full)
        outputs: list[Scalar] = [*rate, 0.0]
        if self.tangents:
            outputs += self._slopes(trace, rate)
        return Kernel(trace.graph, outputs, self.rows)

    def _slopes(self, trace: Trace, rate: list[Scalar]) -> list[Scalar]:
        """δq̈ by forward differentiation."""
        n = self.dof
        seeds = {("q", k): trace["q"][n + 1 + k] for k in range(n)}
        seeds |= {("dq", k): trace["dq"][n + 1 + k] for k in range(n)}
        # A torque error is constant over the step.
        seeds |= {("pull", half * n + k): trace["move_tau"][k] for half in (0, 1) for k in range(n)}
        seeds |= {("theta", k): trace["move_theta"][k] for k in range(self.numbers)}
        return forward(trace.graph, rate, seeds)


@lru_cache(16)
def flow_of(plant: Plant, tangents: bool) -> Flow:
    """Return the traced flow, cached because compiling it takes a second.

    Args:
        plant: The robot.
        tangents: Whether derivatives are needed.
    """
    return Flow(plant, tangents)


Method = Literal["rk4", "euler"]


@dataclass(frozen=True, eq=False)
class LinearisedStep:
    """The next state and its derivatives by state, base parameters and torque."""

    x: Array
    by_state: Array
    by_parameters: Array
    by_torque: Array


class Transition:
    """Steps of a log; states are (q, dq), parameters the base parameters.

    It contains scratch memory, so each thread needs its own.

    Args:
        plant: The robot.
        directions: Matrix (base parameters × lumped parameters of the plant): θ = β · directions gives the same motion
            as β.
        period: Length of a step [s].
        substeps: Integration steps per step.
        method: Integration method.
    """

    def __init__(
        self, plant: Plant, directions: Array, period: float, substeps: int = 1, method: Method = "rk4"
    ) -> None:
        self.plant, self.directions = plant, np.ascontiguousarray(directions)
        self.period, self.substeps, self.method = period, substeps, method
        self.dof, self.parameters = plant.robot.dof, len(directions)
        self._plain: list[_Rows] = []
        self._tangent: list[_Rows] = []

    def step(self, x: Array, beta: Array, start: Array, end: Array) -> Array:
        """Step states of shape (lanes, 2 · dof).

        Args:
            x: States.
            beta: Base parameters, for all lanes or (lanes, base parameters).
            start: Torques [N m, N] at the start, (dof,) or (lanes, dof).
            end: Torques at the end.
        """
        lanes, n = len(x), self.dof
        if len(self._plain) * MOST < lanes:
            flow = flow_of(self.plant, False)
            self._plain = [_Rows(flow, self) for _ in range(-(-lanes // MOST))]
        theta = (beta @ self.directions).T
        out = np.empty_like(x)
        xT, startT, endT = x.T, np.broadcast_to(start, (lanes, n)).T, np.broadcast_to(end, (lanes, n)).T
        for k, rows in zip(range(0, lanes, MOST), self._plain, strict=False):
            part = slice(k, min(k + MOST, lanes))
            count = part.stop - part.start
            rows.set("q", xT[:n, part], count)
            rows.set("dq", xT[n:, part], count)
            rows.set("pull", startT[:, part], count)
            rows.set("pull", endT[:, part], count, n)
            rows.set("theta", theta[:, part] if beta.ndim == 2 else theta[:, None], count)
            q, dq = rows.step(count)
            out[part, :n], out[part, n:] = q[:n].T, dq[:n].T
        return out

    def linearise(self, x: Array, beta: Array, start: Array, end: Array) -> LinearisedStep:
        """Step one state, with exact derivatives of the computed step.

        Args:
            x: State.
            beta: Base parameters.
            start: Torques [N m, N] at the start.
            end: Torques at the end.
        """
        n, p = self.dof, self.parameters
        lanes = 3 * n + p
        if not self._tangent:
            self._tangent = self._seeded(lanes)
        moves = np.empty((2 * n, lanes))
        # All lanes have the same numbers, except for the directions, which are zero here.
        inputs, first = self._shared, self._tangent[0].flow.rows
        inputs[:n], inputs[first["dq"] : first["dq"] + n] = x[:n], x[n:]
        inputs[first["pull"] : first["theta"]] = np.concatenate([start, end])
        inputs[first["theta"] :] = beta @ self.directions
        for k, rows in zip(range(0, lanes, MOST), self._tangent, strict=True):
            count = min(MOST, lanes - k)
            q, dq = rows.step_seeded(inputs, count)
            moves[:n, k : k + count], moves[n:, k : k + count] = q[n + 1 :], dq[n + 1 :]
        after = np.concatenate([q[:n, 0], dq[:n, 0]])
        return LinearisedStep(after, moves[:, : 2 * n], moves[:, 2 * n : 2 * n + p], moves[:, 2 * n + p :])

    def _seeded(self, lanes: int) -> list[_Rows]:
        """Lanes for the directions: coordinates of the state, base parameters, torques."""
        n, p = self.dof, self.parameters
        flow = flow_of(self.plant, True)
        state = np.eye(2 * n, lanes)
        torque = np.eye(n, lanes, 2 * n + p)
        numbers = np.zeros((flow.numbers, lanes))
        numbers[:, 2 * n : 2 * n + p] = self.directions.T
        self._shared = np.zeros(flow.rows["move_tau"])
        self._shared[flow.rows["dq"] + n] = 1.0 / self.period  # time is a joint
        out = []
        for k in range(0, lanes, MOST):
            part = slice(k, min(k + MOST, lanes))
            rows = _Rows(flow, self)
            rows.seed(state[:n, part], state[n:, part])
            rows.set("move_tau", torque[:, part], part.stop - k)
            rows.set("move_theta", numbers[:, part], part.stop - k)
            out.append(rows)
        return out


class _Rows:
    """Scratch rows of one block of lanes, and their stepping."""

    def __init__(self, flow: Flow, transition: Transition) -> None:
        self.flow, self._euler = flow, transition.method == "euler"
        self._substeps, self._h = transition.substeps, transition.period / transition.substeps
        self._steps = Stepper(flow.kernel, flow.joints, flow.row_count, MOST, self._h)
        self._speed = 1.0 / transition.period

    def set(self, name: str, values: Array, count: int, shift: int = 0) -> None:
        """Set the rows of an input."""
        first = self.flow.rows[name] + shift
        self._steps.rows[first : first + len(values), :count] = values

    def seed(self, q: Array, dq: Array) -> None:
        """Set the directions of the lanes by positions and velocities."""
        n, count = self.flow.dof, q.shape[1]
        self._seeds = np.zeros((self.flow.rows["move_tau"], self._steps.lanes(count)))
        for name, values in (("q", q), ("dq", dq)):
            first = self.flow.rows[name] + n + 1
            self._seeds[first : first + n, :count] = values

    def step_seeded(self, shared: Array, count: int) -> tuple[Array, Array]:
        """Step with inputs `shared` by all lanes and the direction of each."""
        np.add(self._seeds, shared[:, None], out=self._steps.rows[: len(shared), : self._seeds.shape[1]])
        return self._integrate(count)

    def step(self, count: int) -> tuple[Array, Array]:
        """Step; returns positions and velocities of all joints (including time and derivatives)."""
        J, n, rows = self.flow.joints, self.flow.dof, self._steps.rows
        used = self._steps.lanes(count)
        rows[n, :used], rows[J + n, :used] = 0.0, self._speed
        if count < used:
            rows[:, count:used] = rows[:, :1]  # unused lanes: any numbers
        return self._integrate(count)

    def _integrate(self, count: int) -> tuple[Array, Array]:
        J = self.flow.joints
        if self._euler:
            return self._euler_steps(count)
        self._steps.start()
        self._steps.run(1, 1 + self._substeps, count)
        return self._steps.state[:J, :count], self._steps.state[J:, :count]

    def _euler_steps(self, count: int) -> tuple[Array, Array]:
        J = self.flow.joints
        q, dq = self._steps.rows[:J, :count], self._steps.rows[J : 2 * J, :count]
        for _ in range(self._substeps):
            self._steps.find_rates(count)
            q += self._h * dq
            dq += self._h * self._steps.rates[:J, :count]
        return q, dq
