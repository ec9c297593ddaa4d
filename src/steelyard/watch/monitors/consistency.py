"""Checks whether the model still holds, and finds the cause if not: payload, friction, gain, sensor, or joint zero.

The first hour of motion gives the normal size and variation of the residuals: in total, which varies much as friction
warms up, and after fitting friction and offset, which varies little. If the residuals exceed a limit with one false
alarm per year, the model no longer holds. Then each possible cause is fitted alone to the residuals, with its columns
(`windows.py`) and its prior. The cause with the most evidence is reported with its share of the residuals. The evidence
penalises causes with many parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.estimation.recursion.posterior import log_evidence, posterior
from steelyard.ground.arrays import Array
from steelyard.payload.recursive import EXPECTED_SIZE_M, expected_payload, heaviest_payload
from steelyard.trends.sequential_change import YEARLY_HZ, step_evidence
from steelyard.trends.series_statistics import significant_changes
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.drives import friction_at
from steelyard.watch.monitor_base import (
    MONITORS,
    Monitor,
    SavedArrays,
    StateArrays,
    WatchEvent,
    WatchSetup,
    saved_attributes,
)
from steelyard.watch.windows import GAIN, OFFSET, SPEED, ResidualWindows

# Length of a round [s of motion], and number of rounds for the baseline.
_ROUND_S, _FIRST_ROUNDS = 60.0, 60
# Fewest windows in motion for a valid round of a joint.
_MIN_WINDOWS = 20.0
# Number of last rounds that are tested for a change.
_ROUNDS = 8
# Prior standard deviation of a change of the log power.
_CHANGE_STD = 1.0
# Prior standard deviations of the causes: shares of friction and gain; zeros of joints [rad, m].
_FRICTION_STD, _GAIN_STD, _ZERO_STD = 0.5, 0.1, 0.05
# Smallest share of the residuals for a cause.
_MIN_SHARE = 0.3
# The model holds again after this many normal rounds.
_CALM_ROUNDS = 3.0


@MONITORS.register("model")
class ConsistencyMonitor(SavedArrays, Monitor):
    """Compares size and whiteness of the residuals with the first hour, and finds the cause of a change.

    Args:
        setup: Model and settings; option "health_false_alarms_hz" [1/s] (default: one a year).
    """

    title = "model"
    saved = saved_attributes("", "_round _gram _lagged _first _ring_t _ring _ring_gram _verdict _white _cause _share")
    saved_parts = ("_windows",)

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._windows = ResidualWindows.shared(setup)
        robot = setup.model.robot
        self._n, self._names = robot.dof, robot.joint_names
        n, c = self._n, self._windows.columns
        self._rate = float(setup.options.get("health_false_alarms_hz", YEARLY_HZ)) * _ROUND_S
        self._expected = expected_payload(heaviest_payload(setup.model), EXPECTED_SIZE_M)
        self._round = np.zeros(2)  # time in motion, and end of the present round
        self._gram, self._lagged = np.zeros((n, c, c)), np.zeros(n)
        self._first = np.zeros((3, 2 * n))  # log power, total and without friction: count, sum, sum of squares
        self._ring_t, self._ring = np.full(_ROUNDS, np.nan), np.full((_ROUNDS, 2 * n), np.nan)
        self._ring_gram = np.zeros((_ROUNDS, n, c, c))
        self._verdict = np.array([1.0, np.nan, 0.0])  # whether the model holds, since when, normal rounds
        self._white = np.full(n, np.nan)
        self._cause = np.array(["", ""], dtype="U120")
        self._share = np.full(1, np.nan)

    def update(self, batch: ObservedBatch) -> None:
        sums = self._windows.update(batch)
        for t, gram, moved, lagged in zip(sums.t.tolist(), sums.gram, sums.moved_s, sums.lagged, strict=True):
            if not gram[:, OFFSET, OFFSET].any():
                continue
            if t - self._round[1] > _ROUND_S:  # drop a round that a rest interrupts
                self._gram[:], self._lagged[:], self._round[0] = 0.0, 0.0, 0.0
            self._gram += gram
            self._lagged += lagged
            self._round += float(moved.max()), 0.0
            self._round[1] = t
            if self._round[0] >= _ROUND_S:
                self._end_round(t)
                self._gram[:], self._lagged[:], self._round[0] = 0.0, 0.0, 0.0

    def _end_round(self, t: float) -> None:
        count, power = self._gram[:, OFFSET, OFFSET], self._gram[:, -1, -1]
        enough = (count >= _MIN_WINDOWS) & (power > 0.0)
        powers = np.concatenate([power, self._without_friction()]) / np.tile(np.maximum(count, 1.0), 2)
        valid = np.tile(enough, 2)
        size = np.where(valid, np.log(np.where(valid, powers, 1.0)), np.nan)
        self._white = np.where(enough, self._lagged / np.where(enough, power, 1.0), np.nan)
        for series, new in ((self._ring_t, t), (self._ring, size), (self._ring_gram, self._gram)):
            series[:-1] = series[1:]
            series[-1] = new
        if self._first[0].max() < _FIRST_ROUNDS:
            log_power = np.nan_to_num(size)
            self._first += np.where(valid, [np.ones_like(log_power), log_power, log_power**2], 0.0)
            return
        self._judge(t)

    def _without_friction(self) -> Array:
        """Return the residual sum of squares of each joint after fitting friction and an offset."""
        own = np.array([10, SPEED, OFFSET])
        N, b = self._gram[:, own[:, None], own], self._gram[:, own, -1]
        N = N + (1e-9 * np.trace(N, axis1=1, axis2=2) + 1e-12)[:, None, None] * np.eye(3)
        fits = np.sum(b * np.linalg.solve(N, b[..., None])[..., 0], axis=1)
        return np.asarray(np.maximum(self._gram[:, -1, -1] - fits, 1e-12))

    def _baseline(self) -> tuple[Array, Array]:
        """Return mean and variance of the log residual power in the first hour."""
        count = np.maximum(self._first[0], 2.0)
        mean = self._first[1] / count
        return mean, np.maximum(self._first[2] / count - mean**2, 0.0) * count / (count - 1.0) + 2.0 / (_ROUND_S * 5.0)

    def _judge(self, t: float) -> None:
        mean, variance = self._baseline()
        valid = np.isfinite(self._ring)
        z = np.where(valid, np.nan_to_num(self._ring) - mean, 0.0)
        v = np.where(valid, np.broadcast_to(variance, z.shape), np.inf)
        change = step_evidence(z, v, variance, np.full(2 * self._n, _CHANGE_STD), self._first[0].max() - 1.0)
        real = significant_changes(change.evidence, self._rate) & (change.size > 0.0)
        top = int(np.argmax(np.where(real, change.evidence, -np.inf)))
        # The first round may mix both states, so the cause is fitted to the rounds after it.
        after = _ROUNDS - 1 - int(change.start[top])
        if real.any() and self._verdict[0]:
            if not after:
                return
            since = float(self._ring_t[change.start[top]])
            self._name_cause(after)
            self._verdict[:] = 0.0, since, 0.0
            joints = [name for j, name in enumerate(self._names) if real[j] or real[self._n + j]]
            detail = {**self._causes(), "joints": joints, "found_after_s": t - since,
                      "times_larger": float(np.exp(0.5 * change.size[top]))}  # fmt: skip
            message = f"The model no longer fits {', '.join(joints)}: {self._explanation()}."
            self.add_event(WatchEvent(since, "model", message, detail, alarm=True))
        elif not self._verdict[0]:
            self._name_cause(max(after, 1))
            newest = np.abs(z[-1]) < 2.0 * np.sqrt(variance)
            self._verdict[2] = self._verdict[2] + 1.0 if newest.all() else 0.0
            if self._verdict[2] >= _CALM_ROUNDS:
                self._verdict[:] = 1.0, t, 0.0
                self._cause[:], self._share[:] = "", np.nan
                self.add_event(WatchEvent(t, "model", "The model fits again.", {}))

    def _name_cause(self, rounds: int) -> None:
        """Find the cause with the most evidence in the last `rounds`, and its share of the residuals."""
        gram = self._ring_gram[-max(rounds, 1) :].sum(axis=0)
        weight = np.exp(-self._baseline()[0][: self._n])
        total = float(np.sum(weight * gram[:, -1, -1]))
        best = 0.0
        self._cause[:], self._share[:] = "", np.nan
        for (kind, joint), (unit, rows) in self._explanations(gram).items():
            N = np.einsum("j,jab->ab", weight * rows[1], gram[:, rows[0][:, None], rows[0]]) * np.outer(unit, unit)
            b = np.einsum("j,ja->a", weight * rows[1], gram[:, rows[0], -1]) * unit
            zero, prior = np.zeros(len(unit)), np.eye(len(unit))
            x, _ = posterior(zero, prior, N, b)
            evidence = float(log_evidence(zero, prior, N, b))
            share = float(2.0 * b @ x - x @ N @ x) / max(total, 1e-300)
            if evidence > best and share > _MIN_SHARE:
                best = evidence
                self._cause[:] = kind, joint
                self._share[0] = share

    def _explanations(self, gram: Array) -> Mapping[tuple[str, str], tuple[Array, tuple[NDArray[np.int64], Array]]]:
        """Return prior standard deviations, columns and joint weights of each cause."""
        n, count = self._n, np.maximum(gram[:, OFFSET, OFFSET], 1.0)
        speed = np.maximum(np.sqrt(gram[:, SPEED, SPEED] / count), 1e-3)
        friction = np.maximum(friction_at(self.setup.model, speed), 1e-6)
        out = {("load", ""): (self._expected, (np.arange(10), np.ones(n)))}
        for j, name in enumerate(self._names):
            this_joint, f = np.eye(n)[j], friction[j]
            out["friction", name] = (
                np.array([_FRICTION_STD * f, _FRICTION_STD * f / speed[j]]),
                (np.array([10, 11]), this_joint),
            )
            out["sensor", name] = np.array([f]), (np.array([OFFSET]), this_joint)
            out["gain", name] = np.array([_GAIN_STD]), (np.array([GAIN]), this_joint)
            out["kinematics", name] = np.array([_ZERO_STD]), (np.array([14 + j]), np.ones(n))
        return out

    def _explanation(self) -> str:
        kind, joint = self._cause.tolist()
        if not kind:
            return "no single cause (load, friction, gain, sensor offset, joint zero) explains the residuals"
        cause = {
            "load": "a load that is not in the model",
            "friction": f"changed friction at {joint}",
            "sensor": f"a torque offset at {joint}",
            "gain": f"a changed torque gain at {joint}",
            "kinematics": f"a changed zero of {joint}",
        }[kind]
        return f"{cause} explains {100.0 * self._share[0]:.0f} % of the residuals"

    def _causes(self) -> dict[str, Any]:
        kind, joint = self._cause.tolist()
        share = float(self._share[0])
        return {"cause": kind, "cause_joint": joint, "share": share if np.isfinite(share) else None}

    def report(self) -> dict[str, Any]:
        has_baseline = self._first[0].max() >= _FIRST_ROUNDS
        values: dict[str, Any] = {"true": bool(self._verdict[0]) if has_baseline else None}
        if has_baseline:
            mean, _ = self._baseline()
            ratio = np.exp(0.5 * (self._ring[-1] - mean))[: self._n]
            values["residual_ratio"] = [float(x) if np.isfinite(x) else None for x in ratio]
        values["whiteness"] = [float(x) if np.isfinite(x) else None for x in self._white]
        if has_baseline and not self._verdict[0]:
            values |= {"since": float(self._verdict[1]), **self._causes(), "words": self._explanation()}
        return values

    def restore(self, state: StateArrays) -> None:
        kind, joint = np.array(state["cause"]).tolist()
        if kind not in _CAUSES or joint not in ("", *self._names):
            raise SteelyardError("the state has an unknown cause.")
        super().restore(state)


_CAUSES = ("", "load", "friction", "sensor", "gain", "kinematics")
