"""`Stance`: a robot with a floating base that stands on feet at fixed places, and its motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.frame_motion import FrameJacobian, StackedJacobian
from steelyard.errors import ExcitationError, RobotError
from steelyard.floating.setup import CONTACT_ROWS
from steelyard.ground.arrays import Array
from steelyard.robot.free import free_links
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot
from steelyard.signals.filters import derivative

# Newton steps of the legs, and the largest remaining error of a foot [m, rad].
_STEPS, _CLOSED = 12, 1e-9
# A leg cannot hold its foot if its Jacobian amplifies velocities by more than this factor [1/m].
_STRETCHED = 200.0


class Stance:
    """A standing robot.

    Args:
        robot: Robot with a floating base.
        feet: Frames or links that stay in place, each with the kind of its contact: "point" or "flat".
        posture: Positions of the driven joints [rad, m].
    """

    def __init__(self, robot: Robot, feet: Sequence[tuple[str, str]], posture: Sequence[float]) -> None:
        floating = [link for link in free_links(robot) if link.kind == "floating" and link.parent < 0]
        if len(floating) != 1 or len(free_links(robot)) != 1:
            raise RobotError(f"{robot.name}: motions on fixed feet need one floating base; check its free joints.")
        self.robot, self.feet = robot, tuple(feet)
        self.root = robot.links.index(floating[0])
        self.base = np.array(floating[0].coordinates)
        self.driven = np.setdiff1d(np.arange(robot.dof), self.base)
        self.names = tuple(robot.joint_names[k] for k in self.driven)
        self.places = [robot.frame(name) for name, _ in feet]
        rows = [CONTACT_ROWS[kind] for _, kind in feet]
        self.jacobian = StackedJacobian([FrameJacobian(robot, place) for place in self.places], rows)
        self.start = np.zeros(robot.dof)
        self.start[self.driven] = posture
        self._goals = [(R[0], p[0]) for R, p in self.frames(self.start[None])]
        legs = self.jacobian(self.start[None])[0][:, self.driven]
        smallest = float(np.linalg.svd(legs, compute_uv=False)[min(legs.shape) - 1])
        if legs.shape[0] > legs.shape[1] or smallest < 1.0 / _STRETCHED:
            raise ExcitationError(
                f"{robot.name}: the legs cannot hold the feet in this posture (stretched, or fewer joints than "
                "contact conditions); state a standing posture (--posture), or point contacts."
            )

    def frames(self, q: Array) -> list[tuple[Array, Array]]:
        """Return orientation and position of each foot in the world at positions `q`."""
        R, p = link_poses(self.robot, q)
        return [
            (R[:, f.host] @ f.rotation, p[:, f.host] + np.einsum("tij,j->ti", R[:, f.host], f.translation))
            for f in self.places
        ]

    def _errors(self, q: Array) -> Array:
        """Compute how far each foot is from its place, in its own axes, `(samples, rows)`."""
        out = []
        for (R, p), (R0, p0), (_, kind) in zip(self.frames(q), self._goals, self.feet, strict=True):
            out.append(np.einsum("tji,tj->ti", R, p - p0))
            if kind == "flat":
                turn = np.einsum("ji,tjk->tik", R0, R)
                skew = 0.5 * (turn - np.swapaxes(turn, 1, 2))
                out.append(np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1))
        return np.hstack(out)

    def positions(self, sway: Array) -> Array | None:
        """Compute the positions of all coordinates, `(samples, joints)`; None if the feet cannot stay in place.

        Args:
            sway: Displacement [m] and rotation vector [rad] of the base, `(samples, 6)`.
        """
        q = np.repeat(self.start[None], len(sway), axis=0)
        angle = np.linalg.norm(sway[:, 3:], axis=1, keepdims=True)
        q[:, self.base[:3]] = sway[:, :3]
        q[:, self.base[3:]] = 0.5 * np.sinc(angle / (2.0 * np.pi)) * sway[:, 3:]
        for _ in range(_STEPS):
            error = self._errors(q)
            if np.abs(error).max() < _CLOSED:
                return q
            q[:, self.driven] -= _solved(self.jacobian(q)[:, :, self.driven], error)
            if not np.abs(q).max() < 1e3:
                return None
        return q if np.abs(self._errors(q)).max() < _CLOSED else None

    def motion(self, sway: Array, rate: float) -> tuple[Array, Array, Array] | None:
        """Compute q, q̇ and q̈ of a sway of the base; None if the feet cannot stay in place.

        Args:
            sway: Displacement [m] and rotation vector [rad] of the base, `(samples, 6)`.
            rate: Sampling rate [Hz].
        """
        q = self.positions(sway)
        if q is None:
            return None
        R = link_poses(self.robot, q)[0][:, self.root]
        dq = np.zeros_like(q)
        dq[:, self.base[:3]] = np.einsum("tji,tj->ti", R, derivative(sway[:, :3], 1.0 / rate))
        spin = np.einsum("tji,tjk->tik", R, derivative(R.reshape(-1, 9), 1.0 / rate).reshape(-1, 3, 3))
        dq[:, self.base[3:]] = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        J = self.jacobian(q)
        pushed = np.einsum("trk,tk->tr", J[:, :, self.base], dq[:, self.base])
        dq[:, self.driven] = -_solved(J[:, :, self.driven], pushed)
        return q, dq, derivative(dq, 1.0 / rate)

    def forces(self, motion: tuple[Array, Array, Array], theta: Array) -> tuple[Array, Array]:
        """Distribute the weight over the feet with the smallest squares of the contact forces.

        Args:
            motion: q, q̇ and q̈.
            theta: Parameters of the bodies.

        Returns:
            Forces of the feet in the world, `(samples, feet, 3)` [N], and torques of the driven joints.
        """
        q = motion[0]
        whole = self.robot.dynamics.inverse_dynamics(*motion, theta)
        J = self.jacobian(q)
        lifted = np.swapaxes(J[:, :, self.base], 1, 2)
        contact = np.einsum("trk,tk->tr", np.linalg.pinv(lifted), whole[:, self.base])
        torque = whole[:, self.driven] - np.einsum("trk,tr->tk", J[:, :, self.driven], contact)
        out, first = [], 0
        for (R, _), (_, kind) in zip(self.frames(q), self.feet, strict=True):
            out.append(np.einsum("tij,tj->ti", R, contact[:, first : first + 3]))
            first += len(CONTACT_ROWS[kind])
        return np.stack(out, axis=1), torque


def _solved(J: Array, right: Array) -> Array:
    """Solve J x = right for each sample; joints beyond the legs move as little as possible."""
    if J.shape[1] == J.shape[2]:
        return np.asarray(np.linalg.solve(J, right[:, :, None])[:, :, 0])
    gram = J @ np.swapaxes(J, 1, 2)
    return np.asarray(np.einsum("trk,tr->tk", J, np.linalg.solve(gram, right[:, :, None])[:, :, 0]))
