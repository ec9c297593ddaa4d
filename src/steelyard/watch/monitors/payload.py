"""Reports mass and centre of the payload a few seconds after it is picked up or put down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.numbers import with_error
from steelyard.payload.payload import Payload
from steelyard.payload.recursive import EXPECTED_SIZE_M, expected_payload, heaviest_payload
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.monitor_base import MONITORS, Monitor, SavedArrays, WatchEvent, WatchSetup
from steelyard.watch.payload_estimator import PayloadEstimator
from steelyard.watch.windows import OFFSET, ResidualWindows

# A payload is reported if its likelihood ratio to none exceeds e³ = 20, and its mass exceeds this many standard
# deviations and a hundredth of the largest expected mass.
_MIN_EVIDENCE, _SIGMAS, _MIN_SHARE = 3.0, 3.0, 0.01
# A change is reported when the relative error of the mass is below this (or the error is below the smallest mass). It
# is not reported within this time [s], in which the first second may mix two payloads, and at the latest after this
# [s].
_MAX_RELATIVE_ERROR, _MIN_DELAY_S, _MAX_DELAY_S = 0.2, 4.0, 10.0


@MONITORS.register("load")
class PayloadMonitor(SavedArrays, Monitor):
    """Reports mass and centre of the payload.

    Args:
        setup: Model and settings; options "heaviest" [kg] and "size" [m] describe the expected payload, "frame" names
            its frame (default: the last link).
    """

    title = "load"
    saved: ClassVar[Mapping[str, str]] = {"carries": "_carries", "told": "_reported", "pending": "_pending"}
    saved_parts = "_windows", "_estimator"
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {"told": ArrayRule(unknown=True)}

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._windows = ResidualWindows.shared(setup)
        robot, options = setup.model.robot, setup.options
        heaviest = float(options.get("heaviest", heaviest_payload(setup.model)))
        self._frame = str(options.get("frame", "")) or robot.link_names[robot.moving_frame().host]
        self._heaviest = heaviest
        expected = expected_payload(heaviest, float(options.get("size", EXPECTED_SIZE_M)))
        self._estimator = PayloadEstimator(setup.model, expected, setup.false_alarms_hz)
        self._carries = np.array([0.0, np.nan])  # whether there is a payload, and since when
        self._reported = np.zeros(2)  # mass of the last report, and its error
        self._pending = np.array([np.nan, 0.0])  # time of a change that is not reported yet, and its age

    def update(self, batch: ObservedBatch) -> None:
        sums = self._windows.update(batch)
        for t, gram in zip(sums.t.tolist(), sums.gram, strict=True):
            if gram[:, OFFSET, OFFSET].any():
                self._update_second(t, self._estimator.update(t, gram))

    def _update_second(self, t: float, changed: float | None) -> None:
        if not self._estimator.is_ready:
            return
        if np.isnan(self._carries[1]):
            self._carries[1] = t  # no payload until there is evidence
        load = self._load()
        carries = self._is_load(load)
        if np.isnan(self._pending[0]) and (changed is not None or carries != bool(self._carries[0])):
            self._pending[:] = t if changed is None else changed, 0.0
        elif changed is not None:
            self._pending[1] = 0.0  # a better estimate of the same change, or a later one
            if changed > self._pending[0] + _MIN_DELAY_S:
                self._pending[0] = changed
        if np.isnan(self._pending[0]):
            self._reported[:] = load.mass, load.mass_error
            return
        self._pending[1] += 1.0
        unsure = load.mass_error > max(_MAX_RELATIVE_ERROR * abs(load.mass), _MIN_SHARE * self._heaviest)
        if self._pending[1] < (_MAX_DELAY_S if unsure else _MIN_DELAY_S):
            return
        since = float(self._pending[0])
        self._pending[:] = np.nan, 0.0
        before = bool(self._carries[0])
        same = abs(load.mass - self._reported[0]) < 3.0 * np.hypot(load.mass_error, self._reported[1])
        self._reported[:] = load.mass, load.mass_error
        if carries == before and (same or not carries):
            return
        self._carries[:] = float(carries), since
        mass, detail = with_error(load.mass, load.mass_error), self._detail(load) | {"found_after_s": t - since}
        if not carries:
            message = "The payload was put down."
        else:
            message = f"The robot carries {'another' if before else 'a'} payload: {mass} kg."
        self.add_event(WatchEvent(since, "load" if carries else "load over", message, detail))

    def _is_load(self, load: Payload) -> bool:
        """Whether the estimate is a payload. A model error would have a mass close to zero."""
        enough = max(_MIN_SHARE * self._heaviest, _SIGMAS * load.mass_error)
        return load.mass > enough and self._estimator.evidence() > _MIN_EVIDENCE

    def _detail(self, load: Payload) -> dict[str, Any]:
        return {"mass": load.mass, "mass_error": load.mass_error, "frame": self._frame}

    def _load(self) -> Payload:
        return Payload(self._frame, self._estimator.parameters, self._estimator.covariance)

    def report(self) -> dict[str, Any]:
        if not self._estimator.is_ready:
            return {"carries": None, "frame": self._frame}
        load = self._load()
        carries, since = bool(self._carries[0]), float(self._carries[1])
        values = {"carries": carries, "since": since, "settled": bool(np.isnan(self._pending[0])), **self._detail(load)}
        if carries and load.mass > 2.0 * load.mass_error:
            values |= {"center": load.center_of_gravity.tolist(), "center_error": load.center_of_gravity_error.tolist()}
        return values
