"""`ModelledMotion`: stretches of logs beside the model's torque along them, in the density that columns need."""

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

# Samples in a period of the cut-off that hold what is smooth: the motion itself, and torques of rigid bodies.
_SMOOTH = 4.0
# Step of central differences, relative: their error, the square of it, and rounding, 1e-16 over it, are below 1e-9.
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
        return None if (given := [m.history for m in self.motions if m.history is not None]) == [] else np.vstack(given)

    def part_by_part(self, change: Callable[[Array, Motion], Array], x: Array) -> Array:
        """Change signals motion by motion.

        Args:
            change: Makes rows out of a motion's samples.
            x: Signals of all samples, shape (samples, signals).
        """
        ends = np.cumsum([len(m.t) for m in self.motions])[:-1]
        return np.concatenate([change(part, m) for part, m in zip(np.split(x, ends), self.motions, strict=True)])

    def filtered(self, x: Array) -> Array:
        """Low-pass signals as the equations are, and give their rows.

        Args:
            x: Signals of all samples, shape (samples, signals).
        """
        return self.part_by_part(lambda part, m: m.filter(part, m.keep), x)


@dataclass(frozen=True, eq=False)
class ModelledMotion:
    """Stretches of logs, and the model along them.

    Attributes:
        motions: Prepared motions with their rows (`keep`) and filters.
        model: Fitted model.
        spans: First and last instant of the log that each belongs to [s].
    """

    motions: Sequence[Motion]
    model: Model
    spans: Sequence[tuple[float, float]]

    @cached_property
    def dense(self) -> Samples:
        """The motions with four samples from row to row, for torques that jump."""
        return Samples(tuple(self._thinned(m) for m in self.motions))

    def _thinned(self, motion: Motion) -> Motion:
        fewer = thin(motion)
        if motion.history is None:
            return with_history(self.model.dynamics, fewer, self.model)
        # What terms remember was found along all samples.
        every = round(fewer.filter.period / motion.filter.period)
        first = motion.keep.indices(len(motion.t))[0] % every
        return replace(fewer, history=motion.history[first::every])

    @cached_property
    def sparse(self) -> Samples:
        """The motions with a sample at every row, where that holds what is smooth."""
        return Samples(tuple(map(_fewer, self.dense.motions)))

    @cached_property
    def torque(self) -> Array:
        """The model's torque along `dense`, shape (samples, joints)."""
        return self.of_parameters(self.model.theta)

    @cached_property
    def friction(self) -> Array:
        """The part of the torque that friction takes, along `dense`."""
        return self.of_parameters(self.model.theta - self._carried)

    @cached_property
    def carried_torque(self) -> Array:
        """The torque without friction, along `dense`.

        How friction rounds off where a joint reverses is a guess of its terms. What smooths a torque or delays it
        would be estimated from that guess, if friction were in its column.
        """
        return self.torque - self.friction

    @cached_property
    def _carried(self) -> Array:
        """The parameters of links and of terms that take no energy; zero for friction."""
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
        """Rigid bodies along `sparse`."""
        m, robot = self.sparse, self.model.robot
        return Placements(robot, m.q, m.dq, m.ddq, self.model.theta[: robot.inertial_count])

    def slope(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Differentiate the torque without friction along `sparse` by a change of the motion, by central differences.

        In double precision the error is some 1e-9 of the torque's scale, far below any noise. Friction has parameters
        of its own, which take up any scale; its shape at reversals is a guess that must not tell of scales.

        Args:
            q: Change of the positions, shape (samples, joints) or (joints,).
            dq: Change of the velocities.
            ddq: Change of the accelerations.
        """
        m, theta = self.sparse, self._carried
        ends = [
            self.model.dynamics.inverse_dynamics(m.q + s * q, m.dq + s * dq, m.ddq + s * ddq, theta, m.history)
            for s in (_STEP, -_STEP)
        ]
        return np.asarray((ends[0] - ends[1]) / (2.0 * _STEP))

    @cached_property
    def progress(self) -> Array:
        """Where in its log each sample of `dense` lies, from −1/2 to 1/2."""
        parts = zip(self.dense.motions, self.spans, strict=True)
        return np.concatenate([(m.t - a) / max(b - a, 1e-9) - 0.5 for m, (a, b) in parts])


def _fewer(dense: Motion) -> Motion:
    """A motion with as many of its samples as hold what is smooth; its rows are among them."""
    start, stop, step = dense.keep.indices(len(dense.t))
    most = 1.0 / (_SMOOTH * dense.filter.cutoff_hz * dense.filter.period)
    every = next((k for k in range(step, 1, -1) if step % k == 0 and k <= most), 1)
    first = start % every
    states = {name: getattr(dense, name)[first::every] for name in ("t", "q", "dq", "ddq", "tau")}
    keep = slice(start // every, start // every + (stop - start - 1) // every + 1, step // every)
    low_pass = replace(dense.filter, period=every * dense.filter.period)
    past = None if dense.history is None else dense.history[first::every]
    return replace(dense, **states, history=past, filter=low_pass, keep=keep)
