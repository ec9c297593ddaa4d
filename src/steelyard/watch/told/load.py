"""What the robot carries: mass and centre, seconds after it was picked up, and none again when it was put down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.numbers import with_error
from steelyard.payload.payload import Payload
from steelyard.payload.track import expected_payload
from steelyard.watch.batch import Seen
from steelyard.watch.carried import CarriedLoad
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.windows import OFFSET, RowWindows

# A load is told as one if it accounts for the torques e³ = 20 times as well as none, and its mass is beyond so many
# error bars and a hundredth of what is expected.
_CARRIED, _SIGMAS, _LEAST = 3.0, 3.0, 0.01
# A change is told when the mass is known to this part of itself (or to the least that counts), but not within so many
# seconds, of which the first may hold two loads; or, whatever is known, after this time, s.
_SURE, _SETTLED, _PATIENCE = 0.2, 4.0, 10.0
# Without a rated payload at hand: robots carry up to a fifth of what they weigh, lightweight ones included, …
_PART_OF_ROBOT, _LEAST_KG = 0.2, 0.1
# … within a hand's length and a part's size of the flange (m).
_SIZE = 0.3


@WATCH_PARTS.register("load")
class LoadPart(WatchPart):
    """Mass and centre of what was picked up.

    Args:
        setup: what it is made for; options "heaviest" (kg) and "size" (m) say what load is expected, "frame" where it
            is described (default: the last link).
    """

    title = "load"
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {"told": ArrayRule(unknown=True)}

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._windows = RowWindows.shared(setup)
        robot, options = setup.model.robot, setup.options
        masses = np.maximum(setup.model.theta[: robot.inertial_count : 10], 0.0)
        heaviest = float(options.get("heaviest", max(_PART_OF_ROBOT * float(masses.sum()), _LEAST_KG)))
        self._frame = str(options.get("frame", "")) or robot.link_names[robot.moving_frame().host]
        self._heaviest = heaviest
        expected = expected_payload(heaviest, float(options.get("size", _SIZE)))
        self._carried = CarriedLoad(setup.model, expected, setup.false_alarms_hz)
        self._carries = np.array([0.0, np.nan])  # whether, and since when
        self._told = np.zeros(2)  # mass that was told last, and its error
        self._pending = np.array([np.nan, 0.0])  # moment of a change that was not told yet, and for how many looks

    def take(self, seen: Seen) -> None:
        looks = self._windows.take(seen)
        for t, gram in zip(looks.t.tolist(), looks.gram, strict=True):
            if gram[:, OFFSET, OFFSET].any():
                self._look(t, self._carried.look(t, gram))

    def _look(self, t: float, changed: float | None) -> None:
        if not self._carried.known:
            return
        if np.isnan(self._carries[1]):
            self._carries[1] = t  # none, until another is known
        load = self._load()
        carries = self._is_load(load)
        if np.isnan(self._pending[0]) and (changed is not None or carries != bool(self._carries[0])):
            self._pending[:] = t if changed is None else changed, 0.0
        elif changed is not None:
            self._pending[1] = 0.0  # the same change, seen better, or another that came after it
            if changed > self._pending[0] + _SETTLED:
                self._pending[0] = changed
        if np.isnan(self._pending[0]):
            self._told[:] = load.mass, load.mass_error
            return
        self._pending[1] += 1.0
        unsure = load.mass_error > max(_SURE * abs(load.mass), _LEAST * self._heaviest)
        if self._pending[1] < (_PATIENCE if unsure else _SETTLED):
            return
        since = float(self._pending[0])
        self._pending[:] = np.nan, 0.0
        before = bool(self._carries[0])
        same = abs(load.mass - self._told[0]) < 3.0 * np.hypot(load.mass_error, self._told[1])
        self._told[:] = load.mass, load.mass_error
        if carries == before and (same or not carries):
            return
        self._carries[:] = float(carries), since
        mass, detail = with_error(load.mass, load.mass_error), self._detail(load) | {"found_after_s": t - since}
        if not carries:
            message = "What it carried was put down."
        else:
            message = f"It carries {'something else' if before else 'something'}: {mass} kg."
        self.tell(WatchEvent(since, "load" if carries else "load over", message, detail))

    def _is_load(self, load: Payload) -> bool:
        """Whether what fits the torques is a load, and not what the model leaves: that has no mass."""
        enough = max(_LEAST * self._heaviest, _SIGMAS * load.mass_error)
        return load.mass > enough and self._carried.evidence_of_any() > _CARRIED

    def _detail(self, load: Payload) -> dict[str, Any]:
        return {"mass": load.mass, "mass_error": load.mass_error, "frame": self._frame}

    def _load(self) -> Payload:
        return Payload(self._frame, self._carried.parameters, self._carried.covariance)

    def telling(self) -> dict[str, Any]:
        if not self._carried.known:
            return {"carries": None, "frame": self._frame}
        load = self._load()
        carries, since = bool(self._carries[0]), float(self._carries[1])
        told = {"carries": carries, "since": since, "settled": bool(np.isnan(self._pending[0])), **self._detail(load)}
        if carries and load.mass > 2.0 * load.mass_error:
            told |= {"center": load.center_of_gravity.tolist(), "center_error": load.center_of_gravity_error.tolist()}
        return told

    def state(self) -> PartState:
        return {
            **self._windows.state(),
            **self._carried.state(),
            **{name: getattr(self, f"_{name}").copy() for name in _KEPT},
        }

    def restore(self, state: PartState) -> None:
        self._windows.restore(state)
        self._carried.restore(state)
        for name in _KEPT:
            setattr(self, f"_{name}", np.array(state[name], dtype=float))


_KEPT = ("carries", "told", "pending")
