"""`Monitor`: estimates one thing from the samples, such as contact, load or health; `MONITORS`: their registry.

Each monitor has a file in `steelyard.watch.monitors`. It gets every sample once. Its result must not depend on how the
samples are split into batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr
from steelyard.watch.batch import ObservedBatch

# Content of a snapshot: numbers, booleans and strings of fixed length, by name.
StateArrays = dict[str, NDArray[Any]]
# Later events are dropped until someone fetches them, so that memory stays bounded.
MAX_EVENTS = 1000


@short_repr
@dataclass(frozen=True)
class WatchEvent:
    """A dated event.

    Args:
        t: Time of the event by the clock of the source [s]; not the time of detection.
        kind: Identifier for programs: "contact", "contact over", "load", "health", "model", "stale", …
        message: One sentence for the user.
        detail: Plain values for programs: joints, estimates, error bars, detection delay.
        alarm: Whether a person should look at the robot.
    """

    t: float
    kind: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    alarm: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the event as plain values for JSON."""
        return {"t": self.t, "event": self.kind, "message": self.message, "alarm": self.alarm, **self.detail}


@short_repr
@dataclass(frozen=True)
class WatchSetup:
    """Model and settings of a monitor.

    Args:
        model: Model of the robot.
        run: Run folder or exported file of the model; None if it was made in Python.
        false_alarms_hz: Accepted rate of false alarms [1/s]; one a day is 1/86400.
        calibration: Result of `steelyard watch --calibrate`, or None.
        options: Further settings, by name.
        uncertain_model: The model with its covariance (`UncertainModel`), if it was read already.
    """

    model: Model
    run: Path | None = None
    false_alarms_hz: float = 1.0 / 86400.0
    calibration: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    uncertain_model: Any = None


def saved_attributes(prefix: str, attributes: str) -> dict[str, str]:
    """Return attributes by their names in a state.

    Args:
        prefix: Beginning of the names in the state.
        attributes: Attributes, separated by spaces.
    """
    return {f"{prefix}{name.lstrip('_')}": name for name in attributes.split()}


class SavedArrays:
    """Saves attributes as arrays, and continues from them.

    Attributes:
        saved: Attributes by their names in a state.
        saved_parts: Attributes that save themselves.
    """

    saved: ClassVar[Mapping[str, str]] = {}
    saved_parts: ClassVar[tuple[str, ...]] = ()

    def state(self) -> StateArrays:
        """Return all that the next update needs, as arrays."""
        parts = [getattr(self, name).state() for name in self.saved_parts]
        own = {key: np.array(getattr(self, name)) for key, name in self.saved.items()}
        return {key: value for part in (*parts, own) for key, value in part.items()}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` of the same model."""
        for name in self.saved_parts:
            getattr(self, name).restore(state)
        for key, name in self.saved.items():
            value = np.array(state[key], dtype=np.asarray(getattr(self, name)).dtype)
            setattr(self, name, value if value.ndim else float(value))


class Monitor(ABC):
    """Estimates one thing from the samples.

    Args:
        setup: Model and settings.
    """

    title: ClassVar[str] = ""  # on the terminal and in dashboards
    urgent: ClassVar[bool] = False  # gets every sample at once; others get several together, a little later
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {}  # where a saved state may differ from that of a new monitor

    def __init__(self, setup: WatchSetup) -> None:
        self.setup = setup
        self._events: list[WatchEvent] = []

    @abstractmethod
    def update(self, batch: ObservedBatch) -> None:
        """Update the estimate with a `batch`; it may take a few microseconds per sample."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Return the present estimate with its error bars as JSON of few levels; values by joint are lists."""

    @abstractmethod
    def state(self) -> StateArrays:
        """Return the whole state as arrays for `restore`."""

    @abstractmethod
    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` of the same monitor for the same model."""

    def finish(self) -> None:  # noqa: B027
        """Write pending results when the watch ends; the state must not change."""

    def add_event(self, event: WatchEvent) -> None:
        """Queue an `event` for `fetch_events`."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(event)

    def fetch_events(self) -> list[WatchEvent]:
        """Return and clear the events since the last call, in the order of detection."""
        events, self._events = self._events, []
        return events


MONITORS: Registry[type[Monitor]] = Registry("monitor", ("steelyard.watch.monitors",), group="steelyard.watch")
