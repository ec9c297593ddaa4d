"""`DriveRounds`: friction, offset and torque gain of every joint beyond the model's, every two minutes; and its warmth.

A round's Gram matrices are solved for four numbers per joint beside any load: friction at the joint's usual speed (dry
and viscous friction together, which every motion shows), its slope over velocity, the offset of its torque and the
error of its gain. Warmth is the share of time that a joint has moved, low-passed over ten minutes to an hour and a
half, within which gears and motors warm up and cool down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.watch.evidence import learnt
from steelyard.watch.parts import PartState
from steelyard.watch.windows import DIRECTION, LOOK_S, OFFSET, SPEED, Looks

# What is learnt of each joint, in this order.
CHANNELS = ("friction", "viscous", "offset", "gain")
# In parts of a day: the length of a round, and the time constants of warmth.
_ROUND, _WARMTH = 1.0 / 720.0, (1.0 / 144.0, 1.0 / 48.0, 1.0 / 16.0)
# A joint must have moved one way in so many windows (a fifth of a second each) for a round to tell of it.
_FEWEST = 20.0
# Before anything was seen: friction and offset may be off by as much as there is friction, the gain by a tenth.
_EXPECTED = np.array([1.0, 1.0, 1.0, 0.1])
# The scatter of windows is that of so many rounds.
_MEMORY = 100.0
_OWN = 14  # columns of a joint that are used: those of a load and its four


@dataclass(frozen=True, eq=False)
class DriveRound:
    """What a round has told.

    Args:
        t: when it ended, s.
        x: the four numbers beyond the model's, (joints, 4): N m, N m s, N m, part of the torque.
        variance: of each; inf where the joint has not moved enough.
        warmth: (joints, 3), 0 for cold … 1 for always in motion.
        leaks: (joints × 4, joints × 4): by how much each number (row) is found to change where one (column) does by 1;
            motions that do not tell them apart leave more than the diagonal.
        cold: (joints,), how far from the warmth of its present motion: 1 at the start of work … 0.
    """

    t: float
    x: Array
    variance: Array
    warmth: Array
    leaks: Array
    cold: Array


def friction_at(model: Model, speed: Array) -> Array:
    """The friction that `model` has at velocities `speed` (joints,), rad/s or m/s, in N m (N)."""
    still = np.zeros((1, len(speed)))
    both = [model.dynamics.bias_torque(still, way * speed[None], model.theta)[0] for way in (1.0, -1.0)]
    return np.asarray(0.5 * np.abs(both[0] - both[1]))


class DriveRounds:
    """Collects looks until a round is over.

    Args:
        model: of the robot.
        expected: standard deviations of a load's ten parameters.
        day_s: the length of a day, of which rounds and time constants are parts.
    """

    def __init__(self, model: Model, expected: Array, day_s: float) -> None:
        self._model, self._n = model, model.robot.dof
        n = self._n
        self.round_s = _ROUND * day_s
        self._lags = day_s * np.array(_WARMTH)
        self._expected = expected
        self._speed = np.zeros(n)  # usual speed of each joint, from its first round on
        self._noise = np.full((2, n), np.nan)  # variance of a window, and of how many rounds
        self._gram = np.zeros((n, _OWN + 1, _OWN + 1))
        self._warmth = np.zeros((n, len(_WARMTH)))
        self._moved = np.zeros(n)
        self._at = np.full(2, np.nan)  # number of the round, time of the last look

    @property
    def usual_speed(self) -> Array:
        """Of every joint, rad/s or m/s; 0 where it has not moved yet."""
        return self._speed

    def units(self) -> Array:
        """What the numbers are parts of, (joints, 4): friction at the usual speed, that over the speed, again, 1."""
        speed = np.maximum(self._speed, 1e-3)
        friction = np.maximum(friction_at(self._model, speed), 1e-9)
        return np.stack([friction, friction / speed, friction, np.ones(self._n)], axis=1)

    def take(self, looks: Looks) -> list[DriveRound]:
        """The rounds that are over after these `looks`."""
        out: list[DriveRound] = []
        own = np.r_[0:_OWN, looks.gram.shape[-1] - 1]
        for t, gram, moved in zip(looks.t.tolist(), looks.gram, looks.warmth, strict=True):
            number = np.floor((t + 0.01 * LOOK_S) / self.round_s)  # looks end at whole seconds, or just after
            if number != self._at[0]:
                if np.isfinite(self._at[0]):
                    out += self._ended()
                self._at[0] = number
                self._gram[:], self._moved[:] = 0.0, 0.0
            away = max(t - self._at[1], LOOK_S) if np.isfinite(self._at[1]) else np.inf
            fresh = -np.expm1(-LOOK_S / self._lags)
            self._warmth = self._warmth * np.exp(-away / self._lags) + fresh * (moved / LOOK_S)[:, None]
            self._gram += gram[:, own[:, None], own]
            self._moved += moved
            self._at[1] = t
        return out

    def _ended(self) -> list[DriveRound]:
        gram = self._gram
        count = gram[:, OFFSET, OFFSET]
        if not np.any(count >= _FEWEST):
            return []
        usual = np.sqrt(gram[:, SPEED, SPEED] / np.maximum(count, 1.0))
        self._speed = np.where((self._speed == 0.0) & (count >= _FEWEST), usual, self._speed)
        # v becomes v − s·(usual speed): then what goes with s is friction at the usual speed.
        turn = np.broadcast_to(np.eye(_OWN + 1), gram.shape).copy()
        turn[:, DIRECTION, SPEED] = -self._speed
        gram = np.swapaxes(turn, 1, 2) @ gram @ turn
        x, variance, leaks = self._solved(gram, count)
        share = self._moved / self.round_s
        cold = np.clip(share - self._warmth[:, -1], 0.0, 1.0)
        return [DriveRound(float(self._at[1]), x, variance, self._warmth.copy(), leaks, cold)]

    def _solved(self, gram: Array, count: Array) -> tuple[Array, Array, Array]:
        n = self._n
        units = self.units()
        scale = np.concatenate([self._expected, (_EXPECTED * units).reshape(-1)])
        many = np.maximum(count, 1.0)
        start = np.maximum(gram[:, -1, -1] / many, 1e-12)
        noise = np.where(np.isnan(self._noise[0]), start, self._noise[0])
        m = 10 + 4 * n
        places = np.array([[*range(10), *range(10 + 4 * j, 14 + 4 * j)] for j in range(n)])
        for _ in range(2):  # again with the scatter that was found
            N, b = np.zeros((m, m)), np.zeros(m)
            for j, p in enumerate(places):
                unit = scale[p]
                N[np.ix_(p, p)] += gram[j, :_OWN, :_OWN] * np.outer(unit, unit) / noise[j]
                b[p] += gram[j, :_OWN, -1] * unit / noise[j]
            y, P = learnt(np.zeros(m), np.eye(m), N, b)
            z = (scale * y)[places]
            left = gram[:, -1, -1] - 2.0 * np.sum(z * gram[:, :_OWN, -1], axis=1)
            left = left + np.einsum("ja,jab,jb->j", z, gram[:, :_OWN, :_OWN], z)
            found = np.maximum(left, 0.0) / np.maximum(count - 4.0, 1.0) + 1e-12
            if np.all(np.isfinite(self._noise[0])):
                break
            noise = np.where(count >= _FEWEST, found, noise)
        enough = count >= _FEWEST
        seen = np.where(np.isnan(self._noise[1]), 0.0, self._noise[1])
        mean = np.where(np.isnan(self._noise[0]), found, self._noise[0])
        self._noise[0] = np.where(enough, mean + (found - mean) / (np.minimum(seen, _MEMORY) + 1.0), self._noise[0])
        self._noise[1] = seen + enough
        variance = (scale**2 * np.diag(P))[10:].reshape(n, 4)
        leaks = (P @ N)[10:, 10:] * scale[10:, None] / scale[10:]
        return (scale * y)[10:].reshape(n, 4), np.where(enough[:, None], variance, np.inf), leaks

    def state(self) -> PartState:
        """All that the next look needs, as arrays."""
        return {f"rounds_{name}": np.array(getattr(self, f"_{name}")) for name in _KEPT}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same model."""
        for name in _KEPT:
            setattr(self, f"_{name}", np.array(state[f"rounds_{name}"], dtype=float))


_KEPT = ("speed", "noise", "gram", "warmth", "moved", "at")
