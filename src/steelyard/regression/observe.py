"""Rows y = A θ from prepared motions, both sides through the same filter, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.model import Model
from steelyard.dynamics.native.compiled_function import Batch
from steelyard.dynamics.native.drivers import TILE
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array, quick_length
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.factor import gram_matrices
from steelyard.regression.rows import Rows
from steelyard.signals.filters import Sparse
from steelyard.signals.prepare import Motion

# Samples whose rows are in memory at once: 200 rows of 20,000 samples are 32 MB. The second number is the maximum.
_CHUNK = 20_000
_LONGEST_CHUNK = 100_000
# Motions with fewer samples are left to the evaluator, which decides when to compile.
_FEW = 4_000
# If a joint moves in a smaller share of the rows than this, its rows at standstill are used as well.
_FEWEST_MOVING = 0.1
# Typical ratio of dry friction to the residuals' standard deviation: 5 to 10 on known real logs.
_FRICTION_TO_NOISE = 5.0


def observe(
    dynamics: Dynamics,
    base: BaseParameters,
    motions: Callable[[], Iterable[Motion]],
    mask: float = 0.0,
    rows: Rows | None = None,
    reversals: float = 0.0,
    unfiltered: bool = False,
    beginning: int = 0,
) -> RegressionData:
    """Build the rows of all motions over base-parameter columns.

    Without `mask` and `reversals`, rows of a joint at standstill are excluded if the motion requires it. Regressor and
    torque pass the motion's filter together (Gautier 1997: a parallel filter changes neither side alone), so that the
    filter has the same effect on a jump of friction and on its column.

    Args:
        dynamics: Physics of the robot with its terms.
        base: Base parameters of the columns.
        motions: Starts a pass over prepared motions.
        mask: Exclude a joint's rows below this speed [rad/s, m/s].
        rows: Traced equations, to avoid tracing again.
        reversals: Instead of a mask, reduce weights below this speed [rad/s, m/s].
        unfiltered: Also compute Gram matrices of the same rows before the filter, for long logs; chunks then have a
            length with a fast transform.
        beginning: Number of rows that are stored.
    """
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough for the filter; lower the trim or raise the cut-off.")
    rows = rows or Rows.cached(dynamics, base.independent)
    grams = _Unfiltered(rows) if unfiltered else None
    period = first.row_period

    def source() -> Iterable[Block]:
        for motion in (with_history(dynamics, m) for m in motions()):
            yield from _blocks(rows, motion, mask, reversals, grams)

    return RegressionData(rows.equations, rows.parameters, source, period, beginning=beginning)


def _trust(speed: Array, uncertainty: float) -> Array:
    """Compute the factor for a row at a reversal.

    For a velocity with error ± s the direction of dry friction has mean e = tanh(|v|/s) and variance 1 − e². A
    friction of Fc adds Fc²(1 − e²) to the variance σ² of a row.
    """
    doubt = 1.0 - np.tanh(speed / uncertainty) ** 2
    return np.asarray(1.0 / np.sqrt(1.0 + _FRICTION_TO_NOISE**2 * doubt))


def filtered_rows(table: MotionTable, even: bool = False) -> Iterator[tuple[slice, Array]]:
    """Yield selected samples of a motion and their rows through the filter, in parts of bounded size.

    Args:
        table: Rows of the motion.
        even: Use parts with a length that is fast to transform.
    """
    motion = table.motion
    start, stop, step = motion.keep.indices(len(motion.t))
    # A chunk also needs the samples within the filter's reach; long chunks keep their share small for slow filters.
    kept = max(min(max(_CHUNK, 8 * motion.filter.reach), _LONGEST_CHUNK) // step, 1)
    size = (quick_length(kept) if even else kept) * step
    for first in range(start, stop, size):
        last = min(first + size, stop)
        table.show(first, last)
        yield slice(first, last, step), table.filtered(slice(first - table.low, last - table.low, step))


def _blocks(
    rows: Rows, motion: Motion, mask: float, reversals: float, unfiltered: _Unfiltered | None
) -> Iterator[Block]:
    table = MotionTable(rows, motion)
    yield from motion_blocks(rows, motion, filtered_rows(table, unfiltered is not None), mask, reversals, unfiltered)


def motion_blocks(
    rows: Rows,
    motion: Motion,
    parts: Iterable[tuple[slice, Array]],
    mask: float = 0.0,
    reversals: float = 0.0,
    unfiltered: _Unfiltered | None = None,
) -> Iterator[Block]:
    """Convert filtered rows of a motion to blocks.

    Args:
        rows: Traced equations.
        motion: Prepared motion.
        parts: Result of `filtered_rows`.
        mask: As in `observe`.
        reversals: As in `observe`.
        unfiltered: Accumulates Gram matrices of the same rows before the filter.
    """
    used = np.flatnonzero(rows.dynamics.robot.torque_used)
    left_out = standstill_rows(rows.dynamics, motion) if mask == 0.0 and reversals == 0.0 else None
    for every, filtered in parts:
        grams = [None] * len(rows.equations) if unfiltered is None else unfiltered.grams(motion, every)
        for e, equation in enumerate(rows.equations):
            begin = int(rows.firsts[e])
            part = filtered[:, begin : begin + equation.width]
            if left_out is not None and left_out[every, used[e]].any():
                yield from _moving_rows(e, part, ~left_out[every, used[e]])
                continue
            if mask > 0.0:
                part = part[np.abs(motion.dq[every, used[e]]) >= mask]
            elif reversals > 0.0:
                part = part * _trust(np.abs(motion.dq[every, used[e]]), reversals)[:, None]
            if len(part):
                yield Block(e, part[:, :-1], part[:, -1], grams[e], every.stop - every.start)


def standstill_rows(dynamics: Dynamics, motion: Motion) -> NDArray[np.bool_] | None:
    """Return a mask `(samples, joints)` where static friction affects a joint's equation; its value is undetermined.

    None if no row is excluded: the motion has no standstill, or its rows are used in the fit. A joint that hardly moves
    in this motion keeps its rows, since only they show its load.

    Args:
        dynamics: Physics whose terms have the dry friction.
        motion: Prepared motion.
    """
    if motion.standing is None or not motion.leaves_out:
        return None
    out = np.zeros_like(motion.standing)
    for term, coordinate in dynamics.terms.with_coordinates:
        if term.dry or (term.history and term.dissipative):
            own = np.array(coordinate.weights, dtype=float) != 0.0
            out[:, own] |= _widen(np.all(motion.standing[:, own], axis=1), motion.filter.memory // 3)[:, None]
    return np.asarray(out & (np.mean(~out[motion.keep], axis=0) >= _FEWEST_MOVING))


def _widen(flags: NDArray[np.bool_], samples: int) -> NDArray[np.bool_]:
    """Extend `flags` by `samples` on either side, the reach of the filter."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    out = flags.copy()
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        out[max(a - samples, 0) : b + samples] = True
    return out


