"""`Collision`: the robot's own bodies, and obstacles, keep their distance. Needs Pinocchio (the extra `oracle`).

Distances are Coal's (GJK on convex bodies; meshes are replaced by their convex hulls, which is the safe side). Their
gradient is the normal times the Jacobians of the two nearest points. Between samples a bound holds: on a piece of time
of width h a distance cannot be less than (d(start) + d(end) − V h)/2, where V bounds the speed at which the two bodies
can approach (reach times joint speed, summed over the joints between them). Pieces are halved until that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.excitation.constraints.constraint import Pull
from steelyard.excitation.constraints.scene import Scene
from steelyard.excitation.sampled import Sampled
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

# Pieces are halved until two bodies can approach by less than this within one (m).
_RESOLUTION = 1e-3
_PIECES = 64
# Distances are dear; the grid is coarse and what it misses is answered by tightening.
_GRID = 8


class Collision:
    """Distances of pairs of bodies stay above `clearance`; values are metres."""

    name = "distances"
    smooth = True
    lazy = True

    def __init__(self, scene: Scene, families: Sequence[Family], clearance: float) -> None:
        self.scene, self.clearance = scene, clearance
        count = _GRID * max(f.size for f in families)
        self._sampled = Sampled(families, np.linspace(0.0, families[0].duration, count + 1), [0])

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        (q,) = self._sampled.signals(x)
        found = [self.scene.measure(row) for row in q]
        values = self.clearance - np.array([f.distances for f in found])

        def pull(multipliers: Array) -> Array:
            table = multipliers.reshape(values.shape)
            rows = [-f.pull(m) if m.any() else np.zeros(q.shape[1]) for f, m in zip(found, table, strict=True)]
            return self._sampled.pull_signals([np.array(rows)])

        return values.ravel(), pull

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        found = self.scene.measure(q)
        return self.clearance - found.distances, lambda m: -found.pull(m)

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        speed = self.scene.approach @ trajectory.peak_bounds(1)
        edges = np.linspace(0.0, trajectory.duration, _PIECES + 1)
        known: dict[float, Array] = {}
        worst = -np.inf
        pieces = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        while pieces:
            start, end = pieces.pop()
            for t in (start, end):
                if t not in known:
                    known[t] = self.clearance - self.scene.measure(trajectory.derivative(t, 0)).distances
                    if known[t].max(initial=-np.inf) > enough:
                        return float(known[t].max())
            slack = speed * (end - start)
            bound = float(np.max(0.5 * (known[start] + known[end] + slack), initial=-np.inf))
            if bound > 0.0 and bound > worst and float(slack.max()) > _RESOLUTION:
                middle = 0.5 * (start + end)
                pieces += [(start, middle), (middle, end)]
            else:
                worst = max(worst, bound)
        return worst

    def blame(self, trajectory: Trajectory) -> str:
        t = np.linspace(0.0, trajectory.duration, 101)
        distances = np.array([self.scene.measure(q).distances for q in trajectory.derivative(t, 0)])
        one, other = self.scene.names[int(np.argmin(distances.min(axis=0)))]
        return (
            f"'{one}' comes within {distances.min():.3g} m of '{other}' (clearance {self.clearance:g} m); "
            "give a smaller clearance, other limits, or leave the pair out"
        )


def collision(
    robot: Robot,
    urdf: str | Path,
    clearance: float = 0.02,
    package_dirs: Sequence[str | Path] = (),
    srdf: str | Path | None = None,
    ignore: Sequence[tuple[str, str]] = (),
    obstacles: Sequence[tuple[str, Any, Array]] = (),
) -> Callable[[Sequence[Family]], Collision]:
    """For `excite(…, constraints=[collision(robot, "arm.urdf")])`: bodies that are not neighbours keep their distance.

    Args:
        robot: the robot that moves; joints of the file that it lacks stay at zero.
        urdf: its file, with collision geometry.
        clearance: the smallest distance allowed (m).
        package_dirs: where `package://` meshes are found.
        srdf: a file whose disabled pairs are left out.
        ignore: more pairs to leave out, by names of geometries.
        obstacles: (name, Coal geometry, 4 × 4 placement in the base frame).
    """
    scene = Scene(robot, Path(urdf), package_dirs, srdf, ignore, obstacles)
    return lambda families: Collision(scene, families, clearance)
