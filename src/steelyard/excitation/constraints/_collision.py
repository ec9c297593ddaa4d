"""`Collision`: bodies of the robot and obstacles keep their distance. Needs Pinocchio (the extra `collision`).

Coal computes the distances (GJK on convex bodies; convex hulls replace meshes, which is conservative). Their gradient
is the normal times the Jacobians of the two nearest points. Between samples a bound holds: on a piece of time of width
h a distance is at least (d(start) + d(end) − V h)/2, where V bounds the speed of approach of the two bodies in that
piece (reach times joint speed, summed over the joints between them). Pieces are halved until that decides. If hulls
overlap, the distance is minus the depth, for which the same bound holds.

Bodies two joints apart are often closer than any clearance in all postures, and still collide when the arm folds.
`pair_clearances` sets the clearance of each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints.limits import Pull
from steelyard.excitation.sampled_motions import SampledMotions
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
        self.pin = pin = import_extra("pinocchio", "collision", "Collision avoidance", ExcitationError)
        self.model = pin.buildModelFromUrdf(str(urdf))
        folders = [str(d) for d in package_dirs]
        self.geometry = pin.buildGeomFromUrdf(self.model, str(urdf), pin.GeometryType.COLLISION, None, folders)
        if not self.geometry.ngeoms:
            raise ExcitationError(f"{urdf} has no collision geometry; name points of links in `regions` instead.")
        for body in self.geometry.geometryObjects:
            if hasattr(body.geometry, "buildConvexHull"):
                body.geometry.buildConvexHull(True, "Qt")
                body.geometry = body.geometry.convex
        self.own_bodies = self.geometry.ngeoms
        for name, shape, placement in obstacles:
            pose = pin.SE3(np.asarray(placement, dtype=float))
            self.geometry.addGeometryObject(pin.GeometryObject(name, 0, 0, pose, shape))
        self._add_pairs(srdf, ignore)
        self.data, self._distances = self.model.createData(), self.geometry.createData()
        self._select_joints(robot, urdf)
        objects = self.geometry.geometryObjects
        self.pairs = pairs = [(p.first, p.second) for p in self.geometry.collisionPairs]
        self.names = [(objects[a].name, objects[b].name) for a, b in pairs]
        self.joints_of = [(objects[a].parentJoint, objects[b].parentJoint) for a, b in pairs]
        if not pairs:
            raise ExcitationError(f"{urdf}: all pairs of bodies are excluded; nothing can collide.")
        self.approach = np.array([self._approach(a, b) for a, b in pairs])

    def _add_pairs(self, srdf: str | Path | None, ignore: Sequence[tuple[str, str]]) -> None:
        """Add all pairs except those of one joint, of neighbours, and ignored ones."""
        pin, objects = self.pin, self.geometry.geometryObjects
        left_out = {frozenset(pair) for pair in ignore}
        for a in range(len(objects)):
            for b in range(a + 1, len(objects)):
                one, other = objects[a].parentJoint, objects[b].parentJoint
                near = one == other or self.model.parents[one] == other or self.model.parents[other] == one
                obstacle = b >= self.own_bodies and one != 0  # obstacles have the base's joint
                if (obstacle or not near) and frozenset((objects[a].name, objects[b].name)) not in left_out:
                    self.geometry.addCollisionPair(pin.CollisionPair(a, b))
        if srdf is not None:
            pin.removeCollisionPairs(self.model, self.geometry, str(srdf))

    def _select_joints(self, robot: Robot, urdf: Path) -> None:
        """Set `selection` (model velocities × joints): the model's joint that each of the robot's joints moves."""
        self.selection = np.zeros((self.model.nv, robot.dof))
        for j, name in enumerate(robot.joint_names):
            if not self.model.existJointName(name):
                raise ExcitationError(f"{urdf} has no joint '{name}'; collision needs the file of the same robot.")
            self.selection[self.model.joints[self.model.getJointId(name)].idx_v, j] = 1.0

    def configuration(self, q: Array) -> Array:
        neutral = self.pin.neutral(self.model)
        return np.asarray(self.pin.integrate(self.model, neutral, self.selection @ q))

    def _point_jacobian(self, joint: int, point: Array) -> Array:
        """Return the velocity of a point fixed to the joint's body, per model velocity."""
        if joint == 0:
            return np.zeros((3, self.model.nv))
        frame = self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = self.pin.getJointJacobian(self.model, self.data, joint, frame)
        return np.asarray(J[:3] - self.pin.skew(point - self.data.oMi[joint].translation) @ J[3:])

    def distances(self, q: Array, pairs: Sequence[int] | None = None) -> Array:
        """Return the distances at posture `q` [m] of the `pairs` with these numbers (None: all)."""
        at = self.configuration(q)
        self.pin.updateGeometryPlacements(self.model, self.data, self.geometry, self._distances, at)
        return np.array([self._result(k).min_distance for k in (range(len(self.names)) if pairs is None else pairs)])

    def slope(self, q: Array, multipliers: Array) -> Array:
        """Return Σ μ_k ∂d_k/∂q at the posture `q`, with a multiplier for every pair."""
        total, at = np.zeros(len(q)), self.configuration(q)
        if multipliers.any():
            self.pin.updateGeometryPlacements(self.model, self.data, self.geometry, self._distances, at)
            self.pin.computeJointJacobians(self.model, self.data, at)
        for k in map(int, np.flatnonzero(multipliers)):
            result, (one, other) = self._result(k), self.joints_of[k]
            first, second = (np.array(point) for point in (result.getNearestPoint1(), result.getNearestPoint2()))
            opening = np.array(result.normal) @ (self._point_jacobian(other, second) - self._point_jacobian(one, first))
            total += multipliers[k] * (opening @ self.selection)
        return total

    def _result(self, pair: int) -> Any:
        return self.pin.computeDistance(self.geometry, self._distances, pair)

    def _approach(self, a: int, b: int) -> Array:
        """Return the speed of approach of two bodies per joint speed: the reach from each joint that moves only one."""
        out = np.zeros(self.model.nv)
        one, other = self._reaches(a), self._reaches(b)
        for joint in set(one) ^ set(other):
            out[self.model.joints[joint].idx_v] = one.get(joint, other.get(joint, 0.0))
        return np.asarray(out @ self.selection)

    def _reaches(self, index: int) -> dict[int, float]:
        """Return, for every joint that moves a body, the largest distance of a body's point from the joint's axis."""
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


