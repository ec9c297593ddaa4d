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

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints.limits import Pull
from steelyard.excitation.sampled import Sampled
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra
from steelyard.robot.robot import Robot


class Measured:
    """Distances of all pairs at one posture, and what their gradients need."""

    def __init__(self, scene: Scene, q: Array, distances: Array, points: list[tuple[Array, Array, Array]]) -> None:
        self._scene, self._q, self.distances, self._points = scene, q, distances, points

    def pull(self, multipliers: Array) -> Array:
        """Σ μ_k ∂d_k/∂q."""
        s, total = self._scene, np.zeros(len(self._q))
        s.pin.computeJointJacobians(s.model, s.data, s.configuration(self._q))
        for k in np.flatnonzero(multipliers):
            first, second, normal = self._points[k]
            one, other = s.joints_of[k]
            slope = normal @ (s.point_jacobian(other, second) - s.point_jacobian(one, first))
            total += multipliers[k] * (slope @ s.selection)
        return total


class Scene:
    """Pinocchio's model of the robot's bodies and the obstacles around it."""

    def __init__(
        self,
        robot: Robot,
        urdf: Path,
        package_dirs: Sequence[str | Path],
        srdf: str | Path | None,
        ignore: Sequence[tuple[str, str]],
        obstacles: Sequence[tuple[str, Any, Array]],
    ) -> None:
        self.pin = pin = import_extra("pinocchio", "collision", "Collision", ExcitationError)
        self.model = pin.buildModelFromUrdf(str(urdf))
        folders = [str(d) for d in package_dirs]
        self.geometry = pin.buildGeomFromUrdf(self.model, str(urdf), pin.GeometryType.COLLISION, None, folders)
        if not self.geometry.ngeoms:
            raise ExcitationError(f"{urdf} describes no collision geometry; name the points of links in `regions`.")
        for body in self.geometry.geometryObjects:
            if hasattr(body.geometry, "buildConvexHull"):
                body.geometry.buildConvexHull(True, "Qt")
                body.geometry = body.geometry.convex
        self._own = self.geometry.ngeoms
        for name, shape, place in obstacles:
            placed = pin.SE3(np.asarray(place, dtype=float))
            self.geometry.addGeometryObject(pin.GeometryObject(name, 0, 0, placed, shape))
        self._add_pairs(srdf, ignore)
        self.data, self._distances = self.model.createData(), self.geometry.createData()
        self._follow(robot, urdf)
        objects = self.geometry.geometryObjects
        pairs = [(p.first, p.second) for p in self.geometry.collisionPairs]
        self.names = [(objects[a].name, objects[b].name) for a, b in pairs]
        self.joints_of = [(objects[a].parentJoint, objects[b].parentJoint) for a, b in pairs]
        if not pairs:
            raise ExcitationError(f"{urdf}: no pair of bodies is left that could collide.")
        self.approach = np.array([self._approach(a, b) for a, b in pairs])

    def _add_pairs(self, srdf: str | Path | None, ignore: Sequence[tuple[str, str]]) -> None:
        """All pairs but those of one joint, of neighbours, and those to be ignored."""
        pin, objects = self.pin, self.geometry.geometryObjects
        left_out = {frozenset(pair) for pair in ignore}
        for a in range(len(objects)):
            for b in range(a + 1, len(objects)):
                one, other = objects[a].parentJoint, objects[b].parentJoint
                near = one == other or self.model.parents[one] == other or self.model.parents[other] == one
                obstacle = b >= self._own and one != 0  # an obstacle stands by the base but is no neighbour
                if (obstacle or not near) and frozenset((objects[a].name, objects[b].name)) not in left_out:
                    self.geometry.addCollisionPair(pin.CollisionPair(a, b))
        if srdf is not None:
            pin.removeCollisionPairs(self.model, self.geometry, str(srdf))

    def _follow(self, robot: Robot, urdf: Path) -> None:
        """`selection` (model velocities × joints): which of the model's joints each of the robot's moves."""
        self.selection = np.zeros((self.model.nv, robot.dof))
        for j, name in enumerate(robot.joint_names):
            if not self.model.existJointName(name):
                raise ExcitationError(f"{urdf} has no joint '{name}'; collision needs the file of the same robot.")
            self.selection[self.model.joints[self.model.getJointId(name)].idx_v, j] = 1.0

    def configuration(self, q: Array) -> Array:
        neutral = self.pin.neutral(self.model)
        return np.asarray(self.pin.integrate(self.model, neutral, self.selection @ q))

    def point_jacobian(self, joint: int, point: Array) -> Array:
        """Velocity of a point fixed to the joint's body, per model velocity."""
        if joint == 0:
            return np.zeros((3, self.model.nv))
        frame = self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = self.pin.getJointJacobian(self.model, self.data, joint, frame)
        return np.asarray(J[:3] - self.pin.skew(point - self.data.oMi[joint].translation) @ J[3:])

    def measure(self, q: Array) -> Measured:
        self.pin.computeDistances(self.model, self.data, self.geometry, self._distances, self.configuration(q))
        results = self._distances.distanceResults
        distances = np.array([r.min_distance for r in results])
        points = []
        for r in results:
            first, second = np.array(r.getNearestPoint1()), np.array(r.getNearestPoint2())
            points.append((first, second, np.array(r.normal)))
        return Measured(self, q, distances, points)

    def _approach(self, a: int, b: int) -> Array:
        """Speed of approach of two bodies per joint speed: the reach from each joint that moves only one of them."""
        out = np.zeros(self.model.nv)
        one, other = self._reaches(a), self._reaches(b)
        for joint in set(one) ^ set(other):
            out[self.model.joints[joint].idx_v] = one.get(joint, other.get(joint, 0.0))
        return np.asarray(out @ self.selection)

    def _reaches(self, index: int) -> dict[int, float]:
        """For every joint that moves a body: how far from its axis any point of the body can be."""
        body = self.geometry.geometryObjects[index]
        body.geometry.computeLocalAABB()
        centre = body.placement.act(np.array(body.geometry.aabb_center))
        reach, joint = float(np.linalg.norm(centre)) + float(body.geometry.aabb_radius), body.parentJoint
        out: dict[int, float] = {}
        while joint:
            prismatic = "P" in self.model.joints[joint].shortname().replace("JointModel", "")[:1]
            out[joint] = 1.0 if prismatic else reach
            if prismatic:
                first = self.model.joints[joint].idx_q
                limits = (self.model.lowerPositionLimit[first], self.model.upperPositionLimit[first])
                reach += max(abs(float(x)) for x in limits)
            reach += float(np.linalg.norm(self.model.jointPlacements[joint].translation))
            joint = self.model.parents[joint]
        return out


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
