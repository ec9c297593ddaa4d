"""`Drives`: the law of the joints' drives, τ = sat(kp (q* − q) − kd q̇ + τ_ff), delayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, SteelyardError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr

Delayed = Literal["torque", "goal"]


@short_repr
@dataclass(frozen=True, eq=False)
class Drives:
    """Drives of all joints: τ(t) = sat(kp (q* − q) − kd q̇ + τ_ff).

    Attributes:
        kp: Stiffness of each joint [N m/rad, N/m].
        kd: Damping of each joint [N m s/rad, N s/m].
        limit: Largest torque [N m, N]; infinite without one.
        delay: Delay [s].
        delayed: Delayed signal: the whole "torque", or only the "goal" (and the feed-forward).
    """

    kp: Array
    kd: Array
    limit: Array
    delay: float = 0.0
    delayed: Delayed = "torque"

    def __post_init__(self) -> None:
        for name in ("kp", "kd", "limit"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name), dtype=float)))

    @classmethod
    def of(
        cls, joints: tuple[str, ...], kp: ArrayLike | None, kd: ArrayLike | None, limit: ArrayLike | None,
        delay: float, delayed: str,
    ) -> Drives:  # fmt: skip
        """Create drives and check their numbers.

        Args:
            joints: Names of the joints.
            kp: Stiffness, one number or one per joint [N m/rad, N/m].
            kd: Damping, one number or one per joint [N m s/rad, N s/m].
            limit: Largest torque, one number or one per joint [N m, N]; None: unlimited.
            delay: Delay, or its first guess [s].
            delayed: "torque" or "goal".
        """
        if kp is None or kd is None:
            missing = " and ".join(name for name, x in (("kp", kp), ("kd", kd)) if x is None)
            raise SteelyardError(
                f"The gains {missing} of the drives are missing; state them (--kp, --kd, one number or one per joint), "
                "and add gains to --fit if they are only rough."
            )
        if delayed not in ("torque", "goal"):
            raise SteelyardError(f'delayed is "torque" or "goal", not "{delayed}".')
        if not (np.isfinite(delay) and 0.0 <= delay <= 1.0):
            raise SteelyardError(f"The delay is {delay:g} s; state it in seconds, from 0 to 1.")
        gains = [_per_joint(name, x, joints) for name, x in (("kp", kp), ("kd", kd))]
        bound = _per_joint("limit", np.inf if limit is None else limit, joints)
        if not np.all(np.isfinite(gains[0])) or not np.any(gains[0] > 0.0):
            raise SteelyardError(
                "kp is zero or not finite, so the goals have no effect; give the stiffness in N m/rad."
            )
        if np.any(bound <= 0.0):
            raise SteelyardError("A torque limit is zero or negative; state positive limits in N m, or none.")
        return cls(gains[0], gains[1], bound, float(delay), "torque" if delayed == "torque" else "goal")

    def torque(self, goal: Array, q: Array, dq: Array, feed_forward: Array) -> Array:
        """Compute the torque without the delay.

        Args:
            goal: Goal positions [rad, m].
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
            feed_forward: Torques of the command [N m, N].
        """
        return np.clip(self.kp * (goal - q) - self.kd * dq + feed_forward, -self.limit, self.limit)


def _per_joint(name: str, value: ArrayLike, joints: tuple[str, ...]) -> Array:
    x = np.asarray(value, dtype=float)
    if x.ndim > 1 or x.size not in (1, len(joints)):
        raise ShapeError(f"{name} has {x.size} values; give one number, or one for each of the {len(joints)} joints.")
    x = np.broadcast_to(x.ravel() if x.ndim else x, (len(joints),)).copy()
    if np.any(np.isnan(x)) or np.any(x < 0.0):
        k = int(np.flatnonzero(np.isnan(x) | (x < 0.0))[0])
        raise SteelyardError(f"{name} of joint '{joints[k]}' is {x[k]:g}; it must not be negative.")
    return x
