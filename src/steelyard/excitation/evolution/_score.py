"""`MotionScore`: the criterion of a whole population at once: all samples in one batch, Gram matrices in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.model import Model
from steelyard.dynamics.native.drivers import TILE
from steelyard.dynamics.native.run import Batch
from steelyard.excitation.constraints import Plane, Point
from steelyard.excitation.constraints._certify import NEAR
from steelyard.excitation.constraints.traced_limit import heights_over
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.evolution.genome import Signals
from steelyard.excitation.goal import Goal
from steelyard.ground.arrays import Array
from steelyard.regression.reduce import gram_matrices
from steelyard.regression.rows import Rows
from steelyard.robot.robot import Robot


class MotionScore:
    """Values of sampled motions (smaller is better, whatever the criterion); infinite for what is not accepted."""

    def __init__(self, design: DesignColumns, goal: Goal, threads: int | None = None) -> None:
        self.goal, self._threads = goal, threads
        columns = [design.base.independent[k] for k in design.chosen]
        self._rows = Rows(design.base.structure.dynamics, columns, pad=TILE)
        self._rows.evaluator.compile()
        names = [e.name for e in self._rows.equations]
        # Which of the rows' Gram matrices stands for each of the goal's equations, and where its columns are.
        self._parts: list[tuple[int, Array]] = []
        for name, wanted in zip(goal.observation.names, goal.observation.places, strict=True):
            equation = names.index(name)
            own = self._rows.equations[equation].among(columns)[1]
            self._parts.append((equation, np.array([own.index(int(k)) for k in wanted], dtype=np.int64)))

    def grams(self, motion: Signals) -> list[Array]:
        """W_eᵀW_e of a motion and every equation, over the goal's places."""
        found = gram_matrices(self._rows, self._batch([motion]), 0, len(motion[0]))
        return [found[e][np.ix_(own, own)] for e, own in self._parts]

    def _batch(self, motions: Sequence[Signals]) -> Batch:
        q, dq, ddq = (np.concatenate([m[k] for m in motions]) for k in range(3))
        return Batch(self._rows.function, {"q": q, "dq": dq, "ddq": ddq, "tau": np.zeros_like(q)})

    @cached_property
    def _joining(self) -> Any:
        """`Goal.join` as one sparse matrix, from the kernels' lower triangles to the joined information."""
        from scipy.sparse import csr_array

        rows, sizes, width = [], self._rows.sizes, len(self.goal.columns)
        offsets = np.cumsum(sizes**2) - sizes**2
        for (e, own), places, square in zip(self._parts, self.goal.observation.places, self.goal.squares, strict=True):
            low, high = np.minimum.outer(own, own), np.maximum.outer(own, own)
            target = places[:, None] * width + places
            source = offsets[e] + high * sizes[e] + low
            rows.append((np.full(source.size, square), target.ravel(), source.ravel()))
        values, targets, sources = (np.concatenate(part) for part in zip(*rows, strict=True))
        return csr_array((values, (targets, sources)), shape=(width**2, int(np.sum(sizes**2))))

    def __call__(self, motions: Sequence[Signals | None]) -> Array:
        values = np.full(len(motions), np.inf)
        alive = [(k, m) for k, m in enumerate(motions) if m is not None]
        if not alive:
            return values
        ends = np.cumsum([0, *(len(m[0]) for _, m in alive)]).tolist()
        batch, machine = self._batch([m for _, m in alive]), self._rows.evaluator.machine
        tiles = machine.gram_tiles(batch, ends, self._rows.firsts, self._rows.sizes, self._threads)
        width = len(self.goal.columns)
        joined = np.asarray(self._joining @ tiles.T).T.reshape(-1, width, width)
        # Eigenvalues alone, of all individuals in one call: a gradient is nothing that a population could use.
        seen = np.linalg.eigvalsh(np.array([self.goal.criterion_matrix(gram) for gram in joined]))
        values[[k for k, _ in alive]] = [self.goal.criterion.rank(x) for x in seen]
        return values


