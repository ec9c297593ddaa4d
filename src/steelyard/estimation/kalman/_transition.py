"""`Transition`: (state, base parameters) at one sample → state at the next, for many lanes or with its derivatives."""

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

# `Flow`: the motion of a robot over one step of a log, traced for lanes of states, with exact derivatives if wanted.
#
# Torque goes linearly from one sample to the next (held: both ends alike). The driver that steps simulations does the
# work, so the fraction of the step that has gone by is one more joint, moving at the speed of one per step;
# derivatives are joints, too, as in `steelyard.simulation.sensitivities`.


class Flow:
    """q̈ of the state's lanes, and with `tangents` δq̈ along (δq, δq̇, δτ, δθ); `rows` says where inputs start."""

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
        """δq̈ by forward differentiation of all that was traced."""
        n = self.dof
        seeds = {("q", k): trace["q"][n + 1 + k] for k in range(n)}
        seeds |= {("dq", k): trace["dq"][n + 1 + k] for k in range(n)}
        # A torque that is off is off by the same amount over the whole step.
        seeds |= {("pull", half * n + k): trace["move_tau"][k] for half in (0, 1) for k in range(n)}
        seeds |= {("theta", k): trace["move_theta"][k] for k in range(self.numbers)}
        return forward(trace.graph, rate, seeds)


@lru_cache(16)
def flow_of(plant: Plant, tangents: bool) -> Flow:
    """The traced flow; the last few are kept, since their code takes a second to make."""
    return Flow(plant, tangents)


Method = Literal["rk4", "euler"]


@dataclass(frozen=True, eq=False)
class Linearised:
    """The next state, and its derivatives by the state, the base parameters and the torque."""

    x: Array
    by_state: Array
    by_parameters: Array
    by_torque: Array


class Transition:
    """Steps of `period` seconds in `substeps` parts; states are (q, dq), parameters the base parameters.

    `directions` (base parameters × the plant's lumped ones): θ = β · directions moves the robot as β does, since all
    other parameters have no say. Holds scratch, so one per thread.
    """

    def __init__(
        self, plant: Plant, directions: Array, period: float, substeps: int = 1, method: Method = "rk4"
    ) -> None:
        self.plant, self.directions = plant, np.ascontiguousarray(directions)
        self.period, self.substeps, self.method = period, substeps, method
        self.dof, self.parameters = plant.robot.dof, len(directions)
        self._plain: list[_Rows] = []
        self._tangent: list[_Rows] = []

    def moved(self, x: Array, beta: Array, start: Array, end: Array) -> Array:
        """States `(lanes, 2 · dof)` after one step; torques `start` and `end` are `(dof,)` or `(lanes, dof)`."""
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

    def linearised(self, x: Array, beta: Array, start: Array, end: Array) -> Linearised:
        """One step from one state, with exact derivatives of the step as it is computed."""
        n, p = self.dof, self.parameters
        lanes = 3 * n + p
        if not self._tangent:
            self._tangent = self._seeded(lanes)
        moves = np.empty((2 * n, lanes))
        # The same numbers in all lanes, but for the directions, where they have zeros.
        put, first = self._together, self._tangent[0].flow.rows
        put[:n], put[first["dq"] : first["dq"] + n] = x[:n], x[n:]
        put[first["pull"] : first["theta"]] = np.concatenate([start, end])
        put[first["theta"] :] = beta @ self.directions
        for k, rows in zip(range(0, lanes, MOST), self._tangent, strict=True):
            count = min(MOST, lanes - k)
            q, dq = rows.step_seeded(put, count)
            moves[:n, k : k + count], moves[n:, k : k + count] = q[n + 1 :], dq[n + 1 :]
        after = np.concatenate([q[:n, 0], dq[:n, 0]])
        return Linearised(after, moves[:, : 2 * n], moves[:, 2 * n : 2 * n + p], moves[:, 2 * n + p :])

    def _seeded(self, lanes: int) -> list[_Rows]:
        """Lanes for the directions: each coordinate of the state, each base parameter, each torque."""
        n, p = self.dof, self.parameters
        flow = flow_of(self.plant, True)
        state = np.eye(2 * n, lanes)
        torque = np.eye(n, lanes, 2 * n + p)
        numbers = np.zeros((flow.numbers, lanes))
        numbers[:, 2 * n : 2 * n + p] = self.directions.T
        self._together = np.zeros(flow.rows["move_tau"])
        self._together[flow.rows["dq"] + n] = 1.0 / self.period  # time goes by, too
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
    """Scratch rows of one block of lanes, and the call that steps them."""

    def __init__(self, flow: Flow, transition: Transition) -> None:
        self.flow, self._euler = flow, transition.method == "euler"
        self._substeps, self._h = transition.substeps, transition.period / transition.substeps
        self._steps = Stepper(flow.kernel, flow.joints, flow.row_count, MOST, self._h)
        self._speed = 1.0 / transition.period

    def set(self, name: str, values: Array, count: int, shift: int = 0) -> None:
        """Rows of an input."""
        first = self.flow.rows[name] + shift
        self._steps.rows[first : first + len(values), :count] = values

    def seed(self, q: Array, dq: Array) -> None:
        """Directions in which the lanes move, by positions and velocities."""
        n, count = self.flow.dof, q.shape[1]
        self._seeds = np.zeros((self.flow.rows["move_tau"], self._steps.lanes(count)))
        for name, values in (("q", q), ("dq", dq)):
            first = self.flow.rows[name] + n + 1
            self._seeds[first : first + n, :count] = values

    def step_seeded(self, together: Array, count: int) -> tuple[Array, Array]:
        """The same from the numbers that all lanes have, `together`, and the directions of each."""
        np.add(self._seeds, together[:, None], out=self._steps.rows[: len(together), : self._seeds.shape[1]])
        return self._stepped(count)

    def step(self, count: int) -> tuple[Array, Array]:
        """Positions and velocities of all joints (time and derivatives are such) at the end of the step."""
        J, n, rows = self.flow.joints, self.flow.dof, self._steps.rows
        used = self._steps.lanes(count)
        rows[n, :used], rows[J + n, :used] = 0.0, self._speed
        if count < used:
            rows[:, count:used] = rows[:, :1]  # lanes beyond the last: any numbers would do
        return self._stepped(count)

    def _stepped(self, count: int) -> tuple[Array, Array]:
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
