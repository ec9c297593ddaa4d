"""Change of friction during a log, such as by warming up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

_BLOCKS = 12


@short_repr
@dataclass(frozen=True, eq=False)
class FrictionDrift:
    """Change of dry friction from the first to the last sample.

    Attributes:
        joints: Names of the joints.
        change: Change of each joint's dry friction [N m or N].
        error: Standard errors of the changes.
    """

    joints: tuple[str, ...]
    change: Array
    error: Array

    @property
    def significant(self) -> tuple[bool, ...]:
        """Whether each change exceeds three standard errors."""
        return tuple(bool(abs(c) > 3.0 * e) for c, e in zip(self.change, self.error, strict=True))


def friction_drift(log: Log, model: Model, preparation: Preparation | None = None) -> FrictionDrift:
    """Fit a linear change over time to the residual torque in the direction of motion.

    The standard error follows from the scatter of blocks of time.

    Args:
        log: Log with torques.
        model: Model of the torques.
        preparation: Preparation of the signals; None for the default one.
    """
    t, along, wide = [], [], []
    for motion in Study.of(model.robot, log, model.terms, preparation).motions():
        predicted = model.torque(motion.q, motion.dq, motion.ddq, motion.filter.period)
        rest = motion.filter(motion.tau - predicted)[motion.keep]
        sign = motion.filter(np.tanh(motion.dq / 0.02))[motion.keep]
        t.append(motion.t[motion.keep])
        along.append(rest * sign)
        wide.append(sign**2)
    change, error = drift_of(np.concatenate(t), np.concatenate(along), np.concatenate(wide))
    return FrictionDrift(log.joints, change, error)


def drift_of(time: Array, along: Array, weight: Array) -> tuple[Array, Array]:
    """Fit a line to the means of `along`/`weight` in blocks of time; return the change and its standard error.

    Args:
        time: Times [s], shape (rows,).
        along: Residual times direction of motion, shape (rows, joints).
        weight: Square of the direction of motion, shape (rows, joints).
    """
    edges = np.linspace(time[0], time[-1], _BLOCKS + 1)
    block = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, _BLOCKS - 1)
    total = np.array([np.bincount(block, w, _BLOCKS) for w in along.T])
    size = np.array([np.bincount(block, w, _BLOCKS) for w in weight.T])
    level = total / np.maximum(size, 1e-12)
    phase = (np.arange(_BLOCKS) + 0.5) / _BLOCKS - 0.5
    slope = level @ phase / (phase @ phase)
    residual = level - level.mean(axis=1, keepdims=True) - slope[:, None] * phase
    error = np.sqrt(np.sum(residual**2, axis=1) / (_BLOCKS - 2) / (phase @ phase))
    return np.asarray(slope), np.asarray(error)
