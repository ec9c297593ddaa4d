"""`InverseKinematics`: which postures bring a robot's tip to a pose."""

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

# Metres and radians: what counts as reaching a pose.
_EXACT = 1e-9
# Closed-form angles come from arccos, which near 1 keeps half the digits; such postures are this good and are polished.
_ROUGH = 1e-6
# Rounds of random starts before a pose is refused: the first finds nearly all that can be reached.
_ATTEMPTS = 5
# Iterations in which a posture near the last one is found, if ever: a population has no time for the others.
_QUICKLY = 20
# Angles closer than this (rad) are the same branch.
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Postures for poses of a tip, within the joint limits: in closed form where the arm allows it, else numerical.

    The closed form covers six-axis arms with a spherical wrist and either two parallel shoulder axes or first axes that
    meet (`inverse_kinematics_wrist`), and arms like the UR with three parallel axes (`inverse_kinematics_parallel`). It
    finds every branch. All others (redundant arms, other offset wrists, prismatic or coupled joints, fewer axes) are
    solved by damped least squares from `near`, then from many starts, which finds *a* posture.
    """

    tip: Tip

    @staticmethod
    def of(robot: Robot, link: str | None = None, tool: Pose | None = None) -> InverseKinematics:
        """For the joint frame of `link` (None: the last) of `robot`, or `tool` (None: none) seen from there."""
        return InverseKinematics(Tip(robot, link) if tool is None else Tip(robot, link, tool))

    @cached_property
    def arm(self) -> WristArm | ParallelArm | None:
        """The closed form, where there is one."""
        return closed_form(self.tip)

    @property
    def method(self) -> str:
        return "numerical" if self.arm is None else "closed form"

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        joints = self.tip.robot.joints
        return np.array([j.lower for j in joints]), np.array([j.upper for j in joints])

    def branches(self, pose: Pose, near: ArrayLike | None = None) -> tuple[Array, ...]:
        """All postures for `pose` in closed form within the limits (full turns as `near` has them), nearest first."""
        if self.arm is None or pose.rotation is None:
            raise ReachError(
                f"{self.tip.robot.name}: branches are known only for six-axis arms with a spherical wrist or three "
                "parallel axes, and for poses with an orientation; ask for one posture with `solve`."
            )
        guess = self._guess(near)
        aim = pose.rotation, pose.position
        q = self._unwound(self.arm.branches(aim[0][None], aim[1][None], guess[None])[0], guess)
        q = q[self._inside(q) & (self._missing(*aim, q) <= _ROUGH)]
        if np.any(self._missing(*aim, q) > TOLERANCE):
            q, _ = solve_from(self.tip, pose, q, *self._limits)
        found: list[Array] = []
        for posture in q[self._missing(*aim, q) <= _EXACT]:
            if not any(np.all(np.abs(posture - other) < _SAME) for other in found):
                found.append(np.clip(posture, *self._limits))
        return tuple(sorted(found, key=lambda posture: float(np.linalg.norm(posture - guess))))

    def nearest(self, rotation: Array, position: Array, near: Array) -> tuple[Array, NDArray[np.bool_]]:
        """For many poses at once the posture nearest to each one's `near`, `(poses, joints)`, and which have one.

        Poses are `rotation` (poses, 3, 3) and `position` (poses, 3; m); `near` is (poses, joints; rad, m). Found is
        what `branches` has first; where there is no closed form, what damped least squares lead to from `near`.
        """
        if self.arm is None:
            q, short = solve_each(self.tip, position, rotation, near, *self._limits, _QUICKLY)
            return q, short <= TOLERANCE
        q = self._unwound(self.arm.branches(rotation, position, near), near[:, None])
        inside = self._inside(q)
        missing = np.full(inside.shape, np.inf)
        pose, _ = np.nonzero(inside)
        missing[inside] = self._missing(rotation[pose], position[pose], q[inside])
        q = np.clip(q, *self._limits)
        away = np.where(missing <= TOLERANCE, np.linalg.norm(q - near[:, None], axis=-1), np.inf)
        best = np.argmin(away, axis=1)
        out, found = q[np.arange(len(q)), best], np.isfinite(away.min(axis=1))
        # What the closed form gives with half the digits only is polished, one pose at a time; it is rare.
        for k in np.flatnonzero(np.any((missing > TOLERANCE) & (missing <= _ROUGH), axis=1)):
            known = self.branches(Pose(position[k], rotation[k]), near[k])
            found[k] = bool(known)
            if known:
                out[k] = known[0]
        return out, found

    def solve(self, pose: Pose, near: ArrayLike | None = None, seed: int = 0) -> Array:
        """The posture for `pose` that is found nearest to `near` (rad, m; default: mid-range); else a `ReachError`.

        `seed` draws the starts of a numerical solution.
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
        raise self._refusal(pose, nearest)

    def _guess(self, near: ArrayLike | None) -> Array:
        low, high = self._limits
        if near is None:
            middle: Array = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2.0, np.clip(0.0, low, high))
            return np.nan_to_num(middle)
        guess = np.asarray(near, dtype=float)
        if guess.shape != low.shape:
            raise ShapeError(f"`near` has shape {guess.shape}; expected {low.shape}, one angle per joint.")
        return guess

    def _unwound(self, q: Array, guess: Array) -> Array:
        """The same postures with full turns such that they are nearest to the guess, within the limits if possible."""
        low, high = self._limits
        turn = 2.0 * np.pi
        nearest = q + turn * np.round((guess - q) / turn)
        # Over a limit the next turn towards the range is the nearest one inside it.
        nearest = nearest + turn * np.ceil(np.maximum(low - nearest - _SAME, 0.0) / turn)
        unwound: Array = nearest - turn * np.ceil(np.maximum(nearest - high - _SAME, 0.0) / turn)
        return unwound

    def _inside(self, q: Array) -> NDArray[np.bool_]:
        low, high = self._limits
        return np.asarray(np.all((q >= low - _SAME) & (q <= high + _SAME), axis=-1))

    def _missing(self, rotation: Array, position: Array, q: Array) -> Array:
        """Metres and radians together, the angle from the distance of the two rotations' matrices."""
        turn, place = self.tip.forward(q)
        angle = 2.0 * np.arcsin(np.minimum(np.linalg.norm(turn - rotation, axis=(-2, -1)) / np.sqrt(8.0), 1.0))
        return np.asarray(np.hypot(np.linalg.norm(place - position, axis=-1), angle))

    def _unreachable(self, pose: Pose, near: ArrayLike | None, seed: int) -> ReachError:
        low, high = self._limits
        starts = np.vstack([self._guess(near), random_starts(low, high, seed)])
        _, missing = solve_from(self.tip, pose, starts, low, high)
        return self._refusal(pose, float(missing.min()))

    def _refusal(self, pose: Pose, missing: float) -> ReachError:
        unit = "m" if pose.rotation is None else "m and rad together"
        return ReachError(
            f"{self.tip.robot.name} cannot take the pose at {pose} within its joint limits: the nearest posture found "
            f"misses it by {missing:.2g} ({unit}); move the pose into reach or turn it."
        )


__all__ = ["InverseKinematics", "Pose", "ReachError", "Tip"]
