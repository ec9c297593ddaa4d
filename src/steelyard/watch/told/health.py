"""How the drives age: friction, offset and torque gain of every joint against the model, in minutes and over days.

The first days are what later ones are compared with: how friction falls as the gears warm up, and how much all of it
scatters from round to round, morning to morning, day to day. From then on two questions are asked. Every round: has
something jumped within the last hour? Every day: has something moved, or grown, within the last two months? An alarm is
an e-value (`change.py`) beyond what one false alarm a year allows, over all joints and numbers together; it has the
date since when, and what was found becomes the new usual, with all that leaks from it into numbers that the motion does
not tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import with_error
from steelyard.payload.track import expected_payload
from steelyard.watch.batch import Seen
from steelyard.watch.change import YEARLY_HZ, SeriesChange, real_changes, step_evidence
from steelyard.watch.drives import CHANNELS, DriveRound, DriveRounds
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.usual import UsualDrives
from steelyard.watch.windows import RowWindows

# Working days before anything is compared: several mornings, so that their scatter is known.
_FIRST_DAYS = 5.0
# Rounds of the last hour or so, and days of the last two months.
_FAST, _SLOW = 32, 64
# Expected size of a change, as a part of friction (or of the gain): a jump, and what wears.
_JUMP, _WORN = 0.3, 0.1
# How well a level is known at best, as a part of the same: other work moves it as much.
_LEVEL = 0.002
# A number of which the motion shows less than this is not told apart from others.
_TOLD_APART = 0.2
# The present estimate is the mean of so many rounds, and of so many days.
_NOW, _LATELY = 3, 7
_DAY_S = 86400.0
_SAYS = {
    "friction": "The friction of {0} has {1} by {2} % of the model's",
    "viscous": "The friction of {0} has {1} with velocity, by {2} % of the model's at its usual speed",
    "offset": "The torque of {0} has an offset that has {1} by {2} % of its friction",
    "gain": "The torque of {0} has {1} by {2} %: its gain has changed",
}


@WATCH_PARTS.register("health")
class HealthPart(WatchPart):
    """Friction, offset and gain per joint, and alarms when they change.

    Args:
        setup: what it is made for; options "health_false_alarms_hz" (1/s, default one a year), "first_days", and
            "day_s" (s) for lives that are simulated in shorter days.
    """

    title = "health"
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        **UsualDrives.state_rules,
        **{name: ArrayRule(unknown=True) for name in ("today", "level", "leaks")},
    }

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        robot, options = setup.model.robot, setup.options
        self._windows = RowWindows.shared(setup)
        self._n, self._names = robot.dof, robot.joint_names
        self._day_s = float(options.get("day_s", _DAY_S))
        masses = np.maximum(setup.model.theta[: robot.inertial_count : 10], 0.0)
        self._rounds = DriveRounds(setup.model, expected_payload(max(0.2 * float(masses.sum()), 0.1), 0.3), self._day_s)
        self._usual = UsualDrives(robot.dof)
        self._first_days = float(options.get("first_days", _FIRST_DAYS))
        # Half of the false alarms for jumps, half for what wears; both per look.
        rate = float(options.get("health_false_alarms_hz", YEARLY_HZ * _DAY_S / self._day_s))
        self._rates = 0.5 * rate * self._rounds.round_s, 0.5 * rate * self._day_s
        c = 4 * self._n
        # Of the last rounds: time, what is beyond the usual, variance, variance of the cold; inf where nothing is.
        self._fast_t, self._fast = np.full(_FAST, np.nan), np.full((3, _FAST, c), np.inf)
        self._slow_t, self._slow = np.full(_SLOW, np.nan), np.full((2, _SLOW, c), np.inf)
        self._fast[0], self._slow[0] = 0.0, 0.0
        self._today = np.zeros((3, c))  # Σ z/v, Σ 1/v; and the mean of the day before
        self._today[2] = np.nan
        self._day = np.full(2, np.nan)  # number and beginning of the day
        self._progress = np.zeros(3)  # days seen while learning, whether that is over, alarms so far
        self._last = np.full((2, c), np.nan)  # estimates against the model and variance of the last round
        self._leaks = np.eye(c)
        self._level = np.zeros(c)  # variance of the usual level itself

    def take(self, seen: Seen) -> None:
        for each in self._rounds.take(self._windows.take(seen)):
            self._round(each)

    def _round(self, seen: DriveRound) -> None:
        day = np.floor(seen.t / self._day_s)
        learns = not self._progress[1]
        self._last[:] = seen.x.ravel(), seen.variance.ravel()
        self._leaks = seen.leaks
        if day != self._day[0]:
            if learns and self._progress[0] >= self._first_days:
                self._usual.learn(self._rounds.units(), self._day_s)
                self._level = (_LEVEL * self._usual.units) ** 2
                self._progress[1], learns = 1.0, False
            elif not learns:
                self._day_over()
            self._day[:] = day, seen.t
            self._progress[0] += 1.0
            self._today[:2] = 0.0
        if learns:
            self._usual.remember(seen)
            return
        z, own, cold = self._usual.beyond(seen)
        for series, new in ((self._fast_t, seen.t), *zip(self._fast, (z, own, cold), strict=True)):
            series[:-1] = series[1:]
            series[-1] = new
        w = 1.0 / (own + cold)
        self._today[:2] += w * z, w
        self._jumped(seen.t)

    def _jumped(self, t: float) -> None:
        z, own, cold = self._fast
        # What has moved over days is no jump: the last days' level is where it would begin.
        w = 1.0 / (self._slow[1, -_LATELY:] + self._usual.daily[0])
        total = w.sum(axis=0)
        recent = np.sum(w * self._slow[0, -_LATELY:], axis=0) / np.where(total > 0.0, total, 1.0)
        common = self._usual.daily[0] + np.max(np.where(np.isfinite(own), cold, 0.0), axis=0) + self._level
        found = step_evidence(z - recent, own, common, _JUMP * self._usual.units, self._usual.daily[1])
        real = real_changes(found.evidence, self._rates[0])
        # The first round may hold both what was and what is; the size is that of those after it, two at least.
        after = np.arange(_FAST)[:, None] > found.start
        real &= found.start < _FAST - 2
        if real.any():
            w = np.where(after, 1.0 / own, 0.0)
            total = np.maximum(w.sum(axis=0), 1e-300)
            size = np.sum(w * (z - recent), axis=0) / total
            self._alarm(t, real, replace(found, size=size), self._fast_t, "jump")

    def _day_over(self) -> None:
        """The day's means are taken in, and what moves over days is looked for."""
        known = self._today[1] > 0.0
        variance = np.where(known, 1.0 / np.where(known, self._today[1], 1.0), np.inf)
        mean = np.where(known, self._today[0] * np.where(known, variance, 0.0), 0.0)
        self._usual.follow(np.where(known, mean - self._today[2], np.nan))
        self._today[2] = np.where(known, mean, self._today[2])
        for series, new in ((self._slow_t, self._day[1]), *zip(self._slow, (mean, variance), strict=True)):
            series[:-1] = series[1:]
            series[-1] = new
        scatter = self._usual.daily
        found = step_evidence(
            self._slow[0], self._slow[1] + scatter[0], self._level, _WORN * self._usual.units, scatter[1], ramps=True
        )
        real = real_changes(found.evidence, self._rates[1])
        if real.any():
            self._alarm(self._rounds_end(), real, found, self._slow_t, "wear")

    def _rounds_end(self) -> float:
        last = self._fast_t[np.isfinite(self._fast_t)]
        return float(last[-1]) if len(last) else float(self._day[1])

    def _alarm(self, t: float, real: NDArray[np.bool_], found: SeriesChange, times: Array, how: str) -> None:
        """Tell what has changed most surely; with what leaks from it into other numbers it becomes the new usual."""
        top = int(np.argmax(np.where(real, found.evidence, -np.inf)))
        start, size = int(found.start[top]), float(found.size[top])
        own = float(self._leaks[top, top])
        apart = own > _TOLD_APART
        self.tell(self._event(top, found, float(times[start]), t, how, own if apart else 1.0))
        self._progress[2] += 1.0
        others = self._leaks[:, top] / (own if apart else np.inf)
        others[top] = 1.0
        self._usual.law[:, 0] += size * others
        self._level[top] = (_LEVEL * self._usual.units[top]) ** 2 + found.error[top] ** 2
        series, values = (self._fast, times) if how == "jump" else (self._slow, times)
        grown = np.where(np.arange(len(values)) >= start, 1.0, 0.0)
        if found.ramp[top]:
            grown = np.maximum(np.arange(len(values)) - start + 1.0, 0.0) / (len(values) - start)
        series[0] -= size * np.outer(grown, others)
        if how == "jump":
            series[1, : start + 1, top] = np.inf
        else:
            self._slow[1, :, top] = self._fast[1, :, top] = np.inf
            self._fast[0] -= size * others
        self._today[:2] = 0.0
        self._today[2] = np.nan

    def _event(self, c: int, found: SeriesChange, since: float, t: float, how: str, own: float) -> WatchEvent:
        """The event of channel `c`, of whose changes the part `own` is seen."""
        j, name, size, error = c // 4, CHANNELS[c % 4], float(found.size[c]) / own, float(found.error[c]) / own
        part, part_error = float(size / self._usual.units[c]), float(error / self._usual.units[c])
        way = "risen" if size > 0.0 else "fallen"
        words = _SAYS[name].format(self._names[j], way, with_error(100.0 * abs(part), 100.0 * part_error))
        detail = {
            "joint": self._names[j],
            "what": name,
            "size": size,
            "error": error,
            "relative": part,
            "relative_error": part_error,
            "how": "wear" if found.ramp[c] else how,
            "log_evidence": float(found.evidence[c]),
            "found_after_s": t - since,
        }
        return WatchEvent(since, "health", f"{words}{', and grows' if found.ramp[c] else ''}.", detail, alarm=True)

    def telling(self) -> dict[str, Any]:
        speed = self._rounds.usual_speed
        told: dict[str, Any] = {
            "compares": bool(self._progress[1]),
            "days": int(self._progress[0]),
            "alarms": int(self._progress[2]),
            "usual_speed": speed.tolist(),
        }
        x, v = self._last.reshape(2, self._n, 4)
        for k, name in enumerate(CHANNELS):
            told[name] = _plain(x[:, k])
            told[f"{name}_error"] = _plain(np.sqrt(v[:, k]))
        told["coulomb"] = _plain(x[:, 0] - speed * x[:, 1])
        if self._progress[1]:
            for when, count, z, variance in (("now", _NOW, *self._fast[:2]), ("lately", _LATELY, *self._slow)):
                w = 1.0 / variance[-count:]
                total = np.maximum(w.sum(axis=0), 1e-300)
                part = (np.sum(w * z[-count:], axis=0) / total / self._usual.units).reshape(-1, 4)
                error = np.sqrt(1.0 / total + self._usual.daily[0]) / self._usual.units
                told[f"friction_change_{when}"] = _plain(part[:, 0])
                told[f"friction_change_{when}_error"] = _plain(error.reshape(-1, 4)[:, 0])
            told["warm_up"] = _plain(-self._usual.law[::4, 1:].sum(axis=1) / self._usual.units[::4])
        return told

    def state(self) -> PartState:
        own = {name: np.array(getattr(self, f"_{name}")) for name in _KEPT}
        return {**self._windows.state(), **self._rounds.state(), **self._usual.state(), **own}

    def restore(self, state: PartState) -> None:
        for part in (self._windows, self._rounds, self._usual):
            part.restore(state)
        for name in _KEPT:
            setattr(self, f"_{name}", np.array(state[name], dtype=float))


_KEPT = ("fast_t", "fast", "slow_t", "slow", "today", "day", "progress", "last", "level", "leaks")


def _plain(x: Array) -> list[float | None]:
    """Numbers as JSON holds them: None for what is not known."""
    return [float(v) if np.isfinite(v) else None for v in x]
