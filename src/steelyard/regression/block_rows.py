"""Rows of a study's first motions, divided into stretches and labelled by left-out block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.block_grams import Index, Mask
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion

# Number of blocks of time that are left out in turn; few enough that the others excite all parameters.
BLOCKS = 5
# From this number of logs on, whole logs are left out, since a model must predict new logs.
ENOUGH_LOGS = 3
# Rows of an equation that are used; from longer logs, evenly spaced stretches, two per left-out block. Their error is
# accurate to one or two per cent, the gain required of a term.
ENOUGH_ROWS = 10_000
_STRETCHES = 10
# Lead-in relative to a stretch, in which friction with memory reaches its state.
_LEAD = 0.25
# Samples of the thinned motion between rows, from which candidates are computed.
_THINNED = 4


def nonnegative(base: BaseParameters) -> Mask:
    """Mark base parameters that cannot be negative: single parameters of terms with a lower bound of zero.

    Args:
        base: Base parameters of the robot with its terms.
    """
    lower = np.concatenate([np.full(base.robot.inertial_count, -np.inf), base.terms.lower])
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    return np.asarray(alone & (lower[list(base.independent)] == 0.0))


def tables(dynamics: Dynamics, base: BaseParameters, rows: Rows, motion: Motion) -> list[Array]:
    """Compute [A y] of every equation at the motion's rows, through its filter.

    Args:
        dynamics: Physics of the robot with its terms.
        base: Base parameters of the columns.
        rows: Traced equations over these columns.
        motion: Prepared motion; rows of standstill remain.
    """
    parts: list[list[Array]] = [[] for _ in rows.equations]
    whole = replace(motion, fit_standing=True)  # rows of standstill are removed later, with their candidates
    for block in observe(dynamics, base, lambda: (whole,), rows=rows).source():
        parts[block.equation].append(np.column_stack([block.A, block.y]))
    return [np.concatenate(p) for p in parts]


def align_rows(motion: Motion) -> Motion:
    """Space the rows such that four samples of `thin` lie between two of them.

    Args:
        motion: Prepared motion.
    """
    start, stop, step = motion.keep.indices(len(motion.t))
    return replace(motion, keep=slice(start, stop, step - step % _THINNED if step > _THINNED else step))


def stretches(motions: Sequence[Motion], enough: int = ENOUGH_ROWS) -> list[list[tuple[slice, Motion]]]:
    """Cut long motions into stretches.

    Args:
        motions: Prepared motions.
        enough: Number of rows to use.

    Returns:
        For each motion, the samples of every stretch and the stretch as a motion.
    """
    total = sum(m.rows for m in motions)
    if total <= enough:
        return [[(slice(0, len(m.t)), m)] for m in motions]
    out = []
    for m in motions:
        start, _, step = m.keep.indices(len(m.t))
        count = max(round(_STRETCHES * m.rows / total), 1)
        length = max(m.rows * enough // (total * count), 4)
        lead = start + int(_LEAD * length) * step
        firsts = (k * m.rows // count for k in range(count))
        out.append([_cut(m, start + i * step, min(length, m.rows - i), lead, start) for i in firsts])
    return out


def _cut(motion: Motion, first: int, rows: int, before: int, after: int) -> tuple[slice, Motion]:
    """Take `rows` rows from sample `first` on, with `before` and `after` samples around them."""
    step = motion.keep.step
    end = first + (rows - 1) * step + 1
    inside = slice(max(first - before, 0), end + after)
    states = {name: getattr(motion, name)[inside] for name in ("t", "q", "dq", "ddq", "tau")}
    given = {name: x[inside] for name in ("history", "standing") if (x := getattr(motion, name)) is not None}
    return inside, replace(motion, **states, **given, keep=slice(first - inside.start, end - inside.start, step))


def thin(motion: Motion) -> Motion:
    """Reduce a motion to the samples that its candidate columns need; its rows are among them.

    It was smoothed at twice the cut-off. Twenty samples per period of the cut-off represent it, and filtered functions
    of it. (The torque is not smooth: its rows use all samples.)

    Args:
        motion: Prepared motion.
    """
    start, stop, step = motion.keep.indices(len(motion.t))
    every = max(step // _THINNED, 1)
    states = {name: getattr(motion, name)[start % every :: every] for name in ("t", "q", "dq", "ddq", "tau")}
    keep = slice(start // every, start // every + (stop - start - 1) // every + 1, step // every)
    low_pass = replace(motion.filter, period=every * motion.filter.period)
    return replace(motion, **states, filter=low_pass, keep=keep, standing=None)


def labels(motions: Sequence[tuple[int, int]]) -> list[Index]:
    """Number the left-out block of each row, motion by motion.

    Args:
        motions: Number of the log and number of rows of each motion.
    """
    logs = sorted({log for log, _ in motions})
    if len(logs) >= ENOUGH_LOGS:
        groups = min(len(logs), 2 * BLOCKS)
        return [np.full(rows, logs.index(log) * groups // len(logs), dtype=np.int64) for log, rows in motions]
    total = sum(rows for _, rows in motions)
    numbers = np.arange(total, dtype=np.int64) * BLOCKS // total
    return np.split(numbers, np.cumsum([rows for _, rows in motions])[:-1])
