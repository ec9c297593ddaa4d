"""`MotionScore`: the criterion of a whole population: all samples in one batch, Gram matrices in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.model import Model
from steelyard.dynamics.native.compiled_function import Batch
from steelyard.dynamics.native.drivers import TILE
from steelyard.excitation.constraints import Plane, Point
from steelyard.excitation.constraints._certify import NEAR
from steelyard.excitation.constraints.traced_limit import heights_over
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.evolution.genome import Signals
from steelyard.excitation.goal import Goal
from steelyard.ground.arrays import Array
from steelyard.regression.factor import gram_matrices
from steelyard.regression.rows import Rows
from steelyard.robot.robot import Robot


class MotionScore:
    """Computes the criterion of sampled motions (smaller is better for every criterion); infinite for rejected ones."""

    def __init__(self, design: DesignColumns, goal: Goal, threads: int | None = None) -> None:
        self.goal, self._threads = goal, threads
        columns = [design.base.independent[k] for k in design.chosen]
        self._rows = Rows(design.base.structure.dynamics, columns, pad=TILE)
        self._rows.evaluator.compile()
        names = [e.name for e in self._rows.equations]
        # For each of the goal's equations: index of the rows' Gram matrix, and the positions of its columns.
        self._parts: list[tuple[int, Array]] = []
        for name, wanted in zip(goal.observation.names, goal.observation.places, strict=True):
            equation = names.index(name)
            own = self._rows.equations[equation].among(columns)[1]
            self._parts.append((equation, np.array([own.index(int(k)) for k in wanted], dtype=np.int64)))

    def grams(self, motion: Signals) -> list[Array]:
        """Return W_eᵀW_e of a `motion` for every equation over the goal's places."""
        grams = gram_matrices(self._rows, self._batch([motion]), 0, len(motion[0]))
        return [grams[e][np.ix_(own, own)] for e, own in self._parts]

    def _batch(self, motions: Sequence[Signals]) -> Batch:
        q, dq, ddq = (np.concatenate([m[k] for m in motions]) for k in range(3))
        return Batch(self._rows.function, {"q": q, "dq": dq, "ddq": ddq, "tau": np.zeros_like(q)})

    @cached_property
    def _join_matrix(self) -> Any:
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
        joined = np.asarray(self._join_matrix @ tiles.T).T.reshape(-1, width, width)
        # Eigenvalues of all individuals in one call; a population needs no gradients.
        eigenvalues = np.linalg.eigvalsh(np.array([self.goal.criterion_matrix(gram) for gram in joined]))
        values[[k for k, _ in alive]] = [self.goal.criterion.rank(x) for x in eigenvalues]
        return values


class SampleTests:
    """Tests of torques and positions, at the samples and of their peaks between them, for a whole generation at once.

    Args:
        robot: The robot.
        model: Model for the torques, or None.
        torque: Torque limits [N m, N].
        regions: Points and planes.
        near: Distance from a limit (share of it, or m) within which the limit cannot be certified.
    """

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

    def reject(self, motions: list[Signals | None]) -> list[Signals | None]:
        """Return the motions with None for those that break a limit."""
        alive = [m for m in motions if m is not None]
        if not alive:
            return motions
        ends = np.cumsum([len(m[0]) for m in alive])
        q, dq, ddq = (np.concatenate([m[k] for m in alive]) for k in range(3))
        ok = self._within_limits(q, dq, ddq, ends[:-1])
        accepted = iter(np.logical_and.reduceat(ok, np.append(0, ends[:-1])))
        return [motion if motion is not None and next(accepted) else None for motion in motions]

    def _within_limits(self, q: Array, dq: Array, ddq: Array, seams: NDArray[np.int64]) -> Array:
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
    """Return the samples before a possible peak above the limit, and for each sample whether it is within the limit.

    The limit is `size(f)` ≤ `most`. A peak between samples is below at least one of two lines: the line through the two
    samples before it and the line through the two samples after it.
    """
    hit = np.zeros(len(f), dtype=bool)
    hit[1:] |= np.any(size(2.0 * f[1:] - f[:-1]) > most, axis=1)
    hit[:-2] |= np.any(size(2.0 * f[1:-1] - f[2:]) > most, axis=1)
    return np.flatnonzero(hit), np.all(size(f) <= most, axis=1)


def reversals(dq: Array, rows: NDArray[np.int64]) -> Array:
    """Return when velocities change sign between two samples, as a share of the interval; NaN without a change.

    Args:
        dq: Velocities [rad/s, m/s], shape (samples, joints).
        rows: Indices of the first samples.
    """
    first, second = dq[rows], dq[np.minimum(rows + 1, len(dq) - 1)]
    turns = (first * second <= 0.0) & (first != second)
    return np.where(turns, first / np.where(turns, first - second, 1.0), np.nan)


def peaks(f: Array, seams: NDArray[np.int64], rows: NDArray[np.int64], jumps: Array | None = None) -> Array:
    """Return upper bounds of values between samples and their successors.

    Between two samples, a value that rises to a peak and falls again is concave because of the accelerations. It is
    below the two lines through the preceding and the following samples; their intersection is the bound. Dry friction
    jumps at a reversal; the line on the upper side is valid up to the jump. Motions are at rest at their ends.

    Args:
        f: Values, shape (samples, columns).
        seams: Indices at which another motion begins.
        rows: Indices of the samples.
        jumps: Share of the interval before a jump; NaN without one.
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
