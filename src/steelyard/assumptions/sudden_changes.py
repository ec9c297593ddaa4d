"""Numbers that change at an instant: a zero that slips, a load that is taken up, a torque that jumps.

The column of such a change is that of the number, from the instant on. Its sums are those of the blocks after it, so
that every border between blocks is tried as the instant without further rows. The border that reduces the squared error
most is kept, and its p-value is multiplied by the number of borders (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from steelyard.assumptions.ledger_rows import EquationSums, LedgerRows
from steelyard.assumptions.suspect import Suspect
from steelyard.assumptions.suspect_estimates import LEAST_SHARE, Normals, solved
from steelyard.ground.arrays import Array

# Blocks on either side of a change: fewer give no standard error.
_FEWEST = 2


@dataclass(frozen=True)
class Instant:
    """A change of a number during the logs.

    Attributes:
        first: Share of the rows before it.
        last: Share of the rows at its end: that of its log, or of all logs.
        instant: Its instant in words.
    """

    first: float
    last: float
    instant: str

    def mask(self, blocks: int) -> Array:
        """Return 1 for the blocks that have the change, 0 for the others.

        Args:
            blocks: Number of blocks.
        """
        numbers = np.arange(blocks)
        return np.asarray((numbers >= round(self.first * blocks)) & (numbers < round(self.last * blocks)), dtype=float)


def with_steps(rows: LedgerRows, steps: tuple[Instant, ...] | None = None) -> LedgerRows:
    """Add the columns of changes, and remove those columns that serve for changes only.

    Args:
        rows: Rows with the columns of all suspects.
        steps: Instant of every change; None: the most likely ones.
    """
    sources = [k for k, s in enumerate(rows.suspects) if s.step is not None]
    if steps is not None:
        return _extended(rows, sources, steps)
    candidates = list(_candidates(rows))
    return replace(_extended(rows, sources, tuple(_most_likely(rows, sources, candidates))), tries=len(candidates))


def _candidates(rows: LedgerRows) -> Iterator[Instant]:
    """List the borders between blocks, each up to the end of its log and up to the end of all logs."""
    count, logs = rows.blocks, np.array([log for log, _ in rows.beginnings])
    for first in range(1, count):
        log, time = rows.beginnings[first]
        ends = {int(np.flatnonzero(logs == log)[-1]) + 1, count}
        starts = first == int(np.flatnonzero(logs == log)[0])
        which = f" of log {log + 1}" if logs[-1] > 0 else ""
        instant = f"from the start{which} on" if starts else f"at about {time:.3g} s{which}"
        for last in ends:
            if min(last - first, count - last + first) >= _FEWEST:
                yield Instant(first / count, last / count, instant)


def _most_likely(rows: LedgerRows, sources: list[int], candidates: list[Instant]) -> Iterator[Instant]:
    """Find the candidate for every source that reduces the squared error most, beside all parameters."""
    rank, weights = rows.rank, Normals(rows).weights
    matrix, right = np.zeros((rank, rank)), np.zeros(rank)
    own = np.zeros((rows.blocks, len(sources)))
    sides, crossed = np.zeros((rows.blocks, rank, len(sources))), np.zeros((rows.blocks, len(sources)))
    for e, w in zip(rows.equations, weights, strict=True):
        parameters = np.flatnonzero(e.columns < rank)
        c = e.columns[parameters]
        matrix[np.ix_(c, c)] += w**2 * e.total[np.ix_(parameters, parameters)]
        right[c] += w**2 * e.total[parameters, -1]
        for n, place in _places(e, rank, sources):
            own[:, n] += w**2 * e.grams[:, place, place]
            sides[:, c, n] += w**2 * e.grams[:, parameters, place]
            crossed[:, n] += w**2 * e.grams[:, place, -1]
    x = solved(matrix, right[:, None])[:, 0]
    masks = np.array([s.mask(rows.blocks) for s in candidates])
    side = np.einsum("sb,bpn->spn", masks, sides)
    whole = masks @ own
    moves = solved(matrix, side.transpose(1, 0, 2).reshape(rank, -1)).reshape(rank, len(candidates), -1)
    rest = whole - np.einsum("spn,psn->sn", side, moves)
    gain = (masks @ crossed - np.einsum("spn,p->sn", side, x)) ** 2 / np.maximum(rest, 1e-300)
    gain[rest <= LEAST_SHARE * whole] = 0.0
    for best in np.argmax(gain, axis=0):
        yield candidates[int(best)]


def _places(equation: EquationSums, rank: int, sources: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the number of a source and its place among the equation's columns."""
    numbers = {rank + k: n for n, k in enumerate(sources)}
    for place, column in enumerate(equation.columns):
        if int(column) in numbers:
            yield numbers[int(column)], place


def _extended(rows: LedgerRows, sources: list[int], steps: tuple[Instant, ...]) -> LedgerRows:
    kept = [k for k, s in enumerate(rows.suspects) if not s.only_steps]
    numbers = {rows.rank + k: rows.rank + n for n, k in enumerate(kept)}
    masks = [step.mask(rows.blocks) for step in steps]
    equations = []
    for e in rows.equations:
        own = [place for place, c in enumerate(e.columns) if c < rows.rank or int(c) in numbers]
        columns = [int(c) if c < rows.rank else numbers[int(c)] for c in e.columns[own]]
        stepped = list(_places(e, rows.rank, sources))
        take = np.array([*own, *(place for _, place in stepped), len(e.columns)], dtype=np.int64)
        factors = np.ones((rows.blocks, len(take)))
        for at, (n, _) in enumerate(stepped, len(own)):
            factors[:, at] = masks[n]
        grams = e.grams[:, take[:, None], take] * factors[:, :, None] * factors[:, None, :]
        places = np.array([*columns, *(rows.rank + len(kept) + n for n, _ in stepped)], dtype=np.int64)
        equations.append(EquationSums(places, grams, e.rows))
    changed = (_suspect(rows.suspects[k], step) for k, step in zip(sources, steps, strict=True))
    suspects = (*(rows.suspects[k] for k in kept), *changed)
    return replace(rows, suspects=suspects, equations=tuple(equations), steps=steps)


def _suspect(source: Suspect, step: Instant) -> Suspect:
    """Return the suspect of a change of another one."""
    assert source.step is not None
    one = source.step
    return replace(one, fix=f"It changes {step.instant}. {one.fix}")
