"""Numbers that change during the logs: a zero that slips or drifts, a load that is taken up, friction that warms up.

The column of such a change is that of the number, times a function of time. With a function that is constant on each
block, its sums are those of the blocks, so that many functions are tried without further rows: a drift, a step at any
border between blocks, and a step with a return. The one that reduces the squared error most is kept, and its p-value is
multiplied by the number of functions of its shape, and by three for the shapes (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from steelyard.assumptions.ledger_rows import EquationSums, LedgerRows
from steelyard.assumptions.suspect import Suspect
from steelyard.assumptions.suspect_estimates import LEAST_SHARE, Normals, solved
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Index

# Blocks with a change and without one: fewer give no standard error.
_FEWEST = 2
# A shape with fewer functions is kept if it explains this share of what the best one does.
_AS_MUCH = 0.95


@dataclass(frozen=True, eq=False)
class Course:
    """The course of a number during the logs.

    Attributes:
        values: Its values over the logs, from 0 to 1 for a step, from −1/2 to 1/2 for a drift.
        words: The course in words.
        tries: Number of functions of its shape, times the number of shapes.
    """

    values: Array
    words: str
    tries: int

    def at(self, blocks: int) -> Array:
        """Return the values of blocks of other logs, at the same shares of their length.

        Args:
            blocks: Number of blocks.
        """
        places = (np.arange(blocks) + 0.5) * len(self.values) / blocks
        return np.asarray(self.values[places.astype(int)])


def add_changes(rows: LedgerRows, courses: tuple[Course, ...] | None = None) -> LedgerRows:
    """Add the columns of changes, and remove those columns that serve for changes only.

    Args:
        rows: Rows with the columns of all suspects.
        courses: Course of every change; None: the most likely ones.
    """
    sources = [k for k, s in enumerate(rows.suspects) if s.change is not None]
    if courses is None:
        courses = tuple(_most_likely(rows, sources, list(_shapes(rows))))
    return _extended(rows, sources, courses)


def _shapes(rows: LedgerRows) -> Iterator[list[Course]]:
    """List the functions of every shape, the simplest shape first: drifts, steps, steps with a return."""
    count, logs = rows.blocks, np.array([log for log, _ in rows.beginnings])
    borders = [*np.flatnonzero(np.diff(logs, prepend=-1)).tolist(), count]
    several = len(borders) > 2
    drifts = [np.linspace(-0.5, 0.5, count)]
    if several:
        drifts.append(
            np.concatenate([np.linspace(-0.5, 0.5, b - a) if b - a > 1 else [0.0] for a, b in pairwise(borders)])
        )
    windows = [(a, b) for a in range(1, count) for b in range(a + 1, count + 1)]
    windows = [(a, b) for a, b in windows if min(b - a, count - b + a) >= _FEWEST]
    numbers = np.arange(count)
    after: list[Array] = [(numbers >= a).astype(float) for a in range(count + 1)]

    def instant(block: int) -> str:
        log, time = rows.beginnings[block]
        which = f" of log {log + 1}" if several else ""
        return f"at the start{which}" if block in borders else f"at about {time:.3g} s{which}"

    shapes: list[list[tuple[Array, str]]] = [
        [(x, "It drifts.") for x in drifts],
        [(after[a], f"It changes {instant(a)}.") for a, b in windows if b == count],
        [(after[a] - after[b], f"It changes {instant(a)}, and back {instant(b)}.") for a, b in windows if b < count],
    ]
    for shape in shapes:
        yield [Course(values, words, len(shapes) * len(shape)) for values, words in shape]


def _most_likely(rows: LedgerRows, sources: list[int], shapes: list[list[Course]]) -> Iterator[Course]:
    """Find for every source the course over time that reduces the squared error most, with all parameters fitted."""
    rank, weights = rows.rank, Normals(rows).weights
    matrix, right = np.zeros((rank, rank)), np.zeros(rank)
    own, crossed = np.zeros((2, rows.blocks, len(sources)))
    sides = np.zeros((rows.blocks, rank, len(sources)))
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
    courses = [course for shape in shapes for course in shape]
    values = np.array([course.values for course in courses])
    side = np.tensordot(values, sides, 1)
    whole = values**2 @ own
    moves = solved(matrix, side.transpose(1, 0, 2).reshape(rank, -1)).reshape(rank, *whole.shape)
    rest = whole - np.einsum("spn,psn->sn", side, moves)
    gain = (values @ crossed - np.einsum("spn,p->sn", side, x)) ** 2 / np.maximum(rest, 1e-300)
    gain[rest <= LEAST_SHARE * whole] = 0.0
    firsts = np.cumsum([0, *(len(shape) for shape in shapes[:-1])])
    for one in gain.T:
        bests = [
            first + int(np.argmax(one[first : first + len(s)])) for first, s in zip(firsts, shapes, strict=True) if s
        ]
        yield courses[next(best for best in bests if one[best] >= _AS_MUCH * one.max())]


def _places(equation: EquationSums, rank: int, sources: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the number of a source and its place among the equation's columns."""
    numbers = {rank + k: n for n, k in enumerate(sources)}
    for place, column in enumerate(equation.columns):
        if int(column) in numbers:
            yield numbers[int(column)], place


def _extended(rows: LedgerRows, sources: list[int], courses: tuple[Course, ...]) -> LedgerRows:
    kept = [k for k, s in enumerate(rows.suspects) if not s.changes_only]
    numbers = {rows.rank + k: rows.rank + n for n, k in enumerate(kept)}
    values = [course.at(rows.blocks) for course in courses]
    equations = []
    for e in rows.equations:
        own = [place for place, c in enumerate(e.columns) if c < rows.rank or int(c) in numbers]
        columns = [int(c) if c < rows.rank else numbers[int(c)] for c in e.columns[own]]
        changed = list(_places(e, rows.rank, sources))
        take: Index = np.array([*own, *(place for _, place in changed), len(e.columns)], dtype=np.int64)
        factors = np.ones((rows.blocks, len(take)))
        for at, (n, _) in enumerate(changed, len(own)):
            factors[:, at] = values[n]
        grams, near = (
            None if g is None else g[:, take[:, None], take] * factors[:, :, None] * factors[:, None, :]
            for g in (e.grams, e.near)
        )
        assert grams is not None
        places = np.array([*columns, *(rows.rank + len(kept) + n for n, _ in changed)], dtype=np.int64)
        equations.append(EquationSums(places, grams, e.rows, near, e.near_rows))
    suspects = [rows.suspects[k] for k in kept]
    suspects += [_suspect(rows.suspects[k], course) for k, course in zip(sources, courses, strict=True)]
    return replace(rows, suspects=tuple(suspects), equations=tuple(equations), courses=courses)


def _suspect(source: Suspect, course: Course) -> Suspect:
    """Return the suspect of a change of another one."""
    assert source.change is not None
    return replace(source.change, fix=f"{course.words} {source.change.fix}")
