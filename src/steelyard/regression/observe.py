"""Rows y = A θ from prepared motions, both sides through the same filter, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.model import Model
from steelyard.dynamics.native.drivers import TILE
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.dynamics.native.run import Batch
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array, quick_length
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.reduce import gram_matrices
from steelyard.regression.rows import Rows
from steelyard.signals.filters import Sparse
from steelyard.signals.prepare import Motion

# Samples whose rows are in memory at once: some 200 rows of 20,000 samples are 32 MB. Never more than the second.
_CHUNK = 20_000
_LONGEST_CHUNK = 100_000
# Motions with fewer samples are left to the evaluator, which knows when machine code pays.
_FEW = 4_000
# A joint that moves in fewer of a motion's rows than this part of them keeps those in which it stands.
_FEWEST_MOVING = 0.1
# Dry friction over the residuals' standard deviation, as arms have it: 5 to 10 on the real logs that we know.
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
    """The rows of all motions over the columns of `base`; `motions` starts a pass over them, `dynamics` is the physics.

    `mask` (rad/s, m/s) drops a joint's rows below a speed; `reversals` lets them count less and less there. Without
    either, rows of a joint that stands are left out where the motion says so.

    `rows`, traced before, saves whoever observes many times the tracing. `unfiltered` adds up, beside the rows, the
    Gram matrices of the same rows before the filter, for long logs, whose chunks are then quick to transform, too;
    `beginning` is how many of their rows are kept.

    Regressor and torque go through the motion's filter together (Gautier 1997: a parallel filter changes neither
    side alone), so that what the filter does to a jump of friction it does to the column that explains it.
    """
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough to be filtered; lower the trim or raise the cut-off.")
    rows = rows or Rows.kept(dynamics, base.independent)
    grams = _Unfiltered(rows) if unfiltered else None
    period = first.row_period

    def source() -> Iterable[Block]:
        for motion in (with_history(dynamics, m) for m in motions()):
            yield from _blocks(rows, motion, mask, reversals, grams)

    return RegressionData(rows.equations, rows.parameters, source, period, beginning=beginning)


def _trust(speed: Array, uncertainty: float) -> Array:
    """What a row at a reversal is multiplied with.

    With a velocity known to ± s the direction of dry friction has the mean e = tanh(|v|/s) and the variance 1 − e². A
    friction of Fc adds Fc²(1 − e²) to the variance σ² of a row.
    """
    doubt = 1.0 - np.tanh(speed / uncertainty) ** 2
    return np.asarray(1.0 / np.sqrt(1.0 + _FRICTION_TO_NOISE**2 * doubt))


def filtered_rows(table: MotionTable, even: bool = False) -> Iterator[tuple[slice, Array]]:
    """Samples of a motion that are kept, and their rows of the `table` through the filter, in parts of bounded size;
    `even`: of as many rows as are quick to transform."""
    motion = table.motion
    start, stop, step = motion.keep.indices(len(motion.t))
    # Beside the rows that a chunk yields stand as many samples as the filter may still feel: not many, hence long
    # chunks for slow filters.
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
    """Filtered `rows` of a `motion` as blocks: `parts` are what `filtered_rows` gives; `mask` and `reversals` are as
    for `observe`, `unfiltered` adds up Gram matrices of the same rows before the filter."""
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
    """Where, `(samples, joints)`, a joint's equation feels dry friction of something that stands, up to any limit.

    None where no row is to be left out: `motion` has no standstill, or its rows are fitted to. Dry friction is that of
    the terms of `dynamics`. A joint that hardly moves in this motion keeps its rows: they alone tell its load.
    """
    if motion.standing is None or not motion.leaves_out:
        return None
    out = np.zeros_like(motion.standing)
    for term, coordinate in dynamics.terms.placed:
        if term.dry or (term.history and term.dissipative):
            own = np.array(coordinate.weights, dtype=float) != 0.0
            out[:, own] |= _widened(np.all(motion.standing[:, own], axis=1), motion.filter.memory // 3)[:, None]
    return np.asarray(out & (np.mean(~out[motion.keep], axis=0) >= _FEWEST_MOVING))


def _widened(flags: NDArray[np.bool_], samples: int) -> NDArray[np.bool_]:
    """`flags` and so many `samples` on either side: what the filter carries over from a stand-still, as at an end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    out = flags.copy()
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        out[max(a - samples, 0) : b + samples] = True
    return out


