"""`MotionScore`: the criterion of a whole population at once: all samples in one batch, Gram matrices in threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.dynamics.native.drivers import TILE
from steelyard.dynamics.native.run import Batch, default_threads
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Plane, Point
from steelyard.excitation.criteria import Criterion
from steelyard.excitation.design import DesignColumns
from steelyard.excitation.evolution.genome import Signals
from steelyard.excitation.goal import Goal
from steelyard.ground.arrays import Array
from steelyard.regression.reduce import gram_matrices
from steelyard.regression.rows import Rows
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


class MotionScore:
    """Values of sampled motions (smaller is better, whatever the criterion); infinite for what is not accepted."""

    def __init__(self, design: DesignColumns, goal: Goal, threads: int | None = None) -> None:
        self.goal, self._threads = goal, threads or default_threads()
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

    def grams(self, motions: Sequence[Signals]) -> list[list[Array]]:
        """W_eᵀW_e of every motion and equation, over the goal's places."""
        q, dq, ddq = (np.concatenate([m[k] for m in motions]) for k in range(3))
        batch = Batch(self._rows.function, {"q": q, "dq": dq, "ddq": ddq, "tau": np.zeros_like(q)})
        ends = np.cumsum([0, *(len(m[0]) for m in motions)]).tolist()

        def one(k: int) -> list[Array]:
            found = gram_matrices(self._rows, batch, ends[k], ends[k + 1])
            return [found[e][np.ix_(own, own)] for e, own in self._parts]

        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(one, range(len(motions))))

    def __call__(self, motions: Sequence[Signals | None]) -> Array:
        values = np.full(len(motions), np.inf)
        alive = [(k, m) for k, m in enumerate(motions) if m is not None]
        if alive:
            for (k, _), grams in zip(alive, self.grams([m for _, m in alive]), strict=True):
                values[k] = ranked(self.goal.criterion, self.goal.seen(self.goal.join(grams)))
        return values


def ranked(criterion: Criterion, seen: Array) -> float:
    """What is minimised; infinite for a motion that shows nothing."""
    try:
        return criterion.gradient(seen)[0]
    except ExcitationError:
        return float("inf")


class AtSamples:
    """Torques and places at the samples: what every individual of a generation is tested for, in one batch."""

    def __init__(
        self,
        robot: Robot,
        model: Model | None,
        torque: Array,
        regions: Sequence[tuple[Sequence[Point], Sequence[Plane]]],
    ) -> None:
        self._robot, self._model, self._torque, self._regions = robot, model, torque, list(regions)

    def keep(self, motions: list[Signals | None]) -> list[Signals | None]:
        """The motions, None in place of those that break a limit."""
        alive = [m for m in motions if m is not None]
        if not alive:
            return motions
        ok = self._kept(*(np.concatenate([m[k] for m in alive]) for k in range(3)))
        ends = iter(np.cumsum([len(m[0]) for m in alive]).tolist())
        out: list[Signals | None] = []
        start = 0
        for motion in motions:
            if motion is not None:
                end = next(ends)
                motion, start = (motion if ok[start:end].all() else None), end
            out.append(motion)
        return out

    def _kept(self, q: Array, dq: Array, ddq: Array) -> Array:
        ok = np.ones(len(q), dtype=bool)
        if self._model is not None and np.any(np.isfinite(self._torque)):
            ok &= np.all(np.abs(self._model.torque(q, dq, ddq)) <= self._torque, axis=1)
        if self._regions:
            rotations, origins = link_poses(self._robot, q)
            for points, planes in self._regions:
                for point in points:
                    k = self._robot.link_names.index(point.link)
                    place = origins[:, k] + rotations[:, k] @ np.array(point.offset)
                    for plane in planes:
                        normal = np.array(plane.normal) / np.linalg.norm(plane.normal)
                        distance = plane.distance / float(np.linalg.norm(plane.normal)) - point.radius
                        ok &= place @ normal <= distance
        return np.asarray(ok)
