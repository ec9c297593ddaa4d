"""Choice of the velocity of each joint: the logged one, or the derivative of the position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass, motion_band

# Band for the comparison of both velocities, relative to the band of the motion; noise is negligible there.
_COMPARED = 2.0
# Limit of the gain error of a logged velocity, and of its remaining error relative to its standard deviation.
_AGREES = 0.1
# Limit of its noise relative to that of the derivative; without noise both are equal.
_AS_QUIET = 1.1
# Number of samples to examine: their standard deviation has an error of 1 %.
_ENOUGH = 10_000


@dataclass(frozen=True)
class VelocityPlan:
    """The source of every joint's velocity.

    Attributes:
        measured: Whether to use the logged velocity of each joint.
        delay_s: Delay of each joint's logged velocity, which is corrected [s].
    """

    measured: tuple[bool, ...]
    delay_s: tuple[float, ...]

    @classmethod
    def uniform(cls, joints: int, measured: bool) -> VelocityPlan:
        """Use one source for all joints, without a delay.

        Args:
            joints: Number of joints.
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
        """List the joints (from 0) with a delayed logged velocity, if `shortest` [s] or more."""
        return {
            k: d for k, (m, d) in enumerate(zip(self.measured, self.delay_s, strict=True)) if m and abs(d) > shortest
        }

    def merge(self, measured: Array, differentiated: Array, period: float) -> Array:
        """Join the columns of both sources.

        Args:
            measured: Smoothed logged velocity [rad/s, m/s], shape (samples, joints).
            differentiated: Derivative of the smoothed position, of the same shape.
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
    """Comparison of the logged velocity with the derivative in one piece of a log, joint by joint."""

    weight: Array  # sum of squares of the derivative
    gain: Array
    delay: Array  # s
    misfit: Array  # relative to the derivative's standard deviation
    quieter: Array  # noise of the logged velocity over that of the derivative


def plan_velocity(pieces: Sequence[tuple[Array, Array, float]]) -> VelocityPlan:
    """Choose the source of every joint's velocity by the logs.

    The logged velocity is compared with the derivative of the position below twice the band of the motion. Least
    squares on the derivative and its slope gives its gain and delay. It is used if its gain is one, the remaining error
    is small, and its noise is below that of the derivative.

    Args:
        pieces: Logged positions [rad, m] and velocities [rad/s, m/s], shape (samples, joints), and the period [s].
    """
    joints = pieces[0][0].shape[1]
    evidence = [e for piece in pieces if (e := _evidence(*piece)) is not None]
    if not evidence:
        return VelocityPlan.uniform(joints, False)
    weight = np.array([e.weight for e in evidence])
    total = np.maximum(weight.sum(axis=0), 1e-300)

    def mean(name: str) -> Array:
        return np.asarray((weight * np.array([getattr(e, name) for e in evidence])).sum(axis=0) / total)

    moves = total > 1e-6 * total.max()
    good = (np.abs(mean("gain") - 1.0) < _AGREES) & (mean("misfit") < _AGREES) & (mean("quieter") < _AS_QUIET)
    # A joint that hardly moves has no evidence, so it follows the other joints.
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
        residual = measured[inner, k] - columns @ (gain, rate)
        out[:2, k] = gain, -rate / gain if gain else 0.0
        out[2, k] = np.std(residual) / max(float(np.std(v[inner, k])), 1e-300)
        noise = [float(np.std(x[inner, k] - y[inner, k])) for x, y in ((dq, measured), (slope, v))]
        out[3, k] = noise[0] / max(noise[1], 1e-12)
    return _Evidence(np.sum(v[inner] ** 2, axis=0), *out)
