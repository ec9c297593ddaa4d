"""External torque and contact: when something touched the robot, which link, and roughly from where."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.export.coerce import ModelLike
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.untrusted import read_json
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.model import WatchedModel, watched_model
from steelyard.watch.observer import USUAL_CUTOFF_HZ, MomentumObserver
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.scatter import CAUSES, Excused, Scatter
from steelyard.watch.threshold import NO_LIMIT, Calibration, rough_calibration
from steelyard.watch.touch import Touch, locate

# A contact is over when all torques have been below half of their limits for three time constants of the low-pass:
# r of a contact that has ended falls to a twentieth of itself in that time. A robot at rest that was pushed is held by
# friction elsewhere than before, and r does not come back: there it is over when half of the push is gone and friction
# may hold what is left.
_OVER = 0.5
_TIME_CONSTANTS = 3.0
# A joint feels a contact where its torque is beyond a third of its limit: at the usual ten σ that is three of them.
_FELT = 1.0 / 3.0


@WATCH_PARTS.register("contact")
class ContactPart(WatchPart):
    """Tells the external torque, and of contacts when they begin and end; `setup` is what it is made for."""

    title: ClassVar[str] = "Contact"
    urgent: ClassVar[bool] = True
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "now": ArrayRule(unknown=True),
        "at_peak": ArrayRule(unknown=True),
    }

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        given: ModelLike = setup.model if setup.run is None else setup.run
        watched: WatchedModel = setup.watched or watched_model(given)
        self._robot = watched.model.robot
        self.calibration = contact_calibration(setup, watched)
        observer = MomentumObserver(watched.model, self.calibration.cutoff_hz)
        self._limits = self.calibration.limits(setup.false_alarms_hz)
        self._used = np.array(self._robot.torque_used)
        self._hold = _TIME_CONSTANTS / (2.0 * math.pi * self.calibration.cutoff_hz)
        n = self._robot.dof
        # Whether it is touched, since when, when that was found, when it was last felt, and how strongly at most.
        self._touched, self._since, self._found, self._loud, self._peak = False, np.nan, np.nan, -np.inf, 0.0
        # External torque less what friction explains, and what its limit is made of.
        self._now = Excused(n, np.zeros((1, n * (2 + len(CAUSES)) + 1)))
        # The causes times these add up to the square of the limit; joints whose torque is not used have none.
        self._squares = self.calibration.coefficients * self._limits[:, None] ** 2
        self._squares[~self._used] = [NO_LIMIT**2 if name in ("moving", "resting") else 0.0 for name in CAUSES]
        self._scatter = Scatter(watched, observer, self._squares)
        self._at_peak = np.zeros((3, n))  # posture, torque and σ where the contact was strongest
        self.contacts = 0

    def take(self, seen: Seen) -> None:
        """Learn from what the observer has `seen`."""
        if seen.batch.fresh:  # the clock may be another, and nobody knows what happened in between
            if self._touched:
                self._turn(self._loud)
            self._loud = -np.inf
        while count := len(seen.batch):
            kept = self._scatter.state() if count > 1 else {}
            excused = self._scatter.take(seen, self._touched)
            change = self._change(seen.batch, excused)
            end = count if change is None else change + 1
            if end < count:  # the rest goes another way
                self._scatter.restore(kept)
                self._scatter.take(seen.part(0, end), self._touched)
            self._now = Excused(excused.joints, excused.found[end - 1 : end])
            if change is not None:
                self._turn(float(seen.batch.t[change]))
            if end == count:
                return
            seen = seen.part(end, count)

    def _change(self, batch: SampleBatch, excused: Excused) -> int | None:
        """The first sample at which a contact begins, or ends; None where nothing changes. What is needed of the
        samples until then is kept: when it was last felt, and the strongest moment."""
        if not (self._touched or excused.largest > 1.0):
            return None
        most, t = excused.most, batch.t
        if not self._touched:
            k = int(np.argmax(most > 1.0))
            self._loud, self._peak = float(t[k]), 0.0
            self._strongest(batch, excused, k)
            return k
        stuck = np.all((np.abs(excused.beyond) < excused.held) | ~self._used, axis=1)  # friction may hold what is left
        peak = np.maximum.accumulate(np.append(self._peak, most))[1:]
        going_on = (most > _OVER) & ~(stuck & (most < _OVER * peak))
        last = np.maximum.accumulate(np.where(going_on, t, self._loud))
        over = t - last > self._hold
        change = int(np.argmax(over)) if over.any() else None
        end = len(t) if change is None else change + 1
        self._loud = float(last[end - 1])
        self._strongest(batch, excused, int(np.argmax(most[:end])))
        return change

    def _strongest(self, batch: SampleBatch, excused: Excused, k: int) -> None:
        """Keep sample `k` if no moment of the contact was stronger."""
        if excused.most[k] > self._peak:
            self._peak = float(excused.most[k])
            sigma = np.sqrt(np.sum(excused.causes[k] * self.calibration.coefficients, axis=1))
            self._at_peak = np.stack([batch.q[k], excused.beyond[k], sigma])

    def _turn(self, t: float) -> None:
        """A contact begins, or ends, at time `t`."""
        if self._touched:
            touch = self.touch()
            detail = {"seconds": self._loud - self._since, **({} if touch is None else touch.to_json())}
            where = "" if touch is None else f" of {touch.link}, {touch.strength:.0f} N at most,"
            told = f"The contact{where} is over after {self._loud - self._since:.2f} s."
            self.tell(WatchEvent(self._loud, "contact over", told, detail))
            self._touched = False
            self._scatter.let_go(self._loud)
            return
        self._touched, self._since, self._found = True, self._scatter.quiet, t
        self.contacts += 1
        touch = self.touch()
        assert touch is not None
        late = 1000.0 * (self._found - self._since)
        joints = [self._robot.joint_names[k] for k in np.flatnonzero(self._feels())]
        message = f"Something touches {touch.link}: felt by {', '.join(joints)}, {late:.0f} ms after it began."
        detail = {"found": self._found, "delay_ms": late, "joints": joints, **touch.to_json()}
        self.tell(WatchEvent(self._since, "contact", message, detail, alarm=True))

    def _feels(self) -> NDArray[np.bool_]:
        _, torque, sigma = self._at_peak
        return np.asarray((np.abs(torque) > _FELT * self._limits * sigma) & self._used)

    def touch(self) -> Touch | None:
        """Where and how the present or the last contact is, or was, strongest; None before the first."""
        if not self.contacts:
            return None
        q, torque, sigma = self._at_peak
        return locate(self._robot, q, torque, np.where(self._used, sigma, np.inf), self._feels())

    def telling(self) -> dict[str, Any]:
        """External torque and its limits (N m, N), whether something touches the robot, and where."""
        beyond = self._now.beyond[0]
        limits = np.sqrt((self._now.causes[0] * self._squares).sum(axis=1))
        told: dict[str, Any] = {
            "external_torque": [float(x) for x in beyond],
            "limit": [float(x) if x < NO_LIMIT else 0.0 for x in limits],
            "touched": self._touched,
            "contacts": self.contacts,
            "calibrated": self.calibration.seconds > 0.0,
        }
        touch = self.touch() if self._touched else None
        if touch is not None:
            told |= {"since": self._since, **touch.to_json()}
        return told

    def state(self) -> PartState:
        """All that it has learnt, as arrays."""
        times = [float(self._touched), self._since, self._found, self._loud, self._peak, self.contacts]
        own = {"times": np.array(times, dtype=float), "now": self._now.found, "at_peak": self._at_peak}
        return {**self._scatter.state(), **own}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` made for the same model."""
        self._scatter.restore(state)
        touched, self._since, self._found, self._loud, self._peak, contacts = (float(x) for x in state["times"])
        self._touched, self.contacts = bool(touched), int(contacts)
        self._now = Excused(self._robot.dof, np.array(state["now"], dtype=float))
        self._at_peak = np.array(state["at_peak"], dtype=float)


def contact_calibration(setup: WatchSetup, watched: WatchedModel) -> Calibration:
    """The calibration of `setup`; or what the run folder of the model `watched` tells of its residuals."""
    if isinstance(setup.calibration, Calibration):
        setup.calibration.check(watched)
        return setup.calibration
    robot = watched.model.robot
    # Without any residuals nothing is known, and no torque is beyond its limit.
    residuals = [NO_LIMIT] * int(np.count_nonzero(robot.torque_used))
    if setup.run is not None and (Path(setup.run) / "result.json").is_file():
        root = read_json(Path(setup.run) / "result.json", SteelyardError, "identify anew")
        told = root.value.get("estimation", {}) if isinstance(root.value, dict) else {}
        found = told.get("residual_standard_deviation", []) if isinstance(told, dict) else []
        if len(found) == len(residuals) and all(isinstance(x, int | float) for x in found):
            residuals = [float(x) for x in found]
    return rough_calibration(watched, residuals, USUAL_CUTOFF_HZ)
