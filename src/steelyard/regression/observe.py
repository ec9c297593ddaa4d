"""Rows y = A θ from prepared motions, both sides through the same filter, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from steelyard.dynamics.emit_llvm import LANES
from steelyard.dynamics.engine import Dynamics
from steelyard.errors import StructureError
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Rows
from steelyard.robot.spatial import Array
from steelyard.signals.prepare import Motion

# Samples whose rows are in memory at once: some 200 rows of 20,000 samples are 32 MB.
_CHUNK = 20_000


def observe(
    dynamics: Dynamics, base: BaseParameters, motions: Callable[[], Iterable[Motion]], mask: float = 0.0
) -> RegressionData:
    """The rows of all motions over the base parameters' columns; `motions()` starts a pass over them.

    Regressor and torque go through the motion's filter together (Gautier 1997: a parallel filter changes neither
    side alone), so that what the filter does to a jump of friction it does to the column that explains it.
    """
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough to be filtered; lower the trim or raise the cut-off.")
    rows = Rows(dynamics, base.independent)
    period = first.row_period

    def source() -> Iterable[Block]:
        for motion in motions():
            yield from _blocks(rows, motion, mask)

    return RegressionData(rows.equations, rows.parameters, source, period)


def _blocks(rows: Rows, motion: Motion, mask: float) -> Iterator[Block]:
    start, stop, step = motion.keep.indices(len(motion.t))
    memory = motion.filter.memory
    for first in range(start, stop, _CHUNK // step * step or step):
        last = min(first + (_CHUNK // step * step or step), stop)
        low, high = max(0, first - memory), min(len(motion.t), last + memory)
        # Copied, or the blocks would hold on to all the rows that decimation leaves out.
        table = motion.filter(_table(rows, motion, slice(low, high)))[first - low : last - low : step].copy()
        speeds = np.abs(motion.dq[first:last:step])
        used = np.flatnonzero(rows.dynamics.robot.torque_used)
        for e, equation in enumerate(rows.equations):
            begin = int(rows.firsts[e])
            part = table[:, begin : begin + equation.width]
            if mask > 0.0:
                part = part[speeds[:, used[e]] >= mask]
            if len(part):
                yield Block(e, part[:, :-1], part[:, -1])


def _table(rows: Rows, motion: Motion, part: slice) -> Array:
    """[A y] of all equations side by side, one row per sample."""
    inputs = {"q": motion.q[part], "dq": motion.dq[part], "ddq": motion.ddq[part], "tau": motion.tau[part]}
    lanes = rows.evaluator.lanes(inputs)
    samples = len(inputs["q"])
    return lanes[:, :, :LANES].swapaxes(1, 2).reshape(-1, lanes.shape[1])[:samples]
