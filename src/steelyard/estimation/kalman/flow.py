"""`Flow`: the motion of a robot over one step of a log, traced for lanes of states, with exact derivatives if wanted.

Torque goes linearly from one sample to the next (held: both ends alike). The driver that steps simulations does the
work, so the fraction of the step that has gone by is one more joint, moving at the speed of one per step; derivatives
are joints, too, as in `steelyard.simulation.sensitivities`.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from steelyard.dynamics.function import Trace
from steelyard.dynamics.graph import forward
from steelyard.scalars import Scalar
from steelyard.simulation.plant import Kernel, Plant


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
        physics, full = self.plant.smooth, self.plant.spread(theta)
        rate = physics.forward_over_scalars(q[:n], dq[:n], tau, full)
        outputs: list[Scalar] = [*rate, 0.0]
        if self.tangents:
            outputs += self._slopes(trace, rate)
        return Kernel(trace, outputs, self.rows)

    def _slopes(self, trace: Trace, rate: list[Scalar]) -> list[Scalar]:
        """δq̈ by forward differentiation of all that was traced."""
        n = self.dof
        seeds = {("q", k): trace["q"][n + 1 + k] for k in range(n)}
        seeds |= {("dq", k): trace["dq"][n + 1 + k] for k in range(n)}
        # A torque that is off is off by the same amount over the whole step.
        seeds |= {("pull", half * n + k): trace["move_tau"][k] for half in (0, 1) for k in range(n)}
        seeds |= {("theta", k): trace["move_theta"][k] for k in range(self.numbers)}
        return forward(trace.graph, rate, seeds)


_flows: dict[Hashable, Flow] = {}
_FLOWS_KEPT = 16


def flow_of(plant: Plant, tangents: bool) -> Flow:
    """The traced flow; the last few are kept, since their code takes a second to make."""
    key = (plant, tangents)
    if key not in _flows:
        while len(_flows) >= _FLOWS_KEPT:
            del _flows[next(iter(_flows))]
        _flows[key] = Flow(plant, tangents)
    return _flows[key]
