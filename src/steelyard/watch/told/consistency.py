"""Whether the model is still true, and if not, what has changed: load, friction, gain, a sensor, or a joint's zero.

The first hour of motion says how large the model's residuals are here, and how much that varies: in all, which friction
that warms up makes vary much, and beyond what friction and an offset could be, which varies little. Residuals that are
larger than chance makes them once a year mean that the model is no longer true. Then each cause that could be is fitted
to what is left unexplained, alone: its columns (`windows.py`), with what is expected of it. The cause with
the most evidence is told, with the share of the residuals that it accounts for; causes with many numbers pay for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.payload.track import expected_payload
from steelyard.watch.batch import Seen
from steelyard.watch.change import YEARLY_HZ, real_changes, step_evidence
from steelyard.watch.drives import friction_at
from steelyard.watch.evidence import learnt, log_evidence
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.windows import GAIN, OFFSET, SPEED, RowWindows

# Rounds of a minute of motion: so many are what later ones are compared with.
_ROUND_S, _FIRST = 60.0, 60
# Windows in which a joint must have moved for a minute to count.
_FEWEST = 20.0
# The last rounds, in which a change is looked for.
_LAST = 8
# Expected size of a change: residuals that are e times as strong.
_LARGER = 1.0
# Expected of each cause: parts of friction, of the gain; zeros of joints, rad (m).
_RUBS, _GAINS, _ZERO = 0.5, 0.1, 0.05
# No cause is named that accounts for less.
_SHARE = 0.3
# The model is true again after so many rounds as in the first hour.
_CALM = 3.0


@WATCH_PARTS.register("model")
class ConsistencyPart(WatchPart):
    """Size and whiteness of the residuals against those of the first hour, and what accounts for them.

    Args:
        setup: what it is made for; option "health_false_alarms_hz" (1/s, default one a year).
    """

    title = "model"

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._windows = RowWindows.shared(setup)
        robot = setup.model.robot
        self._n, self._names = robot.dof, robot.joint_names
        n, c = self._n, self._windows.columns
        self._rate = float(setup.options.get("health_false_alarms_hz", YEARLY_HZ)) * _ROUND_S
        masses = np.maximum(setup.model.theta[: robot.inertial_count : 10], 0.0)
        self._expected = expected_payload(max(0.2 * float(masses.sum()), 0.1), 0.3)
        self._round = np.zeros(2)  # seconds of motion in it, and its end
        self._gram, self._lagged = np.zeros((n, c, c)), np.zeros(n)
        self._first = np.zeros((3, 2 * n))  # of log power, all and beyond friction: count, sum, sum of squares
        self._ring_t, self._ring = np.full(_LAST, np.nan), np.full((_LAST, 2 * n), np.nan)
        self._ring_gram = np.zeros((_LAST, n, c, c))
        self._verdict = np.array([1.0, np.nan, 0.0])  # true or not, since when, rounds of calm
        self._white = np.full(n, np.nan)
        self._cause = np.array(["", ""], dtype="U120")
        self._share = np.full(1, np.nan)

    def take(self, seen: Seen) -> None:
        looks = self._windows.take(seen)
        for t, gram, moved, lagged in zip(looks.t.tolist(), looks.gram, looks.warmth, looks.lagged, strict=True):
            if not gram[:, OFFSET, OFFSET].any():
                continue
            if t - self._round[1] > _ROUND_S:  # what was begun before a rest is not like what comes after
                self._gram[:], self._lagged[:], self._round[0] = 0.0, 0.0, 0.0
            self._gram += gram
            self._lagged += lagged
            self._round += float(moved.max()), 0.0
            self._round[1] = t
            if self._round[0] >= _ROUND_S:
                self._ended(t)
                self._gram[:], self._lagged[:], self._round[0] = 0.0, 0.0, 0.0

    def _ended(self, t: float) -> None:
        count, power = self._gram[:, OFFSET, OFFSET], self._gram[:, -1, -1]
        enough = (count >= _FEWEST) & (power > 0.0)
        both = np.concatenate([power, self._beyond_friction()]) / np.tile(np.maximum(count, 1.0), 2)
        seen = np.tile(enough, 2)
        size = np.where(seen, np.log(np.where(seen, both, 1.0)), np.nan)
        self._white = np.where(enough, self._lagged / np.where(enough, power, 1.0), np.nan)
        for series, new in ((self._ring_t, t), (self._ring, size), (self._ring_gram, self._gram)):
            series[:-1] = series[1:]
            series[-1] = new
        if self._first[0].max() < _FIRST:
            known = np.nan_to_num(size)
            self._first += np.where(seen, [np.ones_like(known), known, known**2], 0.0)
            return
        self._judge(t)

    def _beyond_friction(self) -> Array:
        """The squares that friction and an offset, the best there are, leave of the residuals of each joint."""
        own = np.array([10, SPEED, OFFSET])
        N, b = self._gram[:, own[:, None], own], self._gram[:, own, -1]
        N = N + (1e-9 * np.trace(N, axis1=1, axis2=2) + 1e-12)[:, None, None] * np.eye(3)
        fits = np.sum(b * np.linalg.solve(N, b[..., None])[..., 0], axis=1)
        return np.asarray(np.maximum(self._gram[:, -1, -1] - fits, 1e-12))

    def _usual(self) -> tuple[Array, Array]:
        """Mean and variance of the log of residual power in the first hour."""
        count = np.maximum(self._first[0], 2.0)
        mean = self._first[1] / count
        return mean, np.maximum(self._first[2] / count - mean**2, 0.0) * count / (count - 1.0) + 2.0 / (_ROUND_S * 5.0)

    def _judge(self, t: float) -> None:
        mean, variance = self._usual()
        known = np.isfinite(self._ring)
        z = np.where(known, np.nan_to_num(self._ring) - mean, 0.0)
        v = np.where(known, np.broadcast_to(variance, z.shape), np.inf)
        found = step_evidence(z, v, variance, np.full(2 * self._n, _LARGER), self._first[0].max() - 1.0)
        real = real_changes(found.evidence, self._rate) & (found.size > 0.0)
        top = int(np.argmax(np.where(real, found.evidence, -np.inf)))
        # The first round may hold both what was and what is; the cause is that of those after it.
        after = _LAST - 1 - int(found.start[top])
        if real.any() and self._verdict[0]:
            if not after:
                return
            since = float(self._ring_t[found.start[top]])
            self._name_cause(after)
            self._verdict[:] = 0.0, since, 0.0
            joints = [name for j, name in enumerate(self._names) if real[j] or real[self._n + j]]
            detail = {**self._causes(), "joints": joints, "found_after_s": t - since,
                      "times_larger": float(np.exp(0.5 * found.size[top]))}  # fmt: skip
            words = f"The model is no longer true at {', '.join(joints)}: {self._words()}."
            self.tell(WatchEvent(since, "model", words, detail, alarm=True))
        elif not self._verdict[0]:
            self._name_cause(max(after, 1))
            newest = np.abs(z[-1]) < 2.0 * np.sqrt(variance)
            self._verdict[2] = self._verdict[2] + 1.0 if newest.all() else 0.0
            if self._verdict[2] >= _CALM:
                self._verdict[:] = 1.0, t, 0.0
                self._cause[:], self._share[:] = "", np.nan
                self.tell(WatchEvent(t, "model", "The model is true again.", {}))

    def _name_cause(self, rounds: int) -> None:
        """The cause with the most evidence in the last `rounds`, and the share that it accounts for."""
        gram = self._ring_gram[-max(rounds, 1) :].sum(axis=0)
        weight = np.exp(-self._usual()[0][: self._n])
        total = float(np.sum(weight * gram[:, -1, -1]))
        best = 0.0
        self._cause[:], self._share[:] = "", np.nan
        for (kind, joint), (unit, rows) in self._explanations(gram).items():
            N = np.einsum("j,jab->ab", weight * rows[1], gram[:, rows[0][:, None], rows[0]]) * np.outer(unit, unit)
            b = np.einsum("j,ja->a", weight * rows[1], gram[:, rows[0], -1]) * unit
            zero, prior = np.zeros(len(unit)), np.eye(len(unit))
            x, _ = learnt(zero, prior, N, b)
            evidence = float(log_evidence(zero, prior, N, b))
            share = float(2.0 * b @ x - x @ N @ x) / max(total, 1e-300)
            if evidence > best and share > _SHARE:
                best = evidence
                self._cause[:] = kind, joint
                self._share[0] = share

    def _explanations(self, gram: Array) -> Mapping[tuple[str, str], tuple[Array, tuple[NDArray[np.int64], Array]]]:
        """For each cause: what is expected of its numbers, their columns, and which joints' rows have them."""
        n, count = self._n, np.maximum(gram[:, OFFSET, OFFSET], 1.0)
        speed = np.maximum(np.sqrt(gram[:, SPEED, SPEED] / count), 1e-3)
        friction = np.maximum(friction_at(self.setup.model, speed), 1e-6)
        out = {("load", ""): (self._expected, (np.arange(10), np.ones(n)))}
        for j, name in enumerate(self._names):
            alone, f = np.eye(n)[j], friction[j]
            out["friction", name] = np.array([_RUBS * f, _RUBS * f / speed[j]]), (np.array([10, 11]), alone)
            out["sensor", name] = np.array([f]), (np.array([OFFSET]), alone)
            out["gain", name] = np.array([_GAINS]), (np.array([GAIN]), alone)
            out["kinematics", name] = np.array([_ZERO]), (np.array([14 + j]), np.ones(n))
        return out

    def _words(self) -> str:
        kind, joint = self._cause.tolist()
        if not kind:
            return "none of load, friction, gain, sensor offset or joint zero alone accounts for it"
        what = {
            "load": "a load that the model does not have",
            "friction": f"other friction at {joint}",
            "sensor": f"an offset of the torque of {joint}",
            "gain": f"another torque gain at {joint}",
            "kinematics": f"another zero of {joint}",
        }[kind]
        return f"{what} accounts for {100.0 * self._share[0]:.0f} % of what it leaves unexplained"

    def _causes(self) -> dict[str, Any]:
        kind, joint = self._cause.tolist()
        share = float(self._share[0])
        return {"cause": kind, "cause_joint": joint, "share": share if np.isfinite(share) else None}

    def telling(self) -> dict[str, Any]:
        known = self._first[0].max() >= _FIRST
        told: dict[str, Any] = {"true": bool(self._verdict[0]) if known else None}
        if known:
            mean, _ = self._usual()
            ratio = np.exp(0.5 * (self._ring[-1] - mean))[: self._n]
            told["residual_ratio"] = [float(x) if np.isfinite(x) else None for x in ratio]
        told["whiteness"] = [float(x) if np.isfinite(x) else None for x in self._white]
        if known and not self._verdict[0]:
            told |= {"since": float(self._verdict[1]), **self._causes(), "words": self._words()}
        return told

    def state(self) -> PartState:
        return {**self._windows.state(), **{name: np.array(getattr(self, f"_{name}")) for name in _KEPT}}

    def restore(self, state: PartState) -> None:
        kind, joint = np.array(state["cause"]).tolist()
        if kind not in _CAUSES or joint not in ("", *self._names):
            raise SteelyardError("the state names a cause that does not exist.")
        self._windows.restore(state)
        for name in _KEPT:
            setattr(self, f"_{name}", np.array(state[name]))


_CAUSES = ("", "load", "friction", "sensor", "gain", "kinematics")
_KEPT = ("round", "gram", "lagged", "first", "ring_t", "ring", "ring_gram", "verdict", "white", "cause", "share")
