"""`Mechanism`: a robot with closed loops, in the coordinates of its measured joints.

With J the Jacobian of the loops, J q̇ = 0. Joints with an encoder (measured) determine the others (solved):
q̇ = G q̇_m, q̈ = G q̈_m + drift. The forces that close the loops do no work, so Gᵀ (Y θ − τ) = 0.
`reduced_observation` gives its rows at random states of its branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, RobotError, ShapeError, StructureError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.loops.branch import CHUNK, LoopMotion, follow_branch
from steelyard.loops.closure import moved_by
from steelyard.loops.loop_structure import LoopStructure
from steelyard.robot.free import free_links
from steelyard.robot.load import RobotLike, load_robot
from steelyard.robot.robot import Robot

# A pose is singular if it amplifies encoder errors by this factor against a usual pose of the branch: a 0.1 mrad
# encoder is then as accurate as a 3 mrad encoder.
SINGULAR = 30.0
_SEED = 20261120


class Mechanism:
    """A robot with closed loops.

    Args:
        robot: Robot with loops, or a source for `load_robot`.
        measured: Joints with an encoder, mostly those with a drive. Default: joints with an actuator in the
            description.
        loops: Loop table for a `robot` that is a source (`load_robot`).
        q: Positions of the measured joints [rad, m], `(samples, measured)`.
        dq: Velocities of the measured joints [rad/s, m/s].
        ddq: Accelerations of the measured joints [rad/s^2, m/s^2].
        start: Pose of all joints before the first sample; default: the pose of the description.
        everything: Positions of all joints, `(samples, joints)`.
        model: Model of the open tree.
        J: Jacobian of the loops for the solved joints, without units, `(samples, rows, solved)`.
    """

    def __init__(self, robot: RobotLike, measured: Sequence[str] | None = None, loops: Any = True) -> None:
        self.robot: Robot = robot if isinstance(robot, Robot) else load_robot(robot, loops=loops)
        if not self.robot.loops:
            raise RobotError(f"{self.robot.name}: it has no closed loop; use the robot directly.")
        self.structure = structure_of(self.robot)
        names = tuple(measured) if measured is not None else self.robot.actuated
        if not names:
            raise LogError(
                f"{self.robot.name}: its driven joints are not stated; name them in the mapping (joints = [...]), in "
                "the loop table (driven = [...]), or by actuators in the MJCF."
            )
        self.measured = np.array([self.robot.joint_index(name) for name in names])
        self.solved = np.setdiff1d(np.arange(self.robot.dof), self.measured)
        free = {k for link in free_links(self.robot) for k in link.coordinates}
        if wrong := free & set(self.measured.tolist()):
            raise LogError(
                f"Joint '{self.robot.joint_names[min(wrong)]}' is free, so it cannot have an encoder; leave it out."
            )
        with one_blas_thread():
            self._demand_determined()

    @property
    def mobility(self) -> int:
        """Degrees of freedom."""
        return self.structure.mobility

    @property
    def measured_names(self) -> tuple[str, ...]:
        return tuple(self.robot.joint_names[k] for k in self.measured)

    @property
    def solved_names(self) -> tuple[str, ...]:
        return tuple(self.robot.joint_names[k] for k in self.solved)

    @property
    def redundant(self) -> bool:
        """Whether the measured joints outnumber the degrees of freedom."""
        return len(self.measured) > self.mobility

    def _demand_determined(self) -> None:
        """Raise an error if the encoders do not determine the positions of all joints."""
        mobility, names = self.mobility, ", ".join(self.measured_names)
        if not mobility:
            raise RobotError(
                f"{self.robot.name}: its loops leave no degree of freedom; correct their frames, or lock joints."
            )
        N = self.structure.tangents(self._probes)
        seen = np.median(np.linalg.svd(N[:, self.measured], compute_uv=False), axis=0)
        known = int(np.sum(seen > 1e-6))
        if known < mobility:
            # Null space of the encoders.
            hidden = [np.linalg.svd(M[self.measured])[2][known:] @ M.T for M in N]
            size = np.median([np.abs(h).max(axis=0) for h in hidden], axis=0)
            moving = ", ".join(self.robot.joint_names[k] for k in self.solved if size[k] > 1e-3)
            raise LogError(
                f"{self.robot.name}: it has {mobility} degrees of freedom, but the positions of {names} determine only "
                f"{known}; the positions of these joints remain unknown: {moving}. Name their columns too "
                '(passive = {joint = "column"}), or lock them (--lock).'
            )

    @cached_property
    def _probes(self) -> Array:
        return self.structure.random_poses(32, _SEED)

    # ------------------------------------------------------------ linear algebra

    def split(self, everything: Array) -> tuple[Array, Array, Array]:
        """Compute φ, its Jacobian for the solved joints and for the measured ones, all without units."""
        phi, J = self.structure.equations(everything)
        return phi, J[:, :, self.solved], J[:, :, self.measured]

    def inverse(self, J: Array) -> tuple[Array, Array]:
        """Compute the pseudo-inverse of the solved joints' Jacobian and the condition number of its columns."""
        A = np.swapaxes(J, 1, 2) @ J
        k = A.shape[1]
        if not k:
            return np.zeros((len(J), 0, J.shape[1])), np.ones(len(J))
        A = A + 1e-14 * np.trace(A, axis1=1, axis2=2)[:, None, None] * np.eye(k) + 1e-280 * np.eye(k)
        out = np.linalg.solve(A, np.swapaxes(J, 1, 2))
        condition = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(out, axis=(1, 2))
        return out, condition

    @cached_property
    def worst_condition(self) -> float:
        """Largest condition number of a pose that is not singular."""
        _, J, _ = self.split(self._probes)
        return SINGULAR * float(np.median(self.inverse(J)[1]))

    def reduction(self, everything: Array) -> Array:
        """Compute G with q̇ = G q̇_m, `(samples, joints, measured)`; exact unless encoders are redundant."""
        _, J, M = self.split(everything)
        out = np.zeros((len(J), self.robot.dof, len(self.measured)))
        unit = self.structure.unit
        out[:, self.measured, np.arange(len(self.measured))] = 1.0
        part = -(self.inverse(J)[0] @ M)
        out[:, self.solved] = part * unit[self.solved][:, None] / unit[self.measured]
        return out

    def loop_rows(self, everything: Array) -> Array:
        """Compute the rows of the loop forces in SI units, `(samples, rows, joints)`, of full rank."""
        J = self.structure.equations(everything)[1]
        _, _, v = np.linalg.svd(J, full_matrices=False)
        return np.asarray(v[:, : self.structure.rank] / self.structure.unit)

    # ------------------------------------------------------------ motions

    def complete(
        self, q: ArrayLike, dq: ArrayLike | None = None, ddq: ArrayLike | None = None, start: ArrayLike | None = None
    ) -> LoopMotion:
        """Compute the motion of all joints from the measured joints, on the branch of `start`."""
        q_m, rate, turn = (None if x is None else np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, dq, ddq))
        assert q_m is not None
        for x in (q_m, rate, turn):
            if x is not None and x.shape != (len(q_m), len(self.measured)):
                raise ShapeError(f"q has shape {x.shape}; expected (samples, {len(self.measured)}): measured joints.")
        with one_blas_thread():
            first = self.structure.start if start is None else np.asarray(start, dtype=float)
            positions, arrived = follow_branch(self, q_m, first)
            n = (len(q_m), self.robot.dof)
            v, a, condition = np.zeros(n), np.zeros(n), np.zeros(len(q_m))
            gap = np.zeros(len(q_m))
            zero = np.zeros_like(q_m)
            for first_sample in range(0, len(q_m), CHUNK):
                own = slice(first_sample, first_sample + CHUNK)
                v[own], a[own], condition[own], gap[own] = self._rates(
                    positions[own], (zero if rate is None else rate)[own], (zero if turn is None else turn)[own]
                )
        regular = condition <= self.worst_condition
        return LoopMotion(positions, v, a, arrived, regular, gap)

    def _rates(self, everything: Array, rate: Array, turn: Array) -> tuple[Array, Array, Array, Array]:
        phi, J, M = self.split(everything)
        inverse, condition = self.inverse(J)
        unit = self.structure.unit
        dq, ddq = np.zeros_like(everything), np.zeros_like(everything)
        gap = np.max(np.abs(phi), axis=1, initial=0.0)
        if self.redundant:
            N = self.structure.tangents(everything)
            back = np.linalg.pinv(N[:, self.measured])
            dq = np.einsum("tnk,tk->tn", N @ back, rate / unit[self.measured]) * unit
            drift = self.structure.accelerations(everything, dq)
            rest = (turn - drift[:, self.measured]) / unit[self.measured]
            return dq, drift + np.einsum("tnk,tk->tn", N @ back, rest) * unit, condition, gap
        dq[:, self.measured], ddq[:, self.measured] = rate, turn
        dq[:, self.solved] = (
            -np.einsum("tir,tr->ti", inverse, _times(M, rate / unit[self.measured])) * unit[self.solved]
        )
        right = _times(M, turn / unit[self.measured]) + self.structure.drift(everything, dq)
        ddq[:, self.solved] = -np.einsum("tir,tr->ti", inverse, right) * unit[self.solved]
        return dq, ddq, condition, gap

    def nearest(self, q: Array, everything: Array) -> Array:
        """Return the pose with the smallest gap at one position of the measured joints, from a pose of all joints."""
        from scipy.optimize import least_squares

        def placed(x: Array) -> Array:
            step = np.zeros((1, self.robot.dof))
            step[0, self.solved] = x * self.structure.unit[self.solved]
            return moved_by(self.robot, held, step)

        held = np.array(everything, dtype=float)[None]
        held[0, self.measured] = q
        solution = least_squares(lambda x: self.structure.equations(placed(x))[0][0], np.zeros(len(self.solved)))
        return np.asarray(placed(solution.x)[0])

    # ------------------------------------------------------------ forces

    def torque_regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, model: Model | None = None) -> Array:
        """Compute Y with τ = Y θ for the measured joints, `(samples, measured, parameters)`."""
        self._refuse_redundant()
        motion = self.complete(q, dq, ddq)
        dynamics = self.robot.dynamics if model is None else model.dynamics
        Y = dynamics.torque_regressor(motion.q, motion.dq, motion.ddq)
        return np.asarray(np.swapaxes(self.reduction(motion.q), 1, 2) @ Y)

    def inverse_dynamics(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, model: Model) -> Array:
        """Compute the torques of the measured joints, `(samples, measured)`; NaN at poses that no loop reaches."""
        self._refuse_redundant()
        motion = self.complete(q, dq, ddq)
        tau = np.einsum("tnk,tn->tk", self.reduction(motion.q), model.torque(motion.q, motion.dq, motion.ddq))
        return np.where(motion.usable[:, None], tau, np.nan)

    def _refuse_redundant(self) -> None:
        if self.redundant:
            raise LogError(
                f"{self.robot.name}: {len(self.measured)} joints drive {self.mobility} degrees of freedom, so their "
                "torques are not determined by the motion; name as many joints as degrees of freedom."
            )


