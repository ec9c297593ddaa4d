"""Reports the external torque, and contacts with their time, link and direction."""

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
from steelyard.ground.untrusted_files import read_json
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.contact_location import ContactEstimate, locate_contact
from steelyard.watch.monitor_base import MONITORS, Monitor, StateArrays, WatchEvent, WatchSetup
from steelyard.watch.observer import DEFAULT_CUTOFF_HZ, MomentumObserver
from steelyard.watch.residual_scale import CAUSES, ResidualScale, ResidualTerms
from steelyard.watch.threshold import NO_LIMIT, ContactCalibration, default_calibration
from steelyard.watch.uncertain_model import UncertainModel, load_uncertain_model

# A contact ends when all torques stay below half of their limits for three time constants of the low-pass, in which r
# falls to a twentieth. If a robot at rest was pushed, friction may hold it in a new position, and r does not return to
# zero. Then the contact ends when half of the torque is gone and friction can hold the rest.
_END_RATIO = 0.5
_TIME_CONSTANTS = 3.0
# A joint counts as loaded beyond a third of its limit; with the usual limit of 10 σ that is about 3 σ.
_LOADED_RATIO = 1.0 / 3.0


@MONITORS.register("contact")
class ContactMonitor(Monitor):
    """Reports the external torque, and the start and end of contacts, for the model of `setup`."""

    title: ClassVar[str] = "Contact"
    urgent: ClassVar[bool] = True
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "now": ArrayRule(unknown=True),
        "at_peak": ArrayRule(unknown=True),
    }

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        source: ModelLike = setup.model if setup.run is None else setup.run
        uncertain_model: UncertainModel = setup.uncertain_model or load_uncertain_model(source)
        self._robot = uncertain_model.model.robot
        self.calibration = contact_calibration(setup, uncertain_model)
        observer = MomentumObserver(uncertain_model.model, self.calibration.cutoff_hz)
        self._limits = self.calibration.limits(setup.false_alarms_hz)
        self._used = np.array(self._robot.torque_used)
        self._hold = _TIME_CONSTANTS / (2.0 * math.pi * self.calibration.cutoff_hz)
        n = self._robot.dof
        # Whether there is a contact, its start, time of detection, last time above the threshold, and largest ratio.
        self._touched, self._since, self._detected, self._last_felt, self._peak = False, np.nan, np.nan, -np.inf, 0.0
        # Residual torque and variance components of the last sample.
        self._now = ResidualTerms(n, np.zeros((1, n * (2 + len(CAUSES)) + 1)))
        # Coefficients of the squared limit; unused joints have the largest limit.
        self._squares = self.calibration.coefficients * self._limits[:, None] ** 2
        self._squares[~self._used] = [NO_LIMIT**2 if name in ("moving", "resting") else 0.0 for name in CAUSES]
        self._scale = ResidualScale(uncertain_model, observer, self._squares)
        self._at_peak = np.zeros((3, n))  # posture, torque and σ at the strongest moment of the contact
        self.contacts = 0

    def update(self, batch: ObservedBatch) -> None:
        """Process a `batch`."""
        if batch.samples.fresh:  # a contact cannot be followed across a gap
            if self._touched:
                self._toggle(self._last_felt)
            self._last_felt = -np.inf
        while count := len(batch.samples):
            before = self._scale.state() if count > 1 else {}
            terms = self._scale.update(batch, self._touched)
            change = self._change(batch.samples, terms)
            end = count if change is None else change + 1
            if end < count:  # process the rest with the new contact flag
                self._scale.restore(before)
                self._scale.update(batch.section(0, end), self._touched)
            self._now = ResidualTerms(terms.joints, terms.table[end - 1 : end])
            if change is not None:
                self._toggle(float(batch.samples.t[change]))
            if end == count:
                return
            batch = batch.section(end, count)

    def _change(self, samples: SampleBatch, terms: ResidualTerms) -> int | None:
        """Find the first sample at which a contact starts or ends, if any; update last time and strongest moment."""
        if not (self._touched or terms.largest_ratio > 1.0):
            return None
        ratio, t = terms.ratio, samples.t
        if not self._touched:
            k = int(np.argmax(ratio > 1.0))
            self._last_felt, self._peak = float(t[k]), 0.0
            self._strongest(samples, terms, k)
            return k
        held = np.all((np.abs(terms.residual) < terms.friction_hold) | ~self._used, axis=1)
        peak = np.maximum.accumulate(np.append(self._peak, ratio))[1:]
        lasting = (ratio > _END_RATIO) & ~(held & (ratio < _END_RATIO * peak))
        last = np.maximum.accumulate(np.where(lasting, t, self._last_felt))
        over = t - last > self._hold
        change = int(np.argmax(over)) if over.any() else None
        end = len(t) if change is None else change + 1
        self._last_felt = float(last[end - 1])
        self._strongest(samples, terms, int(np.argmax(ratio[:end])))
        return change

    def _strongest(self, samples: SampleBatch, terms: ResidualTerms, k: int) -> None:
        """Store sample `k` if it is the strongest of the contact."""
        if terms.ratio[k] > self._peak:
            self._peak = float(terms.ratio[k])
            sigma = np.sqrt(np.sum(terms.causes[k] * self.calibration.coefficients, axis=1))
            self._at_peak = np.stack([samples.q[k], terms.residual[k], sigma])

    def _toggle(self, t: float) -> None:
        """Start or end a contact at time `t`."""
        if self._touched:
            touch = self.touch()
            detail = {"seconds": self._last_felt - self._since, **({} if touch is None else touch.to_json())}
            where = "" if touch is None else f" at {touch.link} (at most {touch.strength:.0f} N)"
            message = f"The contact{where} ended after {self._last_felt - self._since:.2f} s."
            self.add_event(WatchEvent(self._last_felt, "contact over", message, detail))
            self._touched = False
            self._scale.end_contact(self._last_felt)
            return
        self._touched, self._since, self._detected = True, self._scale.last_quiet, t
        self.contacts += 1
        touch = self.touch()
        assert touch is not None
        late = 1000.0 * (self._detected - self._since)
        joints = [self._robot.joint_names[k] for k in np.flatnonzero(self._loaded_joints())]
        message = f"Contact at {touch.link}: detected by {', '.join(joints)}, {late:.0f} ms after its start."
        detail = {"found": self._detected, "delay_ms": late, "joints": joints, **touch.to_json()}
        self.add_event(WatchEvent(self._since, "contact", message, detail, alarm=True))

    def _loaded_joints(self) -> NDArray[np.bool_]:
        _, torque, sigma = self._at_peak
        return np.asarray((np.abs(torque) > _LOADED_RATIO * self._limits * sigma) & self._used)

    def touch(self) -> ContactEstimate | None:
        """Estimate location and force at the strongest moment of the last contact; None before the first contact."""
        if not self.contacts:
            return None
        q, torque, sigma = self._at_peak
        return locate_contact(self._robot, q, torque, np.where(self._used, sigma, np.inf), self._loaded_joints())

    def report(self) -> dict[str, Any]:
        """Return the external torque and its limits [N m, N], and the present contact."""
        residual = self._now.residual[0]
        limits = np.sqrt((self._now.causes[0] * self._squares).sum(axis=1))
        values: dict[str, Any] = {
            "external_torque": [float(x) for x in residual],
            "limit": [float(x) if x < NO_LIMIT else 0.0 for x in limits],
            "touched": self._touched,
            "contacts": self.contacts,
            "calibrated": self.calibration.seconds > 0.0,
        }
        touch = self.touch() if self._touched else None
        if touch is not None:
            values |= {"since": self._since, **touch.to_json()}
        return values

    def state(self) -> StateArrays:
        """Return the state as arrays."""
        times = [float(self._touched), self._since, self._detected, self._last_felt, self._peak, self.contacts]
        own = {"times": np.array(times, dtype=float), "now": self._now.table, "at_peak": self._at_peak}
        return {**self._scale.state(), **own}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` for the same model."""
        self._scale.restore(state)
        touched, self._since, self._detected, self._last_felt, self._peak, contacts = (float(x) for x in state["times"])
        self._touched, self.contacts = bool(touched), int(contacts)
        self._now = ResidualTerms(self._robot.dof, np.array(state["now"], dtype=float))
        self._at_peak = np.array(state["at_peak"], dtype=float)


def contact_calibration(setup: WatchSetup, uncertain_model: UncertainModel) -> ContactCalibration:
    """Return the calibration of a setup, or a rough one from the residuals in its run folder.

    Args:
        setup: Model and settings.
        uncertain_model: The model with its covariance.
    """
    if isinstance(setup.calibration, ContactCalibration):
        setup.calibration.check(uncertain_model)
        return setup.calibration
    robot = uncertain_model.model.robot
    # Without residuals no torque exceeds its limit.
    residuals = [NO_LIMIT] * int(np.count_nonzero(robot.torque_used))
    if setup.run is not None and (Path(setup.run) / "result.json").is_file():
        root = read_json(Path(setup.run) / "result.json", SteelyardError, "run `steelyard identify` again")
        estimation = root.value.get("estimation", {}) if isinstance(root.value, dict) else {}
        stds = estimation.get("residual_standard_deviation", []) if isinstance(estimation, dict) else []
        if len(stds) == len(residuals) and all(isinstance(x, int | float) for x in stds):
            residuals = [float(x) for x in stds]
    return default_calibration(uncertain_model, residuals, DEFAULT_CUTOFF_HZ)
