"""`InverseKinematics`: postures that bring a robot's tip to a pose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics._closed_form import ParallelArm, WristArm, closed_form
from steelyard.robot.kinematics.numerical import TOLERANCE, Pose, ReachError, Tip, random_starts, solve_each, solve_from
from steelyard.robot.robot import Robot

# A pose is reached if the error is below this [m, rad].
_REACHED = 1e-9
# Arccos near 1 loses half the digits; closed-form postures with errors up to this [m, rad] are refined numerically.
_ROUGH = 1e-6
# Rounds of random starts before a pose is refused; the first round solves almost all reachable poses.
_ATTEMPTS = 5
# Iterations of `nearest`: a posture near the start needs no more, and evaluating populations must be fast.
_QUICK_ITERATIONS = 20
# Angles closer than this are the same branch [rad].
_SAME_ANGLE = 1e-6


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Computes postures for poses of a tip within the joint limits, in closed form if the arm allows it.

    The closed form finds every branch. It covers six-axis arms with a spherical wrist and either two parallel shoulder
    axes or intersecting first axes, and arms like the UR with three parallel axes. All others (redundant arms, other
    offset wrists, prismatic or coupled joints, fewer axes) are solved by damped least squares from `near`, then from
    many random starts, which finds *one* posture.
    """

    tip: Tip

    @staticmethod
    def of(robot: Robot, link: str | None = None, tool: Pose | None = None) -> InverseKinematics:
        """Create a solver for the joint frame of a link, or for a tool.

        Args:
            robot: Robot.
            link: Name of the link; default: the last.
            tool: Pose of the tool in the link's joint frame; default: identity.
        """
        return InverseKinematics(Tip(robot, link) if tool is None else Tip(robot, link, tool))

    @cached_property
    def arm(self) -> WristArm | ParallelArm | None:
        """The closed form, if the arm has one."""
        return closed_form(self.tip)

    @property
    def method(self) -> str:
        return "numerical" if self.arm is None else "closed form"

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        joints = self.tip.robot.joints
        return np.array([j.lower for j in joints]), np.array([j.upper for j in joints])

    def branches(self, pose: Pose, near: ArrayLike | None = None) -> tuple[Array, ...]:
        """Return all closed-form postures within the limits, nearest first.

        Args:
            pose: Target.
            near: Reference posture for the order and for full turns [rad, m]; default: mid-range.
        """
        if self.arm is None or pose.rotation is None:
            raise ReachError(
                f"{self.tip.robot.name}: branches exist only for six-axis arms with a spherical wrist or three "
                "parallel axes, and for poses with an orientation; call `solve` for one posture."
            )
        guess = self._guess(near)
        aim = pose.rotation, pose.position
        q = self._unwind(self.arm.branches(aim[0][None], aim[1][None], guess[None])[0], guess)
        q = q[self._within_limits(q) & (self._pose_errors(*aim, q) <= _ROUGH)]
        if np.any(self._pose_errors(*aim, q) > TOLERANCE):
            q, _ = solve_from(self.tip, pose, q, *self._limits)
        found: list[Array] = []
        for posture in q[self._pose_errors(*aim, q) <= _REACHED]:
            if not any(np.all(np.abs(posture - other) < _SAME_ANGLE) for other in found):
                found.append(np.clip(posture, *self._limits))
        return tuple(sorted(found, key=lambda posture: float(np.linalg.norm(posture - guess))))

    def nearest(self, rotation: Array, position: Array, near: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Solve many poses at once; returns postures `(poses, joints)` and whether each one reaches its pose.

        With a closed form it returns the first of `branches`, otherwise the result of damped least squares from `near`.

        Args:
            rotation: Target rotations (poses, 3, 3).
            position: Target positions (poses, 3) [m].
            near: Reference posture of each pose (poses, joints) [rad, m].
        """
        if self.arm is None:
            q, short = solve_each(self.tip, position, rotation, near, *self._limits, _QUICK_ITERATIONS)
            return q, short <= TOLERANCE
        q = self._unwind(self.arm.branches(rotation, position, near), near[:, None])
        inside = self._within_limits(q)
        missing = np.full(inside.shape, np.inf)
        pose, _ = np.nonzero(inside)
        missing[inside] = self._pose_errors(rotation[pose], position[pose], q[inside])
        q = np.clip(q, *self._limits)
        away = np.where(missing <= TOLERANCE, np.linalg.norm(q - near[:, None], axis=-1), np.inf)
        best = np.argmin(away, axis=1)
        out, found = q[np.arange(len(q)), best], np.isfinite(away.min(axis=1))
        # Rarely, the closed form has only half the digits; such poses are refined one at a time.
        for k in np.flatnonzero(np.any((missing > TOLERANCE) & (missing <= _ROUGH), axis=1)):
            known = self.branches(Pose(position[k], rotation[k]), near[k])
            found[k] = bool(known)
            if known:
                out[k] = known[0]
        return out, found

    def solve(self, pose: Pose, near: ArrayLike | None = None, seed: int = 0) -> Array:
        """Return the posture for a pose nearest to a reference.

        Args:
            pose: Target.
            near: Reference posture [rad, m]; default: mid-range.
            seed: Seed for the starts of a numerical solution.

        Raises:
            ReachError: If no posture reaches the pose.
        """
        if self.arm is not None and pose.rotation is not None:
            known = self.branches(pose, near)
            if known:
                return known[0]
            raise self._unreachable(pose, near, seed)
        return self._numerical(pose, near, seed)

    def _numerical(self, pose: Pose, near: ArrayLike | None, seed: int) -> Array:
        guess = self._guess(near)
        low, high = self._limits
        q, missing = solve_from(self.tip, pose, guess[None], low, high)
        if missing[0] <= TOLERANCE:
            return np.asarray(q[0])
        nearest = float(missing[0])
        for attempt in range(_ATTEMPTS):
            q, missing = solve_from(self.tip, pose, random_starts(low, high, seed + attempt), low, high)
            good = q[missing <= TOLERANCE]
            if len(good):
                return np.asarray(good[np.argmin(np.linalg.norm(good - guess, axis=1))])
            nearest = min(nearest, float(missing.min()))
        raise self._reach_error(pose, nearest)

    def _guess(self, near: ArrayLike | None) -> Array:
        low, high = self._limits
        if near is None:
            middle: Array = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2.0, np.clip(0.0, low, high))
            return np.nan_to_num(middle)
        guess = np.asarray(near, dtype=float)
        if guess.shape != low.shape:
            raise ShapeError(f"`near` has shape {guess.shape}; expected {low.shape}, one angle per joint.")
        return guess

    def _unwind(self, q: Array, guess: Array) -> Array:
        """Add full turns to postures such that they are nearest to the guess, within the limits if possible."""
        low, high = self._limits
        turn = 2.0 * np.pi
        nearest = q + turn * np.round((guess - q) / turn)
        # Beyond a limit, take the next turn towards the range.
        nearest = nearest + turn * np.ceil(np.maximum(low - nearest - _SAME_ANGLE, 0.0) / turn)
        unwound: Array = nearest - turn * np.ceil(np.maximum(nearest - high - _SAME_ANGLE, 0.0) / turn)
        return unwound

    def _within_limits(self, q: Array) -> NDArray[np.bool_]:
        low, high = self._limits
        return np.asarray(np.all((q >= low - _SAME_ANGLE) & (q <= high + _SAME_ANGLE), axis=-1))

    def _pose_errors(self, rotation: Array, position: Array, q: Array) -> Array:
        """Combine position error [m] and rotation angle [rad], the latter from the distance of the matrices."""
        turn, place = self.tip.forward(q)
        angle = 2.0 * np.arcsin(np.minimum(np.linalg.norm(turn - rotation, axis=(-2, -1)) / np.sqrt(8.0), 1.0))
        return np.asarray(np.hypot(np.linalg.norm(place - position, axis=-1), angle))

    def _unreachable(self, pose: Pose, near: ArrayLike | None, seed: int) -> ReachError:
        low, high = self._limits
        starts = np.vstack([self._guess(near), random_starts(low, high, seed)])
        _, missing = solve_from(self.tip, pose, starts, low, high)
        return self._reach_error(pose, float(missing.min()))

    def _reach_error(self, pose: Pose, missing: float) -> ReachError:
        unit = "m" if pose.rotation is None else "m and rad together"
        return ReachError(
            f"{self.tip.robot.name} cannot reach the pose at {pose} within its joint limits: the best posture "
            f"misses it by {missing:.2g} ({unit}); move the pose into reach or turn it."
        )


__all__ = ["InverseKinematics", "Pose", "ReachError", "Tip"]
