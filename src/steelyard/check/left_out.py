"""`LeftOutFits`: parameters fitted to a log, as it is or corrected, and judged by the blocks that a fit leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import BlockGrams, Mask, Weighted
from steelyard.regression.block_rows import BLOCKS, nonnegative
from steelyard.regression.rows import Rows
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


def gravity_regressor(robot: Robot, q: Array) -> Array:
    """Compute the columns of the links per unit of gravity along each axis of the base.

    τ_j = ∂U/∂q_j with U = −g·Σ m p, so the columns are −∂(m p)/∂q_j over the links that joint j carries.

    Args:
        robot: Robot; its own gravity does not matter.
        q: Positions [rad, m], shape (samples, joints).

    Returns:
        Shape (samples, joints, 3, inertial parameters); masses and first moments have entries.
    """
    rotations, origins = link_poses(robot, q)
    out = np.zeros((*q.shape, 3, robot.inertial_count))
    for index, link in enumerate(robot.links):
        # ∂(m p)/∂(m, mx, my, mz): the place of the body's frame, and its axes.
        place = origins[:, index] + rotations[:, index] @ link.frame_translation
        axes = rotations[:, index] @ link.frame_rotation
        moments = np.concatenate([place[:, :, None], axes], axis=2)
        masses = np.array([1.0, 0.0, 0.0, 0.0])
        columns = slice(10 * index, 10 * index + 4)
        for above in robot.ancestors(index):
            carrier = robot.links[above]
            axis = rotations[:, above] @ carrier.axis
            if carrier.kind == "prismatic":
                slope = axis[:, :, None] * masses
            else:
                arms = moments - masses * origins[:, above, :, None]
                slope = np.cross(axis[:, :, None], arms, axis=1)
            out[:, carrier.coordinate, :, columns] -= carrier.ratio * slope
    return out


# Rows that are looked at, and parts of every left-out block, between which errors are compared.
_ROWS, _PARTS = 600, 4
PARTS = BLOCKS * _PARTS


@dataclass(frozen=True, eq=False)
class Channels:
    """Rows of a log's signals.

    Attributes:
        q: Positions [rad, m], shape (rows, joints).
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
        tau: Torques through the filter of the fit [N m, N].
        moving: Whether a joint moves; where it stands, dry friction holds any torque.
        gravity: Gravity in the base frame [m/s²].
        clock: By how much faster the links move than the time stamps say.
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    moving: Mask
    gravity: Array
    clock: float = 1.0

    def with_signals(self, **signals: Any) -> Channels:
        """Replace `signals`."""
        return replace(self, **signals)

    def has_states_of(self, other: Channels) -> bool:
        """Whether only the torques differ from those of an `other`."""
        return all(getattr(self, name) is getattr(other, name) for name in ("q", "dq", "ddq", "gravity", "clock"))


