"""Torque between two samples (held, sampled or averaged) and the resulting shift in time.

A controller holds its command until the next sample, so the torque acts half a sample later than its stamp. A sensor
logs the value at its stamp, or the mean over the preceding interval, which is half a sample old. Up to second order in
the sampling interval, these cases only differ by a shift of half a sample.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.ground.arrays import Array

TorqueBetween = Literal["auto", "held", "sampled", "averaged"]
# Delay of the logged torque behind the acting one [samples].
LAG_SAMPLES = {"held": -0.5, "sampled": 0.0, "averaged": 0.5}


def as_torque_between(name: str) -> TorqueBetween:
    """Check that `name` is one of `TorqueBetween`."""
    if name not in get_args(TorqueBetween):
        raise UnknownNameError("torque between samples", name, get_args(TorqueBetween))
    return cast(TorqueBetween, name)


def lag_s(name: str, period: float) -> float:
    """Return the delay of the logged torque behind the acting one [s]; 0 for "auto".

    Args:
        name: One of `TorqueBetween`.
        period: Time between samples [s].
    """
    return LAG_SAMPLES.get(name, 0.0) * period


def interval_means(t: Array, tau: Array, name: str, delay: float = 0.0) -> Array:
    """Compute the mean of the acting torque over each sampling interval, which a simulation holds between samples.

    Args:
        t: Time stamps [s].
        tau: Logged torques [N m or N], shape (samples, joints).
        name: One of `TorqueBetween`; "auto" counts as held.
        delay: Further delay of the logged torques behind the positions [s].

    Returns:
        A row for the interval that begins at each sample; the last row is the logged torque.
    """
    steps = np.diff(t)[:, None]
    over = {"sampled": 0.5 * (tau[1:] + tau[:-1]), "averaged": tau[1:]}.get(name, tau[:-1])
    if delay:
        # The impulse since the first stamp is evaluated `delay` later; the torque is constant beyond both ends.
        impulse = np.concatenate([np.zeros((1, tau.shape[1])), np.cumsum(steps * over, axis=0)])
        margin = abs(delay) + steps[0, 0]
        clock = np.concatenate([[t[0] - margin], t, [t[-1] + margin]])
        ends = np.vstack([-margin * over[0], impulse, impulse[-1] + margin * over[-1]])
        late = np.column_stack([np.interp(t + delay, clock, column) for column in ends.T])
        over = np.diff(late, axis=0) / steps
    return np.concatenate([over, tau[-1:]])
