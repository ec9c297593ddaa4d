"""What the search looks at: candidates, rows of the logs' beginnings, their blocks, motions that candidates go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.identification._blocks import Index, Mask
from steelyard.parameters.term import Term
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# Blocks of time that are left out in turn; few enough that the others still excite everything.
BLOCKS = 5
# From this many logs on, whole logs are left out: what changes between logs is what a model meets next.
ENOUGH_LOGS = 3
# The usual dry friction is also tried as a jump, and rounded off at this part of its usual speed. What looks rounder
# than usual is friction that remembers, and is offered as such.
ROUNDINGS = (0.0, 0.3)
# Rows of an equation that are looked at; of longer logs, stretches all along them, two in each block that is left out.
# The error over as many is known to one or two per cent, which is what a term must gain.
ENOUGH_ROWS = 10_000
_STRETCHES = 10
# Of a stretch, the part that precedes it, in which friction that remembers takes on its state.
_LEAD = 0.25
# Samples of the motion from one row to the next, as far as candidates are computed from them.
_THINNED = 4


@dataclass(frozen=True, eq=False)
class Offer:
    """A candidate of one joint: its term there, and its columns.

    `instead`: it takes the usual dry friction's place.
    """

    term: Term
    columns: Index
    instead: bool

    @property
    def bounded(self) -> Mask:
        """Which of its parameters cannot be negative: what takes energy, and springs."""
        return np.array([self.term.dissipative or c.lower == 0.0 for c in self.term.columns])


def term_text(term: Term) -> str:
    """A candidate for people: its name, and the options that tell it from others of its kind."""
    options = ", ".join(f"{k} {v:.3g}" for k, v in term.options.items() if isinstance(v, float))
    return f"{term.kind} ({options})" if options else term.kind


def tables(study: Study, rows: Rows, motion: Motion) -> list[Array]:
    """[A y] of every equation at the motion's rows, through its filter."""
    parts: list[list[Array]] = [[] for _ in rows.equations]
    whole = replace(motion, fit_standing=True)  # rows of standstill are left out later, with their candidates
    for block in observe(study.dynamics, study.base, lambda: (whole,), rows=rows).source():
        parts[block.equation].append(np.column_stack([block.A, block.y]))
    return [np.concatenate(p) for p in parts]


def in_step(motion: Motion) -> Motion:
    """The motion with rows a little closer, such that four samples of `thinned` are from one to the next."""
    start, stop, step = motion.keep.indices(len(motion.t))
    return replace(motion, keep=slice(start, stop, step - step % _THINNED if step > _THINNED else step))


def stretches(motions: Sequence[Motion]) -> list[list[tuple[slice, Motion]]]:
    """Of each motion the stretches that are looked at, and which of its samples they are."""
    total = sum(m.rows for m in motions)
    if total <= ENOUGH_ROWS:
        return [[(slice(0, len(m.t)), m)] for m in motions]
    out = []
    for m in motions:
        start, _, step = m.keep.indices(len(m.t))
        count = max(round(_STRETCHES * m.rows / total), 1)
        length = max(m.rows * ENOUGH_ROWS // (total * count), 4)
        lead = start + int(_LEAD * length) * step
        firsts = (k * m.rows // count for k in range(count))
        out.append([_cut(m, start + i * step, min(length, m.rows - i), lead, start) for i in firsts])
    return out


def _cut(motion: Motion, first: int, rows: int, before: int, after: int) -> tuple[slice, Motion]:
    """So many `rows` of a motion from a `first` sample on, with samples `before` them and `after` them."""
    step = motion.keep.step
    end = first + (rows - 1) * step + 1
    inside = slice(max(first - before, 0), end + after)
    states = {name: getattr(motion, name)[inside] for name in ("t", "q", "dq", "ddq", "tau")}
    given = {name: x[inside] for name in ("history", "standing") if (x := getattr(motion, name)) is not None}
    return inside, replace(motion, **states, **given, keep=slice(first - inside.start, end - inside.start, step))


def thinned(motion: Motion) -> Motion:
    """The motion at fewer samples, of which its rows are some: as many as its candidates need.

    It was smoothed at twice the cut-off; twenty samples in a period of the cut-off hold it, and what is computed from
    it and goes through the filter. (The torque is not smooth: its rows are made of all samples.)
    """
    start, stop, step = motion.keep.indices(len(motion.t))
    every = max(step // _THINNED, 1)
    states = {name: getattr(motion, name)[start % every :: every] for name in ("t", "q", "dq", "ddq", "tau")}
    keep = slice(start // every, start // every + (stop - start - 1) // every + 1, step // every)
    low_pass = replace(motion.filter, period=every * motion.filter.period)
    return replace(motion, **states, filter=low_pass, keep=keep, standing=None)


def labels(motions: Sequence[tuple[int, int]]) -> list[Index]:
    """To which block each row belongs, motion by motion, for motions given as (log, rows)."""
    logs = sorted({log for log, _ in motions})
    if len(logs) >= ENOUGH_LOGS:
        groups = min(len(logs), 2 * BLOCKS)
        return [np.full(rows, logs.index(log) * groups // len(logs), dtype=np.int64) for log, rows in motions]
    total = sum(rows for _, rows in motions)
    numbers = np.arange(total, dtype=np.int64) * BLOCKS // total
    return np.split(numbers, np.cumsum([rows for _, rows in motions])[:-1])
