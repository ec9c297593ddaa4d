"""`WorkingLife`: weeks of a robot at work, as its controller would report them, for a few microseconds a sample.

The robot does the same again and again, so that the torques of one cycle are worked out once; what changes in weeks (a
gear that wears, warms up and cools down, a sensor that jumps, a tool that is changed) is laid over it block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array

DAY_S = 86400.0


@dataclass(frozen=True)
class Mishap:
    """Something that changes at a moment and stays.

    Args:
        t: when, s.
        joint: which, from 0; a tool is at the last link, whatever this says.
        kind: "wear" (`size`: part of the friction more per week), "offset" (N m, N), "gain" (part of the torque), or
            "tool" (`size`: kg that are added at the last link).
        size: by how much.
    """

    t: float
    joint: int
    kind: str
    size: float


@dataclass(frozen=True, eq=False)
class WorkingLife:
    """A robot that works in shifts.

    Args:
        model: the robot as it is when it is new and warm.
        mishaps: what happens to it.
        noise: standard deviation of torque samples, as a part of each joint's rms torque.
        ripple: torque of gear teeth that no model has, as a part of the same.
        cold: part by which friction is higher when the robot starts cold; varies by `weather` from day to day.
        weather: standard deviation of `cold`, as a part of it.
        warm_up_s: time constant with which it falls.
        begins_s, shift_s: beginning of work in a day, and its length, s.
        nights: the controller reports while the robot stands, too, day and night. It then sets out and comes to rest
            within two cycles, and stands with whatever friction holds; shifts must be whole numbers of cycles.
        cycle_s: the work repeats after this time.
        rate_hz: samples a second.
        day_s: the length of a day; shorter ones make tests short.
        seed: of noise, weather and the motion.
    """

    model: Model
    mishaps: Sequence[Mishap] = ()
    noise: float = 0.03
    ripple: float = 0.02
    cold: float = 0.3
    weather: float = 0.4
    warm_up_s: float = 2400.0
    begins_s: float = 6.0 * 3600.0
    shift_s: float = 8.0 * 3600.0
    nights: bool = False
    cycle_s: float = 8.0
    rate_hz: float = 100.0
    day_s: float = DAY_S
    seed: int = 0

    def blocks(self, first_day: int, days: int, block_s: float = 60.0) -> Iterator[tuple[Array, Array, Array, Array]]:
        """t, q, dq, tau of the work on some `days` from `first_day` on, in blocks of `block_s` seconds."""
        cycle = self._cycle()
        warm = 0.0
        for day in range(first_day, first_day + days):
            rng = np.random.default_rng((self.seed, day))
            cold = self.cold * max(0.0, 1.0 + self.weather * rng.normal())
            begin = day * self.day_s + self.begins_s
            warm *= np.exp(-(self.day_s - self.shift_s) / self.warm_up_s)
            if self.nights:
                yield from self._standing(cycle, day * self.day_s, begin, block_s, rng)
            for k in range(round(self.shift_s / block_s)):
                t = begin + k * block_s + np.arange(round(block_s * self.rate_hz)) / self.rate_hz
                rise = 1.0 - (1.0 - warm) * np.exp(-(t - begin) / self.warm_up_s)
                yield (t, *self._of_block(cycle, t, self._places(t, begin), 1.0 + cold * (1.0 - rise), rng))
            if self.nights:
                yield from self._standing(cycle, begin + self.shift_s, (day + 1) * self.day_s, block_s, rng)
            warm = 1.0 - (1.0 - warm) * np.exp(-self.shift_s / self.warm_up_s)

    def _standing(
        self, cycle: dict[str, Array], begin: float, end: float, block_s: float, rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Blocks in which the robot stands where a cycle begins."""
        held = rng.uniform(-1.0, 1.0, cycle["q"].shape[1]) * np.abs(cycle["friction"]).max(axis=0)
        for k in range(round((end - begin) / block_s)):
            t = begin + k * block_s + np.arange(round(block_s * self.rate_hz)) / self.rate_hz
            at = np.full(len(t), len(cycle["q"]) - 1)
            q, dq, tau = self._of_block(cycle, t, at, np.ones(len(t)), rng)
            yield t, q, dq, tau + held

    def _places(self, t: Array, begin: float) -> NDArray[np.int64]:
        """Where samples of a shift that begins at `begin` are in the cycle, or in what leads to it and from it."""
        count = round(self.cycle_s * self.rate_hz)
        if not self.nights:
            return np.asarray(np.rint(t * self.rate_hz).astype(np.int64) % count)
        k, last = np.rint((t - begin) * self.rate_hz).astype(np.int64), round(self.shift_s * self.rate_hz)
        going = np.where(k < 2 * count, count + k, k % count)
        return np.asarray(np.where(k >= last - 2 * count, 5 * count + k - last, going))

    def _cycle(self) -> dict[str, Array]:
        """One cycle: motion, torque without friction, friction, what a kilogram at the last link asks for, ripple.

        Behind it, where nights are seen: twice as long each, how it sets out and comes to rest; and a sample at rest.
        """
        n, count = self.model.robot.dof, round(self.cycle_s * self.rate_hz)
        rng = np.random.default_rng(self.seed)
        t = np.arange(count) / self.rate_hz
        phase, speed, gain = t, np.ones(count), np.zeros(count)  # of the work's own time, its speed and acceleration
        if self.nights:
            long, once = np.arange(2 * count) / self.rate_hz, np.ones(2 * count)
            ramp, grows = long**2 / (4.0 * self.cycle_s), 0.5 / self.cycle_s
            phase = np.concatenate([t, ramp, long - ramp, [0.0]])
            speed = np.concatenate([speed, grows * long, 1.0 - grows * long, [0.0]])
            gain = np.concatenate([gain, grows * once, -grows * once, [0.0]])
        q, dq, ddq = np.zeros((3, len(phase), n))
        for k in (1, 2, 3):
            w = 2.0 * np.pi * k / self.cycle_s
            a, b = rng.normal(size=(2, n)) / k
            s, c = np.sin(w * phase)[:, None], np.cos(w * phase)[:, None]
            along, bent = w * (a * c - b * s), -w * w * (a * s + b * c)
            q, dq = q + a * s + b * c, dq + along * speed[:, None]
            ddq = ddq + bent * speed[:, None] ** 2 + along * gain[:, None]
        shrink = 1.0 / np.abs(q[:count]).max(axis=0)  # all joints move by a radian to both sides
        q, dq, ddq = q * shrink, dq * shrink, ddq * shrink
        rubbing = self.model.torque(q, dq, ddq)
        rigid = self.model.rigid_torque(q, dq, ddq)
        last = slice(self.model.robot.inertial_count - 10, self.model.robot.inertial_count)
        rows = self.model.dynamics.rigid.torque_regressor(q, dq, ddq)[..., last]
        body = np.array([1.0, 0.02, 0.01, 0.08, 0.008, 0.0, 0.008, -0.0016, -0.0008, 0.002])
        rms = np.sqrt(np.mean(rubbing[:count] ** 2, axis=0))
        return {
            "q": q,
            "dq": dq,
            "rigid": rigid,
            "friction": rubbing - rigid,
            "tool": rows @ body,
            "ripple": self.ripple * rms * np.sqrt(2.0) * np.sin(12.0 * q + np.arange(n)),
            "rms": rms[None],
        }

    def _of_block(
        self, cycle: dict[str, Array], t: Array, at: NDArray[np.int64], warmth: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        n = self.model.robot.dof
        factor, offset, gain, mass = np.ones(n), np.zeros(n), np.ones(n), 0.0
        for m in self.mishaps:
            if t[0] < m.t:
                continue
            if m.kind == "wear":
                factor[m.joint] += m.size * (t[0] - m.t) / (7.0 * self.day_s)
            elif m.kind == "offset":
                offset[m.joint] += m.size
            elif m.kind == "gain":
                gain[m.joint] += m.size
            else:
                mass += m.size
        tau = cycle["rigid"] + cycle["ripple"] + mass * cycle["tool"]
        tau = tau[at] + cycle["friction"][at] * (factor * warmth[:, None])
        tau *= gain
        tau += offset
        tau += rng.normal(size=tau.shape) * (self.noise * cycle["rms"])
        return cycle["q"][at], cycle["dq"][at], tau
