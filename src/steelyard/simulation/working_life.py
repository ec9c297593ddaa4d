"""`WorkingLife`: signals of a robot over weeks of work, at a cost of a few microseconds per sample.

The robot repeats one cycle, whose torques are computed once. Slow changes (wear, warm-up, sensor jumps, a tool change)
are added block by block.
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
    """A lasting change.

    Args:
        t: Time of the change [s].
        joint: Index of the joint; ignored for a tool, which is at the last link.
        kind: "wear", "offset", "gain" or "tool".
        size: Wear: fraction of the friction added per week; offset [N m, N]; gain: fraction of the torque; tool: mass
            added at the last link [kg].
    """

    t: float
    joint: int
    kind: str
    size: float


@dataclass(frozen=True, eq=False)
class WorkingLife:
    """A robot that works in shifts.

    Args:
        model: Model of the new and warm robot.
        mishaps: Changes over time.
        noise: Standard deviation of torque samples, relative to each joint's rms torque.
        ripple: Unmodelled torque of gear teeth, relative to the same.
        cold: Relative increase of friction at a cold start; varies by `weather` from day to day.
        weather: Standard deviation of `cold`, relative to it.
        warm_up_s: Time constant of warming up [s].
        begins_s, shift_s: Start of work within a day, and its length [s].
        nights: Report also at standstill, day and night. The robot then starts and stops within two cycles and stands
            with arbitrary friction; shifts must be whole numbers of cycles.
        cycle_s: Period of the work [s].
        rate_hz: Sample rate [Hz].
        day_s: Length of a day [s]; short days make tests short.
        seed: Seed of noise, weather and motion.
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
        """Generate t, q, dq, tau of the work in blocks.

        Args:
            first_day: Index of the first day.
            days: Number of days.
            block_s: Length of a block [s].
        """
        cycle = self._cycle()
        warm = 0.0
        for day in range(first_day, first_day + days):
            rng = np.random.default_rng((self.seed, day))
            cold = self.cold * max(0.0, 1.0 + self.weather * rng.normal())
            begin = day * self.day_s + self.begins_s
            warm *= np.exp(-(self.day_s - self.shift_s) / self.warm_up_s)
            if self.nights:
                yield from self._rest_blocks(cycle, day * self.day_s, begin, block_s, rng)
            for k in range(round(self.shift_s / block_s)):
                t = begin + k * block_s + np.arange(round(block_s * self.rate_hz)) / self.rate_hz
                rise = 1.0 - (1.0 - warm) * np.exp(-(t - begin) / self.warm_up_s)
                yield (t, *self._block_signals(cycle, t, self._cycle_indices(t, begin), 1.0 + cold * (1.0 - rise), rng))
            if self.nights:
                yield from self._rest_blocks(cycle, begin + self.shift_s, (day + 1) * self.day_s, block_s, rng)
            warm = 1.0 - (1.0 - warm) * np.exp(-self.shift_s / self.warm_up_s)

    def _rest_blocks(
        self, cycle: dict[str, Array], begin: float, end: float, block_s: float, rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Generate blocks of the robot at rest at the start of a cycle."""
        static_friction = rng.uniform(-1.0, 1.0, cycle["q"].shape[1]) * np.abs(cycle["friction"]).max(axis=0)
        for k in range(round((end - begin) / block_s)):
            t = begin + k * block_s + np.arange(round(block_s * self.rate_hz)) / self.rate_hz
            at = np.full(len(t), len(cycle["q"]) - 1)
            q, dq, tau = self._block_signals(cycle, t, at, np.ones(len(t)), rng)
            yield t, q, dq, tau + static_friction

    def _cycle_indices(self, t: Array, begin: float) -> NDArray[np.int64]:
        """Return indices into the cycle, or into its run-up and run-down, of the samples of a shift from `begin` on."""
        count = round(self.cycle_s * self.rate_hz)
        if not self.nights:
            return np.asarray(np.rint(t * self.rate_hz).astype(np.int64) % count)
        k, last = np.rint((t - begin) * self.rate_hz).astype(np.int64), round(self.shift_s * self.rate_hz)
        going = np.where(k < 2 * count, count + k, k % count)
        return np.asarray(np.where(k >= last - 2 * count, 5 * count + k - last, going))

    def _cycle(self) -> dict[str, Array]:
        """Compute one cycle: motion, torque without friction, friction, torque of a kilogram at the last link, ripple.

        With `nights`, run-up and run-down follow, each of two cycles, and a sample at rest.
        """
        n, count = self.model.robot.dof, round(self.cycle_s * self.rate_hz)
        rng = np.random.default_rng(self.seed)
        t = np.arange(count) / self.rate_hz
        phase, speed, gain = t, np.ones(count), np.zeros(count)  # time within the motion, its rate and acceleration
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
        total = self.model.torque(q, dq, ddq)
        rigid = self.model.rigid_torque(q, dq, ddq)
        last = slice(self.model.robot.inertial_count - 10, self.model.robot.inertial_count)
        rows = self.model.dynamics.rigid.torque_regressor(q, dq, ddq)[..., last]
        body = np.array([1.0, 0.02, 0.01, 0.08, 0.008, 0.0, 0.008, -0.0016, -0.0008, 0.002])
        rms = np.sqrt(np.mean(total[:count] ** 2, axis=0))
        return {
            "q": q,
            "dq": dq,
            "rigid": rigid,
            "friction": total - rigid,
            "tool": rows @ body,
            "ripple": self.ripple * rms * np.sqrt(2.0) * np.sin(12.0 * q + np.arange(n)),
            "rms": rms[None],
        }

    def _block_signals(
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
