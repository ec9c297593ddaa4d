"""`WatchPart`: one thing that a watch tells, such as contact, load or health; and the registry of them, `WATCH_PARTS`.

A part stands in a file of its own in `steelyard.watch.told`. It sees every sample once, in batches whose borders mean
nothing: what it tells must not depend on them.
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
from steelyard.watch.batch import Seen

# Arrays by name, of which a snapshot is made: numbers, truth values, and texts of fixed length.
PartState = dict[str, NDArray[Any]]
# So many events wait to be fetched; who fetches none gets no more, and memory stays flat.
MOST_EVENTS = 1000


@dataclass(frozen=True)
class WatchEvent:
    """Something that happened, with its date.

    Args:
        t: when it happened by the source's clock, s; not when it was found.
        kind: what, a word for programs: "contact", "contact over", "load", "health", "model", "stale", …
        message: one sentence for people.
        detail: plain values for programs: joints, estimates, error bars, how late it was found.
        alarm: a person should look.
    """

    t: float
    kind: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    alarm: bool = False

    def plain(self) -> dict[str, Any]:
        """The event as JSON holds it."""
        return {"t": self.t, "event": self.kind, "message": self.message, "alarm": self.alarm, **self.detail}


@dataclass(frozen=True)
class WatchSetup:
    """What a part is made for.

    Args:
        model: of the robot that is watched.
        run: the run folder, or the exported file, that the model came from; None where it was made in Python.
        false_alarms_hz: how often a part may be wrong in time, per second: one a day is 1/86400.
        calibration: what the watch was calibrated by, as `steelyard watch --calibrate` wrote it; None for none.
        options: further settings, by name.
        watched: the model with what is known of its errors (`WatchedModel`), where it was read already.
    """

    model: Model
    run: Path | None = None
    false_alarms_hz: float = 1.0 / 86400.0
    calibration: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    watched: Any = None


class WatchPart(ABC):
    """One thing that a watch tells.

    Args:
        setup: what it is made for.
    """

    title: ClassVar[str] = ""  # on the terminal and in dashboards
    urgent: ClassVar[bool] = False  # sees every sample at once; others see some together, a little later
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {}  # where a saved state may differ from that of a new part

    def __init__(self, setup: WatchSetup) -> None:
        self.setup = setup
        self._events: list[WatchEvent] = []

    @abstractmethod
    def take(self, seen: Seen) -> None:
        """Learn from what the observer has `seen`; a few microseconds a sample are allowed."""

    @abstractmethod
    def telling(self) -> dict[str, Any]:
        """The present estimate with its error bars, plain JSON of few levels; numbers by joint are lists."""

    @abstractmethod
    def state(self) -> PartState:
        """All that it has learnt, as arrays; what `restore` gets back later."""

    @abstractmethod
    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same part, made for the same model."""

    def end(self) -> None:  # noqa: B027
        """The watch is over: write what was held back. What it leaves behind in its state stays as it is."""

    def tell(self, event: WatchEvent) -> None:
        """Let an `event` be known."""
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)

    def fetch_events(self) -> list[WatchEvent]:
        """What has happened since this was last asked, in the order in which it was found."""
        found, self._events = self._events, []
        return found


WATCH_PARTS: Registry[type[WatchPart]] = Registry("part of a watch", ("steelyard.watch.told",), group="steelyard.watch")


def scalar_state(**values: float) -> PartState:
    """Single numbers (`values`) as arrays, for `WatchPart.state`."""
    return {name: np.asarray(value) for name, value in values.items()}
