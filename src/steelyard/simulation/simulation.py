"""`Simulation`: what came out: the true motion of one robot or of a batch, and how each run ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SimulationError
from steelyard.robot.spatial import Array
from steelyard.signals.log import Log
from steelyard.simulation.ending import Outcome
from steelyard.simulation.sensors import Sensors


@dataclass(frozen=True, eq=False)
class Simulation:
    """True signals, `(samples, joints)`, or `(robots, samples, joints)` for a batch.

    `tau` and `ddq` are those from each sample on: the torque is held until the next control instant. A run that
    went wrong is missing (NaN) from its time `stopped` on; `outcome` and `stopped` have one entry per robot.
    """

    joints: tuple[str, ...]
    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    outcome: NDArray[np.int64]
    stopped: Array
    sensors: Sensors | None = None

    @property
    def robots(self) -> int:
        return len(self.outcome)

    @property
    def ok(self) -> bool:
        """Whether every robot came through."""
        return bool(np.all(self.outcome == Outcome.COMPLETED))

    def log(self, robot: int = 0, sensors: Sensors | None = None) -> Log:
        """What a logger would have written for one robot of the batch, up to where its run ended.

        Measured by `sensors` (default: those given to `simulate`); without any, the true signals.
        """
        if not -self.robots <= robot < self.robots:
            raise SimulationError(f"There is no robot {robot}; the batch has {self.robots}.")
        robot %= self.robots
        signals = [x if x.ndim == 2 else x[robot] for x in (self.q, self.dq, self.ddq, self.tau)]
        count = int(np.searchsorted(self.t, self.stopped[robot])) if np.isfinite(self.stopped[robot]) else len(self.t)
        if count == 0:
            raise SimulationError(f"Robot {robot} has no valid sample: its run diverged at once.")
        q, dq, ddq, tau = (x[:count] for x in signals)
        true = Log(self.joints, self.t[:count], q, dq=dq, ddq=ddq, tau=tau)
        chosen = sensors or self.sensors
        return true if chosen is None else chosen.measure(true, robot)
