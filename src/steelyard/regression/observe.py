"""Rows y = A θ from prepared motions, both sides through the same filter, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.signals.source import ahead

# Samples whose rows are in memory at once: some 200 rows of 20,000 samples are 32 MB. Never more than the second.
_CHUNK = 20_000
_LONGEST_CHUNK = 100_000
# Dry friction over the residuals' spread, as arms have it: 5 to 10 on the real logs that we know.
_FRICTION_TO_NOISE = 5.0


def observe(
    dynamics: Dynamics,
    base: BaseParameters,
    motions: Callable[[], Iterable[Motion]],
    mask: float = 0.0,
    rows: Rows | None = None,
    reversals: float = 0.0,
) -> RegressionData:
    """The rows of all motions over the base parameters' columns; `motions()` starts a pass over them.

    `mask` (rad/s, m/s) drops a joint's rows below a speed; `reversals` lets them count less and less there.

    `rows`, traced before, saves whoever observes many times the tracing.

    Regressor and torque go through the motion's filter together (Gautier 1997: a parallel filter changes neither
    side alone), so that what the filter does to a jump of friction it does to the column that explains it.
    """
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough to be filtered; lower the trim or raise the cut-off.")
    rows = rows or Rows(dynamics, base.independent)
    period = first.row_period

    def source() -> Iterable[Block]:
        for motion in ahead(motions()):
            yield from _blocks(rows, motion, mask, reversals)

    return RegressionData(rows.equations, rows.parameters, source, period)


def _trust(speed: Array, uncertainty: float) -> Array:
    """What a row at a reversal is multiplied with.

    With a velocity known to ± s the direction of dry friction has the mean e = tanh(|v|/s) and the variance 1 − e². A
    friction of Fc adds Fc²(1 − e²) to the variance σ² of a row.
    """
    doubt = 1.0 - np.tanh(speed / uncertainty) ** 2
    return np.asarray(1.0 / np.sqrt(1.0 + _FRICTION_TO_NOISE**2 * doubt))


def _blocks(rows: Rows, motion: Motion, mask: float, reversals: float) -> Iterator[Block]:
    start, stop, step = motion.keep.indices(len(motion.t))
    # Beside the rows that a chunk yields stand as many samples as the filter may still feel: not many, hence long
    # chunks for slow filters.
    reach = motion.filter.reach
    size = max(min(max(_CHUNK, 8 * reach), _LONGEST_CHUNK) // step, 1) * step
    width = len(rows.function.outputs)
    scratch = on_cache_lines(min(size + 2 * reach, len(motion.t)) * width)
    used = np.flatnonzero(rows.dynamics.robot.torque_used)
    if len(motion.t) > _CHUNK:
        rows.evaluator.compile()  # the first chunk need not find out that there is more to come
    for first in range(start, stop, size):
        last = min(first + size, stop)
        low, high = max(0, first - reach), min(len(motion.t), last + reach)
        raw = _table(rows, motion, slice(low, high), scratch[: (high - low) * width].reshape(-1, width))
        table = motion.filter(raw, slice(first - low, last - low, step))
        speeds = np.abs(motion.dq[first:last:step])
        for e, equation in enumerate(rows.equations):
            begin = int(rows.firsts[e])
            part = table[:, begin : begin + equation.width]
            if mask > 0.0:
                part = part[speeds[:, used[e]] >= mask]
            elif reversals > 0.0:
                part = part * _trust(speeds[:, used[e]], reversals)[:, None]
            if len(part):
                yield Block(e, part[:, :-1], part[:, -1])


def _table(rows: Rows, motion: Motion, part: slice, out: Array) -> Array:
    """[A y] of all equations side by side, one row per sample, written into `out`."""
    inputs = {"q": motion.q[part], "dq": motion.dq[part], "ddq": motion.ddq[part], "tau": motion.tau[part]}
    return rows.evaluator(inputs, out)
