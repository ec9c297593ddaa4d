"""`ModelledMotion`: stretches of logs with the model torque, sampled as the columns require."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.assumptions.placement import Placements
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.regression.block_rows import thin
from steelyard.regression.observe import with_history
from steelyard.signals.prepare import Motion

# A column by joint: torques along `ModelledMotion.dense` or `sparse`.
JointTorques = dict[int, Array]
# Samples per period of the cut-off for smooth signals: the motion and rigid-body torques.
_SMOOTH = 4.0
# Relative step of central differences; truncation (step²) and rounding (1e-16 / step) errors are below 1e-9.
_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of several motions, one after the other.

    Attributes:
        motions: The motions.
    """

    motions: tuple[Motion, ...]

    @cached_property
    def q(self) -> Array:
        return np.concatenate([m.q for m in self.motions])

    @cached_property
    def dq(self) -> Array:
        return np.concatenate([m.dq for m in self.motions])

    @cached_property
    def ddq(self) -> Array:
        return np.concatenate([m.ddq for m in self.motions])

    @cached_property
    def history(self) -> Array | None:
        return (
            None
            if (histories := [m.history for m in self.motions if m.history is not None]) == []
            else np.vstack(histories)
        )

    def part_by_part(self, change: Callable[[Array, Motion], Array], x: Array) -> Array:
        """Change signals motion by motion.

        Args:
            change: Function that converts a motion's samples to rows.
            x: Signals of all samples, shape (samples, signals).
        """
        ends = np.cumsum([len(m.t) for m in self.motions])[:-1]
        return np.concatenate([change(part, m) for part, m in zip(np.split(x, ends), self.motions, strict=True)])

    def filtered(self, x: Array) -> Array:
        """Filter signals like the equations and return their rows.

        Args:
            x: Signals of all samples, shape (samples, signals).
        """
        return self.part_by_part(lambda part, m: m.filter(part, m.keep), x)


@dataclass(frozen=True, eq=False)
class ModelledMotion:
    """Stretches of logs with the model torque.

    Attributes:
        motions: Prepared motions with their rows (`keep`) and filters.
        model: Fitted model.
    """

    motions: Sequence[Motion]
    model: Model

    @cached_property
    def dense(self) -> Samples:
        """Motions with four samples per row, for torques that jump."""
        return Samples(tuple(self._thinned(m) for m in self.motions))

    def _thinned(self, motion: Motion) -> Motion:
        fewer = thin(motion)
        if motion.history is None:
            return with_history(self.model.dynamics, fewer, self.model)
        # The hysteresis state was computed along all samples.
        every = round(fewer.filter.period / motion.filter.period)
        first = motion.keep.indices(len(motion.t))[0] % every
        return replace(fewer, history=motion.history[first::every])

    @cached_property
    def sparse(self) -> Samples:
        """Motions with one sample per row if that is enough for smooth signals."""
        return Samples(tuple(map(_fewer, self.dense.motions)))

    @cached_property
    def torque(self) -> Array:
        """Model torque along `dense`, shape (samples, joints)."""
        return self.of_parameters(self.model.theta)

    @cached_property
    def friction(self) -> Array:
        """Friction torque along `dense`."""
        return self.of_parameters(self.model.theta - self._frictionless)

    @cached_property
    def frictionless_torque(self) -> Array:
        """Torque without friction, along `dense`.

        Columns of delays and smoothing exclude friction, because its shape at reversals is only approximate.
        """
        return self.torque - self.friction

    @cached_property
    def _frictionless(self) -> Array:
        """Parameters of links and of conservative terms; zero for friction."""
        theta, links = np.array(self.model.theta), self.model.robot.inertial_count
        theta[links:] *= [not dry for dry in self.model.terms.per_parameter(lambda term, _: term.dissipative)]
        return theta

    def of_parameters(self, theta: Array) -> Array:
        """Compute the torque of other parameters along `dense`.

        Args:
            theta: Ten parameters per link, then those of the terms.
        """
        m = self.dense
        return self.model.dynamics.inverse_dynamics(m.q, m.dq, m.ddq, theta, m.history)

    @cached_property
    def placements(self) -> Placements:
        """Rigid-body quantities along `sparse`."""
        m, robot = self.sparse, self.model.robot
        return Placements(robot, m.q, m.dq, m.ddq, self.model.theta[: robot.inertial_count])

    def slope(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Differentiate the torque without friction along `sparse` with respect to a change of the motion.

        The error of the central differences is about 1e-9 of the torque. Friction is excluded: its own parameters
        absorb any scale, and its shape at reversals is only approximate.

        Args:
            q: Change of the positions, shape (samples, joints) or (joints,).
            dq: Change of the velocities.
            ddq: Change of the accelerations.
        """
        m, theta = self.sparse, self._frictionless
        ends = [
            self.model.dynamics.inverse_dynamics(m.q + s * q, m.dq + s * dq, m.ddq + s * ddq, theta, m.history)
            for s in (_STEP, -_STEP)
        ]
        return np.asarray((ends[0] - ends[1]) / (2.0 * _STEP))


def _fewer(dense: Motion) -> Motion:
    """Thin a motion to the samples that smooth signals need; its rows are among them."""
    start, stop, step = dense.keep.indices(len(dense.t))
    most = 1.0 / (_SMOOTH * dense.filter.cutoff_hz * dense.filter.period)
    every = next((k for k in range(step, 1, -1) if step % k == 0 and k <= most), 1)
    first = start % every
    states = {name: getattr(dense, name)[first::every] for name in ("t", "q", "dq", "ddq", "tau")}
    keep = slice(start // every, start // every + (stop - start - 1) // every + 1, step // every)
    low_pass = replace(dense.filter, period=every * dense.filter.period)
    past = None if dense.history is None else dense.history[first::every]
    return replace(dense, **states, history=past, filter=low_pass, keep=keep)


def all_joints(torque: Array) -> JointTorques:
    """Return a column of all joints.

    Args:
        torque: Torques, shape (samples, joints).
    """
    return {j: torque[:, j] for j in range(torque.shape[1])}