class LeftOutFits:
    """Weighted least squares of parameters, with friction that takes energy, on rows of one log.

    Args:
        evidence: Prepared rows of the log.
        channels: Its signals; None: as logged.
        every_link: Whether all parameters of the links are fitted, and not base parameters. Which of them show depends
            on gravity.
    """

    def __init__(self, evidence: Evidence, channels: Channels | None = None, every_link: bool = False) -> None:
        self.evidence, self.robot, base = evidence, evidence.robot, evidence.usual
        self.every_link = every_link
        self.columns = tuple(range(len(base.parameters))) if every_link else tuple(base.independent)
        self.bounded = nonnegative(base)
        if every_link:
            self.bounded = np.concatenate([np.zeros(self.robot.inertial_count, dtype=bool), base.terms.lower == 0.0])
        self.traced = Rows.cached(base.structure.dynamics, self.columns)
        self.equations = self.traced.equations
        self._known: dict[tuple[bytes, ...], Sequence[Array]] = {}
        self.channels = self._as_logged() if channels is None else channels
        self.tables = self._tables(self.channels)
        self.whole = self.sums(self.channels, 1)
        self.weights = self.whole.weighted(self._every).weights
        # Dry friction holds any torque on a joint that does not move.
        moves = [np.ptp(self.channels.q[:, j]) > STILL[self.robot.joints[j].kind] for j in evidence.joints]
        self.live = np.array([m and gram[-1, -1] > 0.0 for m, gram in zip(moves, self.whole.totals, strict=True)])
        self.weights = np.where(self.live, self.weights, 0.0)

    def _as_logged(self) -> Channels:
        rows = self.evidence.thinned(_ROWS)
        evidence = self.evidence
        q, dq, ddq, tau = (np.ascontiguousarray(x[rows]) for x in (evidence.q, evidence.dq, evidence.ddq, evidence.tau))
        return Channels(q, dq, ddq, tau, evidence.moving[rows], np.array(self.robot.gravity, dtype=float))

    @property
    def _every(self) -> Mask:
        return np.ones(len(self.columns), dtype=bool)

    def _tables(self, at: Channels) -> list[Array]:
        """[A y] of every equation at some states."""
        tables = [np.array(table) for table in self._evaluated(at)]
        stated = np.asarray(self.robot.gravity, dtype=float)
        change = at.gravity - stated
        if at.clock == 1.0 and not np.any(change):
            return tables
        same = at.q is self.channels.q
        pulls = self.pulls if same else np.moveaxis(gravity_regressor(self.robot, at.q), 2, -1)
        for joint, table, e in zip(self.evidence.joints, tables, self.equations, strict=True):
            links = np.flatnonzero(e.columns < self.robot.inertial_count)
            pull = pulls[:, joint][:, e.columns[links]]
            # Inertial torques grow with the square of the clock. Friction keeps its shape over the logged speed: a
            # wrong clock must not pass for another rounding of it.
            weight = pull @ stated
            table[:, links] = at.clock**2 * (table[:, links] - weight) + weight + pull @ change
        return tables

    @cached_property
    def pulls(self) -> Array:
        """Columns of the links per unit of gravity at `channels`, shape (rows, joints, inertial parameters, 3)."""
        return np.moveaxis(gravity_regressor(self.robot, self.channels.q), 2, -1)

    def _evaluated(self, at: Channels) -> Sequence[Array]:
        """[A y] of every equation at the positions, velocities and accelerations; the first and the last are kept."""
        key = tuple(getattr(at, name).tobytes() for name in ("q", "dq", "ddq"))
        if key in self._known:
            return self._known[key]
        inputs = {"q": at.q, "dq": at.dq, "ddq": at.ddq, "tau": at.tau}
        out = np.array(self.traced.evaluator({name: inputs[name] for name in self.traced.function.inputs}))
        out = out.reshape(len(at.q), -1)
        parts = [out[:, first : first + e.width] for first, e in zip(self.traced.firsts, self.equations, strict=True)]
        for old in list(self._known)[1:]:
            del self._known[old]
        self._known[key] = parts
        return parts

    def table_of(self, joint: int, at: Channels) -> Array:
        """[A y] of a joint's equation at some states.

        Args:
            joint: Number of the joint.
            at: The states.
        """
        return self._evaluated(at)[self.evidence.joints.index(joint)]

    def rows(self, at: Channels) -> list[Array]:
        """[A y] of every equation at corrected signals.

        Args:
            at: Signals of the same rows.
        """
        tables = self.tables if at.has_states_of(self.channels) else self._tables(at)
        parts = zip(self.evidence.joints, tables, strict=True)
        # Rows of standstill become zero, so that blocks of time stay the same for all joints.
        return [np.column_stack([t[:, :-1], at.tau[:, j]]) * at.moving[:, j, None] for j, t in parts]

    def sums(self, at: Channels, blocks: int = PARTS) -> BlockGrams:
        """Add up the rows of corrected signals.

        Args:
            at: Signals of the same rows.
            blocks: Number of blocks of time.
        """
        return self.add_up(self.rows(at), blocks)

    def add_up(self, tables: Sequence[Array], blocks: int) -> BlockGrams:
        """Add up rows.

        Args:
            tables: [A y] of every equation.
            blocks: Number of blocks of time.
        """
        out = self.empty_sums(blocks)
        count = len(tables[0])
        labels = np.arange(count, dtype=np.int64) * blocks // count
        for e, table in enumerate(tables):
            out.add(e, table, np.empty((count, 0)), labels)
        return out

    def empty_sums(self, blocks: int) -> BlockGrams:
        """Return sums of no rows.

        Args:
            blocks: Number of blocks of time.
        """
        own = [0] * len(self.equations)
        return BlockGrams(self.equations, self.columns, own, blocks, self.bounded)

    def parameters(self, sums: BlockGrams, weights: Array) -> Array:
        """Fit the parameters to all rows.

        Args:
            sums: Sums of the rows.
            weights: 1/σ of every equation.
        """
        return np.asarray(Weighted(sums, weights).whole(self._every).x[0])

    def in_sample(self, sums: BlockGrams, weights: Array) -> Array:
        """Compute the squared error of every equation on the rows that are fitted.

        Args:
            sums: Sums of the rows, in one block.
            weights: 1/σ of every equation.
        """
        x = np.tile(self.parameters(sums, weights), (2, 1))[:, :, None]
        return np.array([sums.left_out_of(e, x)[0, 0] for e in range(len(weights))])

    def left_out(self, sums: BlockGrams, weights: Array, free: bool = False) -> Array:
        """Compute the squared errors on the parts of the blocks that a fit leaves out, shape (parts, equations).

        Args:
            sums: Sums of the rows, part by part.
            weights: 1/σ of every equation.
            free: Whether friction may be negative.
        """
        blocks = self.empty_sums(BLOCKS)
        blocks.grams = [g.reshape(BLOCKS, _PARTS, *g.shape[1:]).sum(axis=1) for g in sums.grams]
        fitted = Weighted(blocks, weights).fit(self._every)
        x = fitted.free if free else fitted.x
        x = np.concatenate([x[:1], np.repeat(x[1:], _PARTS, axis=0)])[:, :, None]
        return np.hstack([sums.left_out_of(e, x) for e in range(len(weights))])

    @cached_property
    def parts(self) -> BlockGrams:
        """Sums of the rows as they are, part by part."""
        return self.sums(self.channels)

    @cached_property
    def together(self) -> Array:
        """Squared errors on left-out parts of one fit to all joints, shape (parts, equations)."""
        return self.left_out(self.parts, self.weights)

    @cached_property
    def alone(self) -> Array:
        """Squared errors on left-out parts of a fit to each joint alone, shape (parts, equations)."""
        out = np.empty_like(self.together)
        for e in range(len(self.equations)):
            out[:, e] = self.left_out(self.parts, self.weights * (np.arange(len(self.equations)) == e))[:, e]
        return out

    @property
    def floors(self) -> dict[str, float]:
        """Torque error on left-out parts, by joint (root mean square) [N m, N]: that of the better of both fits."""
        rows = np.array([self.channels.moving[:, j].sum() for j in self.evidence.joints])
        squares = np.minimum(self.together.sum(axis=0), self.alone.sum(axis=0)) / np.maximum(rows, 1)
        return {
            self.robot.joint_names[j]: float(x) for j, x in zip(self.evidence.joints, np.sqrt(squares), strict=True)
        }
