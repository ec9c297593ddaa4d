"""`follow_branch`: poses of a mechanism along the positions of its measured joints, on one continuous branch.

A continuation solves a few samples (anchors) one after the other, each from its predecessor; their distance adapts to
the curvature of the branch. A batch of Newton steps solves all samples between the anchors from the anchors' tangents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.loops.closure import moved_by
from steelyard.loops.loop_structure import CLOSES

if TYPE_CHECKING:
    from steelyard.loops.mechanism import Mechanism

# Samples per batch.
CHUNK = 8_192
# Steps along a path [rad, or lengths of the longest link]: first size, and smallest size before the path ends.
_FIRST, _SMALLEST, _LARGEST = 0.05, 1e-4, 0.3
# The step is too long for the curvature of the branch if its correction exceeds this share of it.
_BENT = 0.2
# Distance to the next attempt after the end of a branch; a log is not on the branch if all first attempts fail.
_PROBE, _ATTEMPTS = 0.01, 30
_NEWTON = 12
_CONVERGED = 1e-10


@short_repr
@dataclass(frozen=True, eq=False)
class LoopMotion:
    """The motion of all joints of a mechanism.

    Attributes:
        q, dq, ddq: Motion, `(samples, joints)`.
        closed: Samples whose loops close.
        regular: Samples that are not near a singular pose.
        gap: Largest gap of a loop, in lengths of the longest link or rad.
    """

    q: Array
    dq: Array
    ddq: Array
    closed: NDArray[np.bool_]
    regular: NDArray[np.bool_]
    gap: Array

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Samples whose loops close away from singular poses."""
        return self.closed & self.regular