def _moving_rows(equation: int, part: Array, moving: NDArray[np.bool_]) -> Iterator[Block]:
    """Yield the `moving` rows of `part` by stretch, since rows across a standstill are not consecutive."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moving, [False]]).astype(np.int8)))
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        yield Block(equation, part[a:b, :-1], part[a:b, -1], partial=True)


class MotionTable:
    """[A y] of all equations side by side, one row per sample, computed in parts for the filter.

    It presents a part of the motion and extends beyond it by the filter's reach. Entries that are smooth along the
    motion are computed at as few samples as the filter needs.

    Args:
        rows: Traced equations.
        motion: Motion of the rows.
    """

    def __init__(self, rows: Rows, motion: Motion) -> None:
        self.rows, self.motion = rows, motion
        self.low, self.samples, self.every = 0, len(motion.t), 1
        self.begin()

    def begin(self) -> None:
        """Prepare the computation."""
        rows, motion = self.rows, self.motion
        if len(motion.t) > _FEW and len(rows.smooth.places):
            self.every = motion.filter.spacing(motion.smooth_hz, motion.keep.step or 1)
        functions = [(rows.smooth, self.every), (rows.rough, 1)] if self.every > 1 else [(rows.whole, 1)]
        self._made = [(part.places, _Values(part.evaluator, motion, every)) for part, every in functions]

    def show(self, first: int, last: int) -> None:
        """Select the samples of the next part.

        Args:
            first: First sample.
            last: One past the last sample.
        """
        reach = self.motion.filter.reach
        self.low, high = max(0, first - reach), min(len(self.motion.t), last + reach)
        self.low -= self.low % self.every
        self.samples = high - self.low

    def filtered(self, part: slice) -> Array:
        """Filter the rows at the samples `part` of the selected part."""
        filtered = [(places, made.filtered(self.low, self.samples, part)) for places, made in self._made]
        if len(filtered) == 1:
            return filtered[0][1]
        out = np.empty((len(filtered[0][1]), len(self.rows.function.outputs)))
        for places, columns in filtered:
            out[:, places] = columns
        return out


class _Values:
    """Values of a function at samples 0, every, 2 · every … of a motion, in a reused array."""

    def __init__(self, evaluator: Evaluator, motion: Motion, every: int = 1) -> None:
        self.evaluator, self.motion, self.every = evaluator, motion, every
        self._given = {name: getattr(motion, name)[::every] for name in evaluator.function.inputs}
        self._scratch = np.empty(0)
        self._fill: Callable[[int, int, Array], None] | None = None
        if len(motion.t) > _FEW:
            evaluator.compile()  # compile before the first part, since the work is large
            self._fill = evaluator.machine.row_filler(Batch(evaluator.function, self._given))

    def filtered(self, low: int, samples: int, part: slice) -> Array:
        """Filter the values by the motion's filter.

        Args:
            low: Sample of the motion at which the filter begins.
            samples: Number of samples of the filter.
            part: Samples to return.
        """
        first = low // self.every

        def make(start: int, stop: int) -> Array:
            return self(first + start, first + stop)

        def beyond(count: int) -> Array:
            last = low + samples - 1
            mirrored = 2 * last - self.every * (last // self.every + 1 + np.arange(count))
            states = {name: getattr(self.motion, name) for name in self._given}
            end, *others = self.evaluator({name: x[np.append(last, mirrored)] for name, x in states.items()})
            return np.asarray(2.0 * end - np.reshape(others, (count, -1)))

        sparse = Sparse(self.every, beyond) if self.every > 1 else None
        return self.motion.filter.of(make, samples, part, sparse)

    def __call__(self, start: int, stop: int) -> Array:
        width = self.evaluator.function.size
        if len(self._scratch) < (stop - start) * width:
            self._scratch = on_cache_lines((stop - start) * width)
        out = self._scratch[: (stop - start) * width].reshape(-1, width)
        if self._fill is None:
            return self.evaluator({name: x[start:stop] for name, x in self._given.items()}, out)
        self._fill(start, stop, out)
        return out


def _inputs(rows: Rows, motion: Motion, every: slice) -> dict[str, Array]:
    return {name: getattr(motion, name)[every] for name in rows.function.inputs}


def with_history(dynamics: Dynamics, motion: Motion, reference: Model | None = None) -> Motion:
    """Add the signals that terms with memory need along a motion, if missing.

    Args:
        dynamics: Physics with the terms.
        motion: Prepared motion.
        reference: Model whose links and rotors give the load; default: the robot's description.
    """
    terms = dynamics.terms
    if not terms.history or motion.history_key == terms.history_key:
        return motion
    states, period = (motion.q, motion.dq, motion.ddq), motion.filter.period
    if reference is None:
        signals = dynamics.history(*states, period=period)
    else:
        signals = terms.along(*states[:2], period, reference.rigid_torque(*states) if terms.needs_rigid else None)
    return replace(motion, history=signals, history_key=terms.history_key)


class _Unfiltered:
    """Gram matrices of [A y] at the selected rows before any filter, for scores of unfiltered torques."""

    def __init__(self, rows: Rows) -> None:
        self.rows = Rows.cached(rows.dynamics, sorted({int(c) for e in rows.equations for c in e.columns}), pad=TILE)

    def grams(self, motion: Motion, every: slice) -> list[Array]:
        batch = Batch(self.rows.function, _inputs(self.rows, motion, every))
        return gram_matrices(self.rows, batch, 0, batch.samples)
