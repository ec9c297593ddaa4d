"""Monitors the drives: friction, offset and torque gain of every joint relative to the model, over minutes and days.

The first days give the baseline: how friction falls as the gears warm up, and the variation from round to round,
morning to morning and day to day. Then two tests run. Every round tests for a jump within the last hour. Every day
tests for a shift or a growth within the last two months. An alarm is an e-value (`trends`) that exceeds the
threshold for one false alarm per year, over all joints and numbers together. After an alarm the baseline is moved by
the change, including its effect on other numbers that the motion does not separate from it.
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
from steelyard.payload.recursive import EXPECTED_SIZE_M, expected_payload, heaviest_payload
from steelyard.trends.change_points import change_template
from steelyard.trends.sequential_change import YEARLY_HZ, SeriesChange, step_evidence
from steelyard.trends.series_statistics import significant_changes, weighted_mean
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.drives import CHANNELS, DriveBaseline, DriveRound, DriveRounds
from steelyard.watch.monitor_base import MONITORS, Monitor, SavedArrays, WatchEvent, WatchSetup, saved_attributes
from steelyard.watch.windows import ResidualWindows

# Working days of the baseline: several mornings, to know their variation.
_FIRST_DAYS = 5.0
# Rounds of about the last hour, and days of the last two months.
_LAST_ROUNDS, _LAST_DAYS = 32, 64
# Prior standard deviation of a jump and of wear, as a share of friction or gain.
_JUMP_STD, _WEAR_STD = 0.3, 0.1
# Smallest standard deviation of the baseline, as a share of the same: different work changes it as much.
_LEVEL_STD = 0.002
# Smallest share of a change that the estimate must show; below it, the motion does not separate it from others.
_MIN_OBSERVED = 0.2
# Numbers of rounds and days for the present estimates.
_NOW_ROUNDS, _LATELY_DAYS = 3, 7
_DAY_S = 86400.0
_MESSAGES = {
    "friction": "Friction of {0} has {1} by {2} % of the model value",
    "viscous": "Viscous friction of {0} has {1} by {2} % of the model value at its usual speed",
    "offset": "The torque offset of {0} has {1} by {2} % of its friction",
    "gain": "The torque gain of {0} has {1} by {2} %",
}


@MONITORS.register("health")
class HealthMonitor(SavedArrays, Monitor):
    """Reports friction, offset and gain per joint, with alarms when they change.

    Args:
        setup: Model and settings; options "health_false_alarms_hz" [1/s] (default: one a year), "first_days", and
            "day_s" [s] for simulations with shorter days.
    """

    title = "health"
    saved = saved_attributes("", "_fast_t _fast _slow_t _slow _today _day _progress _last _level _leaks")
    saved_parts = "_windows", "_rounds", "_baseline"
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        **DriveBaseline.state_rules,
        **{name: ArrayRule(unknown=True) for name in ("today", "level", "leaks")},
    }

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        robot, options = setup.model.robot, setup.options
        self._windows = ResidualWindows.shared(setup)
        self._n, self._names = robot.dof, robot.joint_names
        self._day_s = float(options.get("day_s", _DAY_S))
        expected = expected_payload(heaviest_payload(setup.model), EXPECTED_SIZE_M)
        self._rounds = DriveRounds(setup.model, expected, self._day_s)
        self._baseline = DriveBaseline(robot.dof)
        self._first_days = float(options.get("first_days", _FIRST_DAYS))
        # Half of the false alarms for jumps and half for wear, per test.
        rate = float(options.get("health_false_alarms_hz", YEARLY_HZ * _DAY_S / self._day_s))
        self._rates = 0.5 * rate * self._rounds.round_s, 0.5 * rate * self._day_s
        c = 4 * self._n
        # Last rounds: time; deviation from the baseline, its variance, variance of the cold; inf where there is no
        # value.
        self._fast_t, self._fast = np.full(_LAST_ROUNDS, np.nan), np.full((3, _LAST_ROUNDS, c), np.inf)
        self._slow_t, self._slow = np.full(_LAST_DAYS, np.nan), np.full((2, _LAST_DAYS, c), np.inf)
        self._fast[0], self._slow[0] = 0.0, 0.0
        self._today = np.zeros((3, c))  # Σ z/v, Σ 1/v; mean of the previous day
        self._today[2] = np.nan
        self._day = np.full(2, np.nan)  # number and start of the day
        self._progress = np.zeros(3)  # days so far, whether the baseline is complete, alarms so far
        self._last = np.full((2, c), np.nan)  # estimates of the last round and their variances
        self._leaks = np.eye(c)
        self._level = np.zeros(c)  # variance of the baseline

    def update(self, batch: ObservedBatch) -> None:
        for estimate in self._rounds.update(self._windows.update(batch)):
            self._add_round(estimate)

    def _add_round(self, estimate: DriveRound) -> None:
        day = np.floor(estimate.t / self._day_s)
        learns = not self._progress[1]
        self._last[:] = estimate.x.ravel(), estimate.variance.ravel()
        self._leaks = estimate.leaks
        if day != self._day[0]:
            if learns and self._progress[0] >= self._first_days:
                self._baseline.fit(self._rounds.units(), self._day_s)
                self._level = (_LEVEL_STD * self._baseline.units) ** 2
                self._progress[1], learns = 1.0, False
            elif not learns:
                self._end_day()
            self._day[:] = day, estimate.t
            self._progress[0] += 1.0
            self._today[:2] = 0.0
        if learns:
            self._baseline.collect(estimate)
            return
        z, own, cold = self._baseline.deviation(estimate)
        for series, new in ((self._fast_t, estimate.t), *zip(self._fast, (z, own, cold), strict=True)):
            series[:-1] = series[1:]
            series[-1] = new
        w = 1.0 / (own + cold)
        self._today[:2] += w * z, w
        self._test_jumps(estimate.t)

    def _test_jumps(self, t: float) -> None:
        z, own, cold = self._fast
        # A jump is tested relative to the last days, so that slow changes do not count.
        days = self._slow[:, -_LATELY_DAYS:]
        recent, _ = weighted_mean(days[0], days[1] + self._baseline.daily[0])
        common = self._baseline.daily[0] + np.max(np.where(np.isfinite(own), cold, 0.0), axis=0) + self._level
        change = step_evidence(z - recent, own, common, _JUMP_STD * self._baseline.units, self._baseline.daily[1])
        real = significant_changes(change.evidence, self._rates[0])
        # The first round may mix both states, so the size comes from at least two rounds after it.
        after = np.arange(_LAST_ROUNDS)[:, None] > change.start
        real &= change.start < _LAST_ROUNDS - 2
        if real.any():
            size, _ = weighted_mean(z - recent, np.where(after, own, np.inf))
            self._alarm(t, real, replace(change, size=size), self._fast_t, "jump")

    def _end_day(self) -> None:
        """Store the means of the day, and test for slow changes."""
        known = self._today[1] > 0.0
        variance = np.where(known, 1.0 / np.where(known, self._today[1], 1.0), np.inf)
        mean = np.where(known, self._today[0] * np.where(known, variance, 0.0), 0.0)
        self._baseline.update_daily(np.where(known, mean - self._today[2], np.nan))
        self._today[2] = np.where(known, mean, self._today[2])
        for series, new in ((self._slow_t, self._day[1]), *zip(self._slow, (mean, variance), strict=True)):
            series[:-1] = series[1:]
            series[-1] = new
        scatter = self._baseline.daily
        change = step_evidence(
            self._slow[0],
            self._slow[1] + scatter[0],
            self._level,
            _WEAR_STD * self._baseline.units,
            scatter[1],
            ramps=True,
        )
        real = significant_changes(change.evidence, self._rates[1])
        if real.any():
            self._alarm(self._rounds_end(), real, change, self._slow_t, "wear")

    def _rounds_end(self) -> float:
        last = self._fast_t[np.isfinite(self._fast_t)]
        return float(last[-1]) if len(last) else float(self._day[1])

    def _alarm(self, t: float, real: NDArray[np.bool_], change: SeriesChange, times: Array, how: str) -> None:
        """Report the most significant change, and move the baseline by it and by its effect on other numbers."""
        top = int(np.argmax(np.where(real, change.evidence, -np.inf)))
        start, size = int(change.start[top]), float(change.size[top])
        own = float(self._leaks[top, top])
        observable = own > _MIN_OBSERVED
        self.add_event(self._event(top, change, float(times[start]), t, how, own if observable else 1.0))
        self._progress[2] += 1.0
        others = self._leaks[:, top] / (own if observable else np.inf)
        others[top] = 1.0
        self._baseline.law[:, 0] += size * others
        self._level[top] = (_LEVEL_STD * self._baseline.units[top]) ** 2 + change.error[top] ** 2
        series, values = (self._fast, times) if how == "jump" else (self._slow, times)
        ramp = bool(change.ramp[top])
        growth = change_template(np.arange(float(len(values))), np.array([start - ramp]), ramp)[:, 0]
        series[0] -= size * np.outer(growth, others)
        if how == "jump":
            series[1, : start + 1, top] = np.inf
        else:
            self._slow[1, :, top] = self._fast[1, :, top] = np.inf
            self._fast[0] -= size * others
        self._today[:2] = 0.0
        self._today[2] = np.nan

    def _event(self, c: int, change: SeriesChange, since: float, t: float, how: str, own: float) -> WatchEvent:
        """Create the event of channel `c`; `own` is the observed share of its changes."""
        j, name, size, error = c // 4, CHANNELS[c % 4], float(change.size[c]) / own, float(change.error[c]) / own
        share, share_error = float(size / self._baseline.units[c]), float(error / self._baseline.units[c])
        direction = "risen" if size > 0.0 else "fallen"
        percent = with_error(100.0 * abs(share), 100.0 * share_error)
        message = _MESSAGES[name].format(self._names[j], direction, percent)
        detail = {
            "joint": self._names[j],
            "what": name,
            "size": size,
            "error": error,
            "relative": share,
            "relative_error": share_error,
            "how": "wear" if change.ramp[c] else how,
            "log_evidence": float(change.evidence[c]),
            "found_after_s": t - since,
        }
        return WatchEvent(
            since, "health", f"{message}{' and still grows' if change.ramp[c] else ''}.", detail, alarm=True
        )

    def report(self) -> dict[str, Any]:
        speed = self._rounds.usual_speed
        values: dict[str, Any] = {
            "compares": bool(self._progress[1]),
            "days": int(self._progress[0]),
            "alarms": int(self._progress[2]),
            "usual_speed": speed.tolist(),
        }
        x, v = self._last.reshape(2, self._n, 4)
        for k, name in enumerate(CHANNELS):
            values[name] = _plain(x[:, k])
            values[f"{name}_error"] = _plain(np.sqrt(v[:, k]))
        values["coulomb"] = _plain(x[:, 0] - speed * x[:, 1])
        if self._progress[1]:
            for when, count, z, variance in (
                ("now", _NOW_ROUNDS, *self._fast[:2]),
                ("lately", _LATELY_DAYS, *self._slow),
            ):
                w = 1.0 / variance[-count:]
                total = np.maximum(w.sum(axis=0), 1e-300)
                part = (np.sum(w * z[-count:], axis=0) / total / self._baseline.units).reshape(-1, 4)
                error = np.sqrt(1.0 / total + self._baseline.daily[0]) / self._baseline.units
                values[f"friction_change_{when}"] = _plain(part[:, 0])
                values[f"friction_change_{when}_error"] = _plain(error.reshape(-1, 4)[:, 0])
            values["warm_up"] = _plain(-self._baseline.law[::4, 1:].sum(axis=1) / self._baseline.units[::4])
        return values


def _plain(x: Array) -> list[float | None]:
    """Convert to JSON values; None for unknown values."""
    return [float(v) if np.isfinite(v) else None for v in x]
