"""`Collision`: the robot's own bodies, and obstacles, keep their distance. Needs Pinocchio (the extra `collision`).

Distances are Coal's (GJK on convex bodies; meshes are replaced by their convex hulls, which is the safe side). Their
gradient is the normal times the Jacobians of the two nearest points. Between samples a bound holds: on a piece of time
of width h a distance cannot be less than (d(start) + d(end) − V h)/2, where V bounds the speed at which the two bodies
can approach there (reach times joint speed, summed over the joints between them). Pieces are halved until that decides.
Where hulls overlap, the distance is minus the depth, for which the same holds.

Bodies two joints apart are often nearer to each other than any clearance, however the arm stands, and collide all the
same when it folds. `pair_clearances` says how near each pair may come.
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
        self.pin = pin = import_extra("pinocchio", "collision", "Keeping bodies apart", ExcitationError)
        self.model = pin.buildModelFromUrdf(str(urdf))
        folders = [str(d) for d in package_dirs]
        self.geometry = pin.buildGeomFromUrdf(self.model, str(urdf), pin.GeometryType.COLLISION, None, folders)
        if not self.geometry.ngeoms:
            raise ExcitationError(f"{urdf} describes no collision geometry; name the points of links in `regions`.")
        for body in self.geometry.geometryObjects:
            if hasattr(body.geometry, "buildConvexHull"):
                body.geometry.buildConvexHull(True, "Qt")
                body.geometry = body.geometry.convex
        self.own_bodies = self.geometry.ngeoms
        for name, shape, place in obstacles:
            placed = pin.SE3(np.asarray(place, dtype=float))
            self.geometry.addGeometryObject(pin.GeometryObject(name, 0, 0, placed, shape))
        self._add_pairs(srdf, ignore)
        self.data, self._distances = self.model.createData(), self.geometry.createData()
        self._follow(robot, urdf)
        objects = self.geometry.geometryObjects
        self.pairs = pairs = [(p.first, p.second) for p in self.geometry.collisionPairs]
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
                obstacle = b >= self.own_bodies and one != 0  # an obstacle stands by the base but is no neighbour
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

    def _point_jacobian(self, joint: int, point: Array) -> Array:
        """Velocity of a point fixed to the joint's body, per model velocity."""
        if joint == 0:
            return np.zeros((3, self.model.nv))
        frame = self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = self.pin.getJointJacobian(self.model, self.data, joint, frame)
        return np.asarray(J[:3] - self.pin.skew(point - self.data.oMi[joint].translation) @ J[3:])

    def distances(self, q: Array, pairs: Sequence[int] | None = None) -> Array:
        """Of these `pairs`, by number (None: all of them), at the posture `q`; m."""
        at = self.configuration(q)
        self.pin.updateGeometryPlacements(self.model, self.data, self.geometry, self._distances, at)
        return np.array([self._result(k).min_distance for k in (range(len(self.names)) if pairs is None else pairs)])

    def slope(self, q: Array, multipliers: Array) -> Array:
        """Σ μ_k ∂d_k/∂q at the posture `q`, with a multiplier for every pair."""
        total, at = np.zeros(len(q)), self.configuration(q)
        if multipliers.any():
            self.pin.updateGeometryPlacements(self.model, self.data, self.geometry, self._distances, at)
            self.pin.computeJointJacobians(self.model, self.data, at)
        for k in map(int, np.flatnonzero(multipliers)):
            found, (one, other) = self._result(k), self.joints_of[k]
            first, second = (np.array(point) for point in (found.getNearestPoint1(), found.getNearestPoint2()))
            opening = np.array(found.normal) @ (self._point_jacobian(other, second) - self._point_jacobian(one, first))
            total += multipliers[k] * (opening @ self.selection)
        return total

    def _result(self, pair: int) -> Any:
        return self.pin.computeDistance(self.geometry, self._distances, pair)

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


# Pairs that are near in more than this share of so many random postures are made so.
_NEARLY_ALL, _POSTURES = 0.95, 40
# They must not touch. What distances are found to (1e-6 m), and some.
_TOUCHING = 1e-4
# Hulls that overlap even in the reference may do so by this much more (m): they are larger than the bodies.
_DEEPER = 1e-3


def pair_clearances(scene: Scene, robot: Robot, clearance: float) -> tuple[Array, Array]:
    """How near the bodies of each pair may come (m), and how far they are in a harmless posture (m).

    That is `clearance`, but for bodies of the robot that are nearer in nearly every posture. Those must not touch;
    where their hulls overlap even in the reference, which is zero or the nearest posture that the limits allow, they
    must not overlap by more.
    """
    low = np.array([max(j.lower, -np.pi) for j in robot.joints])
    high = np.array([min(j.upper, np.pi) for j in robot.joints])
    reference = scene.distances(np.clip(0.0, low, high))
    postures = np.random.default_rng(0).uniform(low, high, (_POSTURES, robot.dof))
    near = np.mean([scene.distances(q) < clearance for q in postures], axis=0) > _NEARLY_ALL
    near &= np.array([max(pair) < scene.own_bodies for pair in scene.pairs])
    least = np.where(reference > 2.0 * _TOUCHING, _TOUCHING, reference - _DEEPER)
    return np.where(near, np.minimum(least, clearance), clearance), reference


