"""How the torque of a log runs between two samples, and by how much that shifts it in time.

A controller holds its command until the next sample: the torque acts half a sample later than its stamp. A sensor may
log the value at its stamp, or the mean over the interval that ends there, which is half a sample old. Up to terms of
second order in the sampling interval that is all the difference: each is a torque that was sampled, shifted by half a
sample or not at all.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from steelyard.errors import UnknownNameError

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
