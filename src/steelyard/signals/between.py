"""How the torque of a log runs between two samples, and by how much that shifts it in time.

A controller holds its command until the next sample: the torque acts half a sample later than its stamp. A sensor may
log the value at its stamp, or the mean over the interval that ends there, which is half a sample old. Up to terms of
second order in the sampling interval that is all the difference: each is a torque that was sampled, shifted by half a
sample or not at all.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.ground.arrays import Array

TorqueBetween = Literal["auto", "held", "sampled", "averaged"]
# How far a logged torque lags behind the one that acts, in samples.
LAG_SAMPLES = {"held": -0.5, "sampled": 0.0, "averaged": 0.5}


def as_torque_between(name: str) -> TorqueBetween:
    """The way of the torque between samples that is called `name`; any other word is refused."""
    if name not in get_args(TorqueBetween):
        raise UnknownNameError("torque between samples", name, get_args(TorqueBetween))
    return cast(TorqueBetween, name)


def lag_s(name: str, period: float) -> float:
    """How far a logged torque lags behind the one that acts [s]; 0 where nothing was chosen.

    Args:
        name: One of `TorqueBetween`.
        period: Time between samples [s].
    """
    return LAG_SAMPLES.get(name, 0.0) * period


def interval_means(t: Array, tau: Array, name: str, delay: float = 0.0) -> Array:
    """The mean of the torque that acted over each sampling interval: what a simulation holds from sample to sample.

    Args:
        t: Stamps [s].
        tau: Logged torques, `(samples, joints)`.
        name: One of `TorqueBetween`; "auto" counts as held.
        delay: How far the logged torques lag behind the positions, beside that [s].

    Returns:
        A row for the interval that begins at each sample; the last is the logged torque as it stands.
    """
    steps = np.diff(t)[:, None]
    over = {"sampled": 0.5 * (tau[1:] + tau[:-1]), "averaged": tau[1:]}.get(name, tau[:-1])
    if delay:
        # The impulse since the first stamp, read `delay` later; beyond the ends the torque goes on as it was.
        impulse = np.concatenate([np.zeros((1, tau.shape[1])), np.cumsum(steps * over, axis=0)])
        margin = abs(delay) + steps[0, 0]
        clock = np.concatenate([[t[0] - margin], t, [t[-1] + margin]])
        ends = np.vstack([-margin * over[0], impulse, impulse[-1] + margin * over[-1]])
        late = np.column_stack([np.interp(t + delay, clock, column) for column in ends.T])
        over = np.diff(late, axis=0) / steps
    return np.concatenate([over, tau[-1:]])
