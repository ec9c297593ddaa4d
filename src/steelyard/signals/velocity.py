"""Where the velocity of each joint comes from: the logged one, or the derivative of the position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass, motion_band

# Both velocities are compared up to this many times the band of the motion, where neither is noise.
_COMPARED = 2.0
# A logged velocity whose gain is off by more, or that differs by more than this part of its standard deviation once
# gain and delay are known, measures something else.
_AGREES = 0.1
# A logged velocity may be noisier than the derivative by this part: where neither has noise, both are the same.
_AS_QUIET = 1.1
# Samples that are looked at: a standard deviation of so many is known to one percent.
_ENOUGH = 10_000


@dataclass(frozen=True)
class VelocityPlan:
    """The source of every joint's velocity.

    Attributes:
        measured: Whether the logged velocity is used, joint by joint.
        delay_s: How late the logged velocity is, joint by joint [s]; it is shifted by that.
    """

    measured: tuple[bool, ...]
    delay_s: tuple[float, ...]

    @classmethod
    def uniform(cls, joints: int, measured: bool) -> VelocityPlan:
        """Use one source for all joints, without a shift in time.

        Args:
            joints: How many joints there are.
            measured: Use the logged velocity.
        """
        return cls((measured,) * joints, (0.0,) * joints)

    @property
    def text(self) -> str:
        """Describe the plan in a few words."""
        if all(self.measured) or not any(self.measured):
            return "measured" if all(self.measured) else "differentiated"
        joints = ", ".join(str(k + 1) for k, m in enumerate(self.measured) if m)
        return f"measured (joints {joints}), else differentiated"

    def late(self, shortest: float) -> dict[int, float]:
        """List the joints (from 0) whose logged velocity is used and late.

        Args:
            shortest: Delays below this [s] do not count.
        """
        return {
            k: d for k, (m, d) in enumerate(zip(self.measured, self.delay_s, strict=True)) if m and abs(d) > shortest
        }

    def merge(self, measured: Array, differentiated: Array, period: float) -> Array:
        """Join the columns of both sources.

        Args:
            measured: Smoothed logged velocity [rad/s, m/s], shape (samples, joints).
            differentiated: Derivative of the smoothed position, beside it.
            period: Time between samples [s].
        """
        out = differentiated.copy()
        t = np.arange(len(out), dtype=float)
        for k, use in enumerate(self.measured):
            if use:
                shift = self.delay_s[k] / period
                out[:, k] = measured[:, k] if shift == 0.0 else np.interp(t + shift, t, measured[:, k])
        return out


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What one piece of a log says about its logged velocity, joint by joint."""

    weight: Array  # sum of squares of the derivative: how much the joint moves
    gain: Array
    delay: Array  # s
    misfit: Array  # of the derivative's standard deviation
    quieter: Array  # noise of the logged velocity over that of the derivative


def plan_velocity(pieces: Sequence[tuple[Array, Array, float]]) -> VelocityPlan:
    """Choose the source of every joint's velocity by what the logs say.

    The logged velocity is compared with the derivative of the position where neither is noise, below twice the band of
    the motion. Least squares on the derivative and its slope gives its gain and its delay. It is used where the gain
    is one, what is left is small, and its noise is smaller than the derivative's.

    Args:
        pieces: Logged positions [rad, m] and velocities [rad/s, m/s], shape (samples, joints), and the period [s].
    """
    joints = pieces[0][0].shape[1]
    found = [e for piece in pieces if (e := _evidence(*piece)) is not None]
    if not found:
        return VelocityPlan.uniform(joints, False)
    weight = np.array([e.weight for e in found])
    total = np.maximum(weight.sum(axis=0), 1e-300)

    def mean(name: str) -> Array:
        return np.asarray((weight * np.array([getattr(e, name) for e in found])).sum(axis=0) / total)

    moves = total > 1e-6 * total.max()
    good = (np.abs(mean("gain") - 1.0) < _AGREES) & (mean("misfit") < _AGREES) & (mean("quieter") < _AS_QUIET)
    # A joint that hardly moves cannot say it; it goes with the others.
    use = np.where(moves, good, bool(np.all(good[moves])) if moves.any() else False)
    delay = np.where(use, mean("delay"), 0.0)
    return VelocityPlan(tuple(use.astype(bool).tolist()), tuple(delay.tolist()))


def _evidence(q: Array, dq: Array, period: float) -> _Evidence | None:
    q, dq = q[:_ENOUGH], dq[:_ENOUGH]
    if len(q) < 32:
        return None
    band = motion_band(q, period)
    if band == 0.0:
        return None
    low = LowPass(min(_COMPARED * band, 0.4 / period), period)
    slope = np.gradient(q, period, axis=0)
    v, measured = low(slope), low(dq)
    edge = min(low.memory, len(q) // 4)
    inner = slice(edge, len(q) - edge)
    a = np.gradient(v, period, axis=0)
    out = np.empty((4, q.shape[1]))
    for k in range(q.shape[1]):
        columns = np.column_stack([v[inner, k], a[inner, k]])
        (gain, rate), *_ = np.linalg.lstsq(columns, measured[inner, k], rcond=None)
        left = measured[inner, k] - columns @ (gain, rate)
        out[:2, k] = gain, -rate / gain if gain else 0.0
        out[2, k] = np.std(left) / max(float(np.std(v[inner, k])), 1e-300)
        noise = [float(np.std(x[inner, k] - y[inner, k])) for x, y in ((dq, measured), (slope, v))]
        out[3, k] = noise[0] / max(noise[1], 1e-12)
    return _Evidence(np.sum(v[inner] ** 2, axis=0), *out)