class SampleTests:
    """Torques and places at the samples, and their peaks between them: what every individual of a generation is tested
    for, in one batch. `near` is how close to its limit (a share of it, or m) nothing can be certified any more."""

    def __init__(
        self,
        robot: Robot,
        model: Model | None,
        torque: Array,
        regions: Sequence[tuple[Sequence[Point], Sequence[Plane]]],
        near: float = NEAR,
    ) -> None:
        self._model, self._torque, self._near = model, torque, near
        self._regions = [
            (Evaluator(function), upper) for function, upper in (heights_over(robot, *region) for region in regions)
        ]

    def keep(self, motions: list[Signals | None]) -> list[Signals | None]:
        """The motions, None in place of those that break a limit."""
        alive = [m for m in motions if m is not None]
        if not alive:
            return motions
        ends = np.cumsum([len(m[0]) for m in alive])
        q, dq, ddq = (np.concatenate([m[k] for m in alive]) for k in range(3))
        ok = self._kept(q, dq, ddq, ends[:-1])
        kept = iter(np.logical_and.reduceat(ok, np.append(0, ends[:-1])))
        return [motion if motion is not None and next(kept) else None for motion in motions]

    def _kept(self, q: Array, dq: Array, ddq: Array, seams: NDArray[np.int64]) -> Array:
        ok = np.ones(len(q), dtype=bool)
        if self._model is not None and np.any(np.isfinite(self._torque)):
            torque = self._model.torque(q, dq, ddq)
            most = (1.0 - self._near) * self._torque
            rows, inside = _near_limits(np.abs, torque, most)
            turns = reversals(dq, rows)
            ok &= inside
            for way in (torque, -torque):
                ok[rows] &= np.all(peaks(way, seams, rows, turns) <= most, axis=1)
        for heights, upper in self._regions:
            most, height = upper - self._near, heights({"q": q})
            rows, inside = _near_limits(np.asarray, height, most)
            ok &= inside
            ok[rows] &= np.all(peaks(height, seams, rows) <= most, axis=1)
        return np.asarray(ok)


def _near_limits(size: Callable[[Array], Array], f: Array, most: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The samples behind which `f`, whose `size` is limited, may have a peak above `most`: no peak is above both of the
    lines that lead there. And which samples are within limits themselves."""
    hit = np.zeros(len(f), dtype=bool)
    hit[1:] |= np.any(size(2.0 * f[1:] - f[:-1]) > most, axis=1)
    hit[:-2] |= np.any(size(2.0 * f[1:-1] - f[2:]) > most, axis=1)
    return np.flatnonzero(hit), np.all(size(f) <= most, axis=1)


def reversals(dq: Array, rows: NDArray[np.int64]) -> Array:
    """When velocities `dq` (samples, joints) change their sign between samples `rows` and the next: which share of the
    way is behind them then; not a number where they do not."""
    first, second = dq[rows], dq[np.minimum(rows + 1, len(dq) - 1)]
    turns = (first * second <= 0.0) & (first != second)
    return np.where(turns, first / np.where(turns, first - second, 1.0), np.nan)


def peaks(f: Array, seams: NDArray[np.int64], rows: NDArray[np.int64], jumps: Array | None = None) -> Array:
    """At samples `rows` of `f` (samples, columns): the most that it is there and until the next one.

    A value that rises to a peak between two samples and falls again bends downwards there, as accelerations have it,
    and is below the two lines through the samples before and through those after it: where they cross is the most it
    can be. Where it jumps on the way (`jumps`: after which share of it, not a number where it does not), as dry
    friction does at a reversal, the line on the upper side holds up to there. `seams` are the samples at which another
    motion begins; about its ends a motion rests.
    """
    begins, ends = np.zeros(len(f), dtype=bool), np.zeros(len(f), dtype=bool)
    begins[0] = ends[-1] = begins[seams] = ends[seams - 1] = True
    here, next_ = f[rows], rows + ~ends[rows]
    before = here - f[rows - ~begins[rows]]
    after = f[next_] - here
    back = np.where(ends[rows][:, None], 0.0, f[next_] - f[next_ + ~ends[next_]])
    hill = (before > 0.0) & (back > 0.0) & (after <= before) & (after >= -back)
    rise = np.where(hill, before * (after + back) / np.where(hill, before + back, 1.0), 0.0)
    if jumps is not None:
        up = (after > before) & (back > 0.0) & np.isfinite(jumps)
        down = (after < -back) & (before > 0.0) & np.isfinite(jumps)
        rise = np.where(up, after + back * (1.0 - jumps), rise)
        rise = np.where(down, before * jumps, rise)
    return np.asarray(here + np.maximum(np.maximum(after, 0.0), rise))