def structure_of(robot: Robot) -> LoopStructure:
    """Return the structure of the loops of a `robot`, computed once."""
    known: dict[object, Any] = robot.dynamics.cache
    if "loops" not in known:
        known["loops"] = LoopStructure(robot)
    out: LoopStructure = known["loops"]
    return out


def _times(M: Array, x: Array) -> Array:
    return np.asarray(np.einsum("trk,tk->tr", M, x))


# As for trees: speeds and accelerations with effects as large as gravity on one metre [rad/s, rad/s²].
_SPEED, _ACCELERATION = 3.0, 10.0
# Friction terms differ only at low speed. With terms, a third of the states is therefore slow: their speeds are _SPEED
# times 10 to a power in this range.
_SLOW_DECADES = (-3.0, 0.0)


def reduced_observation(dynamics: Dynamics, seed: int, count: int) -> Array:
    """Compute Nᵀ Y at random states, `(rows, parameters)`; N spans the velocities that keep the loops closed.

    The rows exclude joints without a usable torque.

    Args:
        dynamics: Physics of the open tree.
        seed: Seed of the states.
        count: Number of states.
    """
    robot = dynamics.robot
    structure = structure_of(robot)
    rng = np.random.default_rng([seed, 2])
    q = structure.random_poses(count, seed)
    N = structure.tangents(q)
    if not N.shape[2]:
        raise StructureError(f"{robot.name}: its loops leave no degree of freedom; correct their frames.")
    # Scaled tangents: a slide of the length of the longest link counts as one radian.
    V = N * structure.unit[:, None]
    dq = np.einsum("tnk,tk->tn", V, rng.uniform(-_SPEED, _SPEED, (count, N.shape[2])))
    if len(dynamics.terms):
        dq[: count // 3] *= 10.0 ** rng.uniform(*_SLOW_DECADES, (count // 3, 1))
    own = np.einsum("tnk,tk->tn", V, rng.uniform(-_ACCELERATION, _ACCELERATION, (count, N.shape[2])))
    ddq = own + structure.accelerations(q, dq)
    past = dynamics.terms.random_history(np.random.default_rng([seed, 1]), count)
    Y = dynamics.torque_regressor(q, dq, ddq, history=past)
    unused = ~np.array(robot.torque_used)
    if unused.any():
        # Combinations of the rows without the unknown torques.
        _, s, v = np.linalg.svd(V[:, unused], full_matrices=True)
        rank = int(np.median(np.sum(s > 1e-9, axis=1)))
        V = V @ np.swapaxes(v[:, rank:], 1, 2)
    return np.asarray((np.swapaxes(V, 1, 2) @ Y).reshape(-1, Y.shape[-1]))