def follow_branch(mechanism: Mechanism, targets: Array, start: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Solve all joints along `targets`; also return flags of samples with a closed pose on the branch.

    Args:
        mechanism: The mechanism.
        targets: Positions of the measured joints, `(samples, measured)`.
        start: Pose of all joints on the branch.
    """
    pose, walker = np.array(start), _Walker(mechanism)
    out = np.repeat(pose[None], len(targets), axis=0)
    good = np.zeros(len(targets), dtype=bool)
    anchors, poses = [], []
    stride, k, failed = _FIRST, 0, 0
    while k < len(targets):
        there, arrived, stride = walker.to(pose, targets[k], stride)
        if arrived:
            pose = there
            anchors.append(k)
            poses.append(pose)
        elif (failed := failed + 1) >= _ATTEMPTS and not anchors:
            break
        k = _reach(mechanism, targets, k, stride if arrived else _PROBE)
    if not anchors:
        out[:] = walker.nearest(out, targets)
        return out, good
    # The iteration of each sample starts from the last anchor pose before it; before the first anchor, from that one.
    owner = np.maximum(np.searchsorted(anchors, np.arange(len(targets)), side="right") - 1, 0)
    base = np.array(poses)
    for first in range(0, len(targets), CHUNK):
        own = slice(first, first + CHUNK)
        out[own], good[own] = walker.between(base, owner[own], targets[own])
    return out, good


def _reach(mechanism: Mechanism, targets: Array, k: int, stride: float) -> int:
    """Return the next sample that is at least `stride` away from sample k."""
    unit = mechanism.structure.unit[mechanism.measured]
    block = 64
    while k + 1 < len(targets):
        some = targets[k + 1 : k + 1 + block]
        far = np.flatnonzero(np.max(np.abs(some - targets[k]) / unit, axis=1) >= stride)
        if far.size:
            # Return the sample before the first one beyond the stride: no sample is farther from its anchor.
            return k + max(int(far[0]), 1)
        if k + 1 + block >= len(targets):
            break
        block *= 2
    return len(targets) if k + 1 >= len(targets) else max(len(targets) - 1, k + 1)


class _Walker:
    """Newton steps of a mechanism.

    Args:
        mechanism: The mechanism.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.m = mechanism
        self.unit = mechanism.structure.unit

    def to(self, pose: Array, target: Array, stride: float) -> tuple[Array, bool, float]:
        """Move from a pose to a target in steps; also return the success, and the next stride."""
        m = self.m
        step_now = stride
        for _ in range(int(4.0 * np.pi / _SMALLEST)):
            distance = target - pose[m.measured]
            size = float(np.max(np.abs(distance) / self.unit[m.measured], initial=0.0))
            share = min(1.0, step_now / size) if size > 0.0 else 1.0
            goal = pose[m.measured] + share * distance
            there, ok = self._step(pose, goal)
            if not ok:
                step_now *= 0.5
                if step_now < _SMALLEST:
                    return pose, False, _FIRST
                continue
            pose = there
            if share == 1.0:
                return pose, True, float(np.clip(2.0 * step_now, _SMALLEST, _LARGEST))
            step_now = min(1.5 * step_now, _LARGEST)
        return pose, False, _FIRST

    def _step(self, pose: Array, goal: Array) -> tuple[Array, bool]:
        guess, size = self._predicted(pose[None], np.zeros(1, dtype=int), goal[None])
        there, length, converged = self._newton(guess, goal[None])
        return there[0], bool(converged[0] and length[0] <= _BENT * size[0] + 1e-6)

    def _predicted(self, base: Array, owner: NDArray[np.int64], targets: Array) -> tuple[Array, Array]:
        """Move poses along their tangents to targets; also return the sizes of the steps."""
        m = self.m
        G = m.reduction(base)[owner]
        move = np.einsum("tnk,tk->tn", G, targets - base[owner][:, m.measured])
        guess = moved_by(m.robot, base[owner], move)
        guess[:, m.measured] = targets
        return guess, np.linalg.norm(move / self.unit, axis=1)

    def _newton(self, q: Array, targets: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Close the loops with the solved joints; also return the displacements, and flags of convergence."""
        m = self.m
        q, first = q.copy(), q
        lengths = np.zeros(len(q))
        converged = np.zeros(len(q), dtype=bool)
        for _ in range(_NEWTON):
            own = np.flatnonzero(~converged)
            if not own.size:
                break
            step = self._correction(q[own])
            size = np.linalg.norm(step, axis=1)
            q[own] = moved_by(m.robot, q[own], step * self.unit)
            lengths[own] += size
            converged[own] = size < _CONVERGED
            if np.any(size > 3.0):  # divergence: these samples return to their start
                q[own[size > 3.0]] = first[own[size > 3.0]]
        gap = np.max(np.abs(m.structure.equations(q)[0]), axis=1, initial=0.0)
        return q, lengths, converged & (gap < CLOSES)

    def _correction(self, q: Array) -> Array:
        """Return a Newton step of all joints, without units; measured joints move only if they are redundant."""
        m = self.m
        phi, J, M = m.split(q)
        out = np.zeros_like(q)
        if not m.redundant:
            out[:, m.solved] = -np.einsum("tir,tr->ti", m.inverse(J)[0], phi)
            return out
        # Noise makes redundant encoders inconsistent: the smallest change of all joints closes the loops.
        u, s, v = np.linalg.svd(np.concatenate([J, M], axis=2), full_matrices=False)
        r = m.structure.rank
        step = np.einsum("tk,tkn->tn", -np.einsum("tki,tk->ti", u[:, :, :r], phi) / s[:, :r], v[:, :r])
        out[:, m.solved], out[:, m.measured] = np.split(step, [len(m.solved)], axis=1)
        return out

    def between(self, base: Array, owner: NDArray[np.int64], targets: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Solve samples near their anchors.

        Args:
            base: Poses of all anchors.
            owner: Anchor of each sample.
            targets: Positions of the measured joints.
        """
        used, place = np.unique(owner, return_inverse=True)
        guess, size = self._predicted(base[used], place, targets)
        out, moved, converged = self._newton(guess, targets)
        # Samples farther away lack an anchor: the branch ends before them.
        apart = np.abs(targets - base[owner][:, self.m.measured]) / self.unit[self.m.measured]
        near = np.max(apart, axis=1, initial=0.0) <= 1.01 * _LARGEST
        return out, converged & near & (moved <= 0.5 * size + 1e-3)

    def nearest(self, q: Array, targets: Array) -> Array:
        """Return poses with the measured joints at their targets and the smallest gap of the loops."""
        q = q.copy()
        q[:, self.m.measured] = targets
        return q