# Pieces are halved until two bodies can approach by less than this within one (m).
_RESOLUTION = 1e-3
_PIECES = 64
# What the middle of the room between two bodies counts for (m).
_ROOM = 0.4
# Distances are dear; the grid is coarse and what it misses is answered by tightening.
_GRID = 8


class Collision:
    """Distances of pairs of bodies stay above what `pair_clearances` says; values are in units of `unit` metres.

    It is asked from the first step on: of a motion that was found without it little is left when it is drawn back.
    """

    name = "distances"
    smooth = True
    lazy = False
    unit = 0.05  # m; what weighs about as much as a limit that is exceeded by its own size

    def __init__(self, scene: Scene, families: Sequence[Family], clearance: Array, reference: Array) -> None:
        self.scene, self.clearance = scene, clearance
        # A standing posture shall leave room to move (`find_centre`): of what little there is between two bodies that
        # are always near, as of the room between others.
        room = np.maximum(reference - clearance, _TOUCHING)
        self._weight = np.where(clearance < clearance.max(), np.maximum(_ROOM / room, 1.0), 1.0)
        count = _GRID * max(f.size for f in families)
        self._sampled = Sampled(families, np.linspace(0.0, families[0].duration, count + 1), [0])

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        (q,) = self._sampled.signals(x)
        values = (self.clearance - np.array([self.scene.distances(row) for row in q])) / self.unit

        def pull(multipliers: Array) -> Array:
            table = multipliers.reshape(values.shape) / self.unit
            return self._sampled.pull_signals(
                [-np.array([self.scene.slope(*pair) for pair in zip(q, table, strict=True)])]
            )

        return values.ravel(), pull

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        values = self._weight * (self.clearance - self.scene.distances(q))
        return values, lambda m: -self.scene.slope(q, self._weight * m)

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        t = np.linspace(0.0, trajectory.duration, _PIECES + 1)
        fastest, faster = trajectory.peak_bounds(1), trajectory.peak_bounds(2)
        known = self.clearance - np.array([self.scene.distances(q) for q in trajectory.derivative(t, 0)])
        start, end, width = known[:-1], known[1:], trajectory.duration / _PIECES
        middle, worst = 0.5 * (t[:-1] + t[1:]), -np.inf
        while len(middle):
            seen = float(max(start.max(), end.max())) / self.unit
            if seen > enough:
                return seen
            speed = np.minimum(np.abs(trajectory.derivative(middle, 1)) + 0.5 * width * faster, fastest)
            slack = width * (speed @ self.scene.approach.T)
            bound = 0.5 * (start + end + slack)  # −∞ for pairs that were decided before
            undecided = (bound > 0.0) & (slack > _RESOLUTION)
            worst = max(worst, float(np.max(bound[~undecided], initial=-np.inf)))
            undecided &= bound > worst
            left = undecided.any(axis=1)
            places, pairs = trajectory.derivative(middle[left], 0), undecided[left]
            between = np.full(pairs.shape, -np.inf)
            for row, q, which in zip(between, places, pairs, strict=True):
                row[which] = self.clearance[which] - self.scene.distances(q, np.flatnonzero(which).tolist())
            ends = [np.where(pairs, x[left], -np.inf) for x in (start, end)]
            start, end = np.concatenate([ends[0], between]), np.concatenate([between, ends[1]])
            middle = np.concatenate([middle[left] - 0.25 * width, middle[left] + 0.25 * width])
            width *= 0.5
        return worst / self.unit

    def blame(self, trajectory: Trajectory) -> str:
        t = np.linspace(0.0, trajectory.duration, 101)
        distances = np.array([self.scene.distances(q) for q in trajectory.derivative(t, 0)]).min(axis=0)
        k = int(np.argmin(distances - self.clearance))
        one, other = self.scene.names[k]
        return (
            f"'{one}' comes within {distances[k]:.3g} m of '{other}' (clearance {self.clearance[k]:.3g} m); "
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
        clearance: the smallest distance allowed (m); those that are always nearer must not touch.
        package_dirs: where `package://` meshes are found.
        srdf: a file whose disabled pairs are left out.
        ignore: more pairs to leave out, by names of geometries.
        obstacles: (name, Coal geometry, 4 × 4 placement in the base frame).
    """
    scene = Scene(robot, Path(urdf), package_dirs, srdf, ignore, obstacles)
    held, reference = pair_clearances(scene, robot, clearance)
    return lambda families: Collision(scene, families, held, reference)