# Pairs closer than the clearance in more than this share of random postures are close by construction.
_NEARLY_ALL, _POSTURES = 0.95, 40
# Their clearance [m]: distances are exact to 1e-6 m.
_TOUCHING = 1e-4
# Hulls that overlap even in the reference posture may overlap by this much more [m]: they are larger than the bodies.
_DEEPER = 1e-3


def pair_clearances(scene: Scene, robot: Robot, clearance: float) -> tuple[Array, Array]:
    """Compute the clearance of each pair of bodies and its distance in a reference posture [m].

    The clearance is `clearance`, except for bodies of the robot that are closer in nearly every posture. Those must not
    touch. If their hulls overlap even in the reference (zero, or the nearest posture within the limits), the overlap
    must not grow.
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
# Half the room between two bodies is weighted as this distance [m].
_ROOM = 0.4
# Distances are expensive: the grid is coarse, and the search tightens the constraint if the grid misses a violation.
_GRID = 8


class Collision:
    """Distances of pairs of bodies stay above `pair_clearances`; values are in units of `unit` metres.

    The constraint is active from the first step: a motion designed without it would lose most of its size when settled.
    """

    name = "distances"
    smooth = True
    lazy = False
    unit = 0.05  # m; weighs about as much as exceeding a limit by 100 %

    def __init__(self, scene: Scene, families: Sequence[Family], clearance: Array, reference: Array) -> None:
        self.scene, self.clearance = scene, clearance
        # `find_centre` prefers a posture with room to move; weights scale the small room between bodies that are always
        # close to that of the others.
        room = np.maximum(reference - clearance, _TOUCHING)
        self._weight = np.where(clearance < clearance.max(), np.maximum(_ROOM / room, 1.0), 1.0)
        count = _GRID * max(f.size for f in families)
        self._sampled = SampledMotions(families, np.linspace(0.0, families[0].duration, count + 1), [0])

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
        values = self.clearance - np.array([self.scene.distances(q) for q in trajectory.derivative(t, 0)])
        start, end, width = values[:-1], values[1:], trajectory.duration / _PIECES
        middle, worst = 0.5 * (t[:-1] + t[1:]), -np.inf
        while len(middle):
            reached = float(max(start.max(), end.max())) / self.unit
            if reached > enough:
                return reached
            speed = np.minimum(np.abs(trajectory.derivative(middle, 1)) + 0.5 * width * faster, fastest)
            slack = width * (speed @ self.scene.approach.T)
            bound = 0.5 * (start + end + slack)  # −∞ for pairs that are already decided
            undecided = (bound > 0.0) & (slack > _RESOLUTION)
            worst = max(worst, float(np.max(bound[~undecided], initial=-np.inf)))
            undecided &= bound > worst
            left = undecided.any(axis=1)
            postures, pairs = trajectory.derivative(middle[left], 0), undecided[left]
            between = np.full(pairs.shape, -np.inf)
            for row, q, which in zip(between, postures, pairs, strict=True):
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
    """Return a constraint for `excite(…, constraints=[…])`: bodies that are not neighbours keep their distance.

    Args:
        robot: The robot; joints of the file that it lacks stay at zero.
        urdf: URDF file of the robot, with collision geometry.
        clearance: Smallest distance [m]; bodies that are always closer must not touch.
        package_dirs: Folders with `package://` meshes.
        srdf: File whose disabled pairs are left out.
        ignore: Further pairs to leave out, by names of geometries.
        obstacles: (name, Coal geometry, 4 × 4 placement in the base frame).
    """
    scene = Scene(robot, Path(urdf), package_dirs, srdf, ignore, obstacles)
    clearances, reference = pair_clearances(scene, robot, clearance)
    return lambda families: Collision(scene, families, clearances, reference)