def _moving_rows(equation: int, part: Array, moving: NDArray[np.bool_]) -> Iterator[Block]:
    """The rows of `part` that are `moving`, stretch by stretch: across a stand-still they do not follow one another."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moving, [False]]).astype(np.int8)))
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        yield Block(equation, part[a:b, :-1], part[a:b, -1], partial=True)


class MotionTable:
    """[A y] of all equations side by side, one row per sample, made part by part for the filter.

    It shows a part of the motion and reaches beyond that by what the filter may still feel of its neighbours. Entries
    that are smooth along the motion are made at as few samples as the filter needs of them.

    Args:
        rows: the traced equations.
        motion: whose rows they are.
    """

    def __init__(self, rows: Rows, motion: Motion) -> None:
        self.rows, self.motion = rows, motion
        self.low, self.samples, self.every = 0, len(motion.t), 1
        self.begin()

    def begin(self) -> None:
        """What is worked out once."""
        rows, motion = self.rows, self.motion
        if len(motion.t) > _FEW and len(rows.smooth.places):
            self.every = motion.filter.spacing(motion.smooth_hz, motion.keep.step or 1)
        functions = [(rows.smooth, self.every), (rows.rough, 1)] if self.every > 1 else [(rows.whole, 1)]
        self._made = [(part.places, _Made(part.evaluator, motion, every)) for part, every in functions]

    def show(self, first: int, last: int) -> None:
        """The samples from `first` to `last` are wanted next."""
        reach = self.motion.filter.reach
        self.low, high = max(0, first - reach), min(len(self.motion.t), last + reach)
        self.low -= self.low % self.every
        self.samples = high - self.low

    def filtered(self, part: slice) -> Array:
        """The rows at the samples `part` of what is shown, through the filter."""
        filtered = [(places, made.filtered(self.low, self.samples, part)) for places, made in self._made]
        if len(filtered) == 1:
            return filtered[0][1]
        out = np.empty((len(filtered[0][1]), len(self.rows.function.outputs)))
        for places, columns in filtered:
            out[:, places] = columns
        return out


class _Made:
    """What a function says of samples 0, every, 2 · every … of a motion, in an array that is used again and again."""

    def __init__(self, evaluator: Evaluator, motion: Motion, every: int = 1) -> None:
        self.evaluator, self.motion, self.every = evaluator, motion, every
        self._given = {name: getattr(motion, name)[::every] for name in evaluator.function.inputs}
        self._scratch = np.empty(0)
        self._fill: Callable[[int, int, Array], None] | None = None
        if len(motion.t) > _FEW:
            evaluator.compile()  # the first part need not find out that there is more to come
            self._fill = evaluator.machine.row_filler(Batch(evaluator.function, self._given))

    def filtered(self, low: int, samples: int, part: slice) -> Array:
        """Its values through the motion's filter.

        Args:
            low: Sample of the motion at which the filter begins.
            samples: How many it sees.
            part: Which of them are wanted.
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
    """The `motion` with the signals that the terms of `dynamics` follow along it, if any, and it has none yet.

    What joints carry is that of the `reference`'s links and rotors; None: of the robot's description.
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
    """Gram matrices of [A y] at the rows that are kept, before any filter: what unfiltered torques are scored by."""

    def __init__(self, rows: Rows) -> None:
        self.rows = Rows.kept(rows.dynamics, sorted({int(c) for e in rows.equations for c in e.columns}), pad=TILE)

    def grams(self, motion: Motion, every: slice) -> list[Array]:
        batch = Batch(self.rows.function, _inputs(self.rows, motion, every))
        return gram_matrices(self.rows, batch, 0, batch.samples)
