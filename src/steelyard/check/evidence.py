"""`Evidence`: the prepared rows of a log that several checks look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.observe import observe
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare


@dataclass(frozen=True, eq=False)
class Evidence:
    """States and torques at the rows that remain after filtering, and y = A β of every joint whose torque is used.

    `A[e]` has the columns `columns[e]` of the base parameters (places in β). `joints[e]` is the joint of equation e.
    """

    robot: Robot
    base: BaseParameters
    motions: tuple[Motion, ...]
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    joints: tuple[int, ...]
    columns: tuple[Array, ...]
    A: tuple[Array, ...]
    y: tuple[Array, ...]

    @property
    def rows(self) -> int:
        return len(self.q)

    def thinned(self, most: int) -> slice:
        """At most so many rows, evenly."""
        return slice(None, None, max(1, -(-self.rows // most)))


def gather(robot: Robot, log: Log, bound: Terms, settings: Preparation) -> Evidence:
    """Prepare a log as `identify` would."""
    cutoff = chosen_cutoff([log], settings)
    base = base_parameters(robot, bound)
    motions = tuple(prepare(log, settings, cutoff))
    data = observe(Dynamics(robot, bound), base, lambda: motions)
    parts: list[list[tuple[Array, Array]]] = [[] for _ in data.equations]
    for block in data.blocks():
        parts[block.equation].append((block.A, block.y))
    place = {c: k for k, c in enumerate(base.independent)}
    return Evidence(
        robot=robot,
        base=base,
        motions=motions,
        q=_rows([m.q[m.keep] for m in motions]),
        dq=_rows([m.dq[m.keep] for m in motions]),
        ddq=_rows([m.ddq[m.keep] for m in motions]),
        tau=_rows([m.filter(m.tau)[m.keep] for m in motions]),
        joints=tuple(robot.joint_index(e.name) for e in data.equations),
        columns=tuple(np.array([place[int(c)] for c in e.columns]) for e in data.equations),
        A=tuple(np.concatenate([a for a, _ in part]) for part in parts),
        y=tuple(np.concatenate([b for _, b in part]) for part in parts),
    )


def _rows(pieces: Sequence[Array]) -> Array:
    return np.concatenate(pieces) if pieces else np.empty((0, 0))
